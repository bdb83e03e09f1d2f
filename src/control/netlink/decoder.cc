#include "control/netlink/decoder.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netconf.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/netlink.h"

namespace sluice::control::netlink {
namespace {

using Bytes = NetlinkBytes;

// The fixed part of a message and, behind it, its attributes.
template <typename T, typename F>
bool each_attribute_after(Bytes body, T& fixed, F f) {
  return load_front(body, fixed) && each_netlink_attribute(behind(body, sizeof(T)), f);
}

int ip_version(int family) {
  return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}

std::string load_text(Bytes payload) {
  const auto* text = reinterpret_cast<const char*>(payload.data());
  return {text, strnlen(text, payload.size())};
}

bool load_address(Bytes payload, int family, packet::IpAddress& address) {
  const int version = ip_version(family);
  if (version == 0 || payload.size() != (version == 4 ? 4 : 16)) return false;
  address = packet::IpAddress::from_bytes(version, payload.data());
  return true;
}

std::optional<packet::MacAddress> load_mac(Bytes payload) {
  packet::MacAddress mac;
  if (payload.size() != mac.bytes.size()) return std::nullopt;
  std::memcpy(mac.bytes.data(), payload.data(), mac.bytes.size());
  return mac;
}

// The kernel writes an all-zero gateway for "none".
void drop_unspecified(packet::IpAddress& address) {
  if (std::ranges::all_of(address.bytes, [](std::uint8_t byte) { return byte == 0; })) address = {};
}

// What routes, their multipath members and next-hop objects have in common. False: malformed.
bool load_hop_attribute(int type, Bytes payload, int family, Hop& hop) {
  switch (type) {
    case RTA_GATEWAY:
      if (!load_address(payload, family, hop.gateway)) return false;
      drop_unspecified(hop.gateway);
      return true;
    case RTA_VIA: {
      std::uint16_t via_family;
      return load_front(payload, via_family) &&
             load_address(payload.subspan(sizeof via_family), via_family, hop.gateway);
    }
    case RTA_ENCAP_TYPE: {
      std::uint16_t encap_type;
      if (!load_front(payload, encap_type)) return false;
      hop.encapsulated = encap_type != 0;
      return true;
    }
    default:
      return true;
  }
}

bool load_multipath(Bytes payload, int family, std::vector<Hop>& hops) {
  while (!payload.empty()) {
    rtnexthop fixed;
    if (!load_front(payload, fixed) || fixed.rtnh_len < sizeof fixed || fixed.rtnh_len > payload.size()) return false;
    Hop hop;
    hop.ifindex = fixed.rtnh_ifindex;
    hop.weight = fixed.rtnh_hops + 1U;
    hop.dead = (fixed.rtnh_flags & RTNH_F_DEAD) != 0;
    const Bytes attributes = payload.subspan(sizeof fixed, fixed.rtnh_len - sizeof fixed);
    if (!each_netlink_attribute(attributes,
                                [&](int type, Bytes value) { return load_hop_attribute(type, value, family, hop); }))
      return false;
    hops.push_back(hop);
    payload = behind(payload, fixed.rtnh_len);
  }
  return true;
}

// IFLA_LINKINFO: what sort of virtual interface it is.
bool load_link_info(Bytes payload, LinkMessage& message) {
  Bytes data;
  const bool ok = each_netlink_attribute(payload, [&](int type, Bytes value) {
    if (type == IFLA_INFO_KIND) message.kind = load_text(value);
    if (type == IFLA_INFO_DATA) data = value;
    return true;
  });
  if (message.kind != "macvlan" && message.kind != "macvtap") return ok;
  return ok && each_netlink_attribute(data, [&](int type, Bytes value) {
           return type != IFLA_MACVLAN_MODE || load_front(value, message.macvlan_mode);
         });
}

bool decode_link(const Header& header, Bytes body, Visitor& visitor) {
  LinkMessage message;
  message.removed = header.type == RTM_DELLINK;
  ifinfomsg fixed;
  if (!load_front(body, fixed)) return false;
  if (fixed.ifi_family != AF_UNSPEC) return true;  // a bridge's or IPv6's view of the link
  bool lower_is_elsewhere = false;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    switch (type) {
      case IFLA_MTU:
        return load_front(payload, message.mtu);
      case IFLA_MASTER:
        return load_front(payload, message.master);
      case IFLA_LINK:
        return load_front(payload, message.lower);
      case IFLA_LINK_NETNSID:
        lower_is_elsewhere = true;
        return true;
      case IFLA_OPERSTATE:
        return load_front(payload, message.operstate);
      case IFLA_PROMISCUITY:
        return load_front(payload, message.promiscuity);
      case IFLA_LINKINFO:
        return load_link_info(payload, message);
      case IFLA_ADDRESS:
        message.mac = load_mac(payload);
        return true;
      case IFLA_IFNAME:
        message.name = load_text(payload);
        return true;
      default:
        return true;
    }
  });
  if (!ok) return false;
  if (lower_is_elsewhere) message.lower = 0;
  message.ifindex = fixed.ifi_index;
  message.flags = fixed.ifi_flags;
  visitor.on_link(header, message);
  return true;
}

