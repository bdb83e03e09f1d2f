#include "crypto/known_answers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "crypto/hex.h"

namespace sluice::crypto {
namespace {

constexpr std::uint8_t filler = 0xa5;  // behind every packet: must be left alone

void append(std::vector<std::uint8_t>& to, std::string_view digits) {
  const auto bytes = from_hex(digits);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<RegisteredAnswer> known_answers(const Side* side) {
  std::vector<RegisteredAnswer> all;
  for (const Algorithm* const one : algorithms()) {
    for (const KnownAnswer& answer : one->answers) {
      if (side == nullptr || side->can(*one, answer.cipher_key.size() / 2)) all.push_back({one, &answer});
    }
  }
  return all;
}

Expected<KnownAnswerBatch> KnownAnswerBatch::make(bool opens, const Side* side) {
  auto answers = known_answers(side);
  const std::size_t count = answers.size();
  auto keys = KeyTable::make(static_cast<std::uint32_t>(count), true);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  KnownAnswerBatch batch(std::move(*keys), std::move(answers));
  batch.packets_.resize(count * packet_length, filler);
  batch.expected_ = batch.packets_;
  for (std::size_t i = 0; i < count; ++i) {
    if (auto added = batch.add(i, opens); !added) {
      return tl::unexpected(added.error());
    }
  }
  return batch;
}

Expected<void> KnownAnswerBatch::add(std::size_t i, bool opens) {
  const KnownAnswer& answer = *answers_[i].answer;
  const auto cipher_key = from_hex(answer.cipher_key);
  const auto salt = from_hex(answer.salt);
  const auto auth_key = from_hex(answer.auth_key);
  const auto nonce = from_hex(answer.nonce);
  const auto suffix = from_hex(answer.suffix);
  const Algorithm& algorithm = *answers_[i].algorithm;
  auto slot = keys_.install({algorithm.cipher, algorithm.hash, cipher_key, salt, auth_key,
                             static_cast<std::uint8_t>(answer.tag.size() / 2), opens});
  if (!slot) {
    return make_error(std::string(answer.name) + ": " + slot.error().message);
  }
  std::vector<std::uint8_t> open;
  append(open, answer.clear);
  append(open, answer.text);
  if (!opens) {
    const auto block = from_hex(answer.block);
    std::copy(block.begin(), block.end(),
              open.begin() + static_cast<std::ptrdiff_t>(answer.clear.size() / 2 - block.size()));
  }
  std::vector<std::uint8_t> sealed;
  append(sealed, answer.clear);
  append(sealed, answer.sealed);
  append(sealed, answer.tag);
  std::uint8_t* const packet = packets_.data() + i * packet_length;
  std::uint8_t* const expected = expected_.data() + i * packet_length;
  std::copy(sealed.begin(), sealed.end(), opens ? packet : expected);
  std::copy(open.begin(), open.end(), opens ? expected : packet);
  if (opens) {  // the tag is left where it is
    std::copy(sealed.begin() + static_cast<std::ptrdiff_t>(open.size()), sealed.end(), expected + open.size());
  }
  Job job = {};
  job.data = reinterpret_cast<std::uint64_t>(packet);
  job.key = *slot;
  std::copy(suffix.begin(), suffix.end(), job.suffix);
  std::copy(nonce.begin(), nonce.end(), job.nonce);
  job.cipher_offset = static_cast<std::uint16_t>(answer.clear.size() / 2);
  job.cipher_length = static_cast<std::uint16_t>(answer.text.size() / 2);
  job.flags = static_cast<std::uint8_t>((opens ? job_opens : 0) | (suffix.empty() ? 0 : job_has_suffix));
  jobs_.push_back(job);
  return {};
}

bool KnownAnswerBatch::right(std::size_t i, Verdict verdict) const {
  return verdict == Verdict::done &&
         std::memcmp(packets_.data() + i * packet_length, expected_.data() + i * packet_length, packet_length) == 0;
}

}  // namespace sluice::crypto
