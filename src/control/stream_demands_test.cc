#include "control/stream_demands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "control/config_json.h"
#include "control/config_sections.h"
#include "engine/burst.h"

namespace sluice::control {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;
using testing::SizeIs;

const engine::Timing timing{
    .cycle = microseconds(200), .bound = microseconds(610), .deadline = microseconds(1000), .overlap = 1};

std::string stream(const std::string& port, const std::string& more) {
  return "[[srtp.stream]]\naction = \"protect\"\nsource = \"10.0.0.1\"\nsource_port = " + port +
         "\ndestination = \"10.0.0.2\"\ndestination_port = 6000\n"
         "crypto = \"1 AEAD_AES_128_GCM inline:AAAA\"\n" +
         more + "\n";
}

class StreamDemands : public testing::Test {
 protected:
  void SetUp() override {
    file_ = std::filesystem::temp_directory_path() / ("sluice-profile-" + std::to_string(getpid()) + ".toml");
    engine::Profile profile;
    profile.subject = {.machine = "",
                       .device = "X",
                       .chain = {"srtp", "bridge"},
                       .suite = "AEAD_AES_128_GCM",
                       .lanes = 1,
                       .overlap = 1,
                       .stagger = true};
    Config config = config_of("");
    profile.subject.machine = profile_subject(config, "X").machine;
    profile.date = profile.code = "x";
    profile.packet = 1514;
    profile.capacities = {{microseconds(200), 4, 10'000'000}};
    std::ofstream(file_) << profile.text();
  }
  void TearDown() override { std::filesystem::remove(file_); }

