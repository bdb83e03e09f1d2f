// What admission promises, where streams do what their token buckets let through: in virtual time
// (engine/stream_overload_test.cc), with the buckets that can be configured and without.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "engine/stream_load_test.h"
#include "function/policer.h"
#include "function/srtp/rtsp_options.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {
namespace {

using engine::Ns;
using engine::test::frame_bytes;
using engine::test::period;
using engine::test::stream;

constexpr unsigned too_many = 10;
constexpr std::uint64_t ticks = 1'000'000'000;  // a second
constexpr Ns length = 200 * engine::test::ms;

bool keeps_to_its_rate(unsigned one) {
  return one % 10 != 0;
}

struct Outcome {
  std::vector<std::size_t> sent, policed, late;  // by stream
  std::size_t streams() const { return sent.size(); }
  // Of those that keep to their rates.
  std::size_t late_of_the_others() const {
    std::size_t sum = 0;
    for (unsigned one = 0; one < late.size(); ++one) sum += keeps_to_its_rate(one) ? late[one] : 0;
    return sum;
  }
};

struct Arrival {
  Ns at;
  unsigned stream;
};

// A tenth bring ten times their rate.
std::vector<Arrival> tenfold(unsigned streams) {
  std::vector<Arrival> all;
  for (unsigned one = 0; one < streams; ++one) {
    const Ns distance = keeps_to_its_rate(one) ? period : period / too_many;
    for (Ns at = period * one / streams; at < length; at += distance) all.push_back({at, one});
  }
  std::ranges::stable_sort(all, {}, &Arrival::at);
  return all;
}

// All at the same moment bring what their buckets hold, of silence, and go on at ten times their rates.
std::vector<Arrival> all_at_once(unsigned streams, std::uint64_t burst) {
  std::vector<Arrival> all;
  for (unsigned one = 0; one < streams; ++one) all.insert(all.end(), burst / frame_bytes, {5 * period, one});
  for (Ns at = 5 * period; at < length / 4; at += period / too_many) {
    for (unsigned one = 0; one < streams; ++one) all.push_back({at, one});
  }
  return all;
}

constexpr std::uint64_t without = 0;
using Arrivals = std::vector<Arrival> (*)(unsigned streams, std::uint64_t burst);
std::vector<Arrival> some_tenfold(unsigned streams, std::uint64_t /*burst*/) {
  return tenfold(streams);
}

// As many streams as are admitted send, with buckets of their rates and so many bytes, or without.
Outcome run(std::uint64_t burst, bool counts_bursts, Arrivals arrivals_of) {
  engine::StreamAdmission admission = engine::test::admission(true, counts_bursts);
  engine::StreamDemand demand = stream;
  demand.burst = burst;
  std::deque<Policer> buckets;
  while (admission.add(demand).accepted()) buckets.emplace_back(stream.rate, std::max(burst, std::uint64_t{1}), ticks);
  Outcome outcome;
  for (auto* const counts : {&outcome.sent, &outcome.policed, &outcome.late}) counts->resize(buckets.size());
  std::vector<Ns> arrivals;
  std::vector<unsigned> streams;
  for (const Arrival& one : arrivals_of(static_cast<unsigned>(buckets.size()), burst)) {
    ++outcome.sent[one.stream];
    // No time is the first of the clock's.
    if (burst != without && !buckets[one.stream].take(frame_bytes, ticks + static_cast<std::uint64_t>(one.at))) {
      ++outcome.policed[one.stream];
      continue;
    }
    arrivals.push_back(one.at);
    streams.push_back(one.stream);
  }
  const std::size_t left = engine::test::send(arrivals, [&](std::size_t one) { ++outcome.late[streams[one]]; });
  EXPECT_EQ(left, arrivals.size());
  return outcome;
}

TEST(PolicedOverload, WithoutBucketsAllAreLate) {
  const Outcome outcome = run(without, false, some_tenfold);
  ASSERT_EQ(outcome.streams(), 900U);
  for (std::size_t one = 0; one < outcome.streams(); ++one) {
    EXPECT_GT(outcome.late[one], outcome.sent[one] * 9 / 10) << one;
  }
}

// What can be configured: a stream's usual burst, the usual one of RTSP's media, and the least of either.
const std::uint64_t usual = stream_burst(stream.rate, 0, frame_bytes);
const std::uint64_t of_rtsp = stream.rate / 8 * static_cast<std::uint64_t>(RtspOptions().burst_time.count()) / ticks;
constexpr std::uint64_t least = 2 * frame_bytes;

struct Case {
  const char* name;
  std::uint64_t burst;
  bool counts_bursts;
  std::size_t admitted;
  bool harms;  // a tenth of the streams, within their buckets, those that keep to their rates
};

TEST(PolicedOverload, BucketsKeepItToThoseThatCauseItWhereBurstsAreCounted) {
  const Case cases[] = {
      {"a tenth of a second", usual, false, 900, true}, {"a second", of_rtsp, false, 900, true},
      {"two frames", least, false, 900, false},         {"a tenth of a second, counted", usual, true, 2, false},
      {"a second, counted", of_rtsp, true, 0, false},   {"two frames, counted", least, true, 117, false},
  };
  for (const Case& one : cases) {
    const Outcome outcome = run(one.burst, one.counts_bursts, some_tenfold);
    EXPECT_EQ(outcome.streams(), one.admitted) << one.name;
    EXPECT_EQ(outcome.late_of_the_others() != 0, one.harms) << one.name << ": " << outcome.late_of_the_others();
    for (unsigned stream = 0; stream < outcome.streams(); ++stream) {
      EXPECT_EQ(outcome.policed[stream] == 0, keeps_to_its_rate(stream)) << one.name << stream;
    }
    if (!one.counts_bursts) continue;
    // Whatever the streams do: no frame that passes is late.
    const Outcome worst = run(one.burst, true, all_at_once);
    for (unsigned stream = 0; stream < worst.streams(); ++stream) {
      EXPECT_EQ(worst.late[stream], 0U) << one.name << stream;
      EXPECT_GT(worst.policed[stream], worst.sent[stream] / 4) << one.name << stream;
    }
  }
}

// So counting them asks for no more than it has to: what is admitted without it is late when buckets are used at once.
TEST(PolicedOverload, BurstsThatDoNotFitIntoACycleMakeFramesLate) {
  for (const std::uint64_t burst : {usual, least}) {
    EXPECT_GT(run(burst, false, all_at_once).late_of_the_others(), 900U) << burst;
  }
}

}  // namespace
}  // namespace sluice::function
