// sluice-xfrm.so: what an IKE daemon is started with (LD_PRELOAD), so that its SAs and policies go to Sluice in place
// of the kernel. A netlink socket of XFRM becomes a connection to the unix socket that SLUICE_XFRM names (server.h),
// and looks like what it would have been. All other sockets are as ever, but that no UDP socket asks the kernel for ESP
// in UDP (UDP_ENCAP): it would take what is Sluice's.
//
// Without SLUICE_XFRM nothing is changed, and a line on standard error says so. When Sluice ends, so does each
// connection: what was asked last is answered by EIO, what is asked from then on by EPIPE, and a line says so; the
// program is to be started again behind Sluice, which knows none of its SAs any more.
//
// Needs the C library alone. Thread-safety: as of the calls that it stands in for. Cost: fstat() for a socket that is
// Sluice's.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ipsec/xfrm/notice.h"

#define SLUICE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using sluice::ipsec::xfrm::Notice;
using sluice::ipsec::xfrm::notice_type;

constexpr const char* variable = "SLUICE_XFRM";

// The C library's function of this name.
template <typename F>
F* next(F*& known, const char* name) {
  if (known == nullptr) known = reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
  return known;
}
#define NEXT(name) next(next_##name, #name)
decltype(::socket)* next_socket;
decltype(::bind)* next_bind;
decltype(::getsockname)* next_getsockname;
decltype(::setsockopt)* next_setsockopt;
decltype(::send)* next_send;
decltype(::sendto)* next_sendto;
decltype(::sendmsg)* next_sendmsg;
decltype(::recv)* next_recv;
decltype(::recvfrom)* next_recvfrom;
decltype(::recvmsg)* next_recvmsg;

struct Socket {
  std::atomic<ino_t> inode{0};  // 0: none. Another file may get the number of one that was closed
  std::atomic<bool> over{false};
  std::atomic<std::uint32_t> groups{0}, port{0};
  std::atomic<bool> asked{false};
  nlmsghdr last{};  // request
};
constexpr int most_sockets = 4096;
Socket sockets[most_sockets];

