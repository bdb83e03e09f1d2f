// A Server over a FakeDatabase on a socket in a folder of its own, and a client of it, for tests.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "ipsec/xfrm/bytes_trial_test.h"
#include "ipsec/xfrm/fake_database.h"
#include "ipsec/xfrm/notice.h"
#include "ipsec/xfrm/server.h"

namespace sluice::ipsec::xfrm {

// Whether it becomes so within ten seconds.
template <typename F>
bool soon(F condition) {
  for (int i = 0; i < 10000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// One connection, as the preload library makes it.
class Client {
 public:
  explicit Client(const std::string& path) : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return connected_; }
  bool send(const std::vector<std::byte>& bytes) const {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool join(std::uint32_t groups, std::uint32_t port = 1) const {
    Notice notice{};
    notice.header.nlmsg_len = sizeof notice;
    notice.header.nlmsg_type = notice_type;
    notice.groups = groups;
    notice.port = port;
    return ::send(fd_, &notice, sizeof notice, MSG_NOSIGNAL) == sizeof notice;
  }
  // Empty: the end, or nothing within so many milliseconds.
  std::vector<std::byte> receive(int patience = 10000) const {
    pollfd one{fd_, POLLIN, 0};
    if (poll(&one, 1, patience) != 1) return {};
    std::vector<std::byte> bytes(65536);
    const ssize_t got = recv(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  // The type of the next message; -1: there is none.
  int next(int patience = 10000) const {
    const auto bytes = receive(patience);
    nlmsghdr header{};
    return load_front(bytes, header) ? header.nlmsg_type : -1;
  }
  // The errno of a request's answer, positive.
  int ask(const Bytes& bytes, std::uint16_t type) const {
    if (!send(bytes.message(type))) return -1;
    return -at<nlmsgerr>(receive()).error;
  }

 private:
  const int fd_;
  bool connected_ = false;
};

class XfrmServer : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void TearDown() override {
    stop();
    std::filesystem::remove_all(folder_);
  }
  void start() {
    auto started = Server::start(database_, path(), {});
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    database_.set_events(server_.get());
  }
  void stop() {
    database_.set_events(nullptr);
    server_.reset();
  }
  std::string path() const { return folder_ + "/xfrm.sock"; }

  FakeDatabase database_;
  std::string folder_ = [] {
    std::string name = testing::TempDir() + "xfrmXXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  std::unique_ptr<Server> server_;
};

}  // namespace sluice::ipsec::xfrm
