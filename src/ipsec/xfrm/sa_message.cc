#include "ipsec/xfrm/sa_message.h"

#include <linux/udp.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "ipsec/xfrm/algorithms.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::uint32_t least_spi = 256;     // below is reserved (RFC 4303 2.1)
constexpr std::uint32_t legacy_window = 32;  // bits of xfrm_replay_state

Result<Protocol> protocol_of(unsigned number) {
  if (number == IPPROTO_ESP) return Protocol::esp;
  if (number == IPPROTO_AH) return Protocol::ah;
  return refuse(EPROTONOSUPPORT, "IP protocol " + std::to_string(number) + " is neither ESP nor AH");
}

Result<Mode> mode_of(unsigned number) {
  if (number == XFRM_MODE_TRANSPORT) return Mode::transport;
  if (number == XFRM_MODE_TUNNEL) return Mode::tunnel;
  return refuse(EOPNOTSUPP, "mode " + std::to_string(number) + " is neither tunnel nor transport");
}

// 0 is none here. In XFRM it is a limit that is reached at once, as 1 is.
std::uint64_t amount(std::uint64_t limit) {
  return limit == XFRM_INF ? 0 : std::max<std::uint64_t>(limit, 1);
}
std::uint64_t amount_bytes(std::uint64_t limit) {
  return limit == 0 ? XFRM_INF : limit;
}

Lifetime lifetime_of(const xfrm_lifetime_cfg& limits) {
  return {.bytes = {amount(limits.soft_byte_limit), amount(limits.hard_byte_limit)},
          .packets = {amount(limits.soft_packet_limit), amount(limits.hard_packet_limit)},
          .seconds = {limits.soft_add_expires_seconds, limits.hard_add_expires_seconds},
          .use_seconds = {limits.soft_use_expires_seconds, limits.hard_use_expires_seconds}};
}

xfrm_lifetime_cfg lifetime_bytes(const Lifetime& lifetime) {
  xfrm_lifetime_cfg limits{};
  limits.soft_byte_limit = amount_bytes(lifetime.bytes.soft);
  limits.hard_byte_limit = amount_bytes(lifetime.bytes.hard);
  limits.soft_packet_limit = amount_bytes(lifetime.packets.soft);
  limits.hard_packet_limit = amount_bytes(lifetime.packets.hard);
  limits.soft_add_expires_seconds = lifetime.seconds.soft;
  limits.hard_add_expires_seconds = lifetime.seconds.hard;
  limits.soft_use_expires_seconds = lifetime.use_seconds.soft;
  limits.hard_use_expires_seconds = lifetime.use_seconds.hard;
  return limits;
}

// Of an SA without family and lengths: any packet.
Result<void> read_sa_selector(const xfrm_selector& selector, int sa_family, SaSettings& settings) {
  const int family = selector.family == 0 ? sa_family : ip_family(selector.family);
  auto read = read_selector(selector, family);
  if (!read) return tl::unexpected(read.error());
  const bool any = read->source.length == 0 && read->destination.length == 0 && read->protocol == 0 &&
                   read->source_port.mask == 0 && read->destination_port.mask == 0;
  if (!any) settings.selector = *read;
  return {};
}

Result<void> read_flags(const xfrm_usersa_info& info, const Attributes& attributes, SaSettings& settings) {
  constexpr unsigned known = XFRM_STATE_NOECN | XFRM_STATE_DECAP_DSCP | XFRM_STATE_NOPMTUDISC | XFRM_STATE_AF_UNSPEC |
                             XFRM_STATE_ALIGN4 | XFRM_STATE_ESN;
  if ((info.flags & ~known) != 0) return refuse(EOPNOTSUPP, "Mobile IPv6's and ICMP's flags are not supported");
  if ((info.flags & XFRM_STATE_DECAP_DSCP) != 0) {
    return refuse(EOPNOTSUPP, "copying the DSCP out of a tunnel is not supported (of charon: copy_dscp = out or no)");
  }
  const std::uint32_t extra = attributes.value<std::uint32_t>(XFRMA_SA_EXTRA_FLAGS).value_or(0);
  if ((extra & ~static_cast<std::uint32_t>(XFRM_SA_XFLAG_DONT_ENCAP_DSCP)) != 0) {
    return refuse(EOPNOTSUPP, "sequence numbers that wrap are not supported");
  }
  settings.ecn = (info.flags & XFRM_STATE_NOECN) == 0;
  settings.dont_fragment = (info.flags & XFRM_STATE_NOPMTUDISC) != 0 ? DontFragment::clear : DontFragment::copy;
  settings.copy_dscp = (extra & XFRM_SA_XFLAG_DONT_ENCAP_DSCP) == 0;
  settings.esn = (info.flags & XFRM_STATE_ESN) != 0;
  // Without ALIGN4 Linux pads AH of IPv4 to eight bytes, against RFC 4302 3.3.3.2.1.
  constexpr unsigned ah_header = 12;
  if (settings.id.protocol == Protocol::ah && settings.source.family == 4 && (info.flags & XFRM_STATE_ALIGN4) == 0 &&
      (ah_header + settings.transform.icv_length) % 8 != 0) {
    return refuse(EOPNOTSUPP, "AH of IPv4 that is padded to eight bytes is not supported (flag align4)");
  }
  return {};
}