  Config config_of(const std::string& streams, const std::string& more = "", const std::string& engine = "") const {
    return Config::from_text("[engine]\nchain = [" + chain_ + "]\n" + engine + "[profile]\nfile = \"" + file_.string() +
                                 "\"\n" + more + "\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n" + streams,
                             "g.toml");
  }
  std::filesystem::path file_;
  std::string chain_ = "\"srtp\", \"bridge\"";
  std::vector<std::string> notes_;
};

TEST_F(StreamDemands, AreTakenAsTheFileSays) {
  Config config = config_of(stream("1", "rate = 1000\ndeadline = \"5ms\"") + stream("2", "") +
                            stream("3", "rate = 2000\nrtcp_source_port = 8\nrtcp_destination_port = 9"));
  const auto demands = stream_demands(config);
  ASSERT_THAT(demands, SizeIs(3));
  EXPECT_EQ(demands[0].demand.rate, 1000U);
  EXPECT_EQ(demands[0].demand.deadline, std::chrono::milliseconds(5));
  EXPECT_EQ(demands[1].demand.rate, 0U);
  EXPECT_EQ(demands[1].demand.deadline, config.engine.deadline);
  EXPECT_EQ(demands[2].demand.rate, 2100U);
}

// The element calls them so, too: of its 5-tuples.
TEST_F(StreamDemands, ThatAreMeasuredHaveAShare) {
  const std::string measured = "rate = 1000\nmeasured = true\n";
  Config config = config_of(stream("1", measured) + stream("2", "rate = 5\nmeasured = false") +
                            stream("3", measured + "rtcp_source_port = 8\nrtcp_destination_port = 9"));
  const auto demands = stream_demands(config);
  ASSERT_THAT(demands, SizeIs(3));
  EXPECT_EQ(demands[0].demand.share, "10.0.0.1:1 -> 10.0.0.2:6000");
  EXPECT_EQ(demands[1].demand.share, "");
  EXPECT_EQ(demands[2].demand.share, "10.0.0.1:3 -> 10.0.0.2:6000 and 10.0.0.1:8 -> 10.0.0.2:9");
  EXPECT_EQ(demands[2].demand.rate, 1050U);
}

// w is what is in clear: a tag of 16 bytes comes on top, and here an MKI of 4.
TEST_F(StreamDemands, HaveTheLargestPacketThatFitsOrThatTheySay) {
  const std::string key = "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubA==";
  const auto text = [&](const std::string& action, const std::string& mki, const std::string& more) {
    return "[[srtp.stream]]\naction = \"" + action + "\"\ncrypto = \"1 AEAD_AES_128_GCM " + key + mki + "\"\n" + more +
           "\n";
  };
  Config config = config_of(text("protect", "", "") + text("protect", "|1:4", "") + text("unprotect", "", "") +
                            text("protect", "", "packet_bytes = 300") + text("unprotect", "", "packet_bytes = 300"));
  std::vector<std::uint32_t> packets;
  for (const StreamSection& stream : stream_demands(config)) packets.push_back(stream.demand.largest_packet);
  EXPECT_EQ(packets, (std::vector<std::uint32_t>{1498, 1494, 1498, 300, 284}));
  EXPECT_EQ(largest_packet(config), 1498U);
  EXPECT_EQ(later_streams(config).largest_packet, 0U);
  Config rtsp = config_of("[srtp.rtsp]\n");
  EXPECT_EQ(later_streams(rtsp).largest_packet, 1504U);
}

TEST_F(StreamDemands, PacketsThatAreLargerThanWasMeasuredAreMistakes) {
  std::ifstream file(file_);
  std::string profile{std::istreambuf_iterator<char>(file), {}};
  const std::string measured = "packet = 1514";
  profile.replace(profile.find(measured), measured.size(), "packet = 300");
  std::ofstream(file_) << profile;
  Config config = config_of(stream("1", "rate = 1000\npacket_bytes = 300") + stream("2", "rate = 1000"));
  const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
  ASSERT_TRUE(admission) << admission.error().message;
  auto demands = stream_demands(config);
  EXPECT_FALSE(admit_streams(**admission, {}, demands));
  EXPECT_THAT(config.mistakes(),
              HasSubstr("packet_bytes: packets of 1514 bytes, as the MTU allows or packet_bytes says, are "
                        "larger than those of 300 with which the device was measured"));
  for (const bool admits : {true, false}) {
    Config rtsp = config_of("[srtp.rtsp]\nsuite = \"AEAD_AES_128_GCM\"\n", admits ? "" : "streams = \"all\"");
    const auto of_rtsp = make_admission(rtsp, profile_subject(rtsp, "X"), timing, notes_);
    ASSERT_EQ(static_cast<bool>(of_rtsp), !admits);
    if (!of_rtsp) {
      EXPECT_THAT(of_rtsp.error().message, HasSubstr("media may have 1498, so that none would be admitted"));
    }
  }
}

TEST_F(StreamDemands, ThatDoNotFitAreMistakesAtTheirPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {stream("1", "rate = 10_000_000"), ""},
      {stream("1", "rate = 6_000_000") + stream("2", "rate = 4_000_001"),
       "rate = 4000001: 4 Mbit/s beside the 6 Mbit/s that are taken exceed the 10 Mbit/s that the device carries in "
       "time"},
      {stream("1", "rate = 1000\ndeadline = \"610us\""),
       "deadline = \"610us\": a deadline of 610us is not above the bound"},
      {stream("1", ""), ": its rate is not known"},
  };
  for (const auto& [streams, mistake] : cases) {
    Config config = config_of(streams);
    ASSERT_TRUE(config.ok()) << config.mistakes();
    const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
    ASSERT_TRUE(admission) << admission.error().message;
    auto demands = stream_demands(config);
    EXPECT_EQ(admit_streams(**admission, {}, demands), mistake.empty());
    EXPECT_EQ(config.ok(), mistake.empty());
    EXPECT_THAT(config.mistakes(), HasSubstr(mistake));
    EXPECT_EQ((*admission)->state().streams, mistake.empty() ? 1U : 0U) << "all or none";
  }
}

