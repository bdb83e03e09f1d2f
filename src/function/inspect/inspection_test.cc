// Conversations with rules, frame by frame, as a lane would see them.
#include "function/inspect/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "function/inspect/inspection_frames_trial_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t ack = packet::tcp_ack;

TEST_F(InspectionTest, ADatagramIsInspectedByItself) {
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  EXPECT_FALSE(udp("an evil name").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  udp("ev");
  udp("il");
  udp("evil", 54);
  EXPECT_THAT(alerts(), IsEmpty());
}

// Linux takes all of the frame.
TEST_F(InspectionTest, APacketThatDoesNotSayHowLongItIs) {
  use("drop udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  const auto with = [&](const Bytes& options) {
    return feed(PacketBuilder()
                    .ipv6("2001:db8::1", "2001:db8::2")
                    .extension(packet::protocol_hop_by_hop, options)
                    .ip_length(0)
                    .udp(4000, 53)
                    .payload(Bytes{'e', 'v', 'i', 'l'}));
  };
  EXPECT_TRUE(with({1, 4, 0, 0, 0, 0}).drop);
  EXPECT_TRUE(with({0xc2, 4, 0, 1, 0, 0}).drop) << "a jumbogram, which no frame can hold";
  EXPECT_THAT(alerts(), ElementsAre(1, 1));
}

TEST_F(InspectionTest, AContentAcrossSegmentsIsFoundOnce) {
  use("alert tcp any any -> any 80 (flow:established,to_server; content:\"evil\"; sid:1;)\n");
  handshake();
  segment(true, ack, "some ev");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(true, ack, "il bytes");
  EXPECT_THAT(alerts(), ElementsAre(1));
  segment(true, ack, "and more");
  EXPECT_THAT(alerts(), IsEmpty()) << "the window still holds it";
  segment(false, ack, "evil");
  EXPECT_THAT(alerts(), IsEmpty()) << "the other way";
}

TEST_F(InspectionTest, WhatAStreamDoesNotTakeIsInspectedByItself) {
  const char* const rules =
      "alert tcp any any -> any 80 (flow:to_server; content:\"evil\"; sid:1;)\n"
      "alert tcp-pkt any any -> any 80 (content:\"evil\"; sid:2;)\n";
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    InspectionSettings settings;
    settings.conversations.streams.depth = 20;
    use(rules, settings);
    sequence_[0] = 1000;
    handshake();
    segment(true, ack, "0123456789012345678901234567890");
    EXPECT_THAT(alerts(), IsEmpty());
    segment(true, ack, "an evil thing");
    EXPECT_THAT(alerts(), testing::UnorderedElementsAre(1, 2)) << "behind the depth";

    use(rules);
    sequence_[0] = 1000;
    handshake();
    segment(true, ack | packet::tcp_fin, "an end");
    segment(true, ack, "an evil thing");
    EXPECT_THAT(alerts(), testing::UnorderedElementsAre(1, 2)) << "behind the FIN";
  }
}

