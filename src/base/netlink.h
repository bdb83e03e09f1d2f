// Messages and attributes of netlink (RFC 3549; linux/netlink.h) as they lie in a buffer, whatever bytes that holds:
// libmnl's walks over spans. What is asked of the kernel, netlink_request.h builds.
//
// Nothing is read behind the end of `bytes`, and no length, however wrong, makes a walk endless. Thread-safety: no
// state. Cost: no allocation.
#pragma once

#include <libmnl/libmnl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace sluice {

using NetlinkBytes = std::span<const std::byte>;

// Copies a T out of the front of `bytes`; false, and `value` is what it was, when there are too few.
template <typename T>
bool load_front(NetlinkBytes bytes, T& value) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return true;
}

// What lies behind `count` bytes and the padding to a multiple of four.
inline NetlinkBytes behind(NetlinkBytes bytes, std::size_t count) {
  return bytes.subspan(std::min((count + 3) & ~std::size_t{3}, bytes.size()));
}

// Calls f(type, payload) for each attribute until it answers false; the flags in the type's upper bits (nested, network
// byte order) are taken off. False: the bytes end inside an attribute, one's length is wrong, or f said so. Up to three
// bytes behind the last attribute are padding, or nothing.
template <typename F>
bool each_netlink_attribute(NetlinkBytes bytes, F f) {
  const auto* one = reinterpret_cast<const nlattr*>(bytes.data());
  int left = static_cast<int>(bytes.size());
  for (; mnl_attr_ok(one, left); one = mnl_attr_next(one)) {
    const auto* const payload = static_cast<const std::byte*>(mnl_attr_get_payload(one));
    if (!f(mnl_attr_get_type(one), NetlinkBytes(payload, mnl_attr_get_payload_len(one)))) return false;
    left -= static_cast<int>(MNL_ALIGN(mnl_attr_get_len(one)));
  }
  return left < static_cast<int>(sizeof *one);
}

// The payload of the first attribute of this type; empty when there is none before the end or the first wrong length.
inline NetlinkBytes find_netlink_attribute(NetlinkBytes bytes, int type) {
  NetlinkBytes found;
  each_netlink_attribute(bytes, [&](int one, NetlinkBytes payload) {
    if (one == type) found = payload;
    return one != type;
  });
  return found;
}

// Calls f(header, body) for each message until it answers false. The header of the one that is cut short or has a wrong
// length (zeroes, when not even the header is there); nothing: all were whole, or f said so.
template <typename F>
std::optional<nlmsghdr> each_netlink_message(NetlinkBytes bytes, F f) {
  const auto* one = reinterpret_cast<const nlmsghdr*>(bytes.data());
  for (int left = static_cast<int>(bytes.size()); left > 0; one = mnl_nlmsg_next(one, &left)) {
    // libmnl takes a length for signed: from 2^31 on it would hold for right.
    if (!mnl_nlmsg_ok(one, left) || one->nlmsg_len > static_cast<unsigned>(left)) {
      return static_cast<std::size_t>(left) < sizeof *one ? nlmsghdr{} : *one;
    }
    const auto* const body = static_cast<const std::byte*>(mnl_nlmsg_get_payload(one));
    if (!f(*one, NetlinkBytes(body, mnl_nlmsg_get_payload_len(one)))) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace sluice
