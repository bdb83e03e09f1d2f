// A request of rtnetlink that the kernel answers with done or not done, built attribute by attribute.
//
// Thread-safety: none. Cost: one allocation; ask() two system calls.
#pragma once

#include <linux/netlink.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::control::netlink {

class Request {
 public:
  // NLM_F_REQUEST and NLM_F_ACK are set.
  template <typename Body>
  Request(std::uint16_t type, std::uint16_t flags, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&header_, sizeof header_);
    append(&body, sizeof body);
  }
  Request& attribute(std::uint16_t type, const void* value, std::size_t size);
  template <typename T>
  Request& attribute(std::uint16_t type, const T& value) {
    return attribute(type, &value, sizeof value);
  }
  Request& attribute(std::uint16_t type, const std::string& text) {
    return attribute(type, text.c_str(), text.size() + 1);
  }
  std::span<const std::byte> bytes();

 private:
  void append(const void* from, std::size_t size);
  nlmsghdr header_{};
  std::vector<std::byte> bytes_;
};

// Sends it on a blocking socket that nothing else waits on. 0, or errno as the kernel answers.
int ask(int fd, Request& request);

}  // namespace sluice::control::netlink