ino_t inode_of(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// Null: it is not Sluice's.
Socket* ours(int fd) {
  if (fd < 0 || fd >= most_sockets || sockets[fd].inode.load() == 0) return nullptr;
  Socket& socket = sockets[fd];
  if (socket.inode.load() == inode_of(fd)) return &socket;
  socket.inode.store(0);
  return nullptr;
}

// A line for whoever runs the daemon, once for each reason.
void say(std::atomic<bool>& said, const char* what, const char* path, const char* why) {
  if (said.exchange(true)) return;
  const int before = errno;
  dprintf(STDERR_FILENO, "sluice-xfrm: %s%s%s%s\n", path, *path == '\0' ? "" : ": ", why, what);
  errno = before;
}
std::atomic<bool> said_unset{false}, said_absent{false}, said_over{false}, said_many{false};

void tell_groups(int fd, const Socket& socket) {
  Notice notice{};
  notice.header.nlmsg_len = sizeof notice;
  notice.header.nlmsg_type = notice_type;
  notice.groups = socket.groups;
  notice.port = socket.port;
  NEXT(send)(fd, &notice, sizeof notice, MSG_NOSIGNAL);
}

int refuse(int fd, int why) {
  close(fd);
  errno = why;
  return -1;
}

int connect_to_sluice(const char* path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int fd = NEXT(socket)(AF_UNIX, SOCK_SEQPACKET | (type & SOCK_CLOEXEC), 0);
  if (fd < 0) return -1;
  if (fd >= most_sockets) {
    say(said_many, "too many open files", path, "");
    return refuse(fd, EMFILE);
  }
  const bool fits = strlen(path) < sizeof address.sun_path;
  if (fits) strcpy(address.sun_path, path);
  errno = ENAMETOOLONG;
  if (!fits || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    say(said_absent, ": is Sluice running, with this path in the section [ipsec] of its configuration?", path,
        strerror(why));
    return refuse(fd, why);
  }
  if ((type & SOCK_NONBLOCK) != 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  Socket& socket = sockets[fd];
  socket.over = false;
  socket.asked = false;
  socket.groups = 0;
  socket.port = static_cast<std::uint32_t>(getpid());
  socket.inode = inode_of(fd);
  tell_groups(fd, socket);
  return fd;
}

// What waits for an answer gets one, and the number stands for a socket that nothing comes from and that takes nothing:
// neither does a daemon wait for ever, nor does it turn in a circle around a connection's end.
void bury(int fd, Socket& socket) {
  if (socket.over.exchange(true)) return;
  say(said_over, "Sluice has ended: start this program again when it runs (systemd: BindsTo=sluice.service)", "", "");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return;
  if (socket.asked) {
    struct {
      nlmsghdr header;
      nlmsgerr error;
    } answer{};
    answer.header.nlmsg_len = sizeof answer;
    answer.header.nlmsg_type = NLMSG_ERROR;
    answer.header.nlmsg_seq = socket.last.nlmsg_seq;
    answer.header.nlmsg_pid = socket.port;
    answer.error.error = -EIO;
    answer.error.msg = socket.last;
    NEXT(send)(pair[1], &answer, sizeof answer, MSG_NOSIGNAL);
  }
  shutdown(pair[1], SHUT_RD);  // and stays open
  fcntl(pair[0], F_SETFL, fcntl(fd, F_GETFL));
  dup3(pair[0], fd, (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  close(pair[0]);
  socket.inode = inode_of(fd);
}

void note_request(Socket& socket, const void* bytes, size_t size) {
  if (size < sizeof socket.last) return;
  memcpy(&socket.last, bytes, sizeof socket.last);
  socket.asked = true;
}

ssize_t sent(int fd, Socket& socket, ssize_t count) {
  if (count < 0 && (errno == EPIPE || errno == ECONNRESET)) {
    bury(fd, socket);
    errno = EPIPE;
  }
  return count;
}

// Datagrams of Sluice are never empty.
bool is_end(ssize_t count, bool looks) {
  return count < 0 ? errno == ECONNRESET : count == 0 && looks;
}

ssize_t send_request(int fd, Socket& socket, const void* bytes, size_t size, int flags) {
  note_request(socket, bytes, size);
  return sent(fd, socket, NEXT(send)(fd, bytes, size, flags | MSG_NOSIGNAL));
}

ssize_t receive(int fd, Socket& socket, void* bytes, size_t size, int flags) {
  const ssize_t count = NEXT(recv)(fd, bytes, size, flags);
  if (socket.over || !is_end(count, size != 0 || (flags & MSG_TRUNC) != 0)) return count;
  bury(fd, socket);
  return NEXT(recv)(fd, bytes, size, flags);
}

socklen_t put_address(void* to, socklen_t room, std::uint32_t port, std::uint32_t groups) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_pid = port;
  address.nl_groups = groups;
  memcpy(to, &address, room < sizeof address ? room : sizeof address);
  return sizeof address;
}

ssize_t receive_from(int fd, Socket& socket, void* bytes, size_t size, int flags, sockaddr* from, socklen_t* length) {
  const ssize_t count = receive(fd, socket, bytes, size, flags);
  if (count >= 0 && from != nullptr && length != nullptr) *length = put_address(from, *length, 0, 0);
  return count;
}

}  // namespace

SLUICE_EXPORT int socket(int domain, int type, int protocol) noexcept {
  if (domain != AF_NETLINK || protocol != NETLINK_XFRM) return NEXT(socket)(domain, type, protocol);
  const char* const path = getenv(variable);
  if (path != nullptr && *path != '\0') return connect_to_sluice(path, type);
  say(said_unset, "SLUICE_XFRM is not set: SAs and policies of this program go to the kernel", "", "");
  return NEXT(socket)(domain, type, protocol);
}

SLUICE_EXPORT int bind(int fd, const sockaddr* address, socklen_t length) noexcept {
  Socket* const socket = ours(fd);
  if (socket == nullptr) return NEXT(bind)(fd, address, length);
  sockaddr_nl netlink{};
  if (address == nullptr || length < sizeof netlink) {
    errno = EINVAL;
    return -1;
  }
  memcpy(&netlink, address, sizeof netlink);
  socket->groups = netlink.nl_groups;
  if (netlink.nl_pid != 0) socket->port = netlink.nl_pid;
  tell_groups(fd, *socket);
  return 0;
}

SLUICE_EXPORT int getsockname(int fd, sockaddr* address, socklen_t* length) noexcept {
  Socket* const socket = ours(fd);
  if (socket == nullptr) return NEXT(getsockname)(fd, address, length);
  *length = put_address(address, *length, socket->port, socket->groups);
  return 0;
}

SLUICE_EXPORT int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  if (level == IPPROTO_UDP && name == UDP_ENCAP && getenv(variable) != nullptr) return 0;
  Socket* const socket = level == SOL_NETLINK ? ours(fd) : nullptr;
  if (socket == nullptr) return NEXT(setsockopt)(fd, level, name, value, length);
  int group = 0;
  if (length >= sizeof group) memcpy(&group, value, sizeof group);
  const bool valid = group > 0 && group <= 32;
  if (valid && name == NETLINK_ADD_MEMBERSHIP) socket->groups |= 1U << (group - 1);
  if (valid && name == NETLINK_DROP_MEMBERSHIP) socket->groups &= ~(1U << (group - 1));
  if (name == NETLINK_ADD_MEMBERSHIP || name == NETLINK_DROP_MEMBERSHIP) tell_groups(fd, *socket);
  return 0;
}

SLUICE_EXPORT ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(send)(fd, bytes, size, flags) : send_request(fd, *socket, bytes, size, flags);
}

