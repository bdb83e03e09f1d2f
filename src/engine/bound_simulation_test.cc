// The bound of bound.h against a lane in virtual time: docs/real-time.md has the theorem and its premises.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "engine/job_pace.h"
#include "engine/lane_model_test.h"
#include "engine/time_points.h"

namespace sluice::engine {
namespace {

constexpr Ns us = 1000;
constexpr Ns cycle = 300 * us;
constexpr Ns mu = collect_time.count();  // the model's three rounds are less

Ns bound_of(unsigned overlap, bool jobs = false) {
  return plan_timing(std::chrono::seconds(1), std::chrono::nanoseconds(cycle), overlap, {}, collect_time, 1, jobs)
      ->bound.count();
}

using Random = std::mt19937_64;
Ns between(Random& random, Ns least, Ns most) {
  return std::uniform_int_distribution<Ns>(least, most)(random);
}

struct Arrivals {
  const char* name;
  std::vector<Ns> (*make)(Random& random);
};

constexpr Ns length = 400 * cycle;

std::vector<Ns> at_random(Random& random) {
  std::vector<Ns> arrivals;
  std::exponential_distribution<double> gap(1.0 / static_cast<double>(4 * us));
  for (double at = 0; at < static_cast<double>(length); at += gap(random)) arrivals.push_back(static_cast<Ns>(at));
  return arrivals;
}
// A burst that fits a round, after silences of any length.
std::vector<Ns> in_bursts(Random& random) {
  std::vector<Ns> arrivals;
  for (Ns at = 0; at < length; at += between(random, 1, 2 * cycle)) {
    for (unsigned i = 0; i < burst_size; ++i) arrivals.push_back(at);
  }
  return arrivals;
}
// One that has just missed a time point, and one that has just not.
std::vector<Ns> around_time_points(Random& random) {
  std::vector<Ns> arrivals;
  for (Ns point = cycle; point < length; point += cycle) {
    arrivals.push_back(point - between(random, 0, 300));
    arrivals.push_back(point + between(random, 0, 300));
  }
  return arrivals;
}
constexpr Arrivals all_arrivals[] = {
    {"at random", at_random}, {"in bursts", in_bursts}, {"around time points", around_time_points}};

// Keeps the premises, each as far as it goes: a batch may take overlap·I on the device; beside the collector it may be
// forwarded for I. On the collector's thread what arrives waits for one that is being forwarded, a sealing does, and
// then the batch that was sealed is.
LaneModel honest(unsigned overlap, bool own_forwarder, Random& random) {
  LaneModel lane;
  lane.cycle = cycle;
  lane.overlap = overlap;
  lane.own_forwarder = own_forwarder;
  const Ns most = cycle * overlap;
  lane.on_device = [&random, most](std::size_t) {
    return between(random, 0, 3) == 0 ? between(random, 0, most) : most;
  };
  // Less than the least time between two sealings, which the looks of a lane shorten.
  lane.forwarding = [&random, own_forwarder](std::size_t) {
    const Ns longest = (own_forwarder ? cycle : cycle / 3) - 3 * us;
    return between(random, 0, 1) == 0 ? between(random, 0, longest) : longest;
  };
  return lane;
}

TEST(BoundSimulation, HoldsWhileThePremisesHold) {
  Random random(1);
  for (const Arrivals& arrivals : all_arrivals) {
    for (const unsigned overlap : {1U, 2U, 3U, 8U}) {
      for (const bool own_forwarder : {true, false}) {
        for (const std::size_t capacity : {std::size_t{SIZE_MAX}, std::size_t{2 * burst_size}}) {
          const std::string name = std::string(arrivals.name) + ", overlap " + std::to_string(overlap) +
                                   (own_forwarder ? "" : ", one thread") + (capacity == SIZE_MAX ? "" : ", small");
          LaneModel lane = honest(overlap, own_forwarder, random);
          lane.capacity = capacity;
          // A batch that is full is sealed between time points: the forwarder keeps up with what comes, not with
          // cycles.
          if (capacity != SIZE_MAX) lane.forwarding = [](std::size_t) { return 2 * us; };
          const std::vector<Ns> frames = arrivals.make(random);
          lane.run(frames);
          EXPECT_EQ(lane.frames, frames.size()) << name;
          EXPECT_GT(lane.batches, 100U) << name;
          EXPECT_LE(lane.longest, bound_of(overlap)) << name;
        }
      }
    }
  }
}

// So no smaller one is right: what has just missed a time point waits for all of it.
TEST(BoundSimulation, IsReached) {
  Random random(2);
  for (const unsigned overlap : {1U, 2U, 8U}) {
    LaneModel lane = honest(overlap, true, random);
    lane.on_device = [overlap](std::size_t) { return cycle * overlap; };
    lane.forwarding = [](std::size_t) { return cycle - 3 * us; };
    lane.run(around_time_points(random));
    EXPECT_GT(lane.longest, bound_of(overlap) - mu - 7 * us) << overlap;
    EXPECT_LE(lane.longest, bound_of(overlap)) << overlap;
  }
}

// Order costs the bound nothing: batches that overtake others on the device wait for them, and those are in time.
TEST(BoundSimulation, HoldsWhereBatchesComeBackInAnyOrder) {
  Random random(3);
  LaneModel lane = honest(8, true, random);
  lane.on_device = [](std::size_t batch) { return batch % 8 == 0 ? 8 * cycle : us; };
  lane.forwarding = [](std::size_t) { return cycle / 10; };
  lane.run(at_random(random));
  EXPECT_LE(lane.longest, bound_of(8));
  EXPECT_GT(lane.longest, 8 * cycle);
}

// A thousand in a cycle, which take the thread a quarter of it to collect.
std::vector<Ns> dense(Random& random) {
  std::vector<Ns> arrivals;
  std::exponential_distribution<double> gap(1000.0 / static_cast<double>(cycle));
  for (double at = 0; at < static_cast<double>(length / 4); at += gap(random)) arrivals.push_back(static_cast<Ns>(at));
  return arrivals;
}

// On one thread, too: what an older batch has held up leaves one in a round, and time points are seen in between.
TEST(BoundSimulation, HoldsWhereManyBatchesComeBackAtOnceOnOneThread) {
  Random random(6);
  for (const Arrivals& arrivals : {all_arrivals[0], all_arrivals[1], all_arrivals[2], Arrivals{"dense", dense}}) {
    for (const bool at_once : {true, false}) {
      LaneModel lane = honest(8, false, random);
      if (at_once) lane.on_device = [](std::size_t batch) { return batch % 8 == 0 ? 8 * cycle : us; };
      lane.forwarding = [](std::size_t) { return cycle / 3 - 3 * us; };
      if (arrivals.make == dense) lane.collecting = cycle / 4000;
      lane.run(arrivals.make(random));
      EXPECT_LE(lane.longest, bound_of(8)) << arrivals.name << at_once;
      EXPECT_GT(lane.longest, 8 * cycle) << arrivals.name << at_once;
    }
  }
}

// When jobs have the device, and its worker: there are always some to do, as many as the pace allows.
struct JobTimes {
  struct Launch {
    Ns begin, end;
    unsigned jobs;
  };
  std::vector<Launch> launches;

