// Streams that are measured: what they hold of an admission, and that they are held to it.
#include <thread>

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t rate = 8'000'000;
const std::string measured = "rate = 8_000_000\nmeasured = true\nmeasure_time = \"1s\"\nrate_margin = 100\n";
const std::string own_rtcp = "rtcp_source_port = 5005\nrtcp_destination_port = 7001\n";
constexpr std::uint32_t frame = 1000;

// The element's table on a clock of its own.
class MeasuredStreams : public testing::Test {
 protected:
  MeasuredStreams()
      : keys_(crypto::KeyTable::make(64, false)),
        current_(1),
        streams_(*keys_, current_, 64, 1514, ports_, nullptr, SpentKeys::make().value()) {}

  void admit(std::uint64_t capacity) {
    admission_.emplace(engine::StreamCapacity{capacity, milliseconds(1), 0});
    streams_.admit_by(*admission_, milliseconds(4));
  }
  void add(unsigned port, const std::string& more = measured) {
    const auto added = streams_.add_text(text_of(port) + more, "the request");
    ASSERT_TRUE(added) << added.error().message;
  }
  // So many frames for a second and a window; how many were within its rate.
  unsigned send(unsigned port, unsigned frames_a_second) {
    MediaStream* const stream = current_.pin(0)->find(key_of(port));
    const std::uint64_t hz = rte_get_tsc_hz();
    unsigned passed = 0;
    for (const std::uint64_t end = now_ + hz * 11 / 10; now_ < end; now_ += hz / frames_a_second + 1) {
      passed += stream->conforms(frame, [&] { return now_; }) ? 1 : 0;
    }
    current_.unpin(0);
    return passed;
  }
  const MediaStream& stream(unsigned port) {
    const MediaStream& found = *current_.pin(0)->find(key_of(port));
    current_.unpin(0);
    return found;
  }
  std::uint64_t held(unsigned port) { return stream(port).measured()->bits(); }
  std::uint64_t beta() const { return admission_->state().rate; }

  const engine::PortTable ports_;
  Expected<crypto::KeyTable> keys_;
  Streams::Current current_;
  std::optional<engine::StreamAdmission> admission_;  // outlives them
  Streams streams_;
  std::uint64_t now_ = 10 * rte_get_tsc_hz();
};

// What a lane that is in the midst of a batch may still ask is there, and then goes: not with the stream.
TEST_F(MeasuredStreams, LeaveNoBucketBehindWhenTheirRateChanges) {
  add(7000);
  std::weak_ptr<MeasuredRate> first = stream(7000).measured();
  MediaStream* const found = current_.pin(0)->find(key_of(7000));
  for (unsigned i = 1; i <= 3; ++i) {
    const std::string rates = "rate = " + std::to_string(rate + i) + "\nmeasured = true\nmeasure_time = \"2s\"\n";
    ASSERT_TRUE(streams_.replace_text(text_of(7000) + rates, "the request"));
  }
  EXPECT_TRUE(found->conforms(frame, [&] { return now_; }));
  EXPECT_FALSE(first.expired()) << "a batch is under way";
  current_.unpin(0);
  streams_.tidy(std::chrono::steady_clock::now());
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(streams_.leaving(), 0U);
  EXPECT_NE(stream(7000).measured(), nullptr);
}

TEST_F(MeasuredStreams, GiveBackWhatTheyDoNotBring) {
  admit(rate + 1000);
  add(7000);
  EXPECT_FALSE(streams_.add_text(text_of(7010) + "rate = 1001\n", "the request"));
  EXPECT_EQ(streams_.measure(), "");
  EXPECT_EQ(streams_.measuring(), 1U);
  EXPECT_EQ(beta(), rate);
  EXPECT_EQ(send(7000, 100), 110U);  // 800 kbit/s
  EXPECT_EQ(beta(), rate) << "a lane measures, and no more";
  streams_.measure();
  EXPECT_EQ(streams_.measuring(), 0U);
  EXPECT_EQ(held(7000), 1'600'000U) << "and the margin";
  EXPECT_EQ(beta(), 1'600'000U);
  add(7010, "rate = 6_000_000\n");
  // Held to it: a second, a tenth more, and the bucket, of 1.6 Mbit/s.
  EXPECT_NEAR(send(7000, 900), 0.2 * 1100 + 20, 2);
  const std::string refused = streams_.measure();
  EXPECT_NE(refused.find("10.0.0.1:5004 -> 10.0.0.2:7000 brings more than it was found to bring, and stays at 1600000 "
                         "bit/s: 6.4 Mbit/s beside the 7.6 Mbit/s that are taken exceed the 8.001 Mbit/s"),
            std::string::npos)
      << refused;
  EXPECT_EQ(streams_.measure(), "") << "said once";
  EXPECT_EQ(streams_.raises_refused(), 1U);
  EXPECT_EQ(beta(), 7'600'000U);
  // When there is capacity, it is raised, up to its rate.
  streams_.remove(std::vector{key_of(7010)}, MediaOrigin::api, false);
  streams_.measure();
  EXPECT_EQ(held(7000), rate);
  EXPECT_EQ(beta(), rate);
  EXPECT_GT(send(7000, 900), 900U);
  streams_.remove(std::vector{key_of(7000)}, MediaOrigin::api, true);
  EXPECT_EQ(beta(), 0U);
  EXPECT_EQ(admission_->state().streams, 0U);
  streams_.measure();
  EXPECT_EQ(streams_.measuring(), 0U);
}

