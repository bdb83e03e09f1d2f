// Datagrams that come in fragments: inspected whole, by the fragment that completes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <x86intrin.h>

#include "flow/fragment_test.h"
#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using flow::test::fragment_of;
using flow::test::fragments_of;
using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;

class InspectionFragments : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, bool drop_on_overload = true, std::uint32_t budget = 1000) {
    rules_ = test::rules_of(test::with_policy(text, drop_on_overload));
    ASSERT_NE(rules_, nullptr);
    InspectionSettings settings = test::small_settings();
    settings.drop_on_overload = drop_on_overload;
    settings.budget = budget;
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), settings, *this);
  }
  void alert(const Alert& alert) override {
    sids_.push_back(rules_->detector().rules().rules[alert.rule].sid);
    frame_ = alert.frame;
  }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }

  Judgement feed(const Bytes& bytes) {
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return test::inspect(*inspection_, frame, now_ += 1000, by_device_);
  }
  // Whether each is dropped.
  std::vector<bool> feed(const std::vector<Bytes>& frames) {
    std::vector<bool> drops;
    for (const Bytes& frame : frames) drops.push_back(feed(frame).drop);
    return drops;
  }
  static Bytes udp(bool v4, const std::string& text) {
    PacketBuilder builder;
    v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
    return builder.udp(4000, 53).payload(Bytes(text.begin(), text.end())).build();
  }
  static Bytes tcp(bool up, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged,
                   const std::string& text = "") {
    return test::segment_of(up, flags, sequence, acknowledged, text).build();
  }
  void handshake() {
    feed(tcp(true, syn, 1000, 0));
    feed(tcp(false, syn | ack, 5000, 1001));
    feed(tcp(true, ack, 1001, 5001));
  }
  std::uint64_t searched_since(std::uint64_t before) const { return inspection_->counters().searched - before; }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  const flow::FragmentCounters& counters() { return inspection_->fragments().counters(); }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  std::string frame_;  // of the last alert
  std::uint64_t now_ = 0;
  bool by_device_ = false;
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

// So that it begins in one fragment of 64 bytes and ends in the next one.
const std::string evil = std::string(52, '.') + "evil content" + std::string(60, '.');

// Fragments are of a flow without ports: what a rule of ports says of one it does not say of the others.
TEST_F(InspectionFragments, ARuleOfPortsIsAboutOneDatagramsFragments) {
  const auto to = [](std::uint16_t port) {
    return fragments_of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, port).payload(Bytes(100, 'a')).build(),
                        port, 64);
  };
  use("drop udp any any -> any 53 (sid:1;)\nalert udp any any -> any 54 (sid:2;)\n");
  EXPECT_THAT(feed(to(53)), ElementsAre(true, false));
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_THAT(feed(to(54)), ElementsAre(false, false));
  EXPECT_THAT(alerts(), ElementsAre(2, 2)) << "the first fragment, and the datagram";
  EXPECT_THAT(feed(to(53)), ElementsAre(true, false));
  use("pass udp any any -> any 53 (sid:1;)\ndrop udp any any -> any any (flow:stateless; sid:2;)\n");
  feed(to(53));
  EXPECT_TRUE(feed(to(54)).front());
}

TEST_F(InspectionFragments, TheOneThatCompletesWhatARuleLooksForIsDropped) {
  for (const bool v4 : {true, false}) {
    for (const bool by_device : {false, true}) {
      by_device_ = by_device;
      use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
      std::vector<Bytes> frames = fragments_of(udp(v4, evil), 7, 64);
      ASSERT_EQ(frames.size(), 3U);
      EXPECT_THAT(feed(frames), ElementsAre(false, false, true));
      EXPECT_THAT(alerts(), ElementsAre(1));
      EXPECT_THAT(std::exchange(drops_, {}), ElementsAre(DropReason::rules));
      EXPECT_EQ(match::facts_of(frame_).payload, evil) << "an alert's frame is the datagram";
      std::swap(frames[0], frames[2]);
      for (Bytes& frame : frames) frame[v4 ? 19 : 61] = 8;  // another identification
      EXPECT_THAT(feed(frames), ElementsAre(false, false, true)) << "the first one last";
      EXPECT_THAT(alerts(), ElementsAre(1));
      drops_.clear();
      EXPECT_THAT(feed(fragments_of(udp(v4, std::string(evil.size(), '.')), 9, 64)), ElementsAre(false, false, false));
      EXPECT_THAT(alerts(), IsEmpty());
    }
  }
}

