// The field's published vectors in the form of jobs, for every device: each must seal `text` to `sealed` and `tag`, and
// open it again. All in hexadecimal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "crypto/job.h"
#include "crypto/key_table.h"

namespace sluice::crypto {

struct KnownAnswer {
  std::string_view name;  // the document and its number there
  Cipher cipher;
  std::string_view cipher_key;
  std::string_view salt;
  std::string_view auth_key;
  std::string_view nonce;  // 10 bytes
  std::string_view clear;
  std::string_view suffix;  // 4 bytes or none
  std::string_view text;
  std::string_view sealed;
  std::string_view tag;  // its length is the key's
};
std::span<const KnownAnswer> known_answers();

// The vectors as a batch: packets of 256 B in one piece of memory, and keys of their own.
class KnownAnswerBatch {
 public:
  // `opens`: packets that are sealed already.
  static Expected<KnownAnswerBatch> make(bool opens);

  const KeyTable& keys() const { return keys_; }
  std::span<const Job> jobs() const { return jobs_; }
  std::span<std::uint8_t> packet(std::size_t i) { return {packets_.data() + i * packet_length, packet_length}; }

  // Is `verdict` and what the packet holds now what the vector says? All 256 B are compared.
  bool right(std::size_t i, Verdict verdict) const;

 private:
  static constexpr std::size_t packet_length = 256;
  explicit KnownAnswerBatch(KeyTable keys) : keys_(std::move(keys)) {}
  Expected<void> add(const KnownAnswer& answer, std::size_t i, bool opens);

  KeyTable keys_;
  std::vector<Job> jobs_;
  std::vector<std::uint8_t> packets_;
  std::vector<std::uint8_t> expected_;
};

}  // namespace sluice::crypto
