// A network namespace for one test: real interfaces and a real kernel that no other test sees, gone with the object.
//
//     if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
//     NetNamespace router;
//     auto inside = router.enter();                       // this thread, until `inside` goes
//     ASSERT_EQ(router.run("ip link set lo up"), 0);
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace sluice::test {

class NetNamespace {
 public:
  static constexpr const char* skip_line =
      "needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) and iproute2 for network namespaces";

  static bool permitted() {
    bool ok = false;
    std::thread([&ok] { ok = unshare(CLONE_NEWNET) == 0; }).join();
    return ok && std::system("command -v ip > /dev/null") == 0;
  }

  NetNamespace() {
    std::thread([this] {
      if (unshare(CLONE_NEWNET) == 0) fd_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    }).join();
  }
  NetNamespace(const NetNamespace&) = delete;
  ~NetNamespace() { close(fd_); }

  // What `ip link set X netns` and `nsenter --net=` take.
  std::string path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_); }

  class Entry {
   public:
    explicit Entry(int fd) : home_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) { setns(fd, CLONE_NEWNET); }
    Entry(const Entry&) = delete;
    ~Entry() {
      setns(home_, CLONE_NEWNET);
      close(home_);
    }

   private:
    int home_;
  };
  Entry enter() const { return Entry(fd_); }

  // Exit status of a shell command run inside.
  int run(const std::string& command) const {
    const auto inside = enter();
    return std::system(command.c_str());
  }

  // Standard output of a shell command run inside.
  std::string output(const std::string& command) const {
    const auto inside = enter();
    std::string text;
    std::FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> chunk;
    while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) text.append(chunk.data(), n);
    pclose(pipe);
    return text;
  }

 private:
  int fd_ = -1;
};

}  // namespace sluice::test