// A reload has looked at the table, and then the API adds what the file is about to.
TEST_F(MeasuredStreams, OfTheApiGiveWayToTheFilesAndGiveBackWhatTheyHold) {
  admit(2 * rate);
  const auto replacement = streams_.prepare(*read_stream_text(text_of(7000), "a file", 1514));
  ASSERT_TRUE(replacement);
  add(7000);
  EXPECT_EQ(beta(), rate);
  streams_.commit(*replacement);
  EXPECT_EQ(beta(), 0U) << "what the file's takes is who reloads' to count";
  EXPECT_EQ(admission_->state().streams, 0U);
}

TEST_F(MeasuredStreams, HaveTheirRateWhereNothingIsAdmitted) {
  add(7000);
  send(7000, 100);
  streams_.measure();
  EXPECT_EQ(held(7000), 1'600'000U);
  EXPECT_LT(send(7000, 900), 300U);
  EXPECT_EQ(streams_.measure(), "");
  EXPECT_EQ(held(7000), rate) << "at the next look";
  EXPECT_EQ(streams_.raises_refused(), 0U);
  add(7010, "rate = 1000\n");
  EXPECT_EQ(stream(7010).measured(), nullptr);
}

// A packet that would pass at no rate raises none.
TEST_F(MeasuredStreams, DoNotMeasureWhatIsTooLarge) {
  add(7000, measured + "packet_bytes = 999\n");
  EXPECT_EQ(send(7000, 900), 0U);
  streams_.measure();
  EXPECT_EQ(streams_.measuring(), 1U);
}

