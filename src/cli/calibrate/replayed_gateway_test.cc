// A configuration's chain on replays, on each device; how fast the machine is decides nothing.
#include "cli/calibrate/replayed_gateway.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "cli/calibrate/made_streams.h"
#include "cli/calibrate/media_traffic.h"
#include "cli/calibrate/timed_function.h"
#include "control/pipeline_maker.h"
#include "control/stream_demands.h"
#include "function/srtp/media_frame.h"
#include "packet/checksum.h"
#include "port/frame_pool.h"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using testing::HasSubstr;

const std::string ports =
    "[[port]]\nname = \"a\"\ndevice = \"net_af_packet0,iface=none\"\n[[port]]\nname = \"b\"\ndevice = "
    "\"replay,family=4,seed=7,frames=64,rate=5\"\n";

std::string stream(unsigned source_port, const std::string& action = "protect") {
  return "[[srtp.stream]]\naction = \"" + action +
         "\"\nsource = \"10.0.0.1\"\nsource_port = " + std::to_string(source_port) +
         "\ndestination = \"10.0.0.2\"\ndestination_port = 6000\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 "
         "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz\"\n";
}

control::Config config_of(const std::string& chain, const std::string& device, const std::string& more = "") {
  control::Config config = control::Config::from_text(
      "[engine]\nchain = [" + chain + "]\ndevice = \"" + device +
          "\"\nbatch = 256\nbatches = 4\ndeadline = \"50ms\"\n[memory]\nsize = \"64M\"\nframes = "
          "2048\n" +
          ports + more,
      "g.toml");
  EXPECT_TRUE(config.ok()) << config.mistakes();
  return config;
}

TEST(ReplayedGateway, MeasuresOnEachDevice) {
  for (const std::string device : {"cpu", "cuda:0"}) {
    const bool on_gpu = device != "cpu";
    control::Config config = config_of("\"touch\"", device);
    const auto open = replayed_gateways(config, {.on_gpu = on_gpu, .seconds = 0.2, .warm_up = 0.1});
    auto bench = open(on_gpu ? milliseconds(5) : milliseconds(0), on_gpu ? 2 : 0, 200);
    ASSERT_TRUE(bench) << device << bench.error().message;
    const auto saturated = (*bench)->measure(0);
    ASSERT_TRUE(saturated) << saturated.error().message;
    EXPECT_GT(saturated->carried, 0U) << device;
    EXPECT_FALSE(saturated->schedulable) << "as much as can be is no rate";
    EXPECT_GT(saturated->batches, 0U);
    EXPECT_GE(saturated->batch_bytes, 200U);
    EXPECT_GT(saturated->p50.count(), 0);
    EXPECT_LE(saturated->p50, saturated->longest);
    EXPECT_GT(saturated->round.count(), 0) << device;
    EXPECT_LE(saturated->round, std::chrono::microseconds(53) * 2) << "of two lanes; what is longer is the machine's";
    EXPECT_GT(saturated->forwarding.count(), 0) << device;
    const auto low = (*bench)->measure(16'000'000);  // 10,000 frames a second
    ASSERT_TRUE(low);
    EXPECT_GT(low->carried, 0U) << device;
    EXPECT_LT(low->carried, 40'000'000U) << device << ": it is held to its rate, but for what was under way";
  }
}

TEST(ReplayedGateway, ProtectsTheStreamsOfItsTable) {
  for (const unsigned streams : {2U, 5U}) {
    std::string text;
    for (unsigned i = 0; i < streams; ++i) text += stream(5000 + i);
    control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", text);
    auto bench = replayed_gateways(config, {.seconds = 0.2})(nanoseconds(0), 0, 1000);
    ASSERT_TRUE(bench) << bench.error().message;
    const auto cell = (*bench)->measure(8'000'000);
    ASSERT_TRUE(cell) << cell.error().message;
    EXPECT_GT(cell->carried, 0U);
  }
}