TEST_F(InspectionTest, EstablishedNeedsAHandshake) {
  use("alert tcp any any -> any any (flow:established; content:\"evil\"; sid:1;)\n"
      "alert tcp any any -> any any (flow:stateless; content:\"evil\"; sid:2;)\n");
  segment(true, ack, "evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionTest, RulesForPacketsSeeSegmentsAndRulesWithoutPayloadEachPacketOnce) {
  use("alert tcp-pkt any any -> any 80 (content:\"ab\"; sid:1;)\nalert tcp any any -> any 80 (flags:PA; sid:2;)\n");
  handshake();
  segment(true, ack | packet::tcp_psh, "a");
  EXPECT_THAT(alerts(), ElementsAre(2));
  segment(true, ack, "bab");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Of a conversation that is followed, too; and no packet of other ports is searched twice for them.
TEST_F(InspectionTest, NoStreamMeansPacketsAndOnlyStreamStreams) {
  for (const bool by_device : {false, true}) {
    by_device_ = by_device;
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    use("alert tcp any any -> any 80 (flow:established,to_server,no_stream; content:\"abc\"; depth:3; sid:1;)\n"
        "alert tcp any any -> any 80 (flow:established,to_server,only_stream; content:\"bcd\"; sid:2;)\n"
        "alert tcp any any -> any 80 (flow:to_server,only_stream; content:\"abc\"; depth:3; sid:3;)\n");
    handshake();
    segment(true, ack, "abc");
    EXPECT_THAT(alerts(), ElementsAre(1, 3)) << by_device;
    segment(true, ack, ".xb");
    segment(true, ack, "cd");
    EXPECT_THAT(alerts(), ElementsAre(2)) << "across packets";
    segment(true, ack, "abc");
    EXPECT_THAT(alerts(), testing::Contains(1)) << "each packet";
  }
  by_device_ = false;
  sequence_[0] = 1000;
  sequence_[1] = 5000;
  use("alert tcp any any -> any 8080 (flow:no_stream; content:\"abc\"; sid:1;)\n"
      "alert tcp any any -> any 80 (content:\"bcd\"; sid:2;)\n");
  handshake();
  const std::uint64_t before = inspection_->counters().searched;
  segment(true, ack, "0123456789");
  EXPECT_EQ(inspection_->counters().searched, before + 10);
}

TEST_F(InspectionTest, ARuleOfPacketsDropsThePacketAndNotItsFlow) {
  use("drop tcp any any -> any 80 (flow:no_stream; content:\"evil\"; sid:1;)\n");
  handshake();
  EXPECT_TRUE(segment(true, ack, "evil").drop);
  sequence_[0] -= 4;
  EXPECT_FALSE(segment(true, ack, "fine").drop);
}

// Suricata looks at both; Snort 2 at what goes to the server as well.
TEST_F(InspectionTest, FilesAreTheBodiesOfRequestsAndOfResponses) {
  use("alert tcp any any -> any 80 (flow:to_server,established; file_data; content:\"EVIL\"; depth:4; sid:1;)\n"
      "alert http any any -> any any (file_data; content:\"EVIL\"; sid:2;)\n"
      "alert http any any -> any any (flow:to_client; file_data; content:\"EVIL\"; sid:3;)\n"
      "alert http any any -> any any (http.uri; content:\"/up\"; file_data; content:\"EVIL\"; sid:4;)\n"
      "alert http any any -> any any (flow:to_server; file_data; content:!\"EVIL\"; sid:5;)\n");
  handshake();
  segment(true, ack, "POST /up HTTP/1.1\r\nContent-Length: 9\r\n\r\nEVIL");
  EXPECT_THAT(alerts(), testing::UnorderedElementsAre(1, 2, 4));
  segment(true, ack, " body");
  EXPECT_THAT(alerts(), IsEmpty());
  segment(false, ack, "HTTP/1.1 200 ok\r\nContent-Length: 6\r\n\r\nEVIL..");
  EXPECT_THAT(alerts(), testing::UnorderedElementsAre(2, 3));
  segment(true, ack, "GET /up HTTP/1.1\r\n\r\n");
  EXPECT_THAT(alerts(), IsEmpty()) << "there is no file";
  segment(true, ack, "POST /up HTTP/1.1\r\nContent-Length: 4\r\n\r\nfine");
  EXPECT_THAT(alerts(), ElementsAre(5));
}

TEST_F(InspectionTest, HttpIsInspectedWhereItsBuffersAreWhole) {
  use("alert tcp any any -> any any (content:\"/a/../secret\"; http_raw_uri; content:\"/secret\"; http_uri; sid:1;)\n"
      "alert http any any -> any any (content:\"Evil\"; http_header; sid:2;)\n"
      "alert http any any -> any any (flow:to_client; content:\"404\"; http_stat_code; sid:3;)\n"
      "alert http any any -> any any (file_data; content:\"hidden\"; sid:4;)\n"
      "alert http any any -> any any (content:\"nowhere\"; http_uri; sid:5;)\n");
  handshake();
  segment(true, ack, "GET /a/../secret HTTP/1.1\r\nHo");
  EXPECT_THAT(alerts(), ElementsAre(1));
  segment(true, ack, "st: x\r\nUser-Agent: Evil\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(2));
  segment(false, ack, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhid\r\n");
  EXPECT_THAT(alerts(), ElementsAre(3));
  segment(false, ack, "3\r\nden\r\n0\r\n\r\n");
  EXPECT_THAT(alerts(), ElementsAre(4));
}

TEST_F(InspectionTest, WhatADropRuleHasMetIsDroppedForTheRestOfItsFlow) {
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\n");
  handshake();
  EXPECT_FALSE(segment(true, ack, "fine").drop);
  EXPECT_TRUE(segment(true, ack, "evil").drop);
  EXPECT_TRUE(blocked_);
  EXPECT_TRUE(segment(true, ack, "fine again").drop);
  EXPECT_TRUE(segment(false, ack, "an answer").drop);
  EXPECT_FALSE(udp("evil", 1).drop) << "another flow";
  EXPECT_THAT(alerts(), ElementsAre(1));
}

TEST_F(InspectionTest, APassRuleEndsTheInspectionOfItsFlow) {
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\npass tcp any any -> any any (content:\"trusted\"; "
      "sid:2;)\n");
  handshake();
  EXPECT_FALSE(segment(true, ack, "trusted").drop);
  EXPECT_FALSE(segment(true, ack, "evil").drop);
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionTest, FlowbitsAreTheFlowsOfAnyProtocol) {
  use("alert udp any any -> any any (content:\"one\"; flowbits:set,a; flowbits:noalert; sid:1;)\n"
      "alert udp any any -> any any (content:\"two\"; flowbits:isset,a; sid:2;)\n");
  udp("two");
  udp("one");
  EXPECT_THAT(alerts(), IsEmpty());
  udp("two");
  EXPECT_THAT(alerts(), ElementsAre(2));
  udp("two", 54);
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionTest, FramesWithoutIpAndFramesCutShortPass) {
  use("drop ip any any -> any any (content:\"a\"; sid:1;)\n");
  EXPECT_FALSE(feed(PacketBuilder().arp_request("10.0.0.1", "10.0.0.2")).drop);
  const Bytes frame =
      PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(60, Bytes(6)).tcp(1, 2).payload(Bytes{'a'}).build();
  for (std::size_t size = 0; size < frame.size(); ++size) {
    const std::vector<char> part(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(inspection_->frame({part.data(), part.size()}, ++now_).drop) << size;
  }
  EXPECT_EQ(inspection_->counters().frames, 1 + frame.size());
}

// A conversation cut at random, a segment of it late now and then; what a device finds in its segments changes nothing.
TEST_F(InspectionTest, WhatADeviceHasFoundTakesThePlaceOfTheSearch) {
  const std::string rules =
      "alert tcp any any -> any 80 (content:\"needle in the hay\"; sid:1;)\n"
      "alert tcp any any -> any 80 (content:\"abc\"; content:\"xyz\"; distance:2; sid:2;)\n"
      "alert tcp any any -> any 80 (content:\"Q\"; content:\"|00 01|\"; sid:3;)\n"
      "alert tcp-pkt any any -> any 80 (content:\"needle\"; sid:4;)\n";
  std::mt19937 random(5);
  std::size_t all = 0, searched[2] = {0, 0};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    while (text.size() < 200) {
      const char* const pieces[] = {"needle in the hay", "abc", "xyz", "Q", "needle", " and so on "};
      text += pieces[random() % 6];
      if (random() % 8 == 0) text += std::string("\0\1", 2);
    }
    const auto seed = static_cast<unsigned>(random());
    std::vector<std::uint32_t> of_core;
    for (const bool device : {false, true}) {
      by_device_ = device;
      sequence_[0] = 1000;
      sequence_[1] = 5000;
      use(rules);
      handshake();
      std::mt19937 cuts(seed);
      std::string late;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = std::min<std::size_t>(1 + cuts() % 20, text.size() - at);
        if (cuts() % 6 == 0 && late.empty() && at + size < text.size()) {
          late = text.substr(at, size);
          sequence_[0] += static_cast<std::uint32_t>(size);
        } else {
          segment(true, ack, text.substr(at, size));
          if (!late.empty()) {
            sequence_[0] -= static_cast<std::uint32_t>(size + late.size());
            segment(true, ack, late);
            sequence_[0] += static_cast<std::uint32_t>(size);
            late.clear();
          }
        }
        at += size;
      }
      if (device) {
        EXPECT_EQ(alerts(), of_core);
      } else {
        of_core = alerts();
      }
      searched[device ? 1 : 0] += inspection_->counters().searched;
      all += of_core.size();
    }
  }
  EXPECT_GT(all, 200U);
  EXPECT_LT(searched[1] * 2, searched[0]);
}

// The key of the first rule's content ends before the content does.
TEST_F(InspectionTest, PartsOfARuleComeInSeveralPieces) {
  const std::string rules =
      "alert tcp any any -> any 80 (content:\"User-Agent: evilbot\"; sid:1;)\n"
      "alert tcp any any -> any 80 (content:\"first part\"; content:\"second\"; sid:2;)\n"
      "alert tcp any any -> any 80 (content:\"Q\"; content:\"Z\"; distance:0; sid:3;)\n"
      "alert tcp any any -> any 80 (content:\"alone\"; content:!\"nothing\"; offset:100; sid:4;)\n";
  for (const bool device : {false, true}) {
    by_device_ = device;
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    use(rules);
    handshake();
    segment(true, ack, "X-User-Agent: evilb");
    EXPECT_THAT(alerts(), IsEmpty());
    segment(true, ack, "ot");
    EXPECT_THAT(alerts(), ElementsAre(1)) << device;
    segment(true, ack, "the first part");
    segment(true, ack, "some other bytes");
    segment(false, ack, "second");
    EXPECT_THAT(alerts(), IsEmpty()) << "the other way";
    segment(true, ack, "the second");
    EXPECT_THAT(alerts(), ElementsAre(2)) << device;
    segment(true, ack, "the second");
    segment(true, ack, "ot");
    EXPECT_THAT(alerts(), IsEmpty()) << "the same bytes";
    segment(true, ack, "the first part");
    EXPECT_THAT(alerts(), ElementsAre(2)) << "new ones";
    segment(true, ack, "Q");
    segment(true, ack, std::string(1400, '.'));
    segment(true, ack, "Z");
    EXPECT_THAT(alerts(), ElementsAre(3)) << device;
    segment(true, ack, std::string(3000, '.'));
    segment(true, ack, "Q");
    segment(true, ack, std::string(1400, '.'));
    segment(true, ack, std::string(1400, '.'));
    segment(true, ack, "Z");
    EXPECT_THAT(alerts(), IsEmpty()) << "beyond the window";
  }
}

// More rules than are kept. Of those that have held four are known, and reported once only.
TEST_F(InspectionTest, OfManyRulesThatAreOpenNoneIsLost) {
  std::string rules, first;
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 10; i < 40; ++i) {
    const std::string number = std::to_string(i);
    rules += "alert tcp any any -> any 80 (content:\"begin" + number + "\"; content:\"end" + number +
             "\"; sid:" + number + ";)\n";
    first += "begin" + number + " ";
    all.push_back(i);
  }
  for (const bool device : {false, true}) {
    by_device_ = device;
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    use(rules);
    handshake();
    segment(true, ack, first);
    for (const std::uint32_t i : all) {
      segment(true, ack, "end" + std::to_string(i));
      EXPECT_THAT(alerts(),
                  i < 15 ? testing::Matcher<const std::vector<std::uint32_t>&>(ElementsAre(i)) : testing::Contains(i))
          << device;
    }
    const std::uint64_t confirmed = inspection_->counters().confirmed;
    segment(true, ack, std::string(1400, '.'));
    segment(true, ack, std::string(1400, '.'));
    EXPECT_LT(inspection_->counters().confirmed, confirmed + 60);
    segment(true, ack, "end10");
    EXPECT_THAT(alerts(), IsEmpty());

    segment(true, ack, first);
    inspection_->begin(0);
    EXPECT_TRUE(segment(true, ack, "end10").overload) << "the core's search is part of the time";
    inspection_->begin(match::Detector::unlimited);
    segment(true, ack, " ");
    EXPECT_THAT(alerts(), ElementsAre(10)) << "it is still known that not all are kept";
  }
}

TEST_F(InspectionTest, OtherRulesTakeOverInTheMidstOfAFlow) {
  use("alert tcp any any -> any 80 (content:\"one\"; flowbits:set,seen; sid:1;)\n");
  handshake();
  segment(true, ack, "one");
  EXPECT_THAT(alerts(), ElementsAre(1));
  auto set = match::read_rules_text(
      "alert tcp any any -> any 80 (content:\"x\"; flowbits:set,other; sid:3;)\n"
      "alert tcp any any -> any 80 (content:\"two\"; flowbits:isset,seen; sid:2;)\n",
      "new.rules");
  ASSERT_TRUE(set);
  auto rules = InspectionRules::make(std::move(*set), rules_.get());
  ASSERT_TRUE(rules);
  const std::weak_ptr<InspectionRules> old = std::exchange(rules_, *rules);
  EXPECT_NE(inspection_->exchange(std::make_unique<InspectionSearch>(*rules)), nullptr);
  EXPECT_TRUE(old.expired());
  segment(true, ack, "one two");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

}  // namespace
}  // namespace sluice::function
