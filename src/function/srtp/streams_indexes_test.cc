// Streams that are changed while their sources go on: which keep their indexes, over a wrap of the sequence, and which
// changes are refused because indexes would begin anew under a key.
#include <gmock/gmock.h>

#include "function/srtp/streams_trial_test.h"

namespace sluice::function {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Rollover counter 1 from the last one on.
constexpr std::uint16_t over_the_wrap[] = {1, 30000, 60000, 20000};
constexpr std::uint32_t lan = 0, wan = 1;  // lanes, each of the port of that name

std::string with_crypto(const std::string& crypto, const std::string& action, const std::string& more = "") {
  std::string all = text_of(7000, action);
  const std::size_t at = all.find("1 AES_CM");
  return all.replace(at, all.rfind('"') - at, "1 " + crypto) + more;
}

// The stream to port 7000, protected or unprotected, as the file's or the API's; and the other side.
struct Trial {
  Trial(const std::string& action, bool of_file, const std::string& more)
      : protects(action == "protect"),
        file(of_file),
        stage(of_file ? section(text_of(7000, action) + more) : "[srtp]\nmax_keys = 16\n", 2),
        peer("[[srtp.stream]]\n" + text_of(7000, protects ? "unprotect" : "protect")) {
    if (of_file) return;
    const auto added = streams_of(stage).add_text(text_of(7000, action) + more, "the request");
    EXPECT_TRUE(added) << (added ? "" : added.error().message);
  }
  static std::string section(const std::string& stream) { return "[srtp]\nmax_keys = 16\n[[srtp.stream]]\n" + stream; }

  // What is wrong; empty: it is in force.
  std::string change(const std::string& text) {
    if (!file) {
      const auto done = streams_of(stage).replace_text(text, "the request");
      return done ? "" : done.error().message;
    }
    const auto fresh = srtp_of(section(text));
    const auto reload = stage.element().reload(*fresh);
    if (!reload) return reload.error().message;
    reload->commit();
    return "";
  }
  Bytes arriving(std::uint16_t sequence) {
    const Bytes clear = frame_to(7000, sequence);
    return protects ? clear : peer.one(clear).frame;
  }
  // "passes" if it has gone through both sides and is what it was.
  std::string one(std::uint16_t sequence, std::uint32_t lane = lan) {
    const Bytes clear = frame_to(7000, sequence);
    const Judged judged = stage.one(arriving(sequence), lane);
    if (judged.name() != "passes") return judged.name();
    const Judged other = protects ? peer.one(judged.frame) : judged;
    return other.name() != "passes" ? "then " + other.name() : other.frame == clear ? "passes" : "is another";
  }

