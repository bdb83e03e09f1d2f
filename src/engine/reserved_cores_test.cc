#include "engine/reserved_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "base/machine.h"

namespace sluice::engine {
namespace {

// A thread that answers questions about itself.
class Other {
 public:
  explicit Other(int pinned_to = -1) {
    thread_ = std::thread([this, pinned_to] {
      if (pinned_to >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(pinned_to, &set);
        sched_setaffinity(0, sizeof set, &set);
      }
      tid_ = gettid();
      tid_.notify_all();
      done_.wait(false);
    });
    tid_.wait(0);
  }
  ~Other() {
    done_ = true;
    done_.notify_all();
    thread_.join();
  }
  std::vector<int> cores() const {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(tid_, sizeof set, &set);
    std::vector<int> all;
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        all.push_back(core);
      }
    }
    return all;
  }

 private:
  std::atomic<pid_t> tid_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// On a thread that may run on every core, as the control thread may: the EAL of other tests has pinned this one.
void on_all_cores(const std::function<void(const std::vector<int>&)>& test) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      CPU_SET(core, &set);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    test(allowed_cores());
  }).join();
}

TEST(ReservedCores, OtherThreadsKeepOffAndComeBack) {
  on_all_cores([](const std::vector<int>& all) {
    if (all.size() < 2) {
      GTEST_SKIP() << "one core";
    }
    const std::vector<int> rest(all.begin(), all.end() - 1);
    const Other before;
    const Other pinned(all.back());
    const Other pinned_to_what_is_left(rest.front());  // of two cores: on the same as those that keep off
    {
      const ReservedCores reserved({all.back()});
      EXPECT_EQ(allowed_cores(), rest);
      EXPECT_EQ(before.cores(), rest);
      EXPECT_EQ(pinned.cores(), std::vector<int>{all.back()});
      EXPECT_EQ(Other().cores(), rest) << "it is started by one that keeps off";
      EXPECT_EQ(process_cores(), all) << "what is reserved is the process's, too";
    }
    EXPECT_EQ(process_cores(), all);
    EXPECT_EQ(pinned_to_what_is_left.cores(), std::vector<int>{rest.front()});
    EXPECT_EQ(allowed_cores(), all);
    EXPECT_EQ(before.cores(), all);
    EXPECT_EQ(pinned.cores(), std::vector<int>{all.back()});
  });
}

TEST(ReservedCores, NobodyMovesWhenNoCoreWouldBeLeft) {
  on_all_cores([](const std::vector<int>& all) {
    const Other other;
    const ReservedCores reserved(all);
    EXPECT_EQ(allowed_cores(), all);
    EXPECT_EQ(other.cores(), all);
  });
}

}  // namespace
}  // namespace sluice::engine