SLUICE_EXPORT ssize_t sendto(int fd, const void* bytes, size_t size, int flags, const sockaddr* to, socklen_t length) {
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(sendto)(fd, bytes, size, flags, to, length)
                           : send_request(fd, *socket, bytes, size, flags);
}

SLUICE_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  Socket* const socket = ours(fd);
  if (socket == nullptr) return NEXT(sendmsg)(fd, message, flags);
  msghdr plain{};
  plain.msg_iov = message->msg_iov;
  plain.msg_iovlen = message->msg_iovlen;
  if (plain.msg_iovlen > 0) note_request(*socket, plain.msg_iov[0].iov_base, plain.msg_iov[0].iov_len);
  return sent(fd, *socket, NEXT(sendmsg)(fd, &plain, flags | MSG_NOSIGNAL));
}

SLUICE_EXPORT ssize_t recv(int fd, void* bytes, size_t size, int flags) {
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(recv)(fd, bytes, size, flags) : receive(fd, *socket, bytes, size, flags);
}

SLUICE_EXPORT ssize_t recvfrom(int fd, void* bytes, size_t size, int flags, sockaddr* from, socklen_t* length) {
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(recvfrom)(fd, bytes, size, flags, from, length)
                           : receive_from(fd, *socket, bytes, size, flags, from, length);
}

SLUICE_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  Socket* const socket = ours(fd);
  if (socket == nullptr) return NEXT(recvmsg)(fd, message, flags);
  void* const name = message->msg_name;
  const socklen_t room = message->msg_namelen;
  message->msg_name = nullptr;
  message->msg_namelen = 0;
  size_t size = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) size += message->msg_iov[i].iov_len;
  ssize_t count = NEXT(recvmsg)(fd, message, flags);
  if (!socket->over && is_end(count, size != 0 || (flags & MSG_TRUNC) != 0)) {
    bury(fd, *socket);
    count = NEXT(recvmsg)(fd, message, flags);
  }
  message->msg_name = name;
  message->msg_namelen = name != nullptr && count >= 0 ? put_address(name, room, 0, 0) : 0;
  return count;
}

// What programs that were built with _FORTIFY_SOURCE call.
SLUICE_EXPORT ssize_t __recv_chk(int fd, void* bytes, size_t size, size_t room, int flags) {
  if (size > room) abort();
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(recv)(fd, bytes, size, flags) : receive(fd, *socket, bytes, size, flags);
}
SLUICE_EXPORT ssize_t __recvfrom_chk(int fd, void* bytes, size_t size, size_t room, int flags, sockaddr* from,
                                     socklen_t* length) {
  if (size > room) abort();
  Socket* const socket = ours(fd);
  return socket == nullptr ? NEXT(recvfrom)(fd, bytes, size, flags, from, length)
                           : receive_from(fd, *socket, bytes, size, flags, from, length);
}