Result<void> read_window(const xfrm_usersa_info& info, const Attributes& attributes, SaRequest& request) {
  if (attributes.has(XFRMA_REPLAY_VAL) || attributes.has(XFRMA_REPLAY_ESN_VAL)) {
    auto replay = read_replay(attributes);
    if (!replay) return tl::unexpected(replay.error());
    request.replay = *replay;
  }
  const auto esn = attributes.value<ReplayEsn>(XFRMA_REPLAY_ESN_VAL);
  if (request.settings.esn && (!esn || esn->replay_window == 0)) {
    return refuse(EINVAL, "extended sequence numbers need XFRMA_REPLAY_ESN_VAL with a window");
  }
  request.settings.replay_window =
      esn ? esn->replay_window : std::min<std::uint32_t>(info.replay_window, legacy_window);
  if (request.settings.replay_window > most_replay_window) {
    return refuse(EINVAL, "the replay window is larger than " + std::to_string(most_replay_window) + " packets");
  }
  return {};
}

Result<void> read_encapsulation(const Attributes& attributes, SaSettings& settings) {
  const auto encapsulation = attributes.value<xfrm_encap_tmpl>(XFRMA_ENCAP);
  if (!encapsulation) return {};
  if (encapsulation->encap_type != UDP_ENCAP_ESPINUDP || settings.id.protocol != Protocol::esp) {
    return refuse(EOPNOTSUPP, "an encapsulation other than ESP in UDP (RFC 3948) is not supported");
  }
  settings.udp = UdpPorts{ntohs(encapsulation->encap_sport), ntohs(encapsulation->encap_dport)};
  return {};
}

Result<void> read_extras(const xfrm_usersa_info& info, const Attributes& attributes, SaRequest& request) {
  SaSettings& settings = request.settings;
  if (const auto padding = attributes.value<std::uint32_t>(XFRMA_TFCPAD)) {
    if (settings.mode != Mode::tunnel || settings.id.protocol != Protocol::esp) {
      return refuse(EINVAL, "padding for traffic flow confidentiality is of ESP tunnels only");
    }
    settings.pad_to = static_cast<std::uint16_t>(std::min<std::uint32_t>(*padding, 0xffff));
  }
  if (const auto direction = attributes.value<std::uint8_t>(sa_direction_attribute)) {
    if (*direction != direction_in && *direction != direction_out) return refuse(EINVAL, "a direction that is none");
    request.direction = *direction == direction_in ? Direction::in : Direction::out;
  }
  settings.lifetime = lifetime_of(info.lft);
  settings.reqid = info.reqid;
  request.used = attributes.value<xfrm_lifetime_cur>(XFRMA_LTIME_VAL);
  request.sequence = info.seq;
  return {};
}

constexpr std::initializer_list<Attributes::Unwanted> unwanted = {{XFRMA_MARK, "marks"},
                                                                  {XFRMA_SET_MARK, "marks"},
                                                                  {XFRMA_IF_ID, "interface ids"},
                                                                  {XFRMA_SEC_CTX, "security contexts"},
                                                                  {XFRMA_COADDR, "care-of addresses"},
                                                                  {XFRMA_OFFLOAD_DEV, "offloads to a device"},
                                                                  {XFRMA_ALG_COMP, "IPComp's algorithms"}};

// The addresses, protocol and mode of an SA or of the SPI for one.
template <typename T>
Result<void> read_ends(const xfrm_usersa_info& info, T& into, packet::IpAddress& destination, Protocol& protocol) {
  const int family = ip_family(info.family);
  if (family == 0) return refuse(EINVAL, "an SA is neither of IPv4 nor of IPv6");
  const auto number = protocol_of(info.id.proto);
  if (!number) return tl::unexpected(number.error());
  const auto mode = mode_of(info.mode);
  if (!mode) return tl::unexpected(mode.error());
  protocol = *number;
  into.mode = *mode;
  into.source = address_of(info.saddr, family);
  destination = packet::IpAddress::from_bytes(family, &info.id.daddr);
  return {};
}

}  // namespace

