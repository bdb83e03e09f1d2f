#include "function/vxlan/outer_fragments.h"

#include <cstring>

#include "packet/flow_hash.h"
#include "packet/header_facts.h"

namespace sluice::function {
namespace {

constexpr flow::FragmentSettings settings{.memory = OuterFragments::piece_bytes, .timeout = 30'000, .remembered = 1024};

// Of the sender and the packet's identification; never 0.
std::uint64_t hash_of(const std::uint8_t* frame, const packet::VxlanView& outer) {
  std::uint32_t id = 0;
  std::uint64_t source[2] = {};
  if (outer.family == 4) {
    id = packet::header_at<packet::Ipv4Header>(frame, sizeof(packet::EthernetHeader)).id;
    std::memcpy(source, outer.source, 4);
  } else {
    id = packet::header_at<packet::Ipv6Fragment>(frame, outer.fragment_header).id;
    std::memcpy(source, outer.source, sizeof source);
  }
  std::uint64_t to = 0;
  std::memcpy(&to, outer.destination + (outer.family == 4 ? 0 : 8), outer.family == 4 ? 4 : 8);
  return packet::detail::multiply_fold(source[0] ^ id ^ 0xa0761d6478bd642fU, source[1] ^ to ^ 0xe7037ed1a0b428dbU) | 1;
}

}  // namespace

OuterFragments::OuterFragments() : fragments_(settings) {}

OuterFragments::Taken OuterFragments::take(const std::uint8_t* frame, std::uint32_t length,
                                           const packet::VxlanView& outer, bool is_first, std::uint32_t now_seconds) {
  const std::uint64_t hash = hash_of(frame, outer);
  std::uint64_t& known = ours_[(hash >> 32) % ours_.size()];
  if (is_first) known = hash;
  if (known != hash) return Taken::no;
  const std::string_view text(reinterpret_cast<const char*>(frame), length);
  packet::HeaderFacts facts;
  packet::read_headers(text, facts);
  if (!facts.fragment() || !facts.whole) return Taken::refused;
  switch (fragments_.take(text, facts, flow::Milliseconds{now_seconds} * 1000)) {
    case flow::Fragments::Taken::kept:
      return Taken::kept;
    case flow::Fragments::Taken::whole:
      return Taken::whole;
    case flow::Fragments::Taken::refused:
      return Taken::refused;
  }
  return Taken::refused;
}

}  // namespace sluice::function
