#include "control/netlink/request.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sluice::control::netlink {

Request& Request::attribute(std::uint16_t type, const void* value, std::size_t size) {
  const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + size), type};
  append(&head, sizeof head);
  append(value, size);
  return *this;
}

std::span<const std::byte> Request::bytes() {
  header_.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
  std::memcpy(bytes_.data(), &header_, sizeof header_);
  return bytes_;
}

void Request::append(const void* from, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(from);
  bytes_.insert(bytes_.end(), first, first + size);
  bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
}

int ask(int fd, Request& request) {
  const auto bytes = request.bytes();
  if (send(fd, bytes.data(), bytes.size(), 0) < 0) return errno;
  struct {
    nlmsghdr header;
    nlmsgerr error;
    std::byte rest[4096];
  } answer{};
  const ssize_t got = recv(fd, &answer, sizeof answer, 0);
  if (got < 0) return errno;
  if (static_cast<std::size_t>(got) < sizeof answer.header + sizeof answer.error) return EBADMSG;
  return answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EBADMSG;
}

}  // namespace sluice::control::netlink