// As long as a datagram can be.
constexpr std::size_t longest = 65'507, mtu = 1480, of_last = (longest + 8) % mtu;

// Its last fragment brings 395 bytes, and makes a core search as much as 45 others would.
TEST_F(InspectionFragments, ALongDatagramIsSearchedAsFarAsThereIsTime) {
  const std::string rule = " udp any any -> any 53 (content:\"evil content\"; sid:1;)\n";
  std::string text(longest, '\0');
  text.replace(40'000, 12, "evil content");
  const std::vector<Bytes> frames = fragments_of(udp(true, text), 7, mtu);
  ASSERT_EQ(frames.size(), 45U);
  for (const bool by_device : {false, true}) {
    for (const bool drops : {true, false}) {
      SCOPED_TRACE(std::string(by_device ? "device" : "core") + (drops ? ", drop" : ", pass"));
      by_device_ = by_device;
      drops_.clear();
      use("alert" + rule, drops);
      inspection_->begin(0);
      for (std::size_t f = 0; f + 1 < frames.size(); ++f) feed(frames[f]);
      EXPECT_EQ(inspection_->counters().overloaded, 0U);
      const std::uint64_t before = inspection_->counters().searched;
      const Judgement last = feed(frames.back());
      EXPECT_LE(searched_since(before), 2 * of_last) << "the fragment, and as much of the datagram";
      EXPECT_TRUE(last.overload);
      EXPECT_EQ(last.drop, drops);
      EXPECT_EQ(inspection_->counters().left, 1U);
      EXPECT_EQ(inspection_->counters().overloaded, 1U);
      EXPECT_EQ(feed(frames.back()).drop, drops) << "where it was dropped, so is what would complete it";
      EXPECT_EQ(drops_, drops ? std::vector({DropReason::budget, DropReason::fragment}) : std::vector<DropReason>());
      EXPECT_THAT(alerts(), IsEmpty());

      use("drop" + rule, drops);
      inspection_->begin(std::uint64_t{1} << 40);
      for (std::size_t f = 0; f + 1 < frames.size(); ++f) EXPECT_FALSE(feed(frames[f]).drop);
      EXPECT_TRUE(feed(frames.back()).drop);
      EXPECT_THAT(alerts(), ElementsAre(1));
      EXPECT_EQ(inspection_->counters().left, 0U);
      EXPECT_NE(inspection_->spent(), 0U);
    }
  }
}

TEST_F(InspectionFragments, WhatLiesAcrossSlicesOfADatagramIsFoundOnce) {
  const std::string word = "evil content";
  use("alert udp any any -> any 53 (content:\"evil content\"; sid:1;)\n"
      "alert udp any any -> any 53 (content:\"to be found as well\"; sid:2;)\n"
      "alert udp any any -> any 53 (content:\"!\"; sid:3;)\n");
  inspection_->begin(std::uint64_t{1} << 50);
  std::uint32_t id = 0;
  for (const std::size_t slice : {1U, 2U, 5U}) {
    for (std::size_t place = slice * 1536 - word.size() - 1; place <= slice * 1536 + 1; ++place) {
      std::string text(9'000, '.');
      text.replace(place, word.size(), word);
      text.front() = text.back() = '!';
      // Cut elsewhere, so that no fragment holds it by itself.
      std::vector<Bytes> frames = fragments_of(udp(true, text), ++id, (place + 8 + 6) / 8 * 8);
      feed(frames);
      EXPECT_EQ(std::ranges::count(sids_, 1U), 1) << place;
      sids_.clear();
    }
  }
  EXPECT_EQ(inspection_->counters().left, 0U);
  std::string everywhere;
  while (everywhere.size() < 9'000) everywhere += word;
  feed(fragments_of(udp(true, everywhere), ++id, 6'000));
  EXPECT_EQ(std::ranges::count(alerts(), 1U), 2) << "in the first fragment, and in the datagram";
}

// The clock's: a small part of what it takes, and a slice.
TEST_F(InspectionFragments, ADatagramOfZerosTakesNoLongerThanItsTime) {
  std::string rules, zeros = "00 00 00 00 00 00 00";
  for (int r = 1; r <= 30; ++r) {
    zeros += " 00";  // all but the first byte of each is there at each byte
    rules +=
        "alert udp any any -> any 53 (content:\"|01 " + zeros + "|\"; dsize:<100; sid:" + std::to_string(r) + ";)\n";
  }
  const std::vector<Bytes> frames = fragments_of(udp(true, std::string(longest, '\0')), 7, mtu);
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    const auto ticks_of_last = [&](std::uint64_t ticks) {
      std::uint64_t least = ~std::uint64_t{0};
      for (int time = 0; time < 5; ++time) {
        use(rules);
        inspection_->begin(match::Detector::unlimited);
        for (std::size_t f = 0; f + 1 < frames.size(); ++f) feed(frames[f]);
        inspection_->begin(ticks);
        const std::uint64_t began = __rdtsc();
        feed(frames.back());
        least = std::min<std::uint64_t>(least, __rdtsc() - began);
      }
      return least;
    };
    const std::uint64_t whole = ticks_of_last(match::Detector::unlimited);
    const std::uint64_t limited = ticks_of_last(whole / 16);
    EXPECT_EQ(inspection_->counters().left, 1U);
    EXPECT_LT(limited, whole / 2) << whole;
  }
}

TEST_F(InspectionFragments, ALongSegmentInFragmentsHasItsTimeInItsStream) {
  const std::string text = std::string(40'000, '.') + "evil content" + std::string(20'000, '.');
  for (const bool waits : {false, true}) {
    for (const bool drops : {true, false}) {
      for (const std::uint64_t ticks : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
        SCOPED_TRACE(std::string(waits ? "waits" : "in order") + (drops ? ", drop " : ", pass ") +
                     std::to_string(ticks));
        use("alert tcp any any -> any 80 (content:\"evil content\"; sid:1;)\n", drops);
        handshake();
        inspection_->begin(ticks);
        const std::uint64_t before = inspection_->counters().searched;
        bool overload = false;
        std::uint64_t of_frames = 0;
        for (const Bytes& frame : fragments_of(tcp(true, ack, waits ? 1011 : 1001, 5001, text), 7, mtu)) {
          overload |= feed(frame).overload;
          of_frames += frame.size();
        }
        if (waits) overload |= feed(tcp(true, ack, 1001, 5001, "0123456789")).overload;
        EXPECT_EQ(overload, ticks == 0);
        EXPECT_EQ(alerts().size(), ticks == 0 ? 0U : 1U);
        if (ticks == 0) {
          EXPECT_LE(searched_since(before), of_frames + 2 * mtu);
        }
      }
    }
  }
}

TEST_F(InspectionFragments, WhatWasDroppedStaysIncomplete) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  const std::vector<Bytes> frames = fragments_of(udp(true, evil), 7, 64);
  feed(frames);
  EXPECT_THAT(std::exchange(drops_, {}), ElementsAre(DropReason::rules));
  const Judgement again = feed(frames[2]);
  EXPECT_TRUE(again.drop && again.fragment) << "the receiver waits for it";
  Bytes other = frames[2];
  other.back() ^= 1;
  EXPECT_TRUE(feed(other).drop);
  EXPECT_THAT(drops_, ElementsAre(DropReason::fragment, DropReason::fragment));
  EXPECT_EQ(counters().refused, 2U);
}

TEST_F(InspectionFragments, ASegmentGoesIntoItsStream) {
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    use("drop tcp any any -> any 80 (flow:established,to_server; content:\"evil content\"; sid:1;)\n");
    handshake();
    const std::string before = std::string(100, '.') + "ev";
    EXPECT_THAT(feed(fragments_of(tcp(true, ack, 1001, 5001, before), 1, 24)),
                ElementsAre(false, false, false, false, false, false));
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_TRUE(feed(tcp(true, ack, 1001 + 102, 5001, "il content")).drop);
    EXPECT_THAT(alerts(), ElementsAre(1));
    drops_.clear();
    const auto next = fragments_of(tcp(true, ack, 1001 + 112, 5001, "and so on, for a while"), 2, 24);
    EXPECT_THAT(feed(next), ElementsAre(false, true)) << "the flow is dropped";
    EXPECT_THAT(std::exchange(drops_, {}), ElementsAre(DropReason::flow_drop));
  }
}

TEST_F(InspectionFragments, ADatagramThatDropsItsFlowHasItsRecordGivenBack) {
  use("drop tcp any any -> any 80 (flow:established,to_server; content:\"evil content\"; sid:1;)\n");
  handshake();
  EXPECT_THAT(feed(fragments_of(tcp(true, ack, 1001, 5001, "evil content, and so on"), 1, 40)),
              ElementsAre(false, true));
  EXPECT_EQ(inspection_->conversations().extras_in_use(), 0U);
}

TEST_F(InspectionFragments, APolicyIsForThoseThatDoNotFit) {
  for (const bool v4 : {true, false}) {
    for (const bool drops : {true, false}) {
      use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n", drops);
      const std::vector<Bytes> frames = fragments_of(udp(v4, evil), 7, 64);
      Bytes harmless = frames[0];
      harmless.back() = '.';
      EXPECT_THAT(feed({harmless, frames[0], frames[1], frames[2]}), ElementsAre(false, drops, drops, drops));
      EXPECT_EQ(counters().conflicts, 1U);
      EXPECT_EQ(counters().refused, 3U);
      EXPECT_EQ(counters().whole, 0U);
      EXPECT_EQ(std::exchange(drops_, {}), std::vector(drops ? 3 : 0, DropReason::fragment));
      EXPECT_THAT(alerts(), IsEmpty());
    }
  }
}

// Each fragment is inspected as a packet: for where nobody puts them together (several lanes, on_overload).
TEST_F(InspectionFragments, WhatOneFragmentHoldsIsFoundInItAndInTheDatagram) {
  const std::string text = "evil content" + std::string(120, '.');
  for (const bool v4 : {true, false}) {
    for (const bool by_device : {false, true}) {
      by_device_ = by_device;
      const std::vector<Bytes> frames = fragments_of(udp(v4, text), 7, 64);
      ASSERT_EQ(frames.size(), 3U);
      const std::string rule = " udp any any -> any 53 (content:\"evil content\"; sid:1;)\n";
      use("alert" + rule);
      feed(frames[0]);
      EXPECT_THAT(alerts(), ElementsAre(1));
      feed(frames[1]);
      EXPECT_THAT(alerts(), IsEmpty());
      feed(frames[2]);
      EXPECT_THAT(alerts(), ElementsAre(1));
      use("drop" + rule);
      EXPECT_THAT(feed(frames), ElementsAre(true, false, false));
      EXPECT_THAT(alerts(), ElementsAre(1));
      EXPECT_EQ(counters().whole, 0U);
    }
  }
}

// Later fragments and what is cut say nothing of ports; rules of their transport that take any ports hold.
TEST_F(InspectionFragments, WhatHasNoPortsIsOfItsProtocolsRules) {
  for (const std::string protocol : {"udp", "tcp"}) {
    for (const bool by_device : {false, true}) {
      by_device_ = by_device;
      use("alert " + protocol + " any any -> any any (fragoffset:>0; sid:1;)\nalert " + protocol +
          " any any -> any any (content:\"evil\"; sid:2;)\n"
          "alert " +
          protocol +
          " any any -> any 53 (content:\"evil\"; sid:3;)\n"
          // So that a rule of another class makes the device look for it, and report it of the frame.
          "alert icmp any any -> any any (content:\"EVIL\"; nocase; sid:4;)\n"
          "alert sctp any any -> any any (content:\"EVIL\"; nocase; sid:5;)\n");
      const std::uint8_t number = protocol == "udp" ? packet::protocol_udp : packet::protocol_tcp;
      for (const bool v4 : {true, false}) {
        const auto of = [&](const std::string& text) {
          PacketBuilder builder;
          v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
          return builder.id(v4 ? 5 : 6).protocol(number).payload(Bytes(text.begin(), text.end()));
        };
        feed(of("....evil").fragment(800, false).build());
        EXPECT_THAT(alerts(), UnorderedElementsAre(1, 2)) << protocol << by_device << v4;
        feed(of("evil").build());  // a cut header
        EXPECT_THAT(alerts(), ElementsAre(2)) << protocol << by_device << v4;
      }
    }
  }
}

TEST_F(InspectionFragments, RulesOnFragmentsHoldForEachOfThem) {
  use("alert ip any any -> any any (fragbits:M; sid:1;)\n"
      "alert ip any any -> any any (fragoffset:>0; sid:2;)\n"
      "alert ip any any -> any any (ip_proto:17; fragbits:!M; fragoffset:0; sid:3;)\n"
      "alert udp any any -> any 53 (dsize:124; fragbits:!M; sid:4;)\n");
  for (const bool v4 : {true, false}) {
    const std::vector<Bytes> frames = fragments_of(udp(v4, evil), 7, 64);
    feed(frames[0]);
    EXPECT_THAT(alerts(), ElementsAre(1));
    feed(frames[1]);
    EXPECT_THAT(alerts(), ElementsAre(1, 2));
    feed(frames[2]);
    EXPECT_THAT(alerts(), ElementsAre(2, 3, 4)) << "the datagram is no fragment";
  }
}

TEST_F(InspectionFragments, ADroppedFragmentIsNoPartOfADatagram) {
  use("drop ip any any -> any any (fragoffset:8; sid:1;)\n");
  const std::vector<Bytes> frames = fragments_of(udp(true, evil), 7, 64);
  EXPECT_THAT(feed(frames), ElementsAre(false, true, false));
  EXPECT_EQ(counters().whole, 0U);
  EXPECT_EQ(counters().fragments, 2U);
}

TEST_F(InspectionFragments, WhatIsLeftOfADatagramIsDroppedForGood) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n", true, 0);
  const std::vector<Bytes> frames = fragments_of(udp(true, evil), 7, 64);
  EXPECT_THAT(feed(frames), ElementsAre(false, false, true));
  EXPECT_TRUE(feed(frames[2]).drop);
  EXPECT_THAT(drops_, ElementsAre(DropReason::budget, DropReason::fragment));
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionFragments, AnAtomicFragmentIsAPacket) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  EXPECT_TRUE(feed(fragment_of(udp(false, evil), 7, 0, 8 + evil.size(), false)).drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  EXPECT_EQ(counters().fragments, 0U);
}

TEST_F(InspectionFragments, FragmentsInADatagramOfFragmentsAreRefused) {
  use("drop udp any any -> any 53 (content:\"evil content\"; sid:1;)\n");
  // What the outer fragments carry is a fragment header and half of a datagram.
  const Bytes inner = fragment_of(udp(false, evil), 7, 0, 64, true);
  Bytes outer = inner;
  outer.erase(outer.begin() + 54, outer.end());
  outer.insert(outer.end(), inner.begin() + 54, inner.end());
  outer[20] = packet::protocol_fragment;
  const std::vector<Bytes> frames = fragments_of(outer, 8, 40);
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_FALSE(feed(frames[0]).drop);
  const Judgement second = feed(frames[1]);
  EXPECT_TRUE(second.drop && second.fragment);
}

// defrag/bug-6887-defrag-eth-vlan-ipv4-tcp-syn of suricata-verify: a SYN in three fragments of eight bytes and fewer,
// and the frame that the alert has to show.
TEST_F(InspectionFragments, ATcpHeaderInPiecesIsWholeAsSuricataShowsIt) {
  use("alert tcp any any -> any any (tcp.flags:S; sid:1;)\n");
  const std::string link = "050403020100000102030405810000060800";
  const std::string ends = "0101010102020202";
  const auto bytes = [](const std::string& hex) {
    Bytes all;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
      all.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    }
    return all;
  };
  feed(bytes(link + "4500001c00012000400654d6" + ends + "30391f9000000001"));
  feed(bytes(link + "4500001c00012001400654d5" + ends + "0000000060022000"));
  EXPECT_THAT(alerts(), IsEmpty());
  feed(bytes(link + "4500001c00010002400674d4" + ends + "190c000003030e00"));
  EXPECT_THAT(alerts(), ElementsAre(1));
  const Bytes shown =
      bytes(link + "4500002c00010000400674c6" + ends + "30391f90000000010000000060022000190c000003030e00");
  EXPECT_EQ(frame_, std::string(shown.begin(), shown.end()));
}

}  // namespace
}  // namespace sluice::function
