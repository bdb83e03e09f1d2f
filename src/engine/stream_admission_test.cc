#include "engine/stream_admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr StreamCapacity paper{.rate = 10'000'000'000, .bound = milliseconds(45), .largest_packet = 1370};

struct Case {
  const char* name;
  std::uint64_t taken;
  StreamDemand demand;
  StreamVerdict verdict;
  const char* text;  // a part of it
};

TEST(StreamAdmission, JudgesEachCondition) {
  constexpr std::uint64_t gbit = 1'000'000'000;
  const Case cases[] = {
      {"fits", 0, {1370, milliseconds(80), 6'000'000}, StreamVerdict::accepted, "6 Mbit/s of 10 Gbit/s taken"},
      {"to the last bit", 9 * gbit, {1370, milliseconds(80), gbit}, StreamVerdict::accepted, "10 Gbit/s of 10"},
      {"a bit too much",
       9 * gbit,
       {1370, milliseconds(80), gbit + 1},
       StreamVerdict::too_much,
       "1 Gbit/s beside the 9 Gbit/s that are taken exceed the 10 Gbit/s"},
      {"a sum that would wrap", gbit, {1370, milliseconds(80), ~0ULL}, StreamVerdict::too_much, "exceed"},
      {"a deadline at the bound",
       0,
       {1370, milliseconds(45), 1000},
       StreamVerdict::too_soon,
       "a deadline of 45ms is not above the bound of this configuration, 45ms"},
      {"just above it", 0, {1370, milliseconds(45) + nanoseconds(1), 1000}, StreamVerdict::accepted, "1 kbit/s"},
      {"a larger packet than was measured", 0, {1371, milliseconds(80), 1000}, StreamVerdict::too_large, "1371 bytes"},
      {"a size that is not known", 0, {0, milliseconds(80), 1000}, StreamVerdict::accepted, ""},
      {"a rate that is not known", 0, {1370, milliseconds(80), 0}, StreamVerdict::rate_unknown, "b="},
  };
  for (const Case& c : cases) {
    StreamAdmission admission(paper);
    if (c.taken != 0) {
      ASSERT_TRUE(admission.add({0, milliseconds(60), c.taken}).accepted());
    }
    const StreamAnswer answer = admission.add(c.demand);
    EXPECT_EQ(answer.verdict, c.verdict) << c.name << stream_verdict_name(answer.verdict);
    EXPECT_NE(answer.text().find(c.text), std::string::npos) << c.name << ": " << answer.text();
    EXPECT_EQ(admission.state().rate, c.taken + (answer.accepted() ? c.demand.rate : 0)) << c.name;
    EXPECT_EQ(admission.state().refused, answer.accepted() ? 0U : 1U) << c.name;
  }
}

// The paper's system without it: what comes is let in, and is known all the same.
TEST(StreamAdmission, WithoutItEverythingIsAcceptedAndCounted) {
  StreamAdmission admission(paper, false);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission.add({9000, milliseconds(1), paper.rate}).accepted());
  EXPECT_EQ(admission.state().rate, 3 * paper.rate);
  EXPECT_EQ(admission.state().shortest_deadline, milliseconds(1));
}

// Against a plain list, through random comings and goings.
TEST(StreamAdmission, KeepsThetaAndBetaExactly) {
  std::mt19937_64 random(1);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 20; ++round) {
    StreamAdmission admission(paper);
    std::vector<StreamDemand> model;
    std::uint64_t refused = 0;
    for (int step = 0; step < 2000; ++step) {
      if (!model.empty() && below(5) < 2) {
        const auto gone = model.begin() + static_cast<std::ptrdiff_t>(below(model.size()));
        EXPECT_TRUE(admission.remove(*gone));
        model.erase(gone);
      } else {
        // Few deadlines and rates, so that many are equal.
        const StreamDemand one{static_cast<std::uint32_t>(1360 + below(12)), milliseconds(43 + below(6)),
                               1 + below(4) * 77'777'777};
        std::uint64_t sum = one.rate;
        for (const StreamDemand& other : model) sum += other.rate;
        const bool fits = sum <= paper.rate && one.deadline > paper.bound && one.largest_packet <= 1370;
        ASSERT_EQ(admission.add(one).accepted(), fits);
        refused += fits ? 0 : 1;
        if (fits) model.push_back(one);
      }
      std::uint64_t rate = 0;
      nanoseconds shortest(0);
      for (const StreamDemand& one : model) {
        rate += one.rate;
        shortest = shortest.count() == 0 ? one.deadline : std::min(shortest, one.deadline);
      }
      const StreamAdmission::State state = admission.state();
      ASSERT_EQ(state.rate, rate);
      ASSERT_EQ(state.shortest_deadline, shortest);
      ASSERT_EQ(state.streams, model.size());
      ASSERT_EQ(state.refused, refused);
    }
    EXPECT_GT(refused, 100U);
  }
}