Result<SaId> read_sa_id(const xfrm_usersa_id& id) {
  const int family = ip_family(id.family);
  if (family == 0) return refuse(EINVAL, "an SA is neither of IPv4 nor of IPv6");
  return protocol_of(id.proto).map([&](Protocol protocol) {
    return SaId{packet::IpAddress::from_bytes(family, &id.daddr), ntohl(id.spi), protocol};
  });
}

Result<SaRequest> read_sa(NetlinkBytes body) {
  xfrm_usersa_info info;
  if (!load_front(body, info)) return refuse(EINVAL, "the message is too short");
  const auto attributes = Attributes::read(behind(body, sizeof info));
  if (!attributes) return tl::unexpected(attributes.error());
  SaRequest request;
  SaSettings& settings = request.settings;
  auto done = attributes->refuse_any(unwanted);
  if (done) done = read_ends(info, settings, settings.id.destination, settings.id.protocol);
  if (!done) return tl::unexpected(done.error());
  settings.id.spi = ntohl(info.id.spi);
  if (settings.id.spi < least_spi) return refuse(EINVAL, "SPIs below 256 are reserved");
  auto transform = read_transform(*attributes, settings.id.protocol);
  if (!transform) return tl::unexpected(transform.error());
  settings.transform = *transform;
  done = read_sa_selector(info.sel, ip_family(info.family), settings);
  if (done) done = read_flags(info, *attributes, settings);
  if (done) done = read_window(info, *attributes, request);
  if (done) done = read_encapsulation(*attributes, settings);
  if (done) done = read_extras(info, *attributes, request);
  if (!done) return tl::unexpected(done.error());
  return request;
}

Result<SpiRequest> read_spi_request(NetlinkBytes body) {
  xfrm_userspi_info spi;
  if (!load_front(body, spi)) return refuse(EINVAL, "the message is too short");
  const auto attributes = Attributes::read(behind(body, sizeof spi));
  if (!attributes) return tl::unexpected(attributes.error());
  SpiRequest request;
  auto done = attributes->refuse_any(unwanted);
  if (done) done = read_ends(spi.info, request, request.destination, request.protocol);
  if (!done) return tl::unexpected(done.error());
  if (spi.min > spi.max) return refuse(EINVAL, "the least SPI is above the largest one");
  request.reqid = spi.info.reqid;
  request.sequence = spi.info.seq;
  request.least = std::max(spi.min, least_spi);
  request.most = std::max(spi.max, least_spi);
  return request;
}

Result<ReplayState> read_replay(const Attributes& attributes) {
  const auto wide = [](std::uint32_t high, std::uint32_t low) { return (std::uint64_t{high} << 32) | low; };
  if (const auto esn = attributes.value<ReplayEsn>(XFRMA_REPLAY_ESN_VAL)) {
    const std::size_t bitmap = attributes.payload(XFRMA_REPLAY_ESN_VAL).size() - sizeof *esn;
    const bool alone = bitmap == 0;
    if (esn->bmp_len > XFRMA_REPLAY_ESN_MAX / 32 || (!alone && bitmap < std::size_t{4} * esn->bmp_len) ||
        esn->replay_window > 32 * esn->bmp_len) {
      return refuse(EINVAL, "the replay window and its bitmap contradict each other");
    }
    return ReplayState{wide(esn->oseq_hi, esn->oseq), wide(esn->seq_hi, esn->seq)};
  }
  if (const auto plain = attributes.value<xfrm_replay_state>(XFRMA_REPLAY_VAL)) {
    return ReplayState{plain->oseq, plain->seq};
  }
  return refuse(EINVAL, "there is no replay state");
}

xfrm_lifetime_cur plus(const SaCounters& counters, const xfrm_lifetime_cur& before) {
  xfrm_lifetime_cur now{};
  now.bytes = before.bytes + counters.bytes;
  now.packets = before.packets + counters.packets;
  now.add_time = before.add_time != 0 ? before.add_time : counters.added_at;
  now.use_time = before.use_time != 0 ? before.use_time : counters.first_used_at;
  return now;
}

