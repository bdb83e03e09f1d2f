#include "bench/sealed_packets.h"

#include <rte_memcpy.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "base/machine.h"
#include "packet/checksum.h"
#include "packet/frame_mix.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

using packet::be16;
using packet::be32;

constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::size_t headers = ethernet + sizeof(packet::Ipv4Header) + sizeof(packet::UdpHeader);
constexpr std::size_t outer = ethernet + sizeof(packet::Ipv4Header);
constexpr std::size_t line = 64;
// Of a text that is opened in place: the inner packet's headers, and padding with the trailer, in blocks of CBC; the
// last block but one of what is kept behind is what the last but one needs.
constexpr std::size_t kept_head = 32, kept_tail = 48;

std::uint32_t number_of(unsigned lane, std::uint32_t index) {
  return lane << 24 ^ index;
}

}  // namespace

std::vector<std::uint8_t> clear_frame(ipsec::Direction direction, std::uint32_t tunnel, std::uint32_t length,
                                      std::uint32_t number) {
  std::vector<std::uint8_t> frame(std::max<std::size_t>(length, headers));
  auto& ethernet_header = packet::header_at<packet::EthernetHeader>(frame.data(), 0);
  std::memset(&ethernet_header, 2, 12);  // of nobody: the bench's router takes any
  ethernet_header.ethertype = be16(packet::ethertype_ipv4);
  auto& ip = packet::header_at<packet::Ipv4Header>(frame.data(), ethernet);
  const bool out = direction == ipsec::Direction::out;
  ip.version_ihl = 0x45;
  ip.total_length = be16(static_cast<std::uint16_t>(frame.size() - ethernet));
  ip.ttl = 64;
  ip.protocol = packet::protocol_udp;
  ip.source = be32(out ? IpsecTunnels::inside : IpsecTunnels::far_host(tunnel));
  ip.destination = be32(out ? IpsecTunnels::far_host(tunnel) : IpsecTunnels::inside);
  ip.checksum = packet::ipv4_header_checksum(ip);
  auto& udp = packet::header_at<packet::UdpHeader>(frame.data(), ethernet + sizeof ip);
  udp.source_port = udp.destination_port = be16(5000);
  udp.length = be16(static_cast<std::uint16_t>(frame.size() - ethernet - sizeof ip));
  std::minstd_rand random(number + 1);
  for (std::size_t at = headers; at < frame.size(); at += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(frame.data() + at, &word, std::min<std::size_t>(4, frame.size() - at));
  }
  return frame;
}

Expected<void> SealedPackets::add(Lane& made, const TunnelByOpenssl& by, const ipsec::SaSettings& sa,
                                  std::span<const std::uint8_t> clear, std::uint32_t tunnel, std::uint32_t number) {
  // Their numbers do not matter, since there is no window; each has its own, so that no IV comes twice.
  const auto sealed = by.seal(clear.subspan(ethernet), number);
  if (!sealed) return tl::unexpected(sealed.error());
  Sealed packet{};
  packet.tunnel = tunnel;
  packet.length = static_cast<std::uint16_t>(ethernet + sealed->size());
  packet.clear_length = static_cast<std::uint16_t>(clear.size());
  packet.icv = sa.transform.icv_length;
  const auto head = static_cast<std::uint16_t>(outer + by.clear_bytes() + kept_head);
  packet.tail = static_cast<std::uint16_t>(packet.length - packet.icv - kept_tail);
  const bool is_long = sa.id.protocol == ipsec::Protocol::esp && packet.tail >= head + line;
  packet.head = is_long ? head : packet.length;
  made.packets.push_back(packet);
  made.bytes.insert(made.bytes.end(), clear.begin(), clear.begin() + ethernet);
  made.bytes.insert(made.bytes.end(), sealed->begin(), sealed->end());
  made.bytes.resize((made.bytes.size() + line - 1) / line * line);
  if (!is_long) return {};
  const auto icvs = by.icvs_in_place(*sealed, kept_head, kept_tail, rounds);
  if (!icvs) return tl::unexpected(icvs.error());
  for (const auto& icv : *icvs) made.icvs.insert(made.icvs.end(), icv.begin(), icv.end());
  return {};
}

