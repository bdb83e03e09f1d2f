// Messages of XFRM by hand, out of linux/xfrm.h's structs alone, for tests; and the fields of those that come back.
#pragma once

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/udp.h>
#include <linux/xfrm.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/netlink.h"

namespace sluice::ipsec::xfrm {

class Bytes {
 public:
  template <typename T>
  static Bytes of(const T& body) {
    return Bytes().put(&body, sizeof body);
  }
  Bytes& put(const void* bytes, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(bytes);
    bytes_.insert(bytes_.end(), first, first + size);
    while (bytes_.size() % 4 != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  // The attribute's header and its payload.
  Bytes& attribute(std::uint16_t type, const void* bytes, std::size_t size) {
    const std::uint16_t header[2] = {static_cast<std::uint16_t>(4 + size), type};
    return put(header, sizeof header).put(bytes, size);
  }
  template <typename T>
  Bytes& attribute(std::uint16_t type, const T& value) {
    return attribute(type, &value, sizeof value);
  }
  // xfrm_algo: 64 bytes of the name, the key's bits, the key; with `bits` of an ICV xfrm_algo_auth or xfrm_algo_aead.
  Bytes& algorithm(std::uint16_t type, std::string_view name, std::string_view key,
                   std::optional<std::uint32_t> icv_bits = std::nullopt) {
    std::string payload(name);
    payload.resize(64);
    const auto add = [&](std::uint32_t number) { payload.append(reinterpret_cast<const char*>(&number), 4); };
    add(static_cast<std::uint32_t>(8 * key.size()));
    if (icv_bits) add(*icv_bits);
    payload += key;
    return attribute(type, payload.data(), payload.size());
  }
  // A whole message.
  std::vector<std::byte> message(std::uint16_t type, std::uint16_t flags = NLM_F_REQUEST | NLM_F_ACK,
                                 std::uint32_t sequence = 7) const {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + bytes_.size());
    header.nlmsg_type = type;
    header.nlmsg_flags = flags;
    header.nlmsg_seq = sequence;
    std::vector<std::byte> all(sizeof header);
    std::memcpy(all.data(), &header, sizeof header);
    all.insert(all.end(), bytes_.begin(), bytes_.end());
    return all;
  }
  const std::vector<std::byte>& body() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline xfrm_address_t v4(const char* text) {
  xfrm_address_t address{};
  inet_pton(AF_INET, text, &address);
  return address;
}
inline xfrm_address_t v6(const char* text) {
  xfrm_address_t address{};
  inet_pton(AF_INET6, text, &address);
  return address;
}

// An ESP tunnel of IPv4 as charon asks for it.
inline xfrm_usersa_info tunnel(std::uint32_t spi = 0xc0000001, const char* source = "192.0.2.2",
                               const char* destination = "192.0.2.1") {
  xfrm_usersa_info info{};
  info.saddr = v4(source);
  info.id.daddr = v4(destination);
  info.id.spi = htonl(spi);
  info.id.proto = IPPROTO_ESP;
  info.family = AF_INET;
  info.mode = XFRM_MODE_TUNNEL;
  info.reqid = 5;
  info.replay_window = 32;
  info.flags = XFRM_STATE_AF_UNSPEC;
  info.lft.soft_byte_limit = info.lft.hard_byte_limit = XFRM_INF;
  info.lft.soft_packet_limit = info.lft.hard_packet_limit = XFRM_INF;
  return info;
}

inline constexpr std::string_view key16 = "0123456789abcdef", key20 = "0123456789abcdefSALT",
                                  key32 = "0123456789abcdef0123456789ABCDEF";

// The same with its algorithms.
inline Bytes whole_tunnel(const xfrm_usersa_info& info = tunnel()) {
  return Bytes::of(info).algorithm(XFRMA_ALG_AEAD, "rfc4106(gcm(aes))", key20, 128);
}

inline xfrm_usersa_id id_of(const xfrm_usersa_info& info) {
  xfrm_usersa_id id{};
  id.daddr = info.id.daddr;
  id.spi = info.id.spi;
  id.family = info.family;
  id.proto = info.id.proto;
  return id;
}

inline xfrm_selector net_selector(const char* source = "10.1.0.0", const char* destination = "10.2.0.0") {
  xfrm_selector selector{};
  selector.saddr = v4(source);
  selector.daddr = v4(destination);
  selector.prefixlen_s = selector.prefixlen_d = 16;
  selector.family = AF_INET;
  return selector;
}

inline xfrm_userpolicy_info net_policy(unsigned direction, std::uint32_t priority = 1000) {
  xfrm_userpolicy_info info{};
  info.sel = net_selector();
  info.dir = static_cast<std::uint8_t>(direction);
  info.priority = priority;
  info.lft.soft_byte_limit = info.lft.hard_byte_limit = XFRM_INF;
  info.lft.soft_packet_limit = info.lft.hard_packet_limit = XFRM_INF;
  return info;
}

inline xfrm_userpolicy_id policy_id(unsigned direction) {
  xfrm_userpolicy_id id{};
  id.sel = net_selector();
  id.dir = static_cast<std::uint8_t>(direction);
  return id;
}

inline xfrm_user_tmpl esp_template(std::uint32_t spi = 0) {
  xfrm_user_tmpl wanted{};
  wanted.saddr = v4("192.0.2.1");
  wanted.id.daddr = v4("192.0.2.2");
  wanted.id.spi = htonl(spi);
  wanted.id.proto = IPPROTO_ESP;
  wanted.family = AF_INET;
  wanted.reqid = 5;
  wanted.mode = XFRM_MODE_TUNNEL;
  wanted.aalgos = wanted.ealgos = wanted.calgos = ~0U;
  return wanted;
}

// The T at an offset of a message's body.
template <typename T>
T at(NetlinkBytes message, std::size_t offset = 0) {
  T value{};
  load_front(message.subspan(std::min(message.size(), sizeof(nlmsghdr) + offset)), value);
  return value;
}
inline NetlinkBytes attributes_of(NetlinkBytes message, std::size_t fixed) {
  return behind(message.subspan(sizeof(nlmsghdr)), fixed);
}
inline std::string text_of(NetlinkBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace sluice::ipsec::xfrm