TEST(ReplayedGateway, MediaThatIsDroppedIsNoFigure) {
  for (const std::string ingress : {"a", "b"}) {
    const std::string first = stream(5000) + "ingress = \"" + ingress + "\"\n";
    control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", first + stream(5001));
    auto bench = replayed_gateways(config, {.seconds = 0.2})(nanoseconds(0), 0, 1000);
    ASSERT_TRUE(bench) << bench.error().message;
    const auto cell = (*bench)->measure(8'000'000);
    ASSERT_EQ(static_cast<bool>(cell), ingress == "a") << ingress;
    if (!cell) {
      EXPECT_THAT(cell.error().message, HasSubstr("were dropped as srtp_wrong_port, so there was nothing"));
    }
  }
}

// With the tag of its own suite each fits exactly.
TEST(ReplayedGateway, MediaAreAsLargeAsMayPass) {
  std::string shorter = stream(5001);
  shorter.replace(shorter.find("SHA1_80"), 7, "SHA1_32");
  control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", stream(5000) + shorter);
  EXPECT_EQ(control::largest_packet(config), 1510U);
  const auto traffic = MediaTraffic::make(config, 1510, 2);
  ASSERT_TRUE(traffic);
  EXPECT_DOUBLE_EQ(traffic->mean_packet(), (1504 + 1510) / 2.0);
  auto bench = replayed_gateways(config, {.seconds = 0.2})(nanoseconds(0), 0, 1510);
  ASSERT_TRUE(bench) << bench.error().message;
  const auto cell = (*bench)->measure(8'000'000);
  ASSERT_TRUE(cell) << cell.error().message;
  EXPECT_GT(cell->carried, 0U);
}

TEST(MediaTraffic, LimitsAreNoPartOfWhatIsMeasured) {
  EXPECT_EQ(without_limits("[[acl.rule]]\nrate = 1\n[[srtp.stream]]\n rate =2\nburst=3\npacket_bytes=9\ningress = "
                           "\"a\"\nmeasured = true\nmeasure_time = \"1s\"\nrate_margin = 5\nrates = 4\n[x]\n"
                           "burst = 5"),
            "[[acl.rule]]\nrate = 1\n[[srtp.stream]]\n\n\n\n\n\n\n\nrates = 4\n[x]\nburst = 5\n");
}

std::size_t sections_of(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("[[srtp.stream]]", at)) != std::string::npos; ++at) ++count;
  return count;
}

// Two lanes.
TEST(MadeStreams, AreThoseThatTrafficLacks) {
  const std::string rtsp = "[srtp.rtsp]\nservers = [\"10.2.0.0/24\"]\n";
  const struct {
    std::string chain, more;
    std::size_t made;
    std::string note;
  } cases[] = {
      {"\"bridge\"", "", 0, ""},
      {"\"srtp\", \"bridge\"", stream(5000) + stream(5001), 0, ""},
      {"\"srtp\", \"bridge\"", stream(5000), 256,
       "traffic is of 256 streams made up with random keys, of AES_CM_128_HMAC_SHA1_80, besides 1 of the file's: "
       "[srtp] has 1, and there are 2 lanes"},
      {"\"srtp\", \"bridge\"", "", 256, "[srtp] has 0, and"},
      {"\"srtp\", \"bridge\"", stream(5000) + stream(5001, "unprotect"), 1, ""},
      {"\"srtp\", \"bridge\"", stream(5000, "unprotect"), 1 + 2 * 256, "besides 1 of the file's: [srtp] has 1, and"},
      {"\"srtp\", \"bridge\"", "[srtp]\nmax_keys = 30\n" + stream(5000, "unprotect"), 1 + 2 * 6, ""},
      {"\"srtp\", \"bridge\"", "[srtp]\nmax_keys = 20\n" + stream(5000), 8, "traffic is of 8 streams"},
      {"\"srtp\", \"bridge\"", "[srtp]\nmax_keys = 4\n", 2, "traffic is of 2 streams"},
      {"\"srtp\", \"bridge\"", rtsp, 256, "those of [srtp.rtsp] come with its clients"},
      {"\"srtp\", \"bridge\"", rtsp + "suite = \"aead_AES_256_GCM\"\n" + stream(1) + stream(2), 256,
       "of AEAD_AES_256_GCM, besides 2 of the file's"},
  };
  for (const auto& one : cases) {
    control::Config config = config_of(one.chain, "cpu", one.more);
    const MadeStreams made = made_streams(config);
    EXPECT_EQ(sections_of(made.text), one.made) << one.more;
    EXPECT_THAT(made.note, HasSubstr(one.note));
    EXPECT_EQ(made.note.empty(), one.made <= 1);
  }
}

