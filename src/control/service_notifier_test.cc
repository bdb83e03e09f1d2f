#include "control/service_notifier.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

namespace sluice::control {
namespace {

using namespace std::chrono_literals;

// A service manager's end, under a path or an abstract name.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    unlink(name.c_str());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0);
  }
  ~Manager() { close(fd_); }
  // Of one datagram; empty: none waits.
  std::string received() const {
    char text[512];
    const ssize_t got = recv(fd_, text, sizeof text, 0);
    return got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "";
  }

 private:
  const int fd_;
};

TEST(ServiceNotifier, ReportsInTheProtocolsWords) {
  for (const std::string& name :
       {testing::TempDir() + "notify-" + std::to_string(getpid()), "@sluice-notify-" + std::to_string(getpid())}) {
    const Manager manager(name);
    ServiceNotifier notifier(name, 0us);
    EXPECT_TRUE(notifier);
    notifier.ready("forwards\n2 ports");
    EXPECT_EQ(manager.received(), "READY=1\nSTATUS=forwards 2 ports");
    notifier.reloading();
    EXPECT_EQ(manager.received().rfind("RELOADING=1\nMONOTONIC_USEC=", 0), 0U);
    notifier.stopping();
    EXPECT_EQ(manager.received(), "STOPPING=1\nSTATUS=ends");
    notifier.alive(ServiceNotifier::Clock::now());
    EXPECT_EQ(manager.received(), "") << "nobody waits for signs of life";
  }
}

TEST(ServiceNotifier, SignsOfLifeAndMoreTimeComeWhenTheyAreDue) {
  const std::string name = "@sluice-alive-" + std::to_string(getpid());
  const Manager manager(name);
  ServiceNotifier notifier(name, 2s);
  const ServiceNotifier::Clock::time_point start{1h};
  notifier.alive(start);
  EXPECT_EQ(manager.received(), "WATCHDOG=1");
  notifier.alive(start + 999ms);
  EXPECT_EQ(manager.received(), "");
  notifier.alive(start + 1s);
  EXPECT_EQ(manager.received(), "WATCHDOG=1");
  notifier.loading(start, "routes");
  EXPECT_EQ(manager.received(), "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=starts: routes");
  notifier.loading(start + 4s, "routes");
  EXPECT_EQ(manager.received(), "");
}

TEST(ServiceNotifier, TakesTheEnvironmentAsItIs) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(ServiceNotifier());
  setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
  EXPECT_FALSE(ServiceNotifier());
  const std::string name = "@sluice-env-" + std::to_string(getpid());
  const Manager manager(name);
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  setenv("WATCHDOG_USEC", "3000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid() + 1).c_str(), 1);
  ServiceNotifier others;
  others.alive(ServiceNotifier::Clock::now());
  EXPECT_EQ(manager.received(), "") << "it is another process's";
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  ServiceNotifier own;
  own.alive(ServiceNotifier::Clock::now());
  EXPECT_EQ(manager.received(), "WATCHDOG=1");
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(variable);
}

TEST(ServiceNotifier, NobodyAtTheSocketIsNoMatter) {
  ServiceNotifier notifier("/nowhere/at/all", 1s);
  notifier.ready("forwards");
  notifier.alive(ServiceNotifier::Clock::now());
}

}  // namespace
}  // namespace sluice::control
