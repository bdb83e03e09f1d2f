// Outbound: whether a packet fits the way with the headers of its SA, and what becomes of one that does not (RFC 4301
// section 8.2).
#include <algorithm>
#include <cstring>

#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "function/ipsec/ipsec.h"
#include "function/routing.h"
#include "ipsec/ah.h"
#include "ipsec/esp.h"
#include "packet/headers.h"
#include "packet/icmp_error.h"

namespace sluice::function {
namespace {

using engine::Fate;

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::uint32_t least_ipv4_mtu = 68, least_ipv6_mtu = 1280, any_mtu = 65535;

// `around`: AH's, or null.
std::uint32_t most_inner(const ipsec::PacketFormat& format, const ipsec::PacketFormat* around, std::uint32_t mtu,
                         const ipsec::InnerPacket& inner) {
  if (around != nullptr) mtu = ipsec::ah_most_inner(*around, mtu);
  return format.protocol == ipsec::Protocol::ah ? ipsec::ah_most_inner(format, mtu)
                                                : ipsec::esp_most_inner(format, mtu, inner.headers);
}

}  // namespace

// Of the port that the row leaves by. What the kernel is to forward has come by another one, and leaves by that which
// the router says; where it says none, the way between the ends alone limits it.
std::uint32_t Ipsec::mtu_of(const engine::Batch& batch, std::uint32_t i) const {
  std::uint16_t port = batch.row[i].port;
  if (batch.row[i].fate == Fate::to_host) [[unlikely]] {
    port = egress_ == nullptr ? engine::no_port : egress_->egress(batch, i);
    if (port == engine::no_port) return any_mtu;
  }
  return ports_[port].mtu;
}

// What fits the port and the way between the ends. A packet of IPv6 is not to be asked for less than IPv6's least MTU:
// on a narrower way over IPv4 routers fragment the outer packet (RFC 2473 section 7.1).
void Ipsec::choose_size(Chosen& chosen, std::uint32_t mtu) {
  const auto fits = [&](std::uint32_t bytes) {
    return most_inner(*chosen.format, chosen.around_format, bytes, chosen.inner);
  };
  const std::uint32_t by_port = chosen.most = fits(mtu);
  for (const ipsec::Sa* const sa : {chosen.sa, chosen.around}) {
    const std::uint32_t of_way = sa == nullptr ? 0 : sa->path_mtu.load(std::memory_order_relaxed);
    if (of_way != 0 && of_way < mtu) chosen.most = fits(mtu = of_way);
  }
  const bool is_narrow = chosen.inner.family == 6 && chosen.most < least_ipv6_mtu && by_port >= least_ipv6_mtu;
  if (!is_narrow || chosen.format->family != 4) return;
  chosen.most = least_ipv6_mtu;
  if (chosen.inner.length <= least_ipv6_mtu) chosen.inner.dont_fragment = false;
}

// A packet is larger than what fits. False: it is not to be fragmented, and its row says what becomes of it.
bool Ipsec::may_be_fragmented(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, const Chosen& chosen,
                              engine::Emitter& out) {
  const std::uint32_t least = chosen.inner.family == 4 ? least_ipv4_mtu : least_ipv6_mtu;
  if (chosen.inner.dont_fragment && chosen.most >= least) {
    answer_too_big(batch, i, came_by, chosen.most, out);
    return false;
  }
  if (chosen.inner.family == 4 && chosen.most >= least_ipv4_mtu && chosen.sa->mode == ipsec::Mode::tunnel) return true;
  batch.drop(i, ipsec_too_big);
  return false;
}

// Its sender is notified: the router takes the error to it.
void Ipsec::answer_too_big(engine::Batch& batch, std::uint32_t i, std::uint16_t came_by, std::uint32_t mtu,
                           engine::Emitter& out) {
  std::uint8_t* const frame = batch.data(i);
  const int family = frame[12] == 0x86 ? 6 : 4;
  if (!packet::may_answer_with_icmp_error(frame, batch.length[i]) || !out.may_answer()) {
    return batch.drop(i, ipsec_too_big);
  }
  const bool v4 = family == 4;
  const std::uint8_t* const sender =
      frame + ethernet + (v4 ? offsetof(packet::Ipv4Header, source) : offsetof(packet::Ipv6Header, source));
  const std::uint8_t* const destination = sender + (v4 ? 4 : 16);
  // It quotes what a policy protects. To a sender that is behind an SA, too, it goes by that: as an answer to the
  // packet, from where that goes.
  Lane& lane = lane_of(batch);
  const auto policy_from = [&](const std::uint8_t* source, ipsec::PacketKey& key) {
    key = ipsec::packet_key(static_cast<std::uint8_t>(family), source, sender,
                            v4 ? packet::protocol_icmp : packet::protocol_icmpv6, true, v4 ? 3 : 2, v4 ? 4 : 0);
    const ipsec::PolicyEntry* found = nullptr;
    lane.view->find_policies(ipsec::Direction::out, {&key, 1}, &found, &lane.out_cache);
    return found != nullptr && found->action != ipsec::Action::bypass ? found : nullptr;
  };
  const bool is_to_host = routing_ != nullptr && routing_->table().is_own(static_cast<std::uint8_t>(family), sender);
  ipsec::PacketKey key;
  const ipsec::PolicyEntry* policy = is_to_host ? nullptr : policy_from(destination, key);
  packet::IpAddress source;
  if (policy == nullptr && came_by != engine::no_port && routing_ != nullptr) {
    const auto sources = routing_->table().sources().read(batch.lane);
    if (const packet::IpAddress* const own = sources->of(came_by, family)) source = *own;
  }
  // Of what the host itself sends: as if from where it goes, for a packet from an own address is none.
  if (source.empty()) source = packet::IpAddress::from_bytes(family, destination);
  if (policy == nullptr && !is_to_host) policy = policy_from(source.bytes.data(), key);
  std::uint8_t own_mac[6];
  std::memcpy(own_mac, frame + 6, sizeof own_mac);
  const std::uint32_t length = packet::make_icmp_error(
      frame, batch.length[i], engine::capacity_from(batch, i),
      {.kind = packet::IcmpErrorKind::too_big, .mtu = mtu, .source = source, .own_mac = own_mac});
  if (length == 0) return batch.drop(i, ipsec_too_big);
  engine::set_length(batch, i, length);
  lane.answered.add(1);
  if (policy != nullptr) {
    if (policy->action == ipsec::Action::discard) return batch.drop(i, ipsec_discarded);
    return choose_for(batch, i, engine::no_port, *policy, key, out);
  }
  lane.chosen.push_back({});
  batch.go_on_later(i);
}

}  // namespace sluice::function