Expected<void> SealedPackets::make_lane(const IpsecTunnels& tunnels, unsigned lane, std::uint32_t count,
                                        const std::string& mix, Lane& made) {
  auto lengths = packet::FrameMix::make(mix, 100 + lane);
  if (!lengths) return tl::unexpected(lengths.error());
  std::mt19937 random(lane + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto tunnel = static_cast<std::uint32_t>(random() % tunnels.count());
    const ipsec::SaSettings sa = tunnels.sa(ipsec::Direction::in, tunnel);
    const auto clear = clear_frame(ipsec::Direction::in, tunnel, lengths->next(), number_of(lane, i));
    if (auto ok = add(made, TunnelByOpenssl(sa), sa, clear, tunnel, number_of(lane, i) + 1); !ok) return ok;
  }
  const std::uint8_t* frame = made.bytes.data();
  const std::uint8_t* icvs = made.icvs.data();
  for (Sealed& packet : made.packets) {
    packet.frame = frame;
    frame += (packet.length + line - 1) / line * line;
    if (packet.head == packet.length) continue;
    packet.icvs = icvs;
    icvs += std::size_t{rounds} * packet.icv;
  }
  return {};
}

Expected<SealedPackets> SealedPackets::make(const IpsecTunnels& tunnels, unsigned lanes, std::uint32_t count,
                                            const std::string& mix) {
  SealedPackets all;
  all.count_ = count;
  all.lanes_.resize(lanes);
  std::vector<Expected<void>> results(lanes);
  std::atomic<unsigned> next{0};
  std::vector<std::thread> threads;
  for (std::size_t core = 0; core < std::min<std::size_t>(lanes, allowed_cores().size()); ++core) {
    threads.emplace_back([&] {
      for (unsigned lane = next++; lane < lanes; lane = next++) {
        results[lane] = make_lane(tunnels, lane, count, mix, all.lanes_[lane]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Expected<void>& result : results) {
    if (!result) return tl::unexpected(result.error());
  }
  return all;
}

const SealedPackets::Sealed& SealedPackets::write(unsigned lane, Came& came, std::uint32_t& next,
                                                  std::uint32_t left_length, bool whole, std::uint8_t* bytes) const {
  const Sealed* sealed = &packet(lane, came.packet);
  if (whole || !came.is_there || left_length != sealed->clear_length || came.round + 1 == rounds) {
    came = {next, 0, true};
    next = next + 1 == count_ ? 0 : next + 1;
    sealed = &packet(lane, came.packet);
    rte_memcpy(bytes, sealed->frame, sealed->length);
    return *sealed;
  }
  ++came.round;
  if (sealed->icvs == nullptr) {
    rte_memcpy(bytes, sealed->frame, sealed->length);
    return *sealed;
  }
  rte_memcpy(bytes, sealed->frame, sealed->head);
  rte_memcpy(bytes + sealed->tail, sealed->frame + sealed->tail,
             std::size_t{sealed->length} - sealed->tail - sealed->icv);
  std::memcpy(bytes + sealed->length - sealed->icv, sealed->icvs + std::size_t{came.round} * sealed->icv, sealed->icv);
  return *sealed;
}

std::vector<std::uint8_t> SealedPackets::clear(unsigned lane, std::uint32_t index) const {
  const Sealed& one = packet(lane, index);
  return clear_frame(ipsec::Direction::in, one.tunnel, one.clear_length, number_of(lane, index));
}

double SealedPackets::mean_length() const {
  double sum = 0;
  for (const Lane& lane : lanes_) {
    for (const Sealed& one : lane.packets) sum += one.length;
  }
  return sum / (static_cast<double>(count_) * static_cast<double>(lanes_.size()));
}

double SealedPackets::mean_clear_length() const {
  double sum = 0;
  for (const Lane& lane : lanes_) {
    for (const Sealed& one : lane.packets) sum += one.clear_length;
  }
  return sum / (static_cast<double>(count_) * static_cast<double>(lanes_.size()));
}

}  // namespace sluice::cli::bench
