#include "engine/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

namespace sluice::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Cores 0 to `per_node` - 1 on node 0, and so on.
Topology made_up(unsigned nodes, unsigned per_node) {
  Topology machine;
  for (unsigned core = 0; core < nodes * per_node; ++core) {
    machine.cores.push_back(static_cast<int>(core));
    machine.nodes.push_back(static_cast<int>(core / per_node));
  }
  return machine;
}

Demand lanes(unsigned count, unsigned threads_limit) {
  return {{{"wan", -1, count}}, threads_limit};
}

std::string refusal(const Options& options, const Topology& machine, bool needs_worker = false) {
  Demand demand = lanes(2, 2);
  demand.needs_worker = needs_worker;
  const auto placement = place(options, machine, demand);
  return placement ? "" : placement.error().message;
}

struct Choice {
  const char* what;
  Topology machine;
  std::vector<Demand::Port> ports;
  int gpu_node;
  std::vector<int> lane_cores;
  int worker_core;
  std::vector<std::string> far;
};

// Without asking for anything: which cores, by the nodes of ports and GPU.
TEST(Placement, ChoosesCoresNearPortsAndGpu) {
  const Topology two = made_up(2, 8);
  const Topology interleaved{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 0, 1, 0, 1, 0, 1}};
  const Choice cases[] = {
      {"any node", two, {{"lan", -1, 1}, {"wan", -1, 2}}, -1, {15, 14, 13}, 1, {}},
      {"one node", made_up(1, 8), {{"lan", 0, 1}, {"wan", 0, 2}}, 0, {7, 6, 5}, 1, {}},
      {"a port on each node", two, {{"lan", 0, 2}, {"wan", 1, 2}}, 0, {7, 6, 15, 14}, 1, {}},
      {"the GPU on the second", two, {{"lan", 0, 1}, {"wan", 0, 1}}, 1, {7, 6}, 8, {}},
      {"numbers alternate", interleaved, {{"lan", 0, 1}, {"wan", 1, 1}}, 1, {6, 7}, 1, {}},
      {"a port without a node takes no near core", two, {{"lan", -1, 1}, {"wan", 1, 1}}, 0, {14, 15}, 1, {}},
      {"the node is too small",
       made_up(2, 3),
       {{"wan", 0, 3}},
       0,
       {2, 5, 4},
       1,
       {"cores 5,4 are on another NUMA node than port wan, which is on node 0"}},
      {"nobody takes another's",
       made_up(2, 3),
       {{"lan", 0, 2}, {"wan", 1, 2}},
       0,
       {2, 3, 5, 4},
       1,
       {"core 3 is on another NUMA node than port lan, which is on node 0"}},
      {"nodes without a core of ours",
       made_up(1, 4),
       {{"wan", 1, 1}},
       1,
       {3},
       1,
       {"core 3 is on another NUMA node than port wan, which is on node 1",
        "core 1, the worker's, is on another NUMA node than the GPU, which is on node 1"}},
      {"more lanes than cores",
       made_up(2, 2),
       {{"lan", 0, 2}, {"wan", 1, 2}},
       0,
       {3, 2},
       1,
       {"cores 3,2 are on another NUMA node than port lan, which is on node 0"}},
      {"two cores", made_up(1, 2), {{"lan", 0, 1}, {"wan", 0, 1}}, 0, {1}, 0, {}},
      {"one core", made_up(1, 1), {{"lan", 0, 1}, {"wan", 0, 1}}, 0, {0}, 0, {}},
  };
  for (const Choice& one : cases) {
    SCOPED_TRACE(one.what);
    const auto placement = place({}, one.machine, {one.ports, 64, true, one.gpu_node});
    ASSERT_TRUE(placement) << placement.error().message;
    EXPECT_EQ(placement->lane_cores, one.lane_cores);
    EXPECT_EQ(placement->worker_core, one.worker_core);
    ASSERT_FALSE(placement->notes.empty());
    EXPECT_EQ(std::vector(placement->notes.begin() + 1, placement->notes.end()), one.far);
  }
}

TEST(Placement, HelpersHaveCoresThatNothingElseIsOn) {
  Options options;
  options.compute_cores = {7, 6};
  const auto placement = place(options, made_up(1, 8), {{{"lan", 0, 2}}, 4, true, 0});
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_THAT(placement->lane_cores, ElementsAre(5, 4));
  EXPECT_THAT(placement->compute_cores, ElementsAre(7, 6));
  EXPECT_THAT(placement->cores(), ElementsAre(5, 4, 7, 6, 1));
  EXPECT_THAT(placement->notes,
              ElementsAre("8 cores, lanes on 5,4, helpers that compute on 7,6, worker on 1, busy polling"));
  options.cores = {4, 6};
  const auto shared = place(options, made_up(1, 8), {{{"lan", 0, 2}}, 4, true, 0});
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().message,
            "[engine] compute_cores: core 6 is a lane's, too, which waits for what is computed there: name cores that "
            "nothing else of the gateway is on; lanes are on 4,6");
  options.cores = {};
  options.compute_cores = {1};  // of two cores the lanes' own
  const auto none_left = place(options, made_up(1, 2), {{{"lan", 0, 1}}, 4, false, 0});
  ASSERT_FALSE(none_left);
  EXPECT_THAT(none_left.error().message, testing::HasSubstr("core 1 is a lane's, too"));
  options.compute_cores = {9};
  const auto missing = place(options, made_up(1, 2), {{{"lan", 0, 1}}, 4, false, 0});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("compute_cores: core 9 does not exist"));
}