TEST(MadeStreams, HaveKeysOfTheirOwn) {
  control::Config config = config_of("\"srtp\", \"bridge\"", "cpu");
  std::istringstream lines(made_streams(config).text);
  std::set<std::string> keys;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("crypto")) keys.insert(line);
  }
  EXPECT_EQ(keys.size(), 256U);
}

// All examples of media, as `sluice calibrate` does, but for the memory of this test.
TEST(MadeStreams, LetEveryExampleOfMediaBeMeasured) {
  unsigned examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    std::ifstream file(entry.path());
    const std::string text = without_limits({std::istreambuf_iterator<char>(file), {}});
    if (entry.path().extension() != ".toml" || text.find("chain = [\"srtp\"") == std::string::npos) continue;
    ++examples;
    control::Config own = control::Config::from_text(text, entry.path().string(), false);
    control::Config config = control::Config::from_text(text + made_streams(own).text, entry.path().string(), false);
    config.engine.batch = 256;
    config.engine.batches = 4;
    config.engine.memory.frames = 2048;
    const auto checked = control::make_checked_pipeline(config, control::described_ports(config.engine));
    ASSERT_TRUE(checked && config.ok()) << config.mistakes();
    EXPECT_EQ(control::profile_subject(config, "cpu").suite, "AES_CM_128_HMAC_SHA1_80");
    auto bench = replayed_gateways(config, {.seconds = 0.2})(nanoseconds(0), 0, 1000);
    ASSERT_TRUE(bench) << entry.path() << ": " << bench.error().message;
    const auto cell = (*bench)->measure(8'000'000);
    ASSERT_TRUE(cell) << entry.path() << ": " << cell.error().message;
    EXPECT_GT(cell->carried, 0U);
  }
  EXPECT_EQ(examples, 3U);
}

TEST(ReplayedGateway, TooFewStreamsForItsLanesAreRefused) {
  control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", stream(5000) + stream(5001, "unprotect"));
  const auto bench = replayed_gateways(config, {})(nanoseconds(0), 0, 1000);
  ASSERT_FALSE(bench);
  EXPECT_THAT(bench.error().message, HasSubstr("has 1 streams that protect"));
}

std::string over_ipv6(std::string text) {
  for (const char* const address : {"10.0.0.1", "10.0.0.2"}) {
    text.replace(text.find(address), 8, std::string("2001:db8::") + address[7]);
  }
  return text;
}

// Of every direction and family that the file has; an element that dropped what it is to unprotect would make it an
// error.
TEST(ReplayedGateway, TrafficIsOfWhatTheFilesStreamsAre) {
  const struct {
    std::string text;
    std::vector<std::string> kinds;
  } cases[] = {
      {stream(5000) + stream(5001), {"protect IPv4"}},
      {stream(5000) + over_ipv6(stream(5001)), {"protect IPv4", "protect IPv6"}},
      {stream(5000) + stream(5001, "unprotect"), {"protect IPv4", "unprotect IPv4"}},
      {over_ipv6(stream(5000, "unprotect")) + over_ipv6(stream(5001, "unprotect")), {"unprotect IPv6"}},
      {stream(5000, "unprotect"), {"unprotect IPv4"}},
      {stream(5000) + over_ipv6(stream(5001)) + stream(5002, "unprotect") + over_ipv6(stream(5003, "unprotect")),
       {"protect IPv4", "protect IPv6", "unprotect IPv4", "unprotect IPv6"}},
  };
  for (const auto& one : cases) {
    control::Config own = config_of("\"srtp\", \"bridge\"", "cpu", one.text);
    const std::vector<std::string> kinds = control::media_kinds(own);
    EXPECT_EQ(kinds, one.kinds);
    control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", one.text + made_streams(own).text);
    const auto traffic = MediaTraffic::make(config, 1000, 2);
    ASSERT_TRUE(traffic) << traffic.error().message;
    EXPECT_EQ(traffic->kinds(), kinds) << one.text;
    auto bench = replayed_gateways(config, {.seconds = 0.2, .warm_up = 0.3})(nanoseconds(0), 0, 1000);
    ASSERT_TRUE(bench) << bench.error().message;
    const auto cell = (*bench)->measure(0);
    ASSERT_TRUE(cell) << one.text << cell.error().message;
    EXPECT_GT(cell->carried, 0U);
  }
}

