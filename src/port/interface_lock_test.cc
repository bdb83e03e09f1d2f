#include "port/interface_lock.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../tests/support/net_namespace.h"

namespace sluice::port {
namespace {

// What take() says of the loopback interface; "": it was taken.
std::string said() {
  const auto lock = InterfaceLock::take("lo");
  return lock ? "" : lock.error().message;
}

class InterfaceLockTest : public testing::Test {
 protected:
  // In a namespace of its own where it may have one: else another program that tests this has the lock meanwhile.
  void SetUp() override {
    if (test::NetNamespace::permitted()) {
      space_.emplace();
      inside_.reset(new test::NetNamespace::Entry(space_->enter()));
    }
    if (if_nametoindex("lo") == 0) GTEST_SKIP() << "this network namespace has no interface";
  }

 private:
  std::optional<test::NetNamespace> space_;
  std::unique_ptr<test::NetNamespace::Entry> inside_;
};

TEST_F(InterfaceLockTest, IsThereOnceAndFreeAgainWhenItGoes) {
  auto lock = InterfaceLock::take("lo");
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_EQ(said(),
            "the interface 'lo' is in use by two ports of this program: each would forward all of "
            "its frames; stop that one, or name another interface");
  {
    const InterfaceLock moved = std::move(*lock);
    EXPECT_NE(said(), "");
  }
  EXPECT_EQ(said(), "");
}

TEST_F(InterfaceLockTest, NamesTheProcessThatHasItAndGoesWhenThatIsKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = InterfaceLock::take("lo");
    const char taken = lock ? 'y' : 'n';
    if (write(ready[1], &taken, 1) == 1) pause();
    _exit(1);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  EXPECT_NE(said().find("(process " + std::to_string(child) + ")"), std::string::npos) << said();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(said(), "");
  close(ready[0]);
  close(ready[1]);
}

TEST_F(InterfaceLockTest, AnInterfaceThatIsNotThereIsTheDriversToSay) {
  const auto one = InterfaceLock::take("no-such-if0");
  const auto other = InterfaceLock::take("no-such-if0");
  EXPECT_TRUE(one && other);
}

}  // namespace
}  // namespace sluice::port