bool decode_address(const Header& header, Bytes body, Visitor& visitor) {
  AddressMessage message;
  message.removed = header.type == RTM_DELADDR;
  ifaddrmsg fixed;
  if (!load_front(body, fixed)) return false;
  if (ip_version(fixed.ifa_family) == 0) return true;
  message.flags = fixed.ifa_flags;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    if (type == IFA_LOCAL) return load_address(payload, fixed.ifa_family, message.address);
    if (type == IFA_ADDRESS && message.address.empty()) return load_address(payload, fixed.ifa_family, message.address);
    if (type == IFA_FLAGS) return load_front(payload, message.flags);  // all of them
    return true;
  });
  if (!ok || message.address.empty()) return false;
  message.ifindex = static_cast<int>(fixed.ifa_index);
  message.prefix_length = fixed.ifa_prefixlen;
  message.scope = fixed.ifa_scope;
  visitor.on_address(header, message);
  return true;
}

// What a bridge has learnt is none of it.
bool decode_link_address(const Header& header, Bytes body, Visitor& visitor) {
  LinkAddressMessage message;
  message.removed = header.type == RTM_DELNEIGH;
  ndmsg fixed;
  bool has_address = false;
  std::optional<packet::MacAddress> mac;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    if (type != NDA_LLADDR) return true;
    has_address = true;
    mac = load_mac(payload);
    return true;
  });
  if (!ok || !has_address) return false;
  if ((fixed.ndm_flags & NTF_SELF) == 0 || !mac || (mac->bytes[0] & 1) != 0) return true;
  message.ifindex = fixed.ndm_ifindex;
  message.mac = *mac;
  visitor.on_link_address(header, message);
  return true;
}

bool decode_interface_settings(const Header& header, Bytes body, Visitor& visitor) {
  InterfaceSettingsMessage message;
  message.removed = header.type == RTM_DELNETCONF;
  netconfmsg fixed;
  if (!load_front(body, fixed)) return false;
  message.family = static_cast<std::uint8_t>(ip_version(fixed.ncm_family));
  if (message.family == 0) return true;
  bool is_named = false;
  const auto load = [](Bytes payload, std::optional<std::uint32_t>& value) {
    return load_front(payload, value.emplace());
  };
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    switch (type) {
      case NETCONFA_IFINDEX:
        is_named = true;
        return load_front(payload, message.ifindex);
      case NETCONFA_FORWARDING:
        return load(payload, message.forwarding);
      case NETCONFA_RP_FILTER:
        return load(payload, message.rp_filter);
      case NETCONFA_IGNORE_ROUTES_WITH_LINKDOWN:
        return load(payload, message.ignores_routes_with_linkdown);
      default:
        return true;
    }
  });
  if (!ok || !is_named) return false;
  visitor.on_interface_settings(header, message);
  return true;
}

bool decode_neighbour(const Header& header, Bytes body, Visitor& visitor) {
  NeighbourMessage message;
  message.removed = header.type == RTM_DELNEIGH;
  ndmsg fixed;
  if (!load_front(body, fixed)) return false;
  if (fixed.ndm_family == AF_BRIDGE) return decode_link_address(header, body, visitor);
  if (ip_version(fixed.ndm_family) == 0) return true;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    if (type == NDA_DST) return load_address(payload, fixed.ndm_family, message.address);
    if (type == NDA_LLADDR) message.mac = load_mac(payload);
    return true;
  });
  if (!ok || message.address.empty()) return false;
  message.ifindex = fixed.ndm_ifindex;
  message.state = fixed.ndm_state;
  message.flags = fixed.ndm_flags;
  visitor.on_neighbour(header, message);
  return true;
}

