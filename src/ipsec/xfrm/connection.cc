#include "ipsec/xfrm/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "crypto/secret.h"
#include "ipsec/xfrm/notice.h"

namespace sluice::ipsec::xfrm {

Connection::~Connection() {
  wipe_request();
  close(fd_);
}

void Connection::wipe_request() {
  crypto::wipe(request_.data(), received_);
  received_ = 0;
}

std::optional<NetlinkBytes> Connection::receive() {
  wipe_request();
  const ssize_t got = recv(fd_, request_.data(), request_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  // Of this kind of socket an empty datagram is the end, too. A longer one than fits is none of a daemon.
  if (got <= 0 || static_cast<std::size_t>(got) > request_.size()) {
    over_ = true;
    return std::nullopt;
  }
  received_ = static_cast<std::size_t>(got);
  return NetlinkBytes(request_).first(received_);
}

bool Connection::take_notice(NetlinkBytes datagram) {
  Notice notice;
  if (!load_front(datagram, notice) || notice.header.nlmsg_type != notice_type) return false;
  groups_ = notice.groups;
  port_ = notice.port;
  return true;
}

void Connection::send(Answer answer) {
  for (Message& one : answer.messages) waiting_.push_back(std::move(one));
  if (answer.dump) dump_ = std::move(answer.dump);
  flush();
}

bool Connection::send_event(const Message& message) {
  if (waiting_.size() >= most_waiting) return false;
  Message copy(message.type(), 0, 0, 0);
  copy.body_bytes(message.bytes().subspan(sizeof(nlmsghdr)));
  waiting_.push_back(std::move(copy));
  flush();
  return true;
}

// True: it is gone. False: the socket is full; or it is over, and nothing is sent any more.
bool Connection::send_now(NetlinkBytes bytes) {
  if (::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
  if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) over_ = true;
  return false;
}

void Connection::flush() {
  while (!over_ && has_to_send()) {
    if (waiting_.empty()) {
      auto next = dump_();
      if (next) {
        waiting_.push_back(std::move(*next));
      } else {
        dump_ = {};
        continue;
      }
    }
    if (!send_now(waiting_.front().bytes())) break;
    waiting_.pop_front();
  }
}

}  // namespace sluice::ipsec::xfrm
