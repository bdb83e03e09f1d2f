#include "ipsec/xfrm/event_message.h"

#include <linux/udp.h>
#include <netinet/in.h>

#include <cerrno>

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::size_t most_moves = 6;  // XFRM_MAX_DEPTH

// The flow as a selector: what charon makes the narrowest traffic selector of.
Selector selector_of(const FlowKey& packet) {
  Selector selector;
  selector.source = packet::IpPrefix::host(packet.source);
  selector.destination = packet::IpPrefix::host(packet.destination);
  selector.protocol = packet.protocol;
  if (packet.has_ports) {
    selector.source_port = {packet.source_port, 0xffff};
    selector.destination_port = {packet.destination_port, 0xffff};
  }
  return selector;
}

Result<Move> read_move(const xfrm_user_migrate& bytes) {
  const int before = ip_family(bytes.old_family), after = ip_family(bytes.new_family);
  if (before == 0 || after == 0) return refuse(EINVAL, "a move is neither of IPv4 nor of IPv6");
  if (bytes.proto != IPPROTO_ESP && bytes.proto != IPPROTO_AH)
    return refuse(EINVAL, "a move is neither of ESP nor of AH");
  if (bytes.mode != XFRM_MODE_TUNNEL && bytes.mode != XFRM_MODE_TRANSPORT) {
    return refuse(EOPNOTSUPP, "a move is neither of tunnel nor of transport mode");
  }
  return Move{address_of(bytes.old_saddr, before),
              address_of(bytes.old_daddr, before),
              address_of(bytes.new_saddr, after),
              packet::IpAddress::from_bytes(after, &bytes.new_daddr),
              bytes.proto == IPPROTO_ESP ? Protocol::esp : Protocol::ah,
              bytes.mode == XFRM_MODE_TUNNEL ? Mode::tunnel : Mode::transport,
              bytes.reqid};
}

}  // namespace

Told acquire_message(const Acquire& acquire) {
  xfrm_user_acquire body{};
  body.id.daddr = bytes_of(acquire.wanted.destination);
  body.id.proto = static_cast<std::uint8_t>(acquire.wanted.protocol);
  body.saddr = bytes_of(acquire.wanted.source);
  body.sel = selector_bytes(selector_of(acquire.packet));
  const Way way = acquire.policy.direction == Direction::out ? Way::out : Way::in;
  body.policy = policy_info(acquire.policy, way, {});
  body.aalgos = body.ealgos = body.calgos = ~0U;
  body.seq = acquire.sequence;
  Message message(XFRM_MSG_ACQUIRE, 0, 0, 0);
  message.body(body);
  message.attribute(XFRMA_TMPL, template_bytes(acquire.wanted, acquire.packet.source.family));
  return {std::move(message), group_bit(XFRMNLGRP_ACQUIRE)};
}

Told expire_message(const SaStatus& sa, const xfrm_lifetime_cur& before, bool hard) {
  xfrm_user_expire body{};
  body.state = sa_info(sa.settings, sa.counters, before);
  body.hard = hard ? 1 : 0;
  Message message(XFRM_MSG_EXPIRE, 0, 0, 0);
  message.body(body);
  return {std::move(message), group_bit(XFRMNLGRP_EXPIRE)};
}

Told mapping_message(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) {
  xfrm_user_mapping body{};
  body.id = sa_id(sa.settings.id);
  body.reqid = sa.settings.reqid;
  body.old_saddr = bytes_of(sa.settings.source);
  body.new_saddr = bytes_of(source);
  body.old_sport = htons(sa.settings.udp ? sa.settings.udp->source : 0);
  body.new_sport = htons(port);
  Message message(XFRM_MSG_MAPPING, 0, 0, 0);
  message.body(body);
  return {std::move(message), group_bit(XFRMNLGRP_MAPPING)};
}

Result<MigrateRequest> read_migrate(NetlinkBytes body) {
  auto name = read_policy_name(body);
  if (!name) return tl::unexpected(name.error());
  const auto attributes = Attributes::read(behind(body, sizeof(xfrm_userpolicy_id)));
  if (!attributes) return tl::unexpected(attributes.error());
  MigrateRequest request{*name, {}, std::nullopt};
  const NetlinkBytes payload = attributes->payload(XFRMA_MIGRATE);
  const std::size_t count = payload.size() / sizeof(xfrm_user_migrate);
  if (count == 0 || count > most_moves) return refuse(EINVAL, "one to six moves are needed");
  for (std::size_t i = 0; i < count; ++i) {
    xfrm_user_migrate bytes;
    load_front(payload.subspan(i * sizeof bytes), bytes);
    auto move = read_move(bytes);
    if (!move) return tl::unexpected(move.error());
    request.moves.push_back(*move);
  }
  if (const auto ports = attributes->value<xfrm_encap_tmpl>(XFRMA_ENCAP)) {
    if (ports->encap_type != UDP_ENCAP_ESPINUDP) {
      return refuse(EOPNOTSUPP, "an encapsulation other than ESP in UDP (RFC 3948) is not supported");
    }
    request.udp = UdpPorts{ntohs(ports->encap_sport), ntohs(ports->encap_dport)};
  }
  return request;
}

Told migrate_message(NetlinkBytes body) {
  Message message(XFRM_MSG_MIGRATE, 0, 0, 0);
  message.body_bytes(body);
  return {std::move(message), group_bit(XFRMNLGRP_MIGRATE)};
}

}  // namespace sluice::ipsec::xfrm