TEST(Placement, TheConfigurationWinsAndFarCoresAreSaid) {
  Options options;
  options.cores = {1, 9};
  options.forwarder_cores = {8};
  options.worker_core = 2;
  const auto placement = place(options, made_up(2, 8), {{{"lan", 0, 1}, {"wan", 1, 1}}, 4, true, 1});
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_THAT(placement->notes,
              ElementsAre("16 cores on 2 NUMA nodes, lanes on 1,9, their forwarders on 8, worker on 2, busy polling",
                          "core 8 is on another NUMA node than port lan, which is on node 0",
                          "core 2, the worker's, is on another NUMA node than the GPU, which is on node 1"));
}

TEST(Placement, TheWorkerKeepsOffTheCoresThatWereAskedFor) {
  Options options;
  options.cores = {1, 2};
  options.forwarder_cores = {3};
  const auto placement = place(options, made_up(1, 8), {{{"wan", 0, 2}}, 4, true, 0});
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_EQ(placement->worker_core, 4);
}

TEST(Placement, EachGpuHasAWorkerOnACoreOfItsOwn) {
  Demand demand{{{"wan", 0, 8}}, 8, true, 0};
  demand.more_gpu_nodes = {1, -1};
  const auto placement = place({}, made_up(2, 4), demand);
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_EQ(placement->worker_core, 1);
  EXPECT_EQ(placement->more_worker_cores, (std::vector<int>{4, 2}));
  EXPECT_EQ(placement->lane_cores, (std::vector<int>{3, 7, 6, 5}));
  EXPECT_THAT(placement->notes.front(), HasSubstr("workers on 1,4,2"));
  // With too few of them they share.
  const auto few = place({}, made_up(1, 2), demand);
  ASSERT_TRUE(few) << few.error().message;
  EXPECT_EQ(few->worker_cores().size(), 3U);
}

TEST(Placement, ItsCoresAreThoseOfEveryThread) {
  Placement placement;
  placement.lane_cores = {7, 6};
  EXPECT_EQ(placement.cores(), (std::vector<int>{7, 6}));
  placement.forwarder_cores = {5};
  placement.worker_core = 1;
  EXPECT_EQ(placement.cores(), (std::vector<int>{7, 6, 5, 1}));
  placement.more_worker_cores = {2};
  EXPECT_EQ(placement.cores(), (std::vector<int>{7, 6, 5, 1, 2}));
}

TEST(Placement, ThisMachineIsOneToPlaceOn) {
  const Topology machine = this_machine();
  ASSERT_FALSE(machine.cores.empty());
  ASSERT_EQ(machine.cores.size(), machine.nodes.size());
  EXPECT_GE(machine.node_count(), 1U);
  EXPECT_FALSE(machine.has(4000));
  EXPECT_EQ(machine.node_of(4000), -1);
  EXPECT_EQ(machine.node_of(machine.cores.back()), machine.nodes.back());
  EXPECT_TRUE(place({}, machine, lanes(2, 2)));
}

TEST(Placement, LanesAndForwardersGoWhereTheyAreReported) {
  Options options;
  options.cores = {1};
  options.forwarder_cores = {0};
  const auto placement = place(options, made_up(1, 2), lanes(4, 1));
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_THAT(placement->lane_cores, ElementsAre(1));
  EXPECT_THAT(placement->forwarder_cores, ElementsAre(0));
  EXPECT_THAT(placement->notes, ElementsAre(HasSubstr("lanes on 1, their forwarders on 0")));
  options.forwarder_cores = {};
  EXPECT_THAT(place(options, made_up(1, 2), lanes(4, 1))->forwarder_cores, IsEmpty());
}

TEST(Placement, RefusesCoresThatAreMissingTwiceOrTaken) {
  const Topology machine = made_up(1, 2);
  Options options;
  options.poll = Poll::busy;
  options.cores = {4000};
  EXPECT_THAT(refusal(options, machine), HasSubstr("[engine] cores: core 4000 does not exist"));
  options.cores = {0, 0};
  EXPECT_THAT(refusal(options, machine), HasSubstr("[engine] cores: core 0 is named twice"));
  options.cores = {};
  options.forwarder_cores = {4000};
  EXPECT_THAT(refusal(options, machine), HasSubstr("[engine] forwarder_cores: core 4000 does not exist"));
  options.cores = {0};
  options.forwarder_cores = {0};
  EXPECT_THAT(refusal(options, machine), HasSubstr("is in cores and in forwarder_cores"));
  options.forwarder_cores = {};
  options.worker_core = 0;
  EXPECT_THAT(refusal(options, machine, true), HasSubstr("is both a lane's and the worker's"));
  options.poll = Poll::adaptive;
  EXPECT_EQ(refusal(options, machine, true), "");
  options.worker_core = 4000;
  EXPECT_THAT(refusal(options, machine), HasSubstr("[engine] worker_core: core 4000 does not exist"));
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
  EXPECT_THAT(refusal(options, made_up(1, 8)), allowed ? testing::Matcher<std::string>("") : HasSubstr("CAP_SYS_NICE"));
  long runtime_us = -1;
  std::ifstream("/proc/sys/kernel/sched_rt_runtime_us") >> runtime_us;
  if (!allowed || runtime_us < 0) {
    GTEST_SKIP() << "real time is not allowed here, or not throttled";
  }
  options.poll = Poll::busy;
  EXPECT_THAT(refusal(options, made_up(1, 8)), HasSubstr("sched_rt_runtime_us=-1"));
}

}  // namespace
}  // namespace sluice::engine