  JobTimes(Random& random, Ns slice, Ns fixed, Ns each) {
    JobPace pace(static_cast<std::uint64_t>(slice), static_cast<std::uint64_t>(cycle), 256);
    for (Ns at = between(random, 0, cycle); at < length + 20 * cycle;) {
      const unsigned jobs = pace.size();
      const Ns took = fixed + each * jobs;
      launches.push_back({at, at + took, jobs});
      at += static_cast<Ns>(pace.took(jobs, static_cast<std::uint64_t>(took))) + between(random, 0, 1) * us;
    }
  }
  // When what takes the device `work` by itself is done.
  Ns done(Ns begun, Ns work) const {
    Ns at = begun;
    for (auto one = std::ranges::lower_bound(launches, begun, {}, &Launch::end); one != launches.end(); ++one) {
      const Ns free = std::max<Ns>(one->begin - at, 0);
      if (free >= work) break;
      work -= free;
      at = one->end;
    }
    return at + work;
  }
  // When the worker passes a time point.
  Ns passed(Ns point) const { return done(point, 1) - 1; }
};

// A batch needs all of its overlap·I, jobs have all of their slice, and the worker is late by them.
TEST(BoundSimulation, HoldsBesideJobs) {
  constexpr Ns slice = cycle / jobs_part;
  Random random(8);
  for (const unsigned overlap : {1U, 2U, 8U}) {
    for (const auto& [fixed, each] : {std::pair<Ns, Ns>{2 * us, 500}, {1 * us, 4 * us}, {9 * us, 0}}) {
      for (const Arrivals& arrivals : all_arrivals) {
        const JobTimes jobs(random, slice, fixed, each);
        EXPECT_GE(jobs.launches.back().jobs, each == 500 ? 16U : each > us ? 2U : 1U) << "the pace has learned";
        for (const JobTimes::Launch& one : jobs.launches) ASSERT_LE(one.end - one.begin, slice);
        LaneModel lane = honest(overlap, true, random);
        lane.jobs = slice;
        lane.on_device_by_size = [&](std::size_t, Ns sealed) {
          return jobs.done(jobs.passed(sealed), cycle * overlap) - sealed;
        };
        lane.run(arrivals.make(random));
        EXPECT_LE(lane.longest, bound_of(overlap, true)) << arrivals.name << ", overlap " << overlap;
        if (fixed == slice) {
          EXPECT_GT(lane.longest, bound_of(overlap)) << "so a bound without them is wrong: " << arrivals.name;
        }
      }
    }
  }
}

// While the device has no frames, launches of jobs follow one another: one is under way when a batch comes, in any part
// of it, and from then on they begin a cycle apart until the device has no frames again.
TEST(BoundSimulation, HoldsBesideJobsThatUseAnIdleDevice) {
  constexpr Ns slice = cycle / jobs_part;
  Random random(9);
  for (const unsigned overlap : {1U, 2U, 8U}) {
    for (const Arrivals& arrivals : all_arrivals) {
      LaneModel lane = honest(overlap, true, random);
      lane.jobs = slice;
      Ns free = 0, first = 0;  // the device, from then on; when the launch began that met the frames
      const auto done = [&](Ns begun, Ns work) {
        if (begun >= free) first = begun - between(random, 0, slice - 1);
        Ns launch = first + (begun - first) / cycle * cycle;
        Ns at = std::max(begun, launch + slice);
        for (; at + work > launch + cycle; at = launch + slice) {
          launch += cycle;
          work -= launch - at;
        }
        free = std::max(free, at + work);
        return at + work;
      };
      lane.on_device_by_size = [&](std::size_t, Ns sealed) { return done(sealed, cycle * overlap) - sealed; };
      lane.run(arrivals.make(random));
      EXPECT_LE(lane.longest, bound_of(overlap, true)) << arrivals.name << ", overlap " << overlap;
    }
  }
}

// A third of the cycle is what three batches in it leave for each.
TEST(BoundSimulation, IsBrokenWhereABatchOnTheCollectorsThreadTakesMoreThanAThirdOfTheCycle) {
  Random random(7);
  LaneModel lane = honest(8, false, random);
  lane.forwarding = [](std::size_t) { return cycle * 2 / 5; };
  lane.run(at_random(random));
  EXPECT_GT(lane.longest, bound_of(8));
}

// The tests above would see a bound that is wrong: each premise is needed.
struct Broken {
  const char* premise;
  unsigned overlap;
  std::function<void(LaneModel& lane)> break_it;
};

TEST(BoundSimulation, IsBrokenWhereAPremiseIs) {
  const Broken all[] = {
      {"a batch takes a tenth longer on the device", 1,
       [](LaneModel& lane) { lane.on_device = [](std::size_t) { return cycle + cycle / 10; }; }},
      {"one batch in a hundred takes two cycles more", 2,
       [](LaneModel& lane) { lane.on_device = [](std::size_t batch) { return (batch % 100 == 50 ? 4 : 2) * cycle; }; }},
      {"forwarding takes longer than a cycle", 1,
       [](LaneModel& lane) { lane.forwarding = [](std::size_t) { return cycle + cycle / 10; }; }},
      {"on one thread two batches take longer than a cycle to forward", 1,
       [](LaneModel& lane) {
         lane.own_forwarder = false;
         lane.forwarding = [](std::size_t) { return cycle * 3 / 4; };
       }},
      {"a time point waits until the oldest batch, which is back, has been forwarded", 1,
       [](LaneModel& lane) { lane.waits_for_forwarder = true; }},
      {"on one thread all that is back is forwarded before a time point is seen", 8,
       [](LaneModel& lane) {
         lane.own_forwarder = false;
         lane.forwards_all = true;
         lane.on_device = [](std::size_t batch) { return batch % 8 == 0 ? 8 * cycle : us; };
         lane.forwarding = [](std::size_t) { return cycle / 3 - 3 * us; };
       }},
      {"a round takes longer than the bound has for it", 1, [](LaneModel& lane) { lane.round = 2 * mu; }},
  };
  for (const Broken& broken : all) {
    Random random(4);
    LaneModel lane = honest(broken.overlap, true, random);
    lane.on_device = [&](std::size_t) { return cycle * broken.overlap; };
    lane.forwarding = [](std::size_t) { return cycle - 3 * us; };
    broken.break_it(lane);
    lane.run(around_time_points(random));
    EXPECT_GT(lane.longest, bound_of(broken.overlap)) << broken.premise;
  }
}

// Three stages of a cycle each, up, kernel, down, every one busy with a batch of its own: the paper's cycle would have
// to be as long as all three.
TEST(BoundSimulation, OverlapIsWorthMoreThanALongerCycle) {
  constexpr unsigned stages = 3;
  Random random(5);
  LaneModel lane = honest(stages, true, random);
  std::vector<Ns> free_at(stages, 0);
  Ns sealed = 0;
  lane.on_device = [&](std::size_t batch) {
    sealed = static_cast<Ns>(batch + 1) * cycle;  // a batch is sealed at each time point, or after it
    Ns at = sealed;
    for (Ns& stage : free_at) at = stage = std::max(at, stage) + cycle - us;
    return at - sealed;
  };
  lane.run(around_time_points(random));
  EXPECT_LE(lane.longest, bound_of(stages));
  EXPECT_LT(bound_of(stages), 3 * stages * cycle + mu);
}

// The longest T_S where each lane brings a batch at each of its time points, to three stages of which each has time for
// all of them in a cycle.
Ns longest_of_lanes(std::size_t lanes, Ns each, bool stagger) {
  constexpr unsigned stages = 3;
  TimePoints points(0, static_cast<std::uint64_t>(cycle), lanes, stagger);
  std::vector<Ns> free_at(stages, 0);
  Ns longest = 0;
  while (points.next() < 100 * static_cast<std::uint64_t>(cycle)) {
    const auto sealed = static_cast<Ns>(points.next());
    points.pass(points.next(), [&](std::size_t, std::uint64_t) {
      Ns at = sealed;
      for (Ns& stage : free_at) at = stage = std::max(at, stage) + each;
      longest = std::max(longest, at - sealed);
    });
  }
  return longest;
}

TEST(BoundSimulation, StaggeredLanesDoNotWaitForEachOther) {
  constexpr std::size_t lanes = 8;
  constexpr Ns each = cycle / lanes - us;
  EXPECT_EQ(longest_of_lanes(lanes, each, true), 3 * each);
  EXPECT_EQ(longest_of_lanes(lanes, each, false), (lanes + 2) * each);
}

}  // namespace
}  // namespace sluice::engine
