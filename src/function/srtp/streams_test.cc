// Streams that come and go while lanes run: the slots, who may take what away, and what lanes hold.
#include "function/srtp/streams.h"

#include <algorithm>
#include <random>
#include <set>

#include "engine/pipeline.h"
#include "function/route/route.h"
#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using Clock = std::chrono::steady_clock;

TEST(MediaStreamSlots, FindWhatASetHas) {
  constexpr unsigned capacity = 64;
  auto keys = crypto::KeyTable::make(2, false);
  std::vector<std::shared_ptr<MediaStream>> all;
  for (unsigned i = 0; i < 2 * capacity; ++i) {
    MediaStreamSettings settings;
    settings.keyless = Keyless::ended;
    settings.key =
        media_key(packet::IpAddress::v4(1 + i % 7), 1, packet::IpAddress::v4(9), static_cast<std::uint16_t>(i));
    all.push_back(*MediaStream::make(settings, *keys));
  }
  MediaStreamSlots slots(capacity);
  std::set<unsigned> in;
  std::mt19937 random(5);
  unsigned refused = 0;
  for (unsigned step = 0; step < 100'000; ++step) {
    const unsigned one = random() % all.size();
    if (in.contains(one)) {
      slots.take(all[one]->settings().key);
      in.erase(one);
    } else if (in.size() < capacity) {
      if (slots.put(*all[one])) {
        in.insert(one);
      } else {
        ++refused;
        slots.~MediaStreamSlots();  // what the writer does then
        new (&slots) MediaStreamSlots(capacity);
        for (const unsigned other : in) ASSERT_TRUE(slots.put(*all[other]));
      }
    }
    const unsigned asked = random() % all.size();
    ASSERT_EQ(slots.find(all[asked]->settings().key), in.contains(asked) ? all[asked].get() : nullptr) << step;
    const bool some = std::ranges::any_of(in, [&](unsigned other) { return other % 7 == asked % 7; });
    ASSERT_EQ(slots.has_addresses(all[asked]->settings().key), some) << step;
  }
  EXPECT_LT(refused, 1000U);
}

// The router would leave their frames to the host before the element is asked.
TEST(Streams, ToManyHostsStandBeforeNoRouter) {
  for (const bool routed : {true, false}) {
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(srtp_of("[srtp]\n"));
    engine::Element* const stage = elements.front().get();
    if (routed) elements.push_back(std::make_unique<Router>(Router::RouterOptions(), engine::PortTable()));
    engine::Pipeline pipeline(std::move(elements));
    ASSERT_TRUE(stage->prepare({.lanes = 1, .ports = {0}, .pipeline = &pipeline}));
    std::string text = text_of(7000);
    text.replace(text.find("10.0.0.2"), 8, "239.1.2.3");
    for (const auto& answer : {stage->trait<MediaStreams>()->add_text(text, "the request"),
                               stage->trait<MediaStreams>()->replace_text(text, "the request")}) {
      if (!routed) continue;
      ASSERT_FALSE(answer);
      EXPECT_TRUE(answer.error().message.starts_with("the request: destination: is of many hosts: a router leaves"))
          << answer.error().message;
    }
    EXPECT_EQ(static_cast<Streams&>(*stage->trait<MediaStreams>()).size(), routed ? 0U : 1U);
    EXPECT_TRUE(stage->trait<MediaStreams>()->add_text(text_of(7001), "the request"));
  }
}

TEST(Streams, ThatHaveNoCapacityNameTheSettingThatGivesMore) {
  SrtpTrial trial("[srtp]\nmax_keys = 2\n");
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  const auto rtsps = streams.add(settings_of(7001));
  ASSERT_FALSE(rtsps);
  EXPECT_NE(rtsps.error().message.find("is full: it has capacity for 2: raise [srtp] max_keys"), std::string::npos)
      << rtsps.error().message;
  for (const auto& apis : {streams.add_text(text_of(7002), "a test"), streams.replace_text(text_of(7002), "a test")}) {
    ASSERT_FALSE(apis);
    EXPECT_NE(apis.error().message.find("raise [srtp] max_keys"), std::string::npos) << apis.error().message;
  }
}