// A cycle of 200 us at 10 Mbit/s is 250 bytes: the least burst is more.
TEST_F(StreamDemands, BurstsAreReportedOrHaveToFit) {
  const std::string streams = stream("1", "rate = 1_000_000") + stream("2", "rate = 1000\nburst = 5000") +
                              stream("3", "rate = 1000\nrtcp_source_port = 8\nrtcp_destination_port = 9");
  for (const bool counts : {false, true}) {
    Config config = config_of(streams, counts ? "bursts = \"admit\"" : "");
    const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
    ASSERT_TRUE(admission) << admission.error().message;
    auto demands = stream_demands(config);
    EXPECT_EQ(demands[0].demand.burst, 12'500U) << "a tenth of a second";
    EXPECT_EQ(demands[1].demand.burst, 5000U);
    EXPECT_EQ(demands[2].demand.burst, 2 * 3028U) << "two buckets of two frames";
    EXPECT_EQ(admit_streams(**admission, {}, demands), !counts);
    EXPECT_EQ((*admission)->state().bursts, counts ? 0U : 12'500U + 5000 + 2 * 3028);
    EXPECT_THAT((*admission)->burst_note(),
                HasSubstr(counts ? "" : "23.56 kB at once, and a cycle of 200us has capacity"))
        << counts;
    EXPECT_THAT(config.mistakes(), HasSubstr(counts ? "burst: 12.5 kB that it may bring at once" : ""));
  }
  Config config = config_of(stream("1", "rate = 1"), "bursts = \"admit\"");
  engine::Timing cpu = timing;
  cpu.cycle = std::chrono::nanoseconds(0);
  const auto admission = make_admission(config, profile_subject(config, "X"), cpu, notes_);
  ASSERT_FALSE(admission);
  EXPECT_THAT(admission.error().message, HasSubstr("bursts = \"admit\": there is no cycle on the CPU"));
}

TEST_F(StreamDemands, DeadlinesOfRtspThatCannotBeKeptAreMistakesAtTheirPlace) {
  const std::string server = "[[srtp.rtsp.server]]\naddress = \"10.0.0.1\"\n";
  const std::string rtsp = "[srtp.rtsp]\nsuite = \"AEAD_AES_128_GCM\"\n";
  const std::string bound = ": a deadline of 610us is not above the bound of this configuration, 610us";
  struct Case {
    std::string more;
    std::vector<std::string> mistakes;  // parts of them
  };
  const Case cases[] = {
      {rtsp, {}},
      {rtsp + "deadline = \"611us\"\n" + server + "audio_deadline = \"30s\"\n", {}},
      {rtsp + "video_deadline = \"610us\"\n", {"g.toml:11: [srtp.rtsp] video_deadline = \"610us\"" + bound}},
      {rtsp + "deadline = \"610us\"\n" + server + server + "application_deadline = \"1us\"\n",
       {"[srtp.rtsp] deadline = \"610us\"" + bound,
        "[[srtp.rtsp.server]] application_deadline = \"1us\": a deadline of 1us is not above the bound"}},
  };
  for (const bool admits : {true, false}) {
    for (const Case& one : cases) {
      SCOPED_TRACE(one.more);
      Config config = config_of(one.more, admits ? "" : "streams = \"all\"");
      ASSERT_TRUE(config.ok()) << config.mistakes();
      const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
      ASSERT_TRUE(admission) << admission.error().message;
      const bool good = !admits || one.mistakes.empty();
      EXPECT_EQ(check_later_deadlines(**admission, config), good);
      ASSERT_THAT(config.diagnostics().lines, SizeIs(good ? 0 : one.mistakes.size()));
      for (std::size_t i = 0; !good && i < one.mistakes.size(); ++i) {
        EXPECT_THAT(config.diagnostics().lines[i], HasSubstr(one.mistakes[i]));
      }
    }
  }
}

TEST_F(StreamDemands, WithoutAdmissionAllAreTaken) {
  Config config = config_of(stream("1", "rate = 60_000_000") + stream("2", ""), "streams = \"all\"");
  const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
  ASSERT_TRUE(admission);
  auto demands = stream_demands(config);
  EXPECT_TRUE(admit_streams(**admission, {}, demands));
  EXPECT_EQ((*admission)->state().rate, 60'000'000U);
}

TEST_F(StreamDemands, AReloadPutsThemInThePlaceOfThoseBefore) {
  Config config = config_of(stream("1", "rate = 9_000_000"));
  const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
  ASSERT_TRUE(admission);
  auto demands = stream_demands(config);
  ASSERT_TRUE(admit_streams(**admission, {}, demands));
  Config more = config_of(stream("1", "rate = 5_000_000") + stream("2", "rate = 5_000_000"));
  auto wanted = stream_demands(more);
  EXPECT_TRUE(admit_streams(**admission, {demands[0].demand}, wanted));
  EXPECT_EQ((*admission)->state().streams, 2U);
  Config most = config_of(stream("1", "rate = 10_000_001"));
  auto refused = stream_demands(most);
  EXPECT_FALSE(admit_streams(**admission, {wanted[0].demand, wanted[1].demand}, refused));
  EXPECT_EQ((*admission)->state().rate, 10'000'000U) << "everything is as it was";
  EXPECT_EQ((*admission)->state().streams, 2U);
}

TEST_F(StreamDemands, AProfileOfSomethingElseIsRefusedOrSaid) {
  for (const bool refuses : {true, false}) {
    Config config = config_of("", refuses ? "" : "others = \"warn\"");
    const auto admission = make_admission(config, profile_subject(config, "another GPU"), timing, notes_);
    ASSERT_EQ(static_cast<bool>(admission), !refuses);
    const std::string text = refuses ? admission.error().message : notes_.at(0);
    EXPECT_THAT(text, HasSubstr("the device is another GPU, and it was measured with X"));
    EXPECT_THAT(text, HasSubstr("the suite is none"));
    EXPECT_THAT(config.placed(text), testing::StartsWith("g.toml:4: [profile] file: "));
  }
}

// Those of before lanes were staggered by default: what makes the gateway as it was measured is named.
TEST_F(StreamDemands, AProfileOfLanesThatWereNotStaggeredSaysWhatToSet) {
  engine::Profile profile = *config_of("").profile.profile;
  profile.subject.stagger = false;
  for (const unsigned lanes : {1U, 2U}) {
    profile.subject.lanes = lanes;
    std::ofstream(file_) << profile.text();
    const std::string more = stream("1", "rate = 1");
    Config config = Config::from_text(
        "[engine]\nchain = [\"srtp\", \"bridge\"]\n[profile]\nfile = \"" + file_.string() +
            "\"\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\nlanes = " + std::to_string(lanes) + "\n" + more,
        "g.toml");
    const auto admission = make_admission(config, profile_subject(config, "X"), timing, notes_);
    ASSERT_EQ(static_cast<bool>(admission), lanes == 1) << "which has the cycle for itself";
    if (lanes == 1) continue;
    EXPECT_THAT(admission.error().message, HasSubstr("here, set [engine] stagger = false, or set"));
  }
}

TEST_F(StreamDemands, WhatTheProfilesTrafficWasNotOfIsSaid) {
  std::string other = stream("1", "rate = 1");
  other.replace(other.find("protect"), 7, "unprotect");
  std::string six = stream("2", "rate = 1");
  for (const char* const address : {"10.0.0.1", "10.0.0.2"}) six.replace(six.find(address), 8, "2001:db8::1");
  const struct {
    std::string text;
    std::vector<std::string> kinds;
    const char* said;
  } cases[] = {
      {stream("1", "rate = 1"), {"protect IPv4"}, ""},
      {stream("1", "rate = 1") + other,
       {"protect IPv4", "unprotect IPv4"},
       "measured with streams to protect IPv4, and what those to unprotect IPv4 cost, which are here, is not in it"},
      {six, {"protect IPv6"}, "those to protect IPv6 cost"},
      {"[srtp.rtsp]\nservers = [\"10.2.0.0/24\", \"2001:db8::/64\"]\nsuite = \"AEAD_AES_128_GCM\"\n",
       {"protect IPv4", "protect IPv6"},
       "those to protect IPv6 cost"},
  };
  const auto note_of = [this](Config& config) {
    notes_.clear();
    (void)make_admission(config, profile_subject(config, "X"), timing, notes_);
    std::string all;
    for (const std::string& note : notes_) all += note.find("measured with streams") != std::string::npos ? note : "";
    return all;
  };
  for (const auto& one : cases) {
    Config config = config_of(one.text);
    EXPECT_EQ(stream_kinds(config), one.kinds) << one.text;
    const std::string note = note_of(config);
    EXPECT_EQ(note.empty(), *one.said == 0) << note;
    EXPECT_THAT(note, HasSubstr(one.said));
    config.profile.profile->media = one.kinds;
    EXPECT_EQ(note_of(config), "");
  }
}

// Its streams come with clients, and are of one suite.
TEST_F(StreamDemands, TheSuiteOfRtspCounts) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"[srtp.rtsp]\n", "AES_CM_128_HMAC_SHA1_80"},
      {"[srtp.rtsp]\nsuite = \"aead_aes_256_GCM\"\n", "AEAD_AES_256_GCM"},
      {"[srtp.rtsp]\n" + stream("1", ""), "AEAD_AES_128_GCM,AES_CM_128_HMAC_SHA1_80"},
      {"[srtp.rtsp]\nsuite = \"AEAD_AES_128_GCM\"\n" + stream("1", ""), "AEAD_AES_128_GCM"},
  };
  for (const auto& [text, suite] : cases) {
    Config config = config_of(text);
    EXPECT_EQ(profile_subject(config, "X").suite, suite) << text;
  }
}

