#include "control/bounded_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "control/api_socket.h"
#include "crypto/secret.h"

namespace sluice::control {
namespace {

using Clock = std::chrono::steady_clock;

class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, std::size_t most_bytes, std::chrono::milliseconds time)
      : socket_(socket), left_(most_bytes), time_(time), end_(Clock::now() + time) {}

  bool is_readable() const override {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return at_ < read_ || (left_ != 0 && wait.count() > 0 && is_ready(POLLIN, wait));
  }
  bool is_writable() const override { return is_ready(POLLOUT, time_); }

  ssize_t read(char* to, std::size_t size) override {
    if (!is_readable()) return -1;
    if (at_ == read_) {
      const ssize_t got = recv(socket_, buffer_.bytes, std::min(sizeof(buffer_.bytes), left_), 0);
      if (got <= 0) return got;
      at_ = 0;
      read_ = static_cast<std::size_t>(got);
      left_ -= read_;
    }
    const std::size_t count = std::min(size, read_ - at_);
    std::memcpy(to, buffer_.bytes + at_, count);
    at_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* bytes, std::size_t size) override {
    return is_writable() ? send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
  }

  void get_remote_ip_and_port(std::string& ip, int& /*port*/) const override {
    // All 0, which no peer has, on a socket of another family.
    if (const auto peer = peer_of(socket_); peer && peer->pid > 0) {
      ip = "uid " + std::to_string(peer->uid) + ", process " + std::to_string(peer->pid);
    }
  }
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool is_ready(short event, std::chrono::milliseconds wait) const {
    pollfd fd{socket_, event, 0};
    int ready = 0;
    do {
      ready = poll(&fd, 1, static_cast<int>(wait.count()));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }

  const socket_t socket_;
  std::size_t left_;  // bytes that are still taken
  const std::chrono::milliseconds time_;
  const Clock::time_point end_;    // of the request
  crypto::Secret<4096> buffer_;    // a body may have a key in it
  std::size_t at_ = 0, read_ = 0;  // of buffer_
};

}  // namespace

bool BoundedServer::process(AsksStream request, httplib::Stream& stream) {
  bool closes = true;
  return (this->*request)(stream, true, closes, nullptr);
}

bool BoundedServer::process(TakesEnds request, httplib::Stream& stream) {
  bool closes = true;
  std::string peer, own;
  int peer_port = -1, own_port = -1;
  stream.get_remote_ip_and_port(peer, peer_port);
  stream.get_local_ip_and_port(own, own_port);
  return (this->*request)(stream, peer, peer_port, own, own_port, true, closes, nullptr);
}

bool BoundedServer::process_and_close_socket(socket_t socket) {
  const bool stopped = svr_sock_ == INVALID_SOCKET;  // nobody waits for those that are still in the queue
  BoundedStream stream(socket, most_bytes_, time_);
  const bool done = !stopped && process(&BoundedServer::process_request, stream);
  shutdown(socket, SHUT_RDWR);
  close(socket);
  return done;
}

}  // namespace sluice::control