// What comes back as its twin has sealed it goes to the stream that unprotects it, with a right checksum; what does
// not, or was not sealed, begins anew.
TEST(MediaTraffic, WhatATwinHasProtectedIsUnprotected) {
  for (const bool six : {false, true}) {
    const std::string text = six ? over_ipv6(stream(5000, "unprotect")) : stream(5000, "unprotect");
    control::Config own = config_of("\"srtp\", \"bridge\"", "cpu", "[srtp]\nmax_keys = 30\n" + text);
    control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", text + made_streams(own).text);
    auto traffic = MediaTraffic::make(config, 300, 1);
    ASSERT_TRUE(traffic) << traffic.error().message;
    const auto pool = port::make_frame_pool(six ? "twins6" : "twins4", 64, 512, SOCKET_ID_ANY);
    ASSERT_TRUE(pool);
    rte_mbuf* const frame = rte_pktmbuf_alloc(pool->get());
    std::memset(rte_pktmbuf_append(frame, 310), 0, 310);
    auto* const bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
    unsigned opened = 0, sealed = 0;
    for (unsigned i = 0; i < 40; ++i) {
      traffic->write(0, frame);
      function::MediaFrame media;
      function::read_media_frame(bytes, frame->data_len, media);
      ASSERT_EQ(media.kind, function::MediaFrameKind::plain);
      EXPECT_TRUE(function::udp_checksum_ok(bytes, media)) << i;
      const unsigned headers = six ? 62 : 42;
      const bool to_open = frame->data_len != 300;
      opened += to_open ? 1 : 0;
      EXPECT_EQ(function::udp_payload_length(bytes, media), frame->data_len - headers);
      if (to_open) {
        // As it comes out: the tag is gone. Its addresses are the file's or those of what was made up for want of it.
        EXPECT_EQ(frame->data_len, 310);
        EXPECT_LT(packet::be16(media.key.source_port), first_twin_port);
        function::set_udp_payload_length(bytes, media.udp_offset, 300 - headers);
        frame->data_len = frame->pkt_len = 300;
        continue;
      }
      // Every third is not sealed.
      if (i % 3 == 0) continue;
      sealed += packet::be16(media.key.source_port) >= first_twin_port ? 1 : 0;
      for (unsigned at = headers + 12; at < 310; ++at) bytes[at] = static_cast<std::uint8_t>(at * (i + 7));
      function::set_udp_payload_length(bytes, media.udp_offset, 310 - headers);
      frame->data_len = frame->pkt_len = 310;
      if (i % 2 == 0) reinterpret_cast<packet::UdpHeader*>(bytes + headers - 8)->checksum = 0;
    }
    EXPECT_GT(opened, 8U);
    EXPECT_NEAR(opened, sealed, 1);
    rte_pktmbuf_free(frame);
  }
}

TEST(ReplayedGateway, PortsKeepWhatTheirReplaysSay) {
  const control::Config config = config_of("\"touch\"", "cpu");
  EXPECT_EQ(replay_device(config.engine.ports[0], 1370, 4096), "replay,mix=1370,frames=4096");
  EXPECT_EQ(replay_device(config.engine.ports[1], 1370, 4096), "replay,mix=1370,frames=4096,family=4,seed=7");
}

