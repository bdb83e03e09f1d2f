#include "function/outer_fragments.h"

#include <cstddef>
#include <cstring>

#include "engine/batch_edit.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/header_facts.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

constexpr flow::FragmentSettings settings{
    .memory = OuterFragments::piece_bytes, .timeout = OuterFragments::timeout, .remembered = 1024};

// Of addresses and the packet's identification; never 0.
std::uint64_t hash_of(const packet::HeaderFacts& facts) {
  using packet::detail::multiply_fold;
  const auto word = [](const packet::IpAddress& address) {
    std::uint64_t words[2];
    std::memcpy(words, address.bytes.data(), sizeof words);
    return multiply_fold(words[0] ^ 0xa0761d6478bd642fU, words[1] ^ 0xe7037ed1a0b428dbU);
  };
  return multiply_fold(word(facts.source) ^ facts.ip_id.value_or(0), word(facts.destination) ^ 0x8ebc6af09c88c6e3U) | 1;
}

}  // namespace

OuterFragments::OuterFragments() : fragments_(settings) {}

OuterFragments::Taken OuterFragments::take(std::string_view frame, bool is_own, std::uint32_t now_seconds) {
  packet::HeaderFacts facts;
  packet::read_headers(frame, facts);
  if (!facts.fragment() || !facts.whole) return is_own ? Taken::refused : Taken::no;
  const std::uint64_t hash = hash_of(facts);
  std::uint64_t& known = ours_[(hash >> 32) % ours_.size()];
  if (is_own) known = hash;
  if (known != hash) return Taken::no;
  switch (fragments_.take(frame, facts, flow::Milliseconds{now_seconds} * 1000)) {
    case flow::Fragments::Taken::kept:
      return Taken::kept;
    case flow::Fragments::Taken::whole:
      return Taken::whole;
    case flow::Fragments::Taken::refused:
      return Taken::refused;
  }
  return Taken::refused;
}

OuterFragments::Taken OuterFragments::put_together(engine::Batch& batch, std::uint32_t i, bool is_own,
                                                   std::uint32_t now_seconds) {
  std::uint8_t* const frame = batch.data(i);
  std::uint16_t type;
  std::memcpy(&type, frame + offsetof(packet::EthernetHeader, ethertype), sizeof type);
  if (type == packet::be16(packet::ethertype_ipv4)) {
    const auto& ip = packet::header_at<packet::Ipv4Header>(frame, sizeof(packet::EthernetHeader));
    if (ip.checksum != packet::ipv4_header_checksum(ip)) return Taken::no;  // the router's, or the host's, to refuse
  }
  const Taken taken = take({reinterpret_cast<const char*>(frame), batch.length[i]}, is_own, now_seconds);
  if (taken == Taken::kept) batch.absorb(i);
  if (taken != Taken::whole) return taken;
  const std::string_view whole = datagram();
  if (whole.size() > engine::capacity_from(batch, i)) return Taken::too_long;
  std::memcpy(frame, whole.data(), whole.size());
  engine::set_length(batch, i, static_cast<std::uint32_t>(whole.size()));
  return Taken::whole;
}

}  // namespace sluice::function
