#include "engine/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace sluice::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A thread that may use every core of the machine, whatever the EAL has done to the main one.
template <typename Body>
void on_all_cores(Body body) {
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (long core = 0; core < sysconf(_SC_NPROCESSORS_ONLN); ++core) {
      CPU_SET(core, &set);
    }
    sched_setaffinity(0, sizeof set, &set);
    body();
  }).join();
}

std::string refusal(const Options& options, bool needs_worker = false) {
  const auto placement = place(options, 2, 2, needs_worker);
  return placement ? "" : placement.error().message;
}

TEST(Placement, LanesAndForwardersGoWhereTheyAreTold) {
  on_all_cores([] {
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
      GTEST_SKIP() << "one core";
    }
    Options options;
    options.cores = {1};
    options.forwarder_cores = {0};
    const auto placement = place(options, 4, 1, false);
    ASSERT_TRUE(placement) << placement.error().message;
    EXPECT_THAT(placement->lane_cores, ElementsAre(1));
    EXPECT_THAT(placement->forwarder_cores, ElementsAre(0));
    EXPECT_THAT(placement->text, HasSubstr("lanes on 1, their forwarders on 0"));
    options.forwarder_cores = {};
    EXPECT_THAT(place(options, 4, 1, false)->forwarder_cores, IsEmpty());
  });
}

TEST(Placement, RefusesCoresThatAreMissingTwiceOrTaken) {
  on_all_cores([] {
    Options options;
    options.poll = Poll::busy;
    options.cores = {4000};
    EXPECT_THAT(refusal(options), HasSubstr("[engine] cores: core 4000 does not exist"));
    options.cores = {0, 0};
    EXPECT_THAT(refusal(options), HasSubstr("[engine] cores: core 0 is named twice"));
    options.cores = {};
    options.forwarder_cores = {4000};
    EXPECT_THAT(refusal(options), HasSubstr("[engine] forwarder_cores: core 4000 does not exist"));
    options.cores = {0};
    options.forwarder_cores = {0};
    EXPECT_THAT(refusal(options), HasSubstr("is in cores and in forwarder_cores"));
    options.forwarder_cores = {};
    options.worker_core = 0;
    EXPECT_THAT(refusal(options, true), HasSubstr("is both a lane's and the worker's"));
    options.poll = Poll::adaptive;
    EXPECT_EQ(refusal(options, true), "");
    options.worker_core = 4000;
    EXPECT_THAT(refusal(options), HasSubstr("[engine] worker_core: core 4000 does not exist"));
  });
}

TEST(Placement, RealTimeIsTakenOrRefusedWithWhatToDo) {
  bool allowed = false;
  std::thread([&] {
    allowed = schedule_this_thread(Scheduling::realtime);
    EXPECT_EQ(sched_getscheduler(0), allowed ? SCHED_FIFO : SCHED_OTHER);
  }).join();
  Options options;
  options.scheduling = Scheduling::realtime;
  options.poll = Poll::adaptive;
  EXPECT_THAT(refusal(options), allowed ? testing::Matcher<std::string>("") : HasSubstr("CAP_SYS_NICE"));
  long runtime_us = -1;
  std::ifstream("/proc/sys/kernel/sched_rt_runtime_us") >> runtime_us;
  if (!allowed || runtime_us < 0) {
    GTEST_SKIP() << "real time is not allowed here, or not throttled";
  }
  options.poll = Poll::busy;
  EXPECT_THAT(refusal(options), HasSubstr("sched_rt_runtime_us=-1"));
}

}  // namespace
}  // namespace sluice::engine