  const bool protects, file;
  SrtpTrial stage, peer;
};

struct Kind {
  std::string action;
  bool of_file;
};
const Kind kinds[] = {{"protect", false}, {"protect", true}, {"unprotect", false}, {"unprotect", true}};

TEST(StreamIndexes, AreKeptWhateverPacketsMayComeBy) {
  for (const auto& [action, of_file] : kinds) {
    SCOPED_TRACE(action + (of_file ? " of the file" : " of the API"));
    Trial trial(action, of_file, "ingress = \"lan\"\n");
    for (const std::uint16_t sequence : over_the_wrap) ASSERT_EQ(trial.one(sequence), "passes") << sequence;
    ASSERT_EQ(trial.change(text_of(7000, action) + "others = \"pass\"\n"), "");
    EXPECT_EQ(trial.one(20001), "passes");
    EXPECT_EQ(trial.one(20002, wan), "srtp_other_lane") << "though it may come by both";
    const Bytes stun = udp_frame(Bytes(20, 0), false, 5004, 7000).build();
    EXPECT_EQ(trial.stage.one(stun).frame, stun);
    // To another lane, with all that is known.
    ASSERT_EQ(trial.change(text_of(7000, action) + "ingress = \"wan\"\n"), "");
    EXPECT_EQ(trial.one(20003), "srtp_wrong_port");
    EXPECT_EQ(trial.stage.one(stun, wan).name(), "srtp_not_media");
    EXPECT_EQ(trial.one(20004, wan), "passes");
    if (trial.protects) {
      EXPECT_EQ(trial.one(20004, wan), "srtp_replayed");
    }
    ASSERT_EQ(trial.change(text_of(7000, action) + "ingress = \"lan\"\n"), "");
    EXPECT_EQ(trial.one(20005), "passes");
    EXPECT_EQ(trial.stage.metric("srtp_keys_again"), 0U);
    EXPECT_EQ(trial.stage.metric("srtp_streams"), 1U);
  }
}

// Two lanes would have it at once.
TEST(StreamIndexes, AreNoOtherLanesBeforeTheLastBatchHasGone) {
  Trial trial("protect", false, "");
  ASSERT_EQ(trial.one(1), "passes");
  SrtpTrial under_way(trial.stage);
  under_way.begin({frame_to(7000, 2)}, {});
  ASSERT_EQ(trial.change(text_of(7000) + "ingress = \"wan\"\n"), "");
  EXPECT_EQ(trial.one(3, wan), "srtp_other_lane");
  EXPECT_EQ(trial.one(3, lan), "srtp_wrong_port");
  EXPECT_EQ(under_way.end().front().name(), "passes");
  streams_of(trial.stage).tidy(Clock::now());
  EXPECT_EQ(trial.one(2, wan), "srtp_replayed");
  EXPECT_EQ(trial.one(3, wan), "passes");
}

// The port that was right in between may have batches under way.
TEST(StreamIndexes, StayWithTheirLaneIfItsPortIsRightAgain) {
  Trial trial("protect", false, "");
  ASSERT_EQ(trial.one(1), "passes");
  SrtpTrial under_way(trial.stage);
  under_way.begin({frame_to(7000, 2)}, {});
  ASSERT_EQ(trial.change(text_of(7000) + "ingress = \"wan\"\n"), "");
  ASSERT_EQ(trial.change(text_of(7000) + "ingress = \"lan\"\n"), "");
  EXPECT_EQ(trial.one(3, lan), "passes");
  EXPECT_EQ(under_way.end().front().name(), "passes");
  streams_of(trial.stage).tidy(Clock::now());
  EXPECT_EQ(trial.one(4, lan), "passes");
  EXPECT_EQ(trial.one(5, wan), "srtp_wrong_port");
}

TEST(StreamIndexes, BeginAnewUnderNoKeyThatTheyHad) {
  const std::string suite = "AES_CM_128_HMAC_SHA1_80 inline:", same = suite + key30, other = suite + other_key30;
  for (const auto& [action, of_file] : kinds) {
    SCOPED_TRACE(action + (of_file ? " of the file" : " of the API"));
    Trial trial(action, of_file, "");
    for (const std::uint16_t sequence : over_the_wrap) ASSERT_EQ(trial.one(sequence), "passes") << sequence;
    std::uint16_t next = 20001;
    const std::string refused[] = {
        with_crypto(same, action, "max_ssrcs = 17\n"),
        with_crypto(same + " WSH=256", action),
        with_crypto(same + " KDR=10", action),
        with_crypto(same + "|2^40", action),
        with_crypto("AES_CM_128_HMAC_SHA1_32 inline:" + key30, action),
        with_crypto(same, action, "ssrc = 7\nroc = 1\n"),
        with_crypto(same, action, "rtcp_source_port = 5005\nrtcp_destination_port = 7001\n"),
    };
    for (const std::string& text : refused) {
      EXPECT_THAT(trial.change(text),
                  HasSubstr("the stream 10.0.0.1:5004 -> 10.0.0.2:7000 keeps its key, and changes in "
                            "more than rate, deadline, ingress and others"))
          << text;
      EXPECT_EQ(trial.one(next++), "passes") << "as before";
    }
    // One key of several is enough for a second keystream; a receiver that knows more keys than before is another.
    const std::string both = suite + key30 + "|1:4;inline:" + other_key30 + "|2:4";
    EXPECT_EQ(trial.change(with_crypto(both, action)).empty(), !trial.protects);
    EXPECT_EQ(trial.change(with_crypto(other, action, "max_ssrcs = 17\n")).empty(), trial.protects)
        << "as no key is new";
    EXPECT_EQ(trial.change(with_crypto(suite + "AAAA" + key30.substr(4), action, "max_ssrcs = 18\n")), "");
    EXPECT_EQ(trial.stage.metric("srtp_keys_again"), 0U);
  }
}

// Lanes may have come by the port that was right in between, as long as they are in batches from before the last
// change.
TEST(StreamIndexes, OfSeveralChangesOfThePortTheLastOneTakesTheStreamFromItsLane) {
  auto keys = crypto::KeyTable::make(16, false);
  ASSERT_TRUE(keys);
  auto stream = MediaStream::make(settings_of(7000).front(), *keys);
  ASSERT_TRUE(stream);
  ASSERT_TRUE((*stream)->claim(lan, lan));
  const auto comes_by = [&](std::uint16_t port) {
    MediaStreamSettings wanted = settings_of(7000).front();
    wanted.ingress = port;
    return (*stream)->take_limits(wanted.limits());
  };
  const std::uint32_t first = comes_by(wan), last = comes_by(5);
  ASSERT_NE(first, last);
  (*stream)->disown(first);
  EXPECT_TRUE((*stream)->is_claimed());
  (*stream)->disown(last);
  EXPECT_FALSE((*stream)->is_claimed());
}

}  // namespace
}  // namespace sluice::function