TEST(Streams, ComeAndGoWhileTheStageRuns) {
  SrtpTrial trial(stream_text("protect"));  // to port 6000
  MediaStreams& streams = streams_of(trial);
  const Bytes clear = frame_to(7000, 1);
  EXPECT_EQ(trial.one(clear).frame, clear);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  const Bytes sealed = trial.one(clear).frame;
  EXPECT_NE(sealed, clear);
  EXPECT_EQ(trial.metric("srtp_streams"), 2U);
  SrtpTrial opener("[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  EXPECT_EQ(opener.one(sealed).frame, clear);
  EXPECT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, false), 1U);
  EXPECT_EQ(trial.one(clear).frame, clear);
  EXPECT_NE(trial.one(frame_to(6000, 1)).frame, frame_to(6000, 1)) << "the configuration's";
}

// A stream that says nothing may have all that fits with a tag of 10 bytes.
TEST(Streams, OfTheApiMayHaveNoLargerPacketsThanWereMeasured) {
  engine::StreamAdmission admission({.rate = 1'000'000, .bound = std::chrono::milliseconds(1), .largest_packet = 200});
  SrtpTrial trial(stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  streams.admit_by(admission, std::chrono::milliseconds(4));
  const auto refused = streams.add_text(text_of(7000) + "rate = 1000\n", "the request");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("packets of 1504 bytes"), std::string::npos) << refused.error().message;
  const auto length = static_cast<std::uint32_t>(frame_to(7000, 1).size());
  for (const std::uint32_t most : {length - 1, length}) {
    const std::uint16_t port = most == length ? 7001 : 7000;
    const std::string text = text_of(port) + "rate = 1000\npacket_bytes = " + std::to_string(most) + "\n";
    ASSERT_TRUE(streams.add_text(text, "the request"));
    EXPECT_EQ(trial.one(frame_to(port, 1)).name() == "srtp_policed", most < length);
  }
}

