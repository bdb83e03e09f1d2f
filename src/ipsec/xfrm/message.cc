#include "ipsec/xfrm/message.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "crypto/secret.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::size_t usual_size = 2048;  // nothing is copied to a larger place, where keys would stay behind

constexpr std::size_t unknown = ~std::size_t{0};

// The least payload of each attribute, by type.
constexpr std::size_t least_sizes[] = {
    0,                              // XFRMA_UNSPEC
    sizeof(xfrm_algo),              // XFRMA_ALG_AUTH
    sizeof(xfrm_algo),              // XFRMA_ALG_CRYPT
    sizeof(xfrm_algo),              // XFRMA_ALG_COMP
    sizeof(xfrm_encap_tmpl),        // XFRMA_ENCAP
    sizeof(xfrm_user_tmpl),         // XFRMA_TMPL
    0,                              // XFRMA_SA
    0,                              // XFRMA_POLICY
    sizeof(xfrm_user_sec_ctx),      // XFRMA_SEC_CTX
    sizeof(xfrm_lifetime_cur),      // XFRMA_LTIME_VAL
    sizeof(xfrm_replay_state),      // XFRMA_REPLAY_VAL
    sizeof(std::uint32_t),          // XFRMA_REPLAY_THRESH
    sizeof(std::uint32_t),          // XFRMA_ETIMER_THRESH
    sizeof(xfrm_address_t),         // XFRMA_SRCADDR
    sizeof(xfrm_address_t),         // XFRMA_COADDR
    sizeof(std::uint64_t),          // XFRMA_LASTUSED
    sizeof(xfrm_userpolicy_type),   // XFRMA_POLICY_TYPE
    sizeof(xfrm_user_migrate),      // XFRMA_MIGRATE
    sizeof(xfrm_algo_aead),         // XFRMA_ALG_AEAD
    sizeof(xfrm_user_kmaddress),    // XFRMA_KMADDRESS
    sizeof(xfrm_algo_auth),         // XFRMA_ALG_AUTH_TRUNC
    sizeof(xfrm_mark),              // XFRMA_MARK
    sizeof(std::uint32_t),          // XFRMA_TFCPAD
    sizeof(xfrm_replay_state_esn),  // XFRMA_REPLAY_ESN_VAL
    sizeof(std::uint32_t),          // XFRMA_SA_EXTRA_FLAGS
    sizeof(std::uint8_t),           // XFRMA_PROTO
    sizeof(xfrm_address_filter),    // XFRMA_ADDRESS_FILTER
    0,                              // XFRMA_PAD
    sizeof(xfrm_user_offload),      // XFRMA_OFFLOAD_DEV
    sizeof(std::uint32_t),          // XFRMA_SET_MARK
    sizeof(std::uint32_t),          // XFRMA_SET_MARK_MASK
    sizeof(std::uint32_t),          // XFRMA_IF_ID
    sizeof(std::uint32_t),          // XFRMA_MTIMER_THRESH
    sizeof(std::uint8_t),           // XFRMA_SA_DIR
};
static_assert(std::size(least_sizes) == sa_direction_attribute + 1);

std::size_t least_size(int type) {
  return type >= 0 && static_cast<std::size_t>(type) < std::size(least_sizes) ? least_sizes[type] : unknown;
}

}  // namespace

Result<Attributes> Attributes::read(NetlinkBytes bytes) {
  Attributes attributes;
  Refusal refusal;
  const bool whole = each_netlink_attribute(bytes, [&](int type, NetlinkBytes payload) {
    const std::size_t least = least_size(type);
    if (least == unknown) {
      refusal = {EOPNOTSUPP, "an attribute of type " + std::to_string(type) + " is not known"};
    } else if (payload.size() < least) {
      refusal = {EINVAL, "an attribute of type " + std::to_string(type) + " is too short"};
    } else {
      attributes.payloads_[index(type)] = payload;
    }
    return refusal.error == 0;
  });
  if (refusal.error != 0) return tl::unexpected(refusal);
  if (!whole) return refuse(EINVAL, "an attribute's length is wrong");
  return attributes;
}

Result<void> Attributes::refuse_any(std::initializer_list<Unwanted> types) const {
  for (const auto& [type, what] : types) {
    const NetlinkBytes bytes = payload(type);
    if (std::any_of(bytes.begin(), bytes.end(), [](std::byte one) { return one != std::byte{0}; })) {
      return refuse(EOPNOTSUPP, std::string(what) + " are not supported");
    }
  }
  return {};
}

Message::Message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint32_t port) {
  bytes_.reserve(usual_size);
  nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  header.nlmsg_seq = sequence;
  header.nlmsg_pid = port;
  append(&header, sizeof header);
}

Message::~Message() {
  crypto::wipe(bytes_.data(), bytes_.size());
}

Message& Message::attribute(int type, const void* value, std::size_t size) {
  nlattr header{};
  header.nla_len = static_cast<std::uint16_t>(sizeof header + size);
  header.nla_type = static_cast<std::uint16_t>(type);
  append(&header, sizeof header);
  append(value, size);
  return *this;
}

void Message::add_flags(std::uint16_t flags) {
  nlmsghdr header;
  std::memcpy(&header, bytes_.data(), sizeof header);
  header.nlmsg_flags |= flags;
  std::memcpy(bytes_.data(), &header, sizeof header);
}

std::uint16_t Message::type() const {
  nlmsghdr header{};
  load_front(bytes_, header);
  return header.nlmsg_type;
}

// Everything begins at a multiple of four, also what is behind.
void Message::append(const void* value, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(value);
  bytes_.insert(bytes_.end(), first, first + size);
  bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
  const auto length = static_cast<std::uint32_t>(bytes_.size());
  std::memcpy(bytes_.data(), &length, sizeof length);
}

Message error_message(const nlmsghdr& request, std::uint32_t port, int error, const std::string& why) {
  nlmsgerr body{};
  body.error = -error;
  body.msg = request;
  Message message(NLMSG_ERROR, NLM_F_CAPPED, request.nlmsg_seq, port);
  message.body(body);
  if (!why.empty()) {
    message.attribute(NLMSGERR_ATTR_MSG, why.c_str(), why.size() + 1);
    message.add_flags(NLM_F_ACK_TLVS);
  }
  return message;
}

int ip_family(unsigned address_family) {
  return address_family == AF_INET ? 4 : address_family == AF_INET6 ? 6 : 0;
}

std::uint16_t address_family(const packet::IpAddress& address) {
  return address.family == 4 ? AF_INET : address.family == 6 ? AF_INET6 : AF_UNSPEC;
}

packet::IpAddress address_of(const xfrm_address_t& bytes, int family) {
  const auto address = packet::IpAddress::from_bytes(family, &bytes);
  return address.bytes == packet::IpAddress{}.bytes ? packet::IpAddress{} : address;
}

xfrm_address_t bytes_of(const packet::IpAddress& address) {
  xfrm_address_t bytes{};
  std::memcpy(&bytes, address.bytes.data(), sizeof bytes);
  return bytes;
}

}  // namespace sluice::ipsec::xfrm