// Any cycle can be measured, whatever the configuration's deadline, and late is what is beyond that cycle's bound.
TEST(ReplayedGateway, ItsDeadlineIsTheBoundOfItsCycle) {
  for (const char* const poll : {"busy", "adaptive"}) {
    for (const unsigned overlap : {1U, 3U}) {
      control::Config config = config_of("\"touch\"", "cuda:0");
      config.engine.poll = std::string_view(poll) == "busy" ? engine::Poll::busy : engine::Poll::adaptive;
      config.engine.overlap = overlap;
      for (const nanoseconds cycle : {nanoseconds(std::chrono::microseconds(20)), nanoseconds(milliseconds(1)),
                                      nanoseconds(std::chrono::seconds(1))}) {
        const engine::Options options = bench_options(config, {.on_gpu = true}, cycle, 3, 100);
        const auto timing = engine::plan_timing(options, true);
        ASSERT_TRUE(timing) << poll << cycle.count() << timing.error().message;
        EXPECT_EQ(timing->cycle, cycle);
        EXPECT_EQ(timing->bound, options.deadline) << poll << overlap << " " << cycle.count();
        EXPECT_EQ(timing->bound - timing->sleep, (2 + overlap) * cycle + engine::collect_time);
        const std::chrono::microseconds collect(70);
        const auto later = bench_options(config, {.on_gpu = true, .collect = collect}, cycle, 3, 100);
        const auto timed = engine::plan_timing(later, true);
        ASSERT_TRUE(timed);
        EXPECT_EQ(timed->bound, later.deadline);
        EXPECT_EQ(timed->bound - timed->sleep, (2 + overlap) * cycle + collect);
        EXPECT_EQ(timing->sleep.count() != 0, std::string_view(poll) == "adaptive");
        EXPECT_EQ(options.streams, 3U);
        EXPECT_EQ(options.cpu_below, 0);
      }
    }
  }
}

// Frames of each lane are of its own streams, of the right length whatever they were, each with a new sequence number,
// and with a right checksum though they come back as an element has protected them.
class MediaTrafficOf : public testing::TestWithParam<unsigned> {};

TEST_P(MediaTrafficOf, WritesPacketsOfTheStreams) {
  const unsigned bytes_each = GetParam();
  control::Config config = config_of("\"srtp\", \"bridge\"", "cpu", stream(5000) + stream(5001) + stream(5002));
  auto traffic = MediaTraffic::make(config, bytes_each, 2);
  ASSERT_TRUE(traffic) << traffic.error().message;
  const auto pool = port::make_frame_pool("media-traffic", 64, 512, SOCKET_ID_ANY);
  ASSERT_TRUE(pool);
  rte_mbuf* const frame = rte_pktmbuf_alloc(pool->get());
  std::memset(rte_pktmbuf_append(frame, 310), 0, 310);
  auto* const bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
  bytes[12] = 8;  // IPv4
  std::set<std::pair<std::uint16_t, std::uint16_t>> seen;
  for (unsigned i = 0; i < 8; ++i) {
    frame->data_len = frame->pkt_len = 310;
    traffic->write(i % 2, frame);
    EXPECT_EQ(frame->data_len, bytes_each);
    EXPECT_EQ(frame->pkt_len, bytes_each);
    function::MediaFrame media;
    function::read_media_frame(bytes, frame->data_len, media);
    ASSERT_EQ(media.kind, function::MediaFrameKind::plain);
    EXPECT_TRUE(packet::ipv4_checksum_ok(bytes + 14));
    EXPECT_EQ(function::udp_payload_length(bytes, media), bytes_each - 42);
    EXPECT_TRUE(function::has_udp_checksum(bytes, media));
    EXPECT_TRUE(function::udp_checksum_ok(bytes, media)) << i;
    const std::uint16_t source_port = packet::be16(media.key.source_port);
    EXPECT_EQ(source_port == 5001, i % 2 == 1) << "a stream is one lane's";
    std::uint16_t sequence = 0;
    std::memcpy(&sequence, bytes + 44, sizeof sequence);
    EXPECT_TRUE(seen.emplace(source_port, packet::be16(sequence)).second);
    for (unsigned at = 54; at < bytes_each + 10; ++at) bytes[at] = static_cast<std::uint8_t>(at * (i + 7));
    function::set_udp_payload_length(bytes, media.udp_offset, bytes_each - 42 + 10);
  }
  EXPECT_EQ(seen.size(), 8U);
  rte_pktmbuf_free(frame);
}

INSTANTIATE_TEST_SUITE_P(Lengths, MediaTrafficOf, testing::Values(299U, 300U));

}  // namespace
}  // namespace sluice::cli
