// A request of netlink, built by libmnl: header, fixed part, attributes; and the kernel's answer to it.
//
//   NetlinkRequest request(RTM_DELRULE, NLM_F_ACK, rule);
//   request.attribute(FRA_TABLE, table);
//   if (const int error = ask(fd, request); error != 0) ...
//
// Thread-safety: none. Cost: no allocation; ask() two system calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/netlink.h"

namespace sluice {

class NetlinkRequest {
 public:
  // NLM_F_REQUEST is set.
  template <typename Body>
  NetlinkRequest(std::uint16_t type, unsigned flags, const Body& body) {
    static_assert(sizeof body + sizeof(nlmsghdr) <= capacity);
    nlmsghdr* const header = mnl_nlmsg_put_header(bytes_.data());
    header->nlmsg_type = type;
    header->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    std::memcpy(mnl_nlmsg_put_extra_header(header, sizeof body), &body, sizeof body);
  }
  NetlinkRequest(const NetlinkRequest&) = delete;
  NetlinkRequest& operator=(const NetlinkRequest&) = delete;

  NetlinkRequest& attribute(std::uint16_t type, const void* value, std::size_t size) {
    too_long_ = too_long_ || !mnl_attr_put_check(header(), capacity, type, size, value);
    return *this;
  }
  template <typename T>
  NetlinkRequest& attribute(std::uint16_t type, const T& value) {
    return attribute(type, &value, sizeof value);
  }
  NetlinkRequest& attribute(std::uint16_t type, const std::string& text) {
    return attribute(type, text.c_str(), text.size() + 1);
  }
  NetlinkRequest& sequence(std::uint32_t number) {
    header()->nlmsg_seq = number;
    return *this;
  }

  // Empty: it was more than fits.
  NetlinkBytes bytes() const {
    return NetlinkBytes(bytes_).first(too_long_ ? 0 : reinterpret_cast<const nlmsghdr*>(bytes_.data())->nlmsg_len);
  }

 private:
  static constexpr std::size_t capacity = 1024;
  nlmsghdr* header() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  alignas(nlmsghdr) std::array<std::byte, capacity> bytes_{};
  bool too_long_ = false;
};

// False: errno says why.
bool send_request(int fd, const NetlinkRequest& request);

// Of a request with NLM_F_ACK: sends it on a blocking socket that nothing else waits on. 0, or errno as the kernel
// answers. What it says besides, in words, is appended to `says` where the socket is asked to hear it (hear_reasons()).
int ask(int fd, const NetlinkRequest& request, std::string* says = nullptr);
// The answer alone.
int read_answer(int fd, std::string* says = nullptr);

// Has the kernel say more of a mistake than a number (NETLINK_EXT_ACK); one that cannot does not.
void hear_reasons(int fd);

}  // namespace sluice
