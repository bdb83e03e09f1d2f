// A name in [api] listen may be a distant server's to resolve: it is asked once, however long the address is taken.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

#include "control/api.h"

namespace {

std::atomic<int> asked{0};

}  // namespace

// In the place of the C library's, which answers.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  ++asked;
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, found);
}

namespace sluice::control {
namespace {

TEST(ApiAddress, IsResolvedOnceWhileItIsTaken) {
  const int holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(holder, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(holder, 1), 0);
  ASSERT_EQ(getsockname(holder, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int before = asked;
  EXPECT_FALSE(Api::await_address({.listen = "127.0.0.1:" + std::to_string(ntohs(address.sin_port))},
                                  std::chrono::milliseconds(100)));
  EXPECT_EQ(asked - before, 1);
  close(holder);
}

}  // namespace
}  // namespace sluice::control
