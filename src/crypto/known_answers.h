// The known answers of all registered algorithms as jobs, for every device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "crypto/algorithm.h"
#include "crypto/job.h"
#include "crypto/key_table.h"

namespace sluice::crypto {

// One of a registered algorithm.
struct RegisteredAnswer {
  const Algorithm* algorithm;
  const KnownAnswer* answer;
};
// Of all algorithms, one behind the other; with `side`, of what it can do.
std::vector<RegisteredAnswer> known_answers(const Side* side = nullptr);

// The vectors as a batch: packets of 256 B in one piece of memory, and keys of their own.
class KnownAnswerBatch {
 public:
  // `opens`: packets that are sealed already. `side`: of what it can do; nullptr: all.
  static Expected<KnownAnswerBatch> make(bool opens, const Side* side = nullptr);

  const KeyTable& keys() const { return keys_; }
  // That of packet `i`.
  std::string_view name(std::size_t i) const { return answers_[i].answer->name; }
  std::span<const Job> jobs() const { return jobs_; }
  std::span<std::uint8_t> packet(std::size_t i) { return {packets_.data() + i * packet_length, packet_length}; }

  // Is `verdict` and what the packet holds now what the vector says? All 256 B are compared.
  bool right(std::size_t i, Verdict verdict) const;

 private:
  static constexpr std::size_t packet_length = 256;
  KnownAnswerBatch(KeyTable keys, std::vector<RegisteredAnswer> answers)
      : keys_(std::move(keys)), answers_(std::move(answers)) {}
  Expected<void> add(std::size_t i, bool opens);

  KeyTable keys_;
  std::vector<RegisteredAnswer> answers_;
  std::vector<Job> jobs_;
  std::vector<std::uint8_t> packets_;
  std::vector<std::uint8_t> expected_;
};

}  // namespace sluice::crypto