// Of the API's streams each 5-tuple, as it is policed; the file's are admitted by who reads it, and RTSP's by its
// proxy.
TEST(Streams, OfTheApiAreAdmitted) {
  using std::chrono::milliseconds;
  engine::StreamAdmission admission({.rate = 2'100, .bound = milliseconds(1), .largest_packet = 1504});
  SrtpTrial trial("[srtp]\nmax_keys = 16\n" + stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add_text(text_of(9000), "the request")) << "before";
  streams.admit_by(admission, milliseconds(4));
  const std::string rtcp = "rtcp_source_port = 5005\nrtcp_destination_port = 7001\n";
  const struct {
    std::string text, why;
  } refused[] = {
      {text_of(7000), "its rate is not known: give the stream a rate, or its description a b="},
      {text_of(7000) + "rate = 2_101\n",
       "2.101 kbit/s beside the 0 kbit/s that are taken exceed the 2.1 kbit/s that the "
       "device carries in time"},
      {text_of(7000) + rtcp + "rate = 2_001\n",
       "0.1 kbit/s beside the 2.001 kbit/s that are taken exceed the 2.1 kbit/s that the device carries in time"},
      {text_of(7000) + "rate = 1\ndeadline = \"1ms\"\n",
       "a deadline of 1ms is not above the bound of this configuration, 1ms"},
  };
  for (const auto& one : refused) {
    const auto answer = streams.add_text(one.text, "the request");
    ASSERT_FALSE(answer) << one.text;
    EXPECT_EQ(answer.error().message, "the stream 10.0.0.1:5004 -> 10.0.0.2:7000 is not admitted: " + one.why);
    EXPECT_EQ(trial.metric("srtp_streams"), 2U);
    EXPECT_EQ(admission.state().rate, 0U);
  }
  EXPECT_EQ(admission.state().refused, std::size(refused));
  ASSERT_TRUE(streams.add_text(text_of(7000) + rtcp + "rate = 2_000\ndeadline = \"2ms\"\n", "the request"));
  EXPECT_EQ(admission.state().rate, 2'100U);
  EXPECT_EQ(admission.state().streams, 2U);
  EXPECT_EQ(admission.state().shortest_deadline, milliseconds(2));
  ASSERT_TRUE(streams.add(settings_of(8000))) << "RTSP's";
  EXPECT_EQ(streams.remove(std::vector{key_of(8000)}, MediaOrigin::rtsp, false), 1U);
  EXPECT_EQ(admission.state().rate, 2'100U);

  const std::string ends = "source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n";
  ASSERT_TRUE(streams.remove_text(ends + "destination_port = 7000\n", "the request"));
  EXPECT_EQ(admission.state().rate, 100U) << "RTCP's is still there";
  EXPECT_FALSE(streams.add_text(text_of(6000) + "rate = 1\n", "the request")) << "the file's 5-tuple";
  EXPECT_FALSE(streams.remove_text(ends + "destination_port = 6000\n", "the request"));
  EXPECT_EQ(admission.state().rate, 100U) << "what could not be added or removed has left nothing";
  EXPECT_EQ(admission.state().shortest_deadline, milliseconds(2));
  ASSERT_TRUE(streams.add_text(text_of(7000) + "rate = 2_000\n", "the request"));
  EXPECT_EQ(admission.state().rate, 2'100U);
}

TEST(Streams, OfTheApiMayHaveARate) {
  SrtpTrial trial("[srtp]\nmax_keys = 16\n");
  MediaStreams& streams = streams_of(trial);
  EXPECT_FALSE(streams.add_text(text_of(7000) + "rate = 1\nburst = 3027\n", "the request"));
  ASSERT_TRUE(streams.add_text(text_of(7000) + "rate = 1\n", "the request"));
  ASSERT_TRUE(streams.add_text(text_of(7001), "the request"));
  unsigned passed = 0;
  for (std::uint16_t i = 0; i < 60; ++i) {
    passed += trial.one(frame_to(7000, i)).name() == "passes" ? 1 : 0;
    EXPECT_EQ(trial.one(frame_to(7001, i)).name(), "passes");
  }
  EXPECT_EQ(passed, 2 * 1514U / frame_to(7000, 0).size());
}

TEST(Streams, OfTheApiMayHaveAPortThatTheyComeBy) {
  SrtpTrial trial("[srtp]\nmax_keys = 16\n", 2);
  MediaStreams& streams = streams_of(trial);
  EXPECT_EQ(streams.add_text(text_of(7000) + "ingress = \"lam\"\n", "the request").error().message,
            "the request:7: ingress: is no [[port]]'s name; there are lan, wan");
  ASSERT_TRUE(streams.add_text(text_of(7000) + "ingress = \"wan\"\n", "the request"));
  EXPECT_EQ(trial.one(frame_to(7000, 1), 0).name(), "srtp_wrong_port");
  EXPECT_EQ(trial.one(frame_to(7000, 1), 1).name(), "passes");
  std::size_t count = 0;
  EXPECT_EQ(streams.list(1, {}, count).front().ingress, "wan");
}

// A quote that was forgotten puts the key elsewhere.
TEST(StreamSettings, NoMistakeShowsAKeyWhereverItIs) {
  const std::string ends = "source_port = 5004\ndestination = \"10.0.0.2\"\ndestination_port = 6000\n";
  const std::string crypto = "crypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:" + key30 + "\"\n";
  const std::string line = "action = \"protect\"\n" + crypto;
  const struct {
    std::string text, mistake;
  } cases[] = {
      {line + "source = \"10.0.0.1 inline:" + key30 + "\"\n" + ends,
       "the request:3: source: is not an IPv4 or IPv6 address"},
      {line + "source = \"10.0.0.1\"\n" + ends + "others = \"" + key30 + "\"\n",
       "the request:7: others: allowed is \"drop\", \"pass\""},
      {line + "source = \"10.0.0.1\"\n" + ends + "\"inline:" + key30 + "\" = 1\n",
       "the request: unknown key in line 7, too long to be shown"},
  };
  for (const auto& one : cases) {
    const auto read = read_stream_text(one.text, "the request", 1514);
    ASSERT_FALSE(read) << one.mistake;
    EXPECT_EQ(read.error().message, one.mistake);
  }
}

TEST(StreamSettings, RtcpOnPortsOfItsOwnHasAPartOfTheRate) {
  const std::string rtcp = "rtcp_source_port = 5005\nrtcp_destination_port = 7001\n";
  const auto both = read_stream_text(text_of(7000) + rtcp + "rate = 8_000_000\n", "a test", 1514);
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(both->front().rate, (MediaStreamSettings::Rate{8'000'000, 100'000})) << "what comes in a tenth of a second";
  EXPECT_EQ(both->back().rate, (MediaStreamSettings::Rate{400'000, 100'000}));
  const auto slow = read_stream_text(text_of(7000) + rtcp + "rate = 1\n", "a test", 9014);
  EXPECT_EQ(slow->back().rate, (MediaStreamSettings::Rate{1, 18'028}));
  EXPECT_FALSE(read_stream_text(text_of(7000), "a test", 1514)->front().rate);
}

TEST(Streams, AllOrNoneAndEachOnce) {
  SrtpTrial trial("[srtp]\nmax_keys = 6\n" + stream_text("protect"));  // two keys
  MediaStreams& streams = streams_of(trial);
  EXPECT_EQ(streams.add(settings_of(6000)).error().message,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:6000 is in the table already");
  auto three = settings_of(7000);
  for (const unsigned port : {7001U, 7002U}) three.push_back(settings_of(port)[0]);
  EXPECT_FALSE(streams.add(three)) << "six keys more";
  EXPECT_EQ(trial.one(frame_to(7000, 1)).frame, frame_to(7000, 1));
  EXPECT_EQ(trial.metric("srtp_streams"), 1U);
  three.pop_back();
  EXPECT_TRUE(streams.add(three));
  EXPECT_FALSE(streams.add(three));
  EXPECT_EQ(trial.metric("srtp_streams"), 3U);
}

TEST(Streams, OnlyWhoAddedTakesAway) {
  SrtpTrial trial(stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add(settings_of(7000)));
  ASSERT_TRUE(streams.add_text(text_of(8000), "the request"));
  EXPECT_EQ(streams.remove(std::vector{key_of(6000), key_of(8000)}, MediaOrigin::rtsp, false), 0U);
  EXPECT_EQ(streams
                .remove_text("source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n"
                             "destination_port = 7000\n",
                             "the request")
                .error()
                .message,
            "no stream 10.0.0.1:5004 -> 10.0.0.2:7000 was added over the API; others leave with what added them");
  EXPECT_EQ(streams
                .remove_text("source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n"
                             "destination_port = 8000\n",
                             "the request")
                ->done,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:8000 is gone");
  EXPECT_EQ(trial.metric("srtp_streams"), 2U);
  // A reload takes only its own, and does not take another's 5-tuple.
  const auto none = srtp_of("");
  const auto taken = srtp_of("[[srtp.stream]]\n" + text_of(7000));
  EXPECT_FALSE(trial.element().reload(*taken));
  trial.element().reload(*none)->commit();
  EXPECT_EQ(trial.metric("srtp_streams"), 1U);
  EXPECT_NE(trial.one(frame_to(7000, 9)).frame, frame_to(7000, 9));
}

const std::string ends_of_7000 =
    "source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\ndestination_port = 7000\n";

TEST(Streams, OfTheApiAreReplacedInOneStep) {
  SrtpTrial trial("[srtp]\nmax_keys = 8\n" + stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  EXPECT_EQ(streams.replace_text(text_of(7000), "the request")->done,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:7000 is in force");
  const Bytes clear = frame_to(7000, 1);
  const Bytes first = trial.one(clear).frame;
  // The same: its indexes are kept, whatever its rate.
  const std::string again = "the stream 10.0.0.1:5004 -> 10.0.0.2:7000 is in force in place of the one before";
  EXPECT_EQ(streams.replace_text(text_of(7000), "the request")->done, again);
  EXPECT_EQ(trial.one(clear).name(), "srtp_replayed");
  EXPECT_EQ(streams.replace_text(text_of(7000) + "rate = 1\n", "the request")->done, again);
  unsigned policed = 0;
  for (std::uint16_t i = 2; i < 60; ++i) policed += trial.one(frame_to(7000, i)).name() == "srtp_policed" ? 1 : 0;
  EXPECT_GT(policed, 20U);
  // What is under way goes on with the old key, what comes later with the new one.
  SrtpTrial under_way(trial);
  EXPECT_EQ(streams.replace_text(text_of(7000), "the request")->done, again);
  under_way.begin({frame_to(7000, 100)}, {});
  EXPECT_EQ(streams.replace_text(text_of(7000, "protect", other_key30), "the request")->done, again);
  const Bytes second = trial.one(clear).frame, late = under_way.end().front().frame;
  SrtpTrial opens("[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  SrtpTrial opens_new("[[srtp.stream]]\n" + text_of(7000, "unprotect", other_key30));
  EXPECT_EQ(opens.one(first).frame, clear);
  EXPECT_EQ(opens.one(late).frame, frame_to(7000, 100));
  EXPECT_EQ(opens_new.one(second).frame, clear);
  EXPECT_EQ(trial.metric("srtp_streams"), 2U);
  streams.tidy(Clock::now());
  EXPECT_EQ(trial.metric("srtp_leaving_streams"), 0U);
  EXPECT_EQ(streams.replace_text(text_of(6000), "the request").error().message,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:6000 is in the table already, and not by the API");
  EXPECT_FALSE(streams.replace_text(ends_of_7000, "the request"));
}

TEST(Streams, ThatCannotBeReplacedStay) {
  SrtpTrial trial("[srtp]\nmax_keys = 2\n");
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add_text(text_of(7000), "the request"));
  EXPECT_FALSE(streams.replace_text(text_of(7000, "protect", other_key30), "the request")) << "both keys, for a moment";
  SrtpTrial opens("[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  EXPECT_EQ(opens.one(trial.one(frame_to(7000, 1)).frame).frame, frame_to(7000, 1));
}

TEST(Streams, ThatAreReplacedGiveBackWhatTheyTook) {
  using std::chrono::milliseconds;
  engine::StreamAdmission admission({.rate = 2'000, .bound = milliseconds(1), .largest_packet = 0});
  SrtpTrial trial("[srtp]\nmax_keys = 16\n");
  MediaStreams& streams = streams_of(trial);
  streams.admit_by(admission, milliseconds(4));
  const auto at = [](const std::string& rate, const std::string& key = key30) {
    return text_of(7000, "protect", key) + "rate = " + rate + "\n";
  };
  ASSERT_TRUE(streams.replace_text(at("2_000"), "the request"));
  ASSERT_TRUE(streams.replace_text(at("1_500", other_key30), "the request"));
  EXPECT_EQ(admission.state().rate, 1'500U);
  ASSERT_TRUE(streams.replace_text(at("1_900", other_key30) + "deadline = \"2ms\"\n", "the request")) << "the same key";
  EXPECT_EQ(admission.state().rate, 1'900U);
  EXPECT_EQ(admission.state().shortest_deadline, milliseconds(2));
  const auto refused = streams.replace_text(at("2_001"), "the request");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is not admitted"), std::string::npos) << refused.error().message;
  EXPECT_EQ(admission.state().rate, 1'900U);
  ASSERT_TRUE(streams.remove_text(ends_of_7000, "the request"));
  EXPECT_EQ(admission.state().rate, 0U);
  ASSERT_TRUE(streams.replace_text(at("10"), "the request"));
  ASSERT_TRUE(streams.release_text(ends_of_7000, "the request"));
  EXPECT_EQ(admission.state().rate, 0U);
  EXPECT_EQ(admission.state().streams, 0U);
}

TEST(Streams, OfTheApiAndTheFileAreGuardedUntilTheyAreReleased) {
  SrtpTrial trial(stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  const auto expect = [&](unsigned port, const char* name) { EXPECT_EQ(trial.one(frame_to(port, 1)).name(), name); };
  ASSERT_TRUE(streams.add_text(text_of(7000), "the request"));
  // The file that was added, with its key, will do.
  EXPECT_EQ(streams.remove_text(text_of(7000) + "rate = 5\ningress = \"lan\"\n", "the request")->done,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:7000 is gone");
  expect(7000, "srtp_ended");
  EXPECT_FALSE(streams.remove_text(ends_of_7000, "the request"));
  EXPECT_EQ(streams.release_text(ends_of_7000, "the request")->done,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:7000 is released: what comes of it passes as it comes");
  expect(7000, "passes");
  EXPECT_FALSE(streams.release_text(ends_of_7000, "the request"));

  std::string of_file = ends_of_7000;
  of_file.replace(of_file.find("7000"), 4, "6000");
  EXPECT_FALSE(streams.release_text(of_file, "the request")) << "it is the file's, and in force";
  for (int twice = 0; twice < 2; ++twice) {
    trial.element().reload(*srtp_of(""))->commit();
    expect(6000, "srtp_ended");
    EXPECT_EQ(trial.metric("srtp_streams"), 0U);
    EXPECT_EQ(trial.metric("srtp_ended_streams"), 1U);
  }
  trial.element().reload(*srtp_of(stream_text("protect")))->commit();
  EXPECT_NE(trial.one(frame_to(6000, 1)).frame, frame_to(6000, 1));
  trial.element().reload(*srtp_of(""))->commit();
  EXPECT_TRUE(streams.release_text(of_file, "the request"));
  expect(6000, "passes");

  // RTSP's guards are its own.
  ASSERT_TRUE(streams.add(settings_of(7000)));
  ASSERT_EQ(streams.remove(std::vector{key_of(7000)}, MediaOrigin::rtsp, true), 1U);
  EXPECT_FALSE(streams.release_text(ends_of_7000, "the request"));
  expect(7000, "srtp_ended");
}

// Who removed them has left; lanes have not.
TEST(Streams, KeysOfWhatTheApiTookOutGoWhenLanesHaveLeft) {
  SrtpTrial trial("[srtp]\nmax_keys = 2\n");
  MediaStreams& streams = streams_of(trial);
  ASSERT_TRUE(streams.add_text(text_of(7000), "the request"));
  SrtpTrial under_way(trial);
  under_way.begin({frame_to(7000, 1)}, {});
  ASSERT_TRUE(
      streams.remove_text("source = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n"
                          "destination_port = 7000\n",
                          "the request"));
  EXPECT_EQ(trial.metric("srtp_leaving_streams"), 1U);
  EXPECT_FALSE(streams.add_text(text_of(7001), "the request")) << "there are no keys";
  under_way.end();
  streams.tidy(Clock::now());
  EXPECT_EQ(trial.metric("srtp_leaving_streams"), 0U);
  EXPECT_TRUE(streams.add_text(text_of(7001), "the request"));
}

TEST(Streams, ClearRtcpPassesOrIsDroppedByName) {
  SrtpTrial trial("");
  MediaStreams& streams = streams_of(trial);
  const auto to = [](std::uint16_t port, const Bytes& payload) {
    return udp_frame(payload, false, 5004, port).build();
  };
  auto passes = settings_of(7001, Keyless::passes_rtcp), drops = settings_of(7003, Keyless::drops_rtcp);
  passes[0].carries = drops[0].carries = Carries::rtcp;
  ASSERT_TRUE(streams.add(passes));
  ASSERT_TRUE(streams.add(drops));
  const Judged passed = trial.one(to(7001, rtcp()));
  EXPECT_EQ(passed.name(), "passes");
  EXPECT_EQ(passed.frame, to(7001, rtcp()));
  EXPECT_EQ(trial.one(to(7001, Bytes(8, 0))).name(), "srtp_not_media");
  EXPECT_EQ(trial.one(to(7003, rtcp())).name(), "srtp_clear_rtcp");
  EXPECT_EQ(trial.metric("srtp_clear_rtcp_passed"), 1U);
  EXPECT_EQ(streams.noted(key_of(7001)), 1U);
  EXPECT_EQ(trial.one(to(7003, Bytes(8, 0))).name(), "srtp_not_media");
  EXPECT_EQ(streams.noted(key_of(7003)), 1U) << "who sends it is there";
  EXPECT_EQ(streams.noted(key_of(9)), 0U);
}

TEST(Streams, AuthenticatedRtcpIsNotedAndNoOther) {
  SrtpTrial sender("[[srtp.stream]]\n" + text_of(7000));
  SrtpTrial trial("[[srtp.stream]]\n" + text_of(7000, "unprotect"));
  const Bytes sealed = sender.one(udp_frame(rtcp(), false, 5004, 7000).build()).frame;
  Bytes forged = sealed;
  forged.back() ^= 1;
  EXPECT_EQ(trial.one(udp_frame(Bytes(forged.begin() + 42, forged.end()), false, 5004, 7000).build()).name(),
            "srtp_auth_failed");
  EXPECT_EQ(streams_of(trial).noted(key_of(7000)), 0U);
  EXPECT_EQ(trial.one(sealed).name(), "passes");
  EXPECT_EQ(trial.one(sender.one(frame_to(7000, 1)).frame).name(), "passes");
  EXPECT_EQ(streams_of(trial).noted(key_of(7000)), 1U);
}

TEST(Streams, AListHasNoKeysAndAMistakeShowsNone) {
  SrtpTrial trial(stream_text("protect"));
  MediaStreams& streams = streams_of(trial);
  ASSERT_EQ(streams
                .add_text(text_of(8000, "unprotect", other_key30) + "rtcp_source_port = 1\nrtcp_destination_port = 2\n",
                          "the request")
                ->done,
            "the stream 10.0.0.1:5004 -> 10.0.0.2:8000 is in force");
  std::size_t count = 0;
  EXPECT_EQ(streams.list(2, {}, count).size(), 2U);
  EXPECT_EQ(count, 3U);
  std::set<std::string> rows;
  for (const MediaStreamRow& row : streams.list(10, {}, count)) {
    rows.insert(row.name + ' ' + row.action + ' ' + row.carries + ' ' + row.suite + ' ' + row.origin);
  }
  EXPECT_EQ(rows,
            (std::set<std::string>{"10.0.0.1:5004 -> 10.0.0.2:6000 protect both AES_CM_128_HMAC_SHA1_80 configuration",
                                   "10.0.0.1:5004 -> 10.0.0.2:8000 unprotect rtp AES_CM_128_HMAC_SHA1_80 api",
                                   "10.0.0.1:1 -> 10.0.0.2:2 unprotect rtcp AES_CM_128_HMAC_SHA1_80 api"}));
  const std::string broken[] = {text_of(8001) + "crypt = 5\n",
                                text_of(8001) + "crypto = \"" + key30 + "\"\n",
                                "crypto = " + key30 + "\n",
                                "crypto = \"" + key30 + "\n",
                                "",
                                text_of(70000)};
  for (const std::string& text : broken) {
    const auto added = streams.add_text(text, "the request");
    ASSERT_FALSE(added) << text;
    EXPECT_NE(added.error().message.find("the request"), std::string::npos) << added.error().message;
    EXPECT_EQ(added.error().message.find(key30.substr(0, 8)), std::string::npos) << added.error().message;
  }
}

}  // namespace
}  // namespace sluice::function