TEST_F(StreamDemands, OfACryptoLineThatWasCopiedTheSuiteCounts) {
  const std::string crypto = "crypto = \"";
  std::string text = stream("1", "packet_bytes = 1400");
  Config plain = config_of(text);
  const std::uint32_t in_clear = largest_packet(plain);
  text.insert(text.find(crypto) + crypto.size(), " a=crypto:");
  Config config = config_of(text);
  EXPECT_EQ(profile_subject(config, "X").suite, "AEAD_AES_128_GCM");
  EXPECT_EQ(largest_packet(config), in_clear);
}

TEST_F(StreamDemands, ACycleThatWasNotMeasuredIsRefused) {
  Config config = config_of(stream("1", "rate = 1"));
  engine::Timing shorter = timing;
  shorter.cycle = microseconds(199);
  const auto admission = make_admission(config, profile_subject(config, "X"), shorter, notes_);
  ASSERT_FALSE(admission);
  EXPECT_THAT(admission.error().message, HasSubstr("--cycles 199us"));
}

TEST_F(StreamDemands, WithoutAProfileThereIsNoAdmission) {
  Config config =
      Config::from_text("[engine]\nchain = [\"bridge\"]\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n", "g.toml");
  const auto admission = make_admission(config, profile_subject(config, "cpu"), timing, notes_);
  ASSERT_TRUE(admission);
  EXPECT_EQ(*admission, nullptr);
}