TEST_F(MeasuredStreams, TakeTheirRtcpWithThem) {
  admit(2 * rate);
  add(7000, measured + own_rtcp);
  EXPECT_EQ(beta(), rate + rate / 20);
  send(7000, 100);
  streams_.measure();
  EXPECT_EQ(beta(), 1'600'000U + 80'000U);
  send(7000, 200);
  streams_.measure();
  EXPECT_EQ(beta(), 3'200'000U + 160'000U);
  EXPECT_EQ(streams_.measuring(), 0U);
  const std::string ends = "source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n";
  ASSERT_TRUE(streams_.remove_text(ends + "destination_port = 7000\n", "the request"));
  EXPECT_EQ(beta(), 160'000U);
  EXPECT_EQ(streams_.measure(), "") << "nobody to follow";
  EXPECT_EQ(streams_.remove(std::vector{read_stream_text(text_of(7000) + own_rtcp, "x", 1514)->back().key},
                            MediaOrigin::api, false),
            1U);
  EXPECT_EQ(beta(), 0U);
}

// The same 5-tuple with another key, margin or burst goes on; another rate is another stream's.
TEST_F(MeasuredStreams, ThatAreReplacedKeepWhatWasMeasuredWithTheirRate) {
  admit(2 * rate);
  add(7000);
  send(7000, 100);
  streams_.measure();
  const auto replace = [&](const std::string& more, const std::string& key) {
    const auto done = streams_.replace_text(text_of(7000, "protect", key) + more, "the request");
    ASSERT_TRUE(done) << done.error().message;
  };
  replace(measured, key30);
  EXPECT_EQ(beta(), 1'600'000U);
  replace(measured, other_key30);
  EXPECT_EQ(held(7000), 1'600'000U);
  EXPECT_EQ(beta(), 1'600'000U);
  replace(measured + "burst = 200_000\n", other_key30);
  EXPECT_EQ(held(7000), 1'600'000U);
  EXPECT_EQ(beta(), 1'600'000U);
  EXPECT_NEAR(send(7000, 900), 0.2 * 1100 + 40, 2) << "of the new burst a fifth";
  replace("rate = 4_000_000\nmeasured = true\n", other_key30);
  EXPECT_EQ(held(7000), 4'000'000U) << "is measured anew";
  EXPECT_EQ(beta(), 4'000'000U);
  replace(measured, key30);
  EXPECT_EQ(beta(), rate);
  replace(measured + "deadline = \"3ms\"\n", key30);
  send(7000, 100);
  streams_.measure();
  EXPECT_EQ(beta(), 1'600'000U);
  replace("rate = 8_000_000\n", key30);
  EXPECT_EQ(stream(7000).measured(), nullptr);
  EXPECT_EQ(beta(), rate);
  replace(measured, key30);
  streams_.remove(std::vector{key_of(7000)}, MediaOrigin::api, false);
  EXPECT_EQ(beta(), 0U);
}

// What the file's streams hold is admitted by who reads it, and a reload compares what is written.
TEST_F(MeasuredStreams, OfTheFileKeepWhatWasMeasuredThroughReloads) {
  const auto file = [&](const std::string& more) {
    auto streams = *read_stream_text(text_of(7000) + own_rtcp + more, "a file", 1514);
    return streams;
  };
  const auto demand = [](std::uint64_t bits, const std::vector<MediaStreamSettings>& streams) {
    return std::vector<engine::StreamDemand>{{0, milliseconds(4), bits + bits / 20, streams[0].measure->share}};
  };
  const auto first = file(measured);
  EXPECT_EQ(first[0].measure->share, "10.0.0.1:5004 -> 10.0.0.2:7000 and 10.0.0.1:5005 -> 10.0.0.2:7001");
  streams_.commit(*streams_.prepare(first));
  admission_.emplace(engine::StreamCapacity{2 * rate, milliseconds(1), 0});
  ASSERT_FALSE(admission_->replace({}, demand(rate, first)));
  streams_.admit_by(*admission_, milliseconds(4));
  send(7000, 100);
  streams_.measure();
  EXPECT_EQ(beta(), 1'680'000U);
  // As it is, and with another burst: it stays.
  for (const char* const more : {"", "burst = 200_000\n"}) {
    const auto again = file(measured + more);
    ASSERT_FALSE(admission_->replace(demand(rate, first), demand(rate, again)));
    streams_.commit(*streams_.prepare(again));
    streams_.measure();
    EXPECT_EQ(held(7000), 1'600'000U);
    EXPECT_EQ(beta(), 1'680'000U);
  }
  // Another rate is judged anew; until it is in force nothing moves, and where that fails nothing has.
  auto other = file("rate = 4_000_000\nmeasured = true\nmeasure_time = \"1s\"\nrate_margin = 100\n");
  engine::StreamAdmission::Replaced replaced;
  ASSERT_FALSE(admission_->replace(demand(rate, first), demand(4'000'000, other), &replaced));
  send(7000, 200);
  streams_.measure();
  EXPECT_EQ(held(7000), 1'600'000U);
  EXPECT_EQ(beta(), 4'200'000U);
  admission_->undo(replaced);
  streams_.measure();
  EXPECT_EQ(beta(), 3'360'000U);
  ASSERT_FALSE(admission_->replace(demand(rate, first), demand(4'000'000, other)));
  streams_.commit(*streams_.prepare(other));
  EXPECT_EQ(held(7000), 4'000'000U);
  send(7000, 100);
  streams_.measure();
  EXPECT_EQ(beta(), 1'680'000U);
  ASSERT_FALSE(admission_->replace(demand(4'000'000, other), {}));
  EXPECT_EQ(beta(), 0U);
  send(7000, 200);
  streams_.measure();
  streams_.commit(*streams_.prepare({}));
  streams_.measure();
  EXPECT_EQ(beta(), 0U);
}

TEST_F(MeasuredStreams, AreMeasuredWhileLanesSend) {
  admit(4 * rate);
  add(7000);
  add(7010);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> clock{now_};
  std::vector<std::thread> lanes;
  MediaStream* const found[] = {current_.pin(0)->find(key_of(7000)), current_.pin(0)->find(key_of(7010))};
  for (MediaStream* const one : found) {
    lanes.emplace_back([&, one] {
      while (!over) one->conforms(frame, [&] { return clock.fetch_add(rte_get_tsc_hz() / 500); });
    });
  }
  for (unsigned i = 0; i < 200 || (streams_.measuring() != 0 && i < 20'000); ++i) {
    streams_.measure();
    std::this_thread::sleep_for(milliseconds(1));
  }
  over = true;
  for (std::thread& lane : lanes) lane.join();
  streams_.measure();
  EXPECT_EQ(streams_.measuring(), 0U);
  EXPECT_EQ(beta(), held(7000) + held(7010));
  EXPECT_LE(beta(), 2 * rate);
}

TEST(MeasuredStreamList, SaysWhatTheyHold) {
  SrtpTrial trial("[srtp]\nmax_keys = 16\n");
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add_text(text_of(7000) + measured, "the request"));
  std::size_t count = 0;
  EXPECT_EQ(streams.list(1, {}, count).front().rate, rate);
  EXPECT_EQ(streams.list(1, {}, count).front().measured, "not yet");
  streams.measure();
  EXPECT_EQ(trial.metric("srtp_measuring_streams"), 1U);
  EXPECT_EQ(trial.metric("srtp_raises_refused"), 0U);
  ASSERT_TRUE(streams.replace_text(text_of(7000) + "rate = 1\n", "the request"));
  EXPECT_EQ(streams.list(1, {}, count).front().rate, 1U);
  EXPECT_EQ(streams.list(1, {}, count).front().measured, "no");
}

}  // namespace
}  // namespace sluice::function
