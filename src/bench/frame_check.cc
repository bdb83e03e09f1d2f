#include "bench/frame_check.h"

#include <algorithm>
#include <cstring>

namespace sluice::cli::bench {
namespace {

constexpr std::size_t ethernet = 14;
constexpr std::size_t ttl4 = ethernet + 8;
constexpr std::size_t checksum4 = ethernet + 10;
constexpr std::size_t ttl6 = ethernet + 7;

// RFC 791 3.1: the ones' complement of the ones' complement sum of the header's words, which with the checksum among
// them add up to all ones.
bool checksum_is_right(const std::uint8_t* header) {
  std::uint32_t sum = 0;
  for (unsigned at = 0; at < (header[0] & 0xfU) * 4; at += 2) {
    sum += static_cast<std::uint32_t>(header[at] << 8 | header[at + 1]);
    sum = (sum & 0xffff) + (sum >> 16);
  }
  return sum == 0xffff;
}

}  // namespace

const char* fault_text(Fault fault) {
  constexpr const char* texts[faults] = {"nothing wrong",
                                         "a TTL or hop limit that is not one lower",
                                         "a wrong IPv4 header checksum",
                                         "a source address that is not the port's",
                                         "a destination address that is no next hop's of its route",
                                         "another port than its next hop's",
                                         "another next hop than the frames of its flow before it",
                                         "bytes changed that a router leaves alone"};
  return texts[static_cast<unsigned>(fault)];
}

Fault FrameCheck::check(Wire& wire, std::uint16_t port, const std::uint8_t* frame, std::size_t length) const {
  const std::vector<std::uint8_t>& before = *wire.pristine;
  if (length != before.size()) {
    return Fault::content;
  }
  const bool ipv4 = before[12] == 0x08;
  for (std::size_t at = 12; at < length; ++at) {
    const bool changes = ipv4 ? at == ttl4 || at == checksum4 || at == checksum4 + 1 : at == ttl6;
    if (!changes && frame[at] != before[at]) {
      return Fault::content;
    }
  }
  const Fault headers = check_headers(wire, frame);
  return headers != Fault::none ? headers : check_next_hop(wire, port, frame);
}

Fault FrameCheck::check_headers(Wire& wire, const std::uint8_t* frame) const {
  const std::vector<std::uint8_t>& before = *wire.pristine;
  const bool ipv4 = before[12] == 0x08;
  const unsigned ttl = frame[ipv4 ? ttl4 : ttl6];
  const unsigned made_with = before[ipv4 ? ttl4 : ttl6];
  ++wire.times;
  if (refresh_ != 0 && wire.times > refresh_ / 2 && ttl + 1 == made_with) {
    wire.times = 1;  // its port has written it anew
  }
  if (ttl + wire.times != made_with) {
    return Fault::ttl;
  }
  return ipv4 && !checksum_is_right(frame + ethernet) ? Fault::checksum : Fault::none;
}

Fault FrameCheck::check_next_hop(Wire& wire, std::uint16_t port, const std::uint8_t* frame) const {
  const auto hop = std::find_if(wire.hops.begin(), wire.hops.end(),
                                [&](const Hop& one) { return std::memcmp(frame, one.mac.data(), 6) == 0; });
  if (hop == wire.hops.end()) {
    return Fault::next_hop;
  }
  if (hop->port != port) {
    return Fault::port;
  }
  if (std::memcmp(frame + 6, ports_[port].data(), 6) != 0) {
    return Fault::source_mac;
  }
  const int taken = static_cast<int>(hop - wire.hops.begin());
  if (wire.taken >= 0 && wire.taken != taken) {
    return Fault::flow;
  }
  wire.taken = taken;
  return Fault::none;
}

}  // namespace sluice::cli::bench