TEST_F(StreamDemands, AProfileThatIsNoneIsAMistake) {
  std::ofstream(file_) << "version = 7\n";
  EXPECT_THAT(config_of("").mistakes(), HasSubstr("g.toml:4: [profile] file = "));
  std::filesystem::remove(file_);
  EXPECT_FALSE(config_of("").ok());
  const Config nameless = Config::from_text(
      "[engine]\nchain = [\"bridge\"]\n[profile]\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n", "g.toml");
  EXPECT_THAT(nameless.mistakes(), HasSubstr("file: is missing"));
}

TEST_F(StreamDemands, TheConfigurationThatIsInForceSaysSo) {
  EXPECT_THAT(config_json(config_of("", "others = \"warn\"")),
              HasSubstr("\"others\":\"warn\",\"streams\":\"admit\",\"bursts\":\"report\""));
}

// What a profile has measured of collecting takes the place of the chain's estimate, and forwarding is held against the
// cycle.
TEST_F(StreamDemands, CollectingAndForwardingAreMeasuredOrEstimated) {
  const std::string gpu = "device = \"cuda:0\"\npoll = \"busy\"\noverlap = 1\ndeadline = \"10ms\"\ncycle = \"200us\"\n";
  const auto bound = [](const Config& config) { return engine::plan_timing(config.engine, true)->bound; };
  const auto notes = [this](Config& config) {
    notes_.clear();
    EXPECT_TRUE(make_admission(config, profile_subject(config, "X"), timing, notes_));
    std::string all;
    for (const std::string& note : notes_) all += note;
    return all;
  };
  Config estimated = config_of(stream("1", "rate = 1"), "", gpu);
  ASSERT_TRUE(estimated.ok()) << estimated.mistakes();
  EXPECT_FALSE(estimated.engine.collect_measured);
  EXPECT_EQ(bound(estimated), 3 * microseconds(200) + usual_collect_time({"srtp", "bridge"}));
  EXPECT_THAT(notes(estimated), HasSubstr("does not say what collecting and forwarding take"));

  engine::Profile profile = *estimated.profile.profile;
  engine::ProfileCell cell{.cycle = microseconds(200), .streams = 4, .packet = 1514, .offered = 10'000'000};
  cell.schedulable = true;
  cell.round = microseconds(20);
  for (const unsigned forwarding : {66U, 67U}) {
    cell.forwarding = microseconds(forwarding);
    profile.cells = {cell};
    std::ofstream(file_) << profile.text();
    Config measured = config_of(stream("1", "rate = 1"), "", gpu);
    ASSERT_TRUE(measured.ok()) << measured.mistakes();
    EXPECT_TRUE(measured.engine.collect_measured);
    EXPECT_EQ(bound(measured), 3 * microseconds(200) + engine::collect_time_of(microseconds(20)));
    const bool in_time = forwarding == 66;
    EXPECT_THAT(notes(measured), HasSubstr(in_time ? "" : "takes 67us, and the bound needs 3 of it"));
    EXPECT_THAT(notes(measured), HasSubstr(in_time ? "" : "give the port more lanes")) << "srtp has no forwarders";
    EXPECT_EQ(notes(measured).empty(), in_time);
  }

  // A chain that may have forwarders: with a thread of their own one batch has to fit.
  chain_ = "\"bridge\"";
  profile.subject.chain = {"bridge"};
  profile.subject.suite = "";
  profile.subject.stagger = false;
  std::ofstream(file_) << profile.text();
  for (const bool own_thread : {false, true}) {
    Config measured = config_of("", "", gpu + (own_thread ? "forwarder_cores = [0]\n" : ""));
    ASSERT_TRUE(measured.ok()) << measured.mistakes();
    EXPECT_THAT(notes(measured), HasSubstr(own_thread ? "" : "give lanes forwarder_cores"));
    EXPECT_EQ(notes(measured).empty(), own_thread);
  }
  chain_ = "\"srtp\", \"bridge\"";
  EXPECT_EQ(usual_collect_time({"bridge"}), engine::collect_time);
  EXPECT_GT(usual_collect_time({"inspect", "route"}), engine::collect_time);
  EXPECT_GT(usual_collect_time({"srtp"}), 3 * engine::burst_size * std::chrono::nanoseconds(420));
  EXPECT_EQ(usual_collect_time({"inspect", "srtp", "route"}),
            usual_collect_time({"srtp"}) + 3 * engine::burst_size * std::chrono::nanoseconds(75));
}