TEST(StreamAdmission, WhatWasNotThereTakesNothingAway) {
  StreamAdmission admission(paper);
  const StreamDemand one{1370, milliseconds(80), 1000};
  EXPECT_FALSE(admission.remove(one));
  ASSERT_TRUE(admission.add(one).accepted());
  EXPECT_FALSE(admission.remove({1370, milliseconds(80), 1001}));
  EXPECT_FALSE(admission.remove({1370, milliseconds(81), 1000}));
  EXPECT_EQ(admission.state().rate, 1000U);
  EXPECT_TRUE(admission.remove(one));
  EXPECT_FALSE(admission.remove(one));
  EXPECT_EQ(admission.state().shortest_deadline.count(), 0);
}

TEST(StreamAdmission, OneTableForAnotherIsAllOrNothing) {
  StreamAdmission admission(paper);
  const StreamDemand big{1370, milliseconds(80), 6'000'000'000}, small{1370, milliseconds(60), 1'000'000'000};
  EXPECT_FALSE(admission.replace({}, {big, small}));
  EXPECT_FALSE(admission.replace({big, small}, {small, big, small, small}))
      << "there is capacity once the old ones are gone";
  const auto refused = admission.replace({small}, {small, small, small});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->index, 2U);
  EXPECT_EQ(refused->answer.verdict, StreamVerdict::too_much);
  EXPECT_EQ(refused->answer.rate_before, 10'000'000'000U);
  EXPECT_EQ(admission.state().rate, 9'000'000'000U) << "everything is as it was";
  EXPECT_EQ(admission.state().streams, 4U);
  EXPECT_EQ(admission.state().refused, 1U);
  StreamAdmission all(paper, false);
  EXPECT_FALSE(all.replace({}, {big, big, big}));
}

TEST(StreamAdmission, LessCapacityKeepsThoseThatAreThere) {
  StreamAdmission admission(paper);
  ASSERT_TRUE(admission.add({1370, milliseconds(80), 5'000'000'000}).accepted());
  admission.set_capacity({.rate = 1'000'000'000, .bound = milliseconds(45)});
  EXPECT_EQ(admission.state().streams, 1U);
  EXPECT_EQ(admission.add({1370, milliseconds(80), 1}).verdict, StreamVerdict::too_much);
}

// A cycle of a millisecond carries 1.25 MB.
constexpr StreamCapacity bursty{
    .rate = 10'000'000'000, .bound = milliseconds(3), .cycle = milliseconds(1), .counts_bursts = true};

StreamDemand bursting(std::uint64_t rate, std::uint64_t burst, const char* share = "") {
  return {.deadline = milliseconds(80), .rate = rate, .share = share, .burst = burst};
}

TEST(StreamAdmission, BurstsHaveToFitIntoACycleBesideTheRatesWhereTheyAreCounted) {
  const struct {
    const char* name;
    StreamDemand there, comes;
    StreamVerdict verdict;
    const char* text;
  } cases[] = {
      {"fits to the last byte", bursting(4'000'000'000, 250'000), bursting(4'000'000'000, 0), StreamVerdict::accepted,
       ""},
      {"whose rate takes a byte too much", bursting(4'000'000'000, 250'000), bursting(4'000'008'000, 0),
       StreamVerdict::too_bursty, "0 bytes that it may bring at once, beside 250 kB"},
      {"a byte too many", bursting(4'000'000'000, 250'000), bursting(2'000'000'000, 250'001), StreamVerdict::too_bursty,
       "250 kB that it may bring at once, beside 250 kB of those that are there, exceed the 500 kB for which a cycle "
       "of 1ms has capacity beside their rates: a burst of 250 kB would fit"},
      {"larger than all", bursting(1, 0), bursting(1, ~0ULL), StreamVerdict::too_bursty, "exceed the 1.25 MB"},
      {"the rate comes first", bursting(4'000'000'000, 0), bursting(7'000'000'000, ~0ULL), StreamVerdict::too_much, ""},
  };
  for (const auto& one : cases) {
    for (const bool counts : {true, false}) {
      StreamCapacity capacity = bursty;
      capacity.counts_bursts = counts;
      StreamAdmission admission(capacity);
      ASSERT_TRUE(admission.add(one.there).accepted()) << one.name;
      const StreamAnswer answer = admission.add(one.comes);
      const bool lets_in = !counts && one.verdict == StreamVerdict::too_bursty;
      EXPECT_EQ(answer.verdict, lets_in ? StreamVerdict::accepted : one.verdict) << one.name;
      const bool noted = admission.burst_note().find("a cycle of 1ms has capacity for") != std::string::npos;
      EXPECT_EQ(noted, lets_in) << one.name << admission.burst_note();
      EXPECT_TRUE(!counts || answer.text().find(one.text) != std::string::npos) << one.name << ": " << answer.text();
    }
  }
  StreamCapacity cpu = bursty;
  cpu.cycle = nanoseconds(0);
  StreamAdmission without_cycle(cpu);
  EXPECT_TRUE(without_cycle.add(bursting(1, 1 << 30)).accepted());
  EXPECT_EQ(without_cycle.burst_note(), "");
}

TEST(StreamAdmission, BurstsAreGivenBackAndReplacedAsRatesAre) {
  StreamAdmission admission(bursty);
  const auto bursts = [&] { return admission.state().bursts; };
  const StreamDemand a = bursting(1'000'000'000, 500'000, "a"), b = bursting(1'000'000'000, 400'000);
  ASSERT_FALSE(admission.replace({}, {a, b}));
  EXPECT_EQ(bursts(), 900'000U);
  EXPECT_EQ(admission.state().burst_capacity, 1'000'000U);
  EXPECT_FALSE(admission.remove(bursting(1'000'000'000, 399'999))) << "there is no such one";
  // A raise takes capacity of bursts.
  const auto share = admission.share("a");
  EXPECT_TRUE(admission.change(share, 1'000'000'000, 1'800'000'000)->accepted());
  EXPECT_EQ(admission.change(share, 1'800'000'000, 1'800'000'000 + 8'000)->verdict, StreamVerdict::too_bursty);
  EXPECT_TRUE(admission.change(share, 1'800'000'000, 1'000'000'000)->accepted());
  // With another burst a share stays, as long as that fits.
  const StreamDemand longer = bursting(1'000'000'000, 600'001, "a"), shorter = bursting(1'000'000'000, 100'000, "a");
  const auto refused = admission.replace({a, b}, {longer, b});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->index, 0U);
  EXPECT_EQ(refused->answer.verdict, StreamVerdict::too_bursty);
  EXPECT_EQ(bursts(), 900'000U);
  StreamAdmission::Replaced replaced;
  ASSERT_FALSE(admission.replace({a, b}, {shorter}, &replaced));
  EXPECT_EQ(admission.share("a"), share);
  EXPECT_EQ(bursts(), 100'000U);
  EXPECT_EQ(admission.add(bursting(1, 200'000)).verdict, StreamVerdict::too_bursty) << "until it is settled";
  admission.undo(replaced);
  EXPECT_EQ(admission.share("a"), share);
  EXPECT_EQ(bursts(), 900'000U);
  ASSERT_FALSE(admission.replace({a, b}, {shorter}, &replaced));
  admission.settle(replaced);
  const StreamDemand other = bursting(1, 900'000);
  EXPECT_TRUE(admission.add(other).accepted());
  EXPECT_TRUE(admission.remove(other));
  EXPECT_TRUE(admission.remove(shorter));
  EXPECT_EQ(bursts(), 0U);
  EXPECT_EQ(admission.state().streams, 0U);
}

// Streams of several control threads never take more than there is, and give all of it back.
TEST(StreamAdmission, ThreadsTogetherNeverTakeMoreThanThereIs) {
  StreamAdmission admission({.rate = 1000, .bound = milliseconds(1)});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&admission, t] {
      const StreamDemand mine{100, milliseconds(2 + t), 300};
      for (int i = 0; i < 20'000; ++i) {
        if (admission.add(mine).accepted()) {
          EXPECT_LE(admission.state().rate, 1000U);
          EXPECT_TRUE(admission.remove(mine));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admission.state().rate, 0U);
  EXPECT_EQ(admission.state().streams, 0U);
}

// As the list against which shares are checked has them.
struct Sharing {
  StreamDemand demand;
  std::uint64_t holds;
  std::shared_ptr<StreamAdmission::Share> share;
};

// Against a plain list, through random comings, goings and changes; and what has gone changes nothing any more.
TEST(StreamAdmission, WhatSharesHoldIsKeptExactly) {
  std::mt19937_64 random(2);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 20; ++round) {
    StreamAdmission admission(paper);
    std::vector<Sharing> model;
    std::vector<std::shared_ptr<StreamAdmission::Share>> old;
    unsigned raised = 0, refused = 0;
    for (int step = 0; step < 2000; ++step) {
      std::uint64_t beta = 0;
      for (const Sharing& one : model) beta += one.holds;
      const std::uint64_t what = below(10);
      if (model.empty() || what < 3) {
        const bool shares = below(3) != 0;
        const StreamDemand one{1370, milliseconds(46 + below(4)), 1 + below(4) * 777'777'777,
                               shares ? "stream " + std::to_string(step) : ""};
        if (admission.add(one).accepted()) model.push_back({one, one.rate, admission.share(one.share)});
      } else if (what < 5) {
        const auto gone = model.begin() + static_cast<std::ptrdiff_t>(below(model.size()));
        EXPECT_TRUE(admission.remove(gone->demand));
        if (gone->share) old.push_back(gone->share);
        model.erase(gone);
      } else {
        Sharing& one = model[below(model.size())];
        const std::uint64_t part = 1 + below(one.holds), after = 1 + below(3 * part);
        const auto answer = admission.change(one.share, part, after);
        ASSERT_EQ(answer.has_value(), one.share != nullptr);
        if (!answer) continue;
        ASSERT_EQ(answer->accepted(), beta - part + after <= paper.rate || after <= part);
        ++(answer->accepted() ? raised : refused);
        if (answer->accepted()) one.holds += after - part;
        if (!old.empty()) {
          ASSERT_FALSE(admission.change(old[below(old.size())], 1, 0));
        }
      }
      std::uint64_t rate = 0;
      nanoseconds shortest(0);
      for (const Sharing& one : model) {
        rate += one.holds;
        shortest = shortest.count() == 0 ? one.demand.deadline : std::min(shortest, one.demand.deadline);
      }
      const StreamAdmission::State state = admission.state();
      ASSERT_EQ(state.rate, rate);
      ASSERT_EQ(state.shortest_deadline, shortest);
      ASSERT_EQ(state.streams, model.size());
    }
    EXPECT_GT(raised, 100U);
    EXPECT_GT(refused, 10U);
  }
}

TEST(StreamAdmission, AShareMayGrowIntoWhatIsLeftAndAlwaysSink) {
  StreamAdmission admission(paper);
  constexpr std::uint64_t gbit = 1'000'000'000;
  ASSERT_TRUE(admission.add({1370, milliseconds(80), 6 * gbit, "a"}).accepted());
  const auto share = admission.share("a");
  EXPECT_EQ(admission.share("b"), nullptr);
  EXPECT_TRUE(admission.change(share, 6 * gbit, gbit)->accepted());
  ASSERT_TRUE(admission.add({1370, milliseconds(80), 8 * gbit, {}}).accepted()) << "where there was no capacity before";
  EXPECT_TRUE(admission.change(share, gbit, 2 * gbit)->accepted()) << "to the last bit";
  const auto refused = admission.change(share, 2 * gbit, 2 * gbit + 1'000'000);
  EXPECT_EQ(refused->text(),
            "1 Mbit/s beside the 10 Gbit/s that are taken exceed the 10 Gbit/s that the device carries in time");
  EXPECT_EQ(admission.state().refused, 0U) << "no stream was";
  admission.set_capacity({.rate = gbit, .bound = milliseconds(45), .measured = false});
  EXPECT_EQ(admission.change(share, 1, 2)->verdict, StreamVerdict::not_measured);
  EXPECT_TRUE(admission.change(share, 2 * gbit, gbit)->accepted()) << "less is never refused";
  EXPECT_EQ(admission.state().rate, 9 * gbit);
}

// Else a replacement that fails could not be undone.
TEST(StreamAdmission, WhatAReplacementHasGivenBackIsNobodysUntilItIsSettled) {
  StreamAdmission admission(paper);
  constexpr std::uint64_t gbit = 1'000'000'000;
  const StreamDemand a{1370, milliseconds(80), 8 * gbit, "a"}, b{1370, milliseconds(80), 3 * gbit, ""};
  ASSERT_FALSE(admission.replace({}, {a}));
  ASSERT_TRUE(admission.change(admission.share("a"), 8 * gbit, 7 * gbit)->accepted());
  StreamAdmission::Replaced replaced;
  ASSERT_FALSE(admission.replace({a}, {b}, &replaced));
  EXPECT_EQ(admission.state().rate, 3 * gbit);
  const StreamAnswer refused = admission.add({1370, milliseconds(80), 1, ""});
  EXPECT_FALSE(refused.accepted());
  EXPECT_EQ(refused.rate_before, 10 * gbit) << "which is why";
  admission.undo(replaced);
  EXPECT_EQ(admission.state().rate, 7 * gbit);
  ASSERT_TRUE(admission.add(b).accepted()) << "what undo() has not taken is there again";
  ASSERT_TRUE(admission.remove(b));
  ASSERT_FALSE(admission.replace({a}, {b}, &replaced));
  admission.settle(replaced);
  EXPECT_TRUE(admission.add({1370, milliseconds(80), 7 * gbit, ""}).accepted());
}

// What stays keeps its share and what that holds; what a reload that fails has taken away comes back as it was.
TEST(StreamAdmission, AReplacementThatIsUndoneGivesSharesBack) {
  StreamAdmission admission(paper);
  constexpr std::uint64_t gbit = 1'000'000'000;
  const StreamDemand a{1370, milliseconds(80), 4 * gbit, "a"}, b{1370, milliseconds(70), 4 * gbit, "b"};
  StreamDemand other = b;
  other.rate = 5 * gbit;
  ASSERT_FALSE(admission.replace({}, {a, b}));
  const auto of_a = admission.share("a"), of_b = admission.share("b");
  ASSERT_TRUE(admission.change(of_a, 4 * gbit, gbit)->accepted());
  ASSERT_TRUE(admission.change(of_b, 4 * gbit, 2 * gbit)->accepted());
  StreamAdmission::Replaced replaced;
  ASSERT_FALSE(admission.replace({a, b}, {a, other}, &replaced));
  EXPECT_EQ(admission.share("a"), of_a);
  EXPECT_NE(admission.share("b"), of_b);
  EXPECT_EQ(admission.state().rate, 6 * gbit);
  EXPECT_FALSE(admission.change(of_b, 1, 0));
  admission.undo(replaced);
  EXPECT_EQ(admission.share("b"), of_b);
  EXPECT_EQ(admission.state().rate, 3 * gbit);
  EXPECT_EQ(admission.state().streams, 2U);
  other.rate = 10 * gbit;
  ASSERT_TRUE(admission.replace({a, b}, {a, other})) << "refused";
  EXPECT_EQ(admission.share("b"), of_b);
  EXPECT_TRUE(admission.change(of_b, 2 * gbit, gbit)->accepted());
  EXPECT_TRUE(admission.remove(a));
  EXPECT_TRUE(admission.remove(b));
  EXPECT_FALSE(admission.remove(b));
  EXPECT_EQ(admission.state().rate, 0U);
  EXPECT_EQ(admission.state().streams, 0U);
}

// As a reload has them, in no order that the admission has: streams that are there get other bursts in little more time
// than they take to come and go.
TEST(StreamAdmission, OtherBurstsOfManyStreamsTakeLittleMoreThanTheirComing) {
  constexpr unsigned count = 10'000;
  std::vector<StreamDemand> streams, with_other_bursts;
  for (unsigned i = count; i > 0; --i) {
    streams.push_back({1370, milliseconds(80), 1000, std::to_string(1'000'000 + i), 3000});
    with_other_bursts.push_back(streams.back());
    with_other_bursts.back().burst = 4000;
  }
  StreamAdmission admission({.rate = 10'000'000'000, .bound = milliseconds(45)});
  const auto time_of = [&](const std::vector<StreamDemand>& before, const std::vector<StreamDemand>& after) {
    auto least = std::chrono::steady_clock::duration::max();
    for (int tried = 0; tried < 3; ++tried) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(admission.replace(before, after));
      EXPECT_EQ(admission.state().bursts, after.size() * (after.empty() ? 0 : after.front().burst));
      EXPECT_FALSE(admission.replace(after, before));
      least = std::min(least, std::chrono::steady_clock::now() - begin);
    }
    return std::chrono::duration<double>(least).count();
  };
  const double coming = time_of({}, streams);
  ASSERT_FALSE(admission.replace({}, streams));
  EXPECT_LT(time_of(streams, with_other_bursts), 10 * coming) << coming << " s";
}

}  // namespace
}  // namespace sluice::engine