bool decode_route(const Header& header, Bytes body, RouteMessage& message, Visitor& visitor) {
  rtmsg fixed;
  if (!load_front(body, fixed)) return false;
  const int version = ip_version(fixed.rtm_family);
  if (version == 0) return true;
  message.hops.clear();
  message.removed = header.type == RTM_DELROUTE;
  message.table = fixed.rtm_table;
  message.metric = 0;
  message.nexthop_id = 0;
  message.expires = 0;
  message.preference = 0;
  packet::IpAddress destination = packet::IpAddress::from_bytes(version, std::array<std::uint8_t, 16>{}.data());
  Hop single;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    switch (type) {
      case RTA_DST:
        return load_address(payload, fixed.rtm_family, destination);
      case RTA_TABLE:
        return load_front(payload, message.table);
      case RTA_PRIORITY:
        return load_front(payload, message.metric);
      case RTA_OIF:
        return load_front(payload, single.ifindex);
      case RTA_NH_ID:
        return load_front(payload, message.nexthop_id);
      case RTA_PREF: {
        std::uint8_t preference = 0;
        if (!load_front(payload, preference)) return false;
        message.preference = static_cast<std::int8_t>(preference == 1 ? 1 : preference == 3 ? -1 : 0);
        return true;
      }
      case RTA_CACHEINFO: {
        rta_cacheinfo info;
        if (!load_front(payload, info)) return false;
        message.expires = info.rta_expires;
        return true;
      }
      case RTA_MULTIPATH:
        return load_multipath(payload, fixed.rtm_family, message.hops);
      default:
        return load_hop_attribute(type, payload, fixed.rtm_family, single);
    }
  });
  if (!ok || fixed.rtm_dst_len > destination.bits()) return false;
  message.prefix = packet::IpPrefix::of(destination, fixed.rtm_dst_len);
  message.source_length = fixed.rtm_src_len;
  message.tos = fixed.rtm_tos;
  message.type = fixed.rtm_type;
  message.protocol = fixed.rtm_protocol;
  message.flags = fixed.rtm_flags;
  if (message.hops.empty() && (single.ifindex != 0 || !single.gateway.empty())) {
    single.dead = (fixed.rtm_flags & RTNH_F_DEAD) != 0;
    message.hops.push_back(single);
  }
  visitor.on_route(header, message);
  return true;
}

// Linux' nexthop_grp under a name of our own: since Linux 6.13 the byte behind the weight is its high byte, before, it
// is 0, and headers of both kinds are about, which name it differently.
struct GroupMember {
  std::uint32_t id;
  std::uint8_t weight, weight_high;
  std::uint16_t unused;
};
static_assert(sizeof(GroupMember) == sizeof(nexthop_grp));

bool load_group(Bytes payload, std::vector<NexthopMessage::Member>& group) {
  if (payload.size() % sizeof(GroupMember) != 0) return false;
  for (; !payload.empty(); payload = payload.subspan(sizeof(GroupMember))) {
    GroupMember member{};
    load_front(payload, member);
    group.push_back({member.id, (std::uint32_t{member.weight_high} << 8 | member.weight) + 1});
  }
  return true;
}

bool decode_nexthop(const Header& header, Bytes body, Visitor& visitor) {
  NexthopMessage message;
  message.removed = header.type == RTM_DELNEXTHOP;
  nhmsg fixed;
  if (!load_front(body, fixed)) return false;
  const bool ok = each_attribute_after(body, fixed, [&](int type, Bytes payload) {
    switch (type) {
      case NHA_ID:
        return load_front(payload, message.id);
      case NHA_GROUP:
        return load_group(payload, message.group);
      case NHA_BLACKHOLE:
        message.blackhole = true;
        return true;
      case NHA_FDB:
        message.fdb = true;
        return true;
      case NHA_OIF:
        return load_front(payload, message.hop.ifindex);
      case NHA_GATEWAY:
        return load_hop_attribute(RTA_GATEWAY, payload, fixed.nh_family, message.hop);
      case NHA_ENCAP_TYPE:
        return load_hop_attribute(RTA_ENCAP_TYPE, payload, fixed.nh_family, message.hop);
      default:
        return true;
    }
  });
  if (!ok || message.id == 0) return false;
  message.hop.dead = (fixed.nh_flags & RTNH_F_DEAD) != 0;
  visitor.on_nexthop(header, message);
  return true;
}

bool decode_answer(const Header& header, Bytes body, Visitor& visitor) {
  int error = 0;
  // An end without a value is the kernel's older form of "no error".
  if (!load_front(body, error) && header.type == NLMSG_ERROR) return false;
  visitor.on_answer(header, error == INT32_MIN ? INT32_MAX : -error);
  return true;
}

bool decode_body(const Header& header, Bytes body, RouteMessage& route, Visitor& visitor) {
  switch (header.type) {
    case NLMSG_DONE:
    case NLMSG_ERROR:
      return decode_answer(header, body, visitor);
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return decode_link(header, body, visitor);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      return decode_address(header, body, visitor);
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
      return decode_neighbour(header, body, visitor);
    case RTM_NEWNETCONF:
    case RTM_DELNETCONF:
      return decode_interface_settings(header, body, visitor);
    case RTM_NEWROUTE:
    case RTM_DELROUTE:
      return decode_route(header, body, route, visitor);
    case RTM_NEWNEXTHOP:
    case RTM_DELNEXTHOP:
      return decode_nexthop(header, body, visitor);
    default:
      return true;
  }
}

}  // namespace

void decode(Bytes bytes, Visitor& visitor) {
  RouteMessage route;
  const auto header_of = [](const nlmsghdr& raw) {
    return Header{raw.nlmsg_type, raw.nlmsg_flags, raw.nlmsg_seq, raw.nlmsg_pid};
  };
  const auto broken = each_netlink_message(bytes, [&](const nlmsghdr& raw, Bytes body) {
    const Header header = header_of(raw);
    if (!decode_body(header, body, route, visitor)) visitor.on_malformed(header);
    return true;
  });
  if (broken) visitor.on_malformed(header_of(*broken));
}

}  // namespace sluice::control::netlink