// A CPU core's measured batch takes the place of the estimate, and what a saturated core takes does not.
TEST_F(StreamDemands, AnInlineBatchThatWasMeasuredIsTheBound) {
  engine::Profile profile;
  profile.subject = {.machine = "x", .device = "cpu", .chain = {"bridge"}, .suite = "", .lanes = 1};
  profile.date = profile.code = "x";
  profile.packet = 1514;
  profile.capacities = {{microseconds(0), 0, 1000}};
  engine::ProfileCell cell{.packet = 1514, .offered = 1000};
  cell.p999 = microseconds(170);
  cell.schedulable = true;
  engine::ProfileCell saturated{.packet = 1514};
  saturated.p999 = microseconds(5000);
  profile.cells = {saturated, cell};
  std::ofstream(file_) << profile.text();
  const std::string cpu = "device = \"cpu\"\npoll = \"busy\"\n";
  Config config = config_of("", "", cpu);
  ASSERT_TRUE(config.ok()) << config.mistakes();
  EXPECT_EQ(engine::plan_timing(config.engine, false)->bound, microseconds(170));
  EXPECT_THAT(config_of("", "", cpu + "deadline = \"160us\"\n").mistakes(), HasSubstr("170us of a batch"));
}

}  // namespace
}  // namespace sluice::control
