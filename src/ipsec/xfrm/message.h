// Messages of netlink's XFRM (linux/xfrm.h) as bytes: the attributes of one that came, whatever it holds, and one to be
// sent. What they mean is sa_message.h's, policy_message.h's and event_message.h's.
//
// Thread-safety: no state. Cost: an allocation for each message that is built.
#pragma once

#include <linux/netlink.h>
#include <linux/xfrm.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/netlink.h"
#include "packet/ip_address.h"

namespace sluice::ipsec::xfrm {

// Attributes that came after Linux 6.1's linux/xfrm.h.
inline constexpr int sa_direction_attribute = 33;  // XFRMA_SA_DIR: 1 in, 2 out
inline constexpr std::uint8_t direction_in = 1, direction_out = 2;

// xfrm_replay_state_esn without the bitmap behind it.
struct ReplayEsn {
  std::uint32_t bmp_len, oseq, seq, oseq_hi, seq_hi, replay_window;
};
static_assert(sizeof(ReplayEsn) == sizeof(xfrm_replay_state_esn));

// Why a request is refused: the errno that answers it, and for the log what is wrong, in a sentence's middle.
struct Refusal {
  int error = 0;
  std::string why;
};
template <typename T>
using Result = tl::expected<T, Refusal>;
[[nodiscard]] inline tl::unexpected<Refusal> refuse(int error, std::string why) {
  return tl::unexpected<Refusal>(Refusal{error, std::move(why)});
}

// A message's attributes by type; of one that is there twice the last, as in Linux. They point into the message.
class Attributes {
 public:
  // EINVAL: an attribute's length is wrong, or shorter than what linux/xfrm.h says of its type. EOPNOTSUPP: a type that
  // is not known.
  static Result<Attributes> read(NetlinkBytes bytes);

  bool has(int type) const { return payloads_[index(type)].data() != nullptr; }
  NetlinkBytes payload(int type) const { return payloads_[index(type)]; }
  template <typename T>
  std::optional<T> value(int type) const {
    T value;
    return has(type) && load_front(payload(type), value) ? std::optional(value) : std::nullopt;
  }
  // EOPNOTSUPP when there is one of these types that says anything but zero.
  struct Unwanted {
    int type;
    const char* what;
  };
  Result<void> refuse_any(std::initializer_list<Unwanted> types) const;

 private:
  static constexpr std::size_t most = 64;
  static std::size_t index(int type) { return static_cast<std::size_t>(type) % most; }
  std::array<NetlinkBytes, most> payloads_{};
};

// One message to be sent. Its bytes are wiped at its end: it may hold keys.
class Message {
 public:
  Message(std::uint16_t type, std::uint16_t flags, std::uint32_t sequence, std::uint32_t port);
  ~Message();
  Message(Message&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Message& operator=(Message&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // The fixed part, in front of attributes.
  template <typename T>
  Message& body(const T& value) {
    append(&value, sizeof value);
    return *this;
  }
  Message& body_bytes(NetlinkBytes bytes) {
    append(bytes.data(), bytes.size());
    return *this;
  }
  Message& attribute(int type, const void* value, std::size_t size);
  template <typename T>
  Message& attribute(int type, const T& value) {
    return attribute(type, &value, sizeof value);
  }
  void add_flags(std::uint16_t flags);

  NetlinkBytes bytes() const { return bytes_; }
  std::uint16_t type() const;

 private:
  void append(const void* value, std::size_t size);
  std::vector<std::byte> bytes_;
};

// The answer to a request: `error` is an errno, 0 for an acknowledgement. `why` goes with it for those who show it
// (NLMSGERR_ATTR_MSG).
Message error_message(const nlmsghdr& request, std::uint32_t port, int error, const std::string& why = {});

// AF_INET or AF_INET6 to 4 or 6, and back; 0: another.
int ip_family(unsigned address_family);
std::uint16_t address_family(const packet::IpAddress& address);

// All zeros: none.
packet::IpAddress address_of(const xfrm_address_t& bytes, int family);
xfrm_address_t bytes_of(const packet::IpAddress& address);

}  // namespace sluice::ipsec::xfrm
