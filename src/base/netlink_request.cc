#include "base/netlink_request.h"

#include <sys/socket.h>

#include <cerrno>

namespace sluice {
namespace {

// Behind the request that failed, or its header alone (NLM_F_CAPPED).
std::string reason_in(const nlmsghdr& answer, NetlinkBytes body) {
  nlmsgerr error{};
  if ((answer.nlmsg_flags & NLM_F_ACK_TLVS) == 0 || !load_front(body, error)) return {};
  const bool capped = (answer.nlmsg_flags & NLM_F_CAPPED) != 0;
  const std::size_t request = capped ? sizeof error.msg : std::size_t{error.msg.nlmsg_len};
  const NetlinkBytes text =
      find_netlink_attribute(behind(body, sizeof error - sizeof error.msg + request), NLMSGERR_ATTR_MSG);
  const std::string reason(reinterpret_cast<const char*>(text.data()), text.size());
  return reason.substr(0, reason.find('\0'));
}

}  // namespace

bool send_request(int fd, const NetlinkRequest& request) {
  const NetlinkBytes bytes = request.bytes();
  if (bytes.empty()) {
    errno = EMSGSIZE;
    return false;
  }
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  return sendto(fd, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) >= 0;
}

int ask(int fd, const NetlinkRequest& request, std::string* says) {
  return send_request(fd, request) ? read_answer(fd, says) : errno;
}

int read_answer(int fd, std::string* says) {
  alignas(nlmsghdr) std::array<std::byte, 8192> buffer;
  ssize_t got = -1;
  do {
    got = recv(fd, buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno;
  int result = EBADMSG;
  each_netlink_message(NetlinkBytes(buffer).first(static_cast<std::size_t>(got)),
                       [&](const nlmsghdr& header, NetlinkBytes body) {
                         int error = 0;
                         if (header.nlmsg_type != NLMSG_ERROR || !load_front(body, error)) return false;
                         result = -error;
                         if (says != nullptr) *says += reason_in(header, body);
                         return false;
                       });
  return result;
}

void hear_reasons(int fd) {
  const int on = 1;
  setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
}

}  // namespace sluice