xfrm_usersa_info sa_info(const SaSettings& settings, const SaCounters& counters, const xfrm_lifetime_cur& before) {
  xfrm_usersa_info info{};
  if (settings.selector) info.sel = selector_bytes(*settings.selector);
  info.sel.family = address_family(settings.selector ? settings.selector->source.address : settings.id.destination);
  info.id.daddr = bytes_of(settings.id.destination);
  info.id.spi = htonl(settings.id.spi);
  info.id.proto = static_cast<std::uint8_t>(settings.id.protocol);
  info.saddr = bytes_of(settings.source);
  info.lft = lifetime_bytes(settings.lifetime);
  info.curlft = plus(counters, before);
  const auto count = [](std::uint64_t value) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
  };
  const bool legacy = !settings.esn && settings.replay_window <= legacy_window;
  info.stats.replay_window = 0;  // how often a packet was too old, which is counted with those that are repeated
  info.stats.replay = count(counters.replay);
  info.stats.integrity_failed = count(counters.bad_icv);
  info.reqid = settings.reqid;
  info.family = address_family(settings.id.destination);
  info.mode = settings.mode == Mode::tunnel ? XFRM_MODE_TUNNEL : XFRM_MODE_TRANSPORT;
  info.replay_window = static_cast<std::uint8_t>(legacy ? settings.replay_window : 0);
  info.flags = static_cast<std::uint8_t>(
      (settings.ecn ? 0 : XFRM_STATE_NOECN) |
      (settings.dont_fragment == DontFragment::clear ? XFRM_STATE_NOPMTUDISC : 0) |
      (settings.mode == Mode::tunnel ? XFRM_STATE_AF_UNSPEC : 0) | (settings.esn ? XFRM_STATE_ESN : 0) |
      (settings.id.protocol == Protocol::ah && settings.id.destination.family == 4 ? XFRM_STATE_ALIGN4 : 0));
  return info;
}

xfrm_usersa_id sa_id(const SaId& id) {
  xfrm_usersa_id bytes{};
  bytes.daddr = bytes_of(id.destination);
  bytes.spi = htonl(id.spi);
  bytes.family = address_family(id.destination);
  bytes.proto = static_cast<std::uint8_t>(id.protocol);
  return bytes;
}

void write_replay(Message& message, const SaSettings& settings, const SaCounters& counters) {
  const std::uint64_t sent = settings.direction == Direction::out ? counters.sequence : 0;
  const std::uint64_t received = settings.direction == Direction::in ? counters.sequence : 0;
  const auto low = [](std::uint64_t wide) { return static_cast<std::uint32_t>(wide); };
  if (!settings.esn && settings.replay_window <= legacy_window) {
    message.attribute(XFRMA_REPLAY_VAL, xfrm_replay_state{low(sent), low(received), received != 0 ? ~0U : 0U});
    return;
  }
  struct {
    ReplayEsn fixed;
    std::uint32_t bitmap[XFRMA_REPLAY_ESN_MAX / 32];
  } state{};
  state.fixed.bmp_len = (settings.replay_window + 31) / 32;
  state.fixed.oseq = low(sent);
  state.fixed.oseq_hi = low(sent >> 32);
  state.fixed.seq = low(received);
  state.fixed.seq_hi = low(received >> 32);
  state.fixed.replay_window = settings.replay_window;
  if (received != 0) std::fill(std::begin(state.bitmap), std::end(state.bitmap), ~0U);
  message.attribute(XFRMA_REPLAY_ESN_VAL, &state, sizeof state.fixed + std::size_t{4} * state.fixed.bmp_len);
}

void write_sa(Message& message, const SaSettings& settings, const SaCounters& counters,
              const xfrm_lifetime_cur& before) {
  message.body(sa_info(settings, counters, before));
  write_transform(message, settings.transform, settings.id.protocol);
  if (settings.udp) {
    xfrm_encap_tmpl encapsulation{};
    encapsulation.encap_type = UDP_ENCAP_ESPINUDP;
    encapsulation.encap_sport = htons(settings.udp->source);
    encapsulation.encap_dport = htons(settings.udp->destination);
    message.attribute(XFRMA_ENCAP, encapsulation);
  }
  write_replay(message, settings, counters);
  if (settings.pad_to != 0) message.attribute(XFRMA_TFCPAD, std::uint32_t{settings.pad_to});
  if (!settings.copy_dscp) {
    message.attribute(XFRMA_SA_EXTRA_FLAGS, std::uint32_t{XFRM_SA_XFLAG_DONT_ENCAP_DSCP});
  }
  if (counters.last_used_at != 0) message.attribute(XFRMA_LASTUSED, std::uint64_t{counters.last_used_at});
}

}  // namespace sluice::ipsec::xfrm
