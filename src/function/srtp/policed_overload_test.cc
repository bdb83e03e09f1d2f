// What admission promises holds while streams keep to their rates. Here a tenth of those that were admitted bring ten
// times theirs: in virtual time (engine/stream_overload_test.cc), with the stage's token buckets and without.
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "engine/stream_load_test.h"
#include "function/policer.h"

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
};

struct Arrival {
  Ns at;
  unsigned stream;
};

std::vector<Arrival> arrivals_of(unsigned streams) {
  std::vector<Arrival> all;
  for (unsigned one = 0; one < streams; ++one) {
    const Ns distance = keeps_to_its_rate(one) ? period : period / too_many;
    for (Ns at = period * one / streams; at < length; at += distance) all.push_back({at, one});
  }
  std::ranges::stable_sort(all, {}, &Arrival::at);
  return all;
}

// As many streams as are admitted send; with buckets of their rates and a frame each, or without.
Outcome run(bool policed) {
  engine::StreamAdmission admission = engine::test::admission();
  std::deque<Policer> buckets;
  while (admission.add(stream).accepted()) buckets.emplace_back(stream.rate, frame_bytes, ticks);
  Outcome outcome;
  for (auto* const counts : {&outcome.sent, &outcome.policed, &outcome.late}) counts->resize(buckets.size());
  std::vector<Ns> arrivals;
  std::vector<unsigned> streams;
  for (const Arrival& one : arrivals_of(static_cast<unsigned>(buckets.size()))) {
    ++outcome.sent[one.stream];
    // No time is the first of the clock's.
    if (policed && !buckets[one.stream].take(frame_bytes, ticks + static_cast<std::uint64_t>(one.at))) {
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

TEST(PolicedOverload, without_buckets_all_are_late) {
  const Outcome outcome = run(false);
  ASSERT_EQ(outcome.sent.size(), 900U);
  for (std::size_t one = 0; one < outcome.sent.size(); ++one) {
    EXPECT_GT(outcome.late[one], outcome.sent[one] * 9 / 10) << one;
  }
}

TEST(PolicedOverload, with_them_only_what_is_beyond_a_streams_rate_suffers) {
  const Outcome outcome = run(true);
  ASSERT_EQ(outcome.sent.size(), 900U);
  for (unsigned one = 0; one < outcome.sent.size(); ++one) {
    EXPECT_EQ(outcome.late[one], 0U) << one;
    const std::size_t within =
        keeps_to_its_rate(one) ? outcome.sent[one] : (outcome.sent[one] + too_many - 1) / too_many;
    EXPECT_EQ(outcome.policed[one], outcome.sent[one] - within) << one;
  }
}

}  // namespace
}  // namespace sluice::function
