#include "port/memif_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "port/port.h"

namespace sluice::port {
namespace {

class MemifSocket : public testing::Test {
 protected:
  ~MemifSocket() override {
    stop_listening();
    unlink(path_.c_str());
  }
  void listen_there() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    server_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(server_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(server_, 1), 0);
  }
  // As the end of a process does: the file stays. Once: the number may be that of memif's own socket next, and DPDK
  // ends the program when one is closed under it.
  void stop_listening() {
    if (server_ >= 0) close(server_);
    server_ = -1;
  }
  bool is_there() const { return std::filesystem::exists(path_); }
  std::string device(const std::string& more) const { return "net_memif0,id=0,socket=" + path_ + more; }

  const std::string path_ = testing::TempDir() + "memif-" + std::to_string(getpid());
  int server_ = -1;
};

TEST_F(MemifSocket, ThatAKilledServerLeftIsRemoved) {
  for (const char* role : {"server", "master"}) {
    ASSERT_NO_FATAL_FAILURE(listen_there());
    stop_listening();
    ASSERT_TRUE(is_there());
    remove_stale_socket(device(std::string(",socket-abstract=no,role=") + role));
    EXPECT_FALSE(is_there()) << role;
  }
}

TEST_F(MemifSocket, APortOpensWhereAServerWasKilled) {
  ASSERT_NO_FATAL_FAILURE(listen_there());
  stop_listening();
  PortOptions options;
  options.name = "core";
  options.device = device(",role=server,socket-abstract=no");
  const auto port = Port::open(options, {}, 1);
  EXPECT_TRUE(port) << port.error().message;
}

TEST_F(MemifSocket, OfALivingServerOrAClientStays) {
  ASSERT_NO_FATAL_FAILURE(listen_there());
  remove_stale_socket(device(",socket-abstract=no,role=server"));
  EXPECT_TRUE(is_there()) << "somebody listens";
  stop_listening();
  remove_stale_socket(device(",socket-abstract=no,role=client"));
  remove_stale_socket(device(",role=server"));
  remove_stale_socket("net_null0,socket-abstract=no,role=server,socket=" + path_);
  EXPECT_TRUE(is_there());
}

TEST_F(MemifSocket, AFileOfAnotherKindStays) {
  std::ofstream(path_) << "notes";
  remove_stale_socket(device(",socket-abstract=no,role=server"));
  EXPECT_TRUE(is_there());
}

}  // namespace
}  // namespace sluice::port
