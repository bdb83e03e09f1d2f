// Conversations with rules, frame by frame, as a lane would see them.
#include "function/inspect/inspection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <x86intrin.h>

#include <random>

#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint8_t syn = packet::tcp_syn, ack = packet::tcp_ack;

class InspectionTest : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, InspectionSettings settings = {}) {
    rules_ = test::rules_of(test::with_policy(text, settings.drop_on_overload));
    ASSERT_NE(rules_, nullptr);
    inspection_ =
        std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), test::small_settings(settings), *this);
  }

  void alert(const Alert& alert) override {
    sids_.push_back(rules_->detector().rules().rules[alert.rule].sid);
    blocked_ = alert.blocked;
  }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }

  Judgement feed(const PacketBuilder& builder) {
    const Bytes bytes = builder.build();
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return test::inspect(*inspection_, frame, now_ += 1000, by_device_);
  }
  Judgement udp(const std::string& text, std::uint16_t port = 53) {
    return feed(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, port).payload(Bytes(text.begin(), text.end())));
  }
  // A segment of the conversation between 10.0.0.1:4000 and 10.0.0.2:80.
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    const PacketBuilder builder = test::segment_of(to_server, flags, mine, sequence_[to_server ? 1 : 0], text);
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & syn) != 0 ? 1 : 0);
    return feed(builder);
  }
  void handshake() {
    segment(true, syn);
    segment(false, syn | ack);
    segment(true, ack);
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;  // microseconds
  bool blocked_ = false;
  bool by_device_ = false;                  // what a device would find is told
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

TEST_F(InspectionTest, a_datagram_is_inspected_by_itself) {
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  EXPECT_FALSE(udp("an evil name").drop);
  EXPECT_THAT(alerts(), ElementsAre(1));
  udp("ev");
  udp("il");
  udp("evil", 54);
  EXPECT_THAT(alerts(), IsEmpty());
}

// As of a scratch that was made for other patterns: whether there is anything in the frame nobody knows.
TEST_F(InspectionTest, a_search_that_is_refused_is_an_overload) {
  for (const bool drop : {false, true}) {
    InspectionSettings settings;
    settings.drop_on_overload = drop;
    use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n", settings);
    auto search = std::make_unique<InspectionSearch>(rules_);
    const auto none = match::CpuMatcher::create({});
    ASSERT_TRUE(none);
    search->matching[static_cast<std::size_t>(match::Buffer::payload)] =
        std::make_unique<match::CpuMatcher::Scratch>(**none);
    inspection_->exchange(std::move(search));
    EXPECT_EQ(udp("an evil name").drop, drop);
    EXPECT_THAT(alerts(), IsEmpty());
    EXPECT_EQ(inspection_->counters().refused, 1U);
    EXPECT_EQ(inspection_->counters().overloaded, 1U);
  }
}

// Linux takes all of the frame.
TEST_F(InspectionTest, a_packet_that_does_not_say_how_long_it_is) {
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

TEST_F(InspectionTest, a_content_across_segments_is_found_once) {
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

TEST_F(InspectionTest, what_a_stream_does_not_take_is_inspected_by_itself) {
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

TEST_F(InspectionTest, established_needs_a_handshake) {
  use("alert tcp any any -> any any (flow:established; content:\"evil\"; sid:1;)\n"
      "alert tcp any any -> any any (flow:stateless; content:\"evil\"; sid:2;)\n");
  segment(true, ack, "evil");
  EXPECT_THAT(alerts(), ElementsAre(2));
}

TEST_F(InspectionTest, rules_for_packets_see_segments_and_rules_without_payload_each_packet_once) {
  use("alert tcp-pkt any any -> any 80 (content:\"ab\"; sid:1;)\nalert tcp any any -> any 80 (flags:PA; sid:2;)\n");
  handshake();
  segment(true, ack | packet::tcp_psh, "a");
  EXPECT_THAT(alerts(), ElementsAre(2));
  segment(true, ack, "bab");
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Of a conversation that is followed, too; and no packet of other ports is searched twice for them.
TEST_F(InspectionTest, no_stream_means_packets_and_only_stream_streams) {
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

TEST_F(InspectionTest, a_rule_of_packets_drops_the_packet_and_not_its_flow) {
  use("drop tcp any any -> any 80 (flow:no_stream; content:\"evil\"; sid:1;)\n");
  handshake();
  EXPECT_TRUE(segment(true, ack, "evil").drop);
  sequence_[0] -= 4;
  EXPECT_FALSE(segment(true, ack, "fine").drop);
}

// Suricata looks at both; Snort 2 at what goes to the server as well.
TEST_F(InspectionTest, files_are_the_bodies_of_requests_and_of_responses) {
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

TEST_F(InspectionTest, http_is_inspected_where_its_buffers_are_whole) {
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

TEST_F(InspectionTest, what_a_drop_rule_has_met_is_dropped_for_the_rest_of_its_flow) {
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

TEST_F(InspectionTest, a_pass_rule_ends_the_inspection_of_its_flow) {
  use("drop tcp any any -> any any (content:\"evil\"; sid:1;)\npass tcp any any -> any any (content:\"trusted\"; "
      "sid:2;)\n");
  handshake();
  EXPECT_FALSE(segment(true, ack, "trusted").drop);
  EXPECT_FALSE(segment(true, ack, "evil").drop);
  EXPECT_THAT(alerts(), IsEmpty());
}

TEST_F(InspectionTest, flowbits_are_the_flows_of_any_protocol) {
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

TEST_F(InspectionTest, what_the_budget_leaves_is_counted_and_the_policy_decides) {
  std::string rules;
  for (int i = 1; i <= 20; ++i) {
    rules += "drop udp any any -> any any (content:\"x\"; content:\"y\"; sid:" + std::to_string(i) + ";)\n";
  }
  for (const bool drop : {false, true}) {
    InspectionSettings settings;
    settings.budget = 8;
    settings.drop_on_overload = drop;
    use(rules, settings);
    const Judgement judgement = udp("x");
    EXPECT_TRUE(judgement.overload);
    EXPECT_EQ(judgement.drop, drop);
    EXPECT_EQ(inspection_->counters().confirmed, 8U);
    EXPECT_EQ(inspection_->counters().left, 12U);
    EXPECT_EQ(inspection_->counters().overloaded, 1U);
    EXPECT_EQ(drops_, std::vector<DropReason>(drop ? 1 : 0, DropReason::budget));
  }
}

// Of a rule that alerts nobody would have been stopped: neither the frame, nor the rest of its flow.
TEST_F(InspectionTest, what_is_left_of_rules_that_only_alert_drops_nothing) {
  const std::string alert = "alert tcp any any -> any 80 (content:\"evil\"; content:\"x\"; sid:1;)\n";
  const std::string drop = "drop tcp any any -> any 80 (content:\"evil\"; content:\"x\"; sid:2;)\n";
  struct Case {
    std::string rules;
    std::uint32_t budget;
    bool drops;
  };
  for (const Case& one : {Case{alert, 0, false}, {alert + drop, 1, false}, {alert + drop, 0, true}, {drop, 0, true}}) {
    SCOPED_TRACE(one.rules + std::to_string(one.budget));
    InspectionSettings settings;
    settings.budget = one.budget;
    settings.drop_on_overload = true;
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    use(one.rules, settings);
    handshake();
    const Judgement judgement = segment(true, ack, "evil");
    EXPECT_TRUE(judgement.overload);
    EXPECT_EQ(judgement.undecided, one.drops);
    EXPECT_EQ(judgement.drop, one.drops);
    EXPECT_EQ(segment(false, ack, "goes on").drop, one.drops);
    EXPECT_EQ(inspection_->counters().left, 1U + (one.rules == alert + drop && one.drops ? 1U : 0U));
  }
}

// Without the share of each frame the dear one takes twice the time that there is for all. A pause of this thread is
// charged like anything else, so not every round tells. (How frames share what there is: confirm_time_test.cc.)
TEST_F(InspectionTest, a_dear_frame_does_not_take_the_time_of_those_behind_it) {
  std::string rules = "drop udp any any -> any any (content:\"evil\"; sid:1;)\n", dear = "evil ";
  for (int i = 1000; i < 4000; ++i) {
    const std::string number = std::to_string(i);
    rules += "drop udp any any -> any any (content:\"dear" + number + "\"; pcre:\"/(a+)+(b+)+" + number +
             "$/\"; sid:" + number + ";)\n";
    dear += "dear" + number;
  }
  dear += std::string(40, 'a');
  InspectionSettings settings;
  settings.budget = 10'000;
  settings.drop_on_overload = true;
  use(rules, settings);
  std::uint64_t least = match::Detector::unlimited;
  for (int round = 0; round < 3; ++round) {
    const std::uint64_t began = __rdtsc();
    udp(dear);
    least = std::min<std::uint64_t>(least, __rdtsc() - began);
  }
  EXPECT_EQ(inspection_->counters().confirmed, 3 * 3001U);
  alerts();

  constexpr std::uint32_t frames = 64;
  const auto shares = [&] {
    bool as_meant = true;
    inspection_->begin(least / 2, frames);
    for (std::uint32_t to_come = frames; to_come != 0; --to_come) {
      inspection_->next(to_come);
      const bool is_dear = to_come % 16 == 0;
      const Judgement judgement = udp(is_dear ? dear : "an evil name");
      as_meant &= judgement.overload == is_dear && judgement.undecided == is_dear && alerts().size() == 1;
    }
    return as_meant;
  };
  bool ever = false;
  for (int round = 0; round < 10 && !ever; ++round) ever = shares();
  EXPECT_TRUE(ever);
}

TEST_F(InspectionTest, frames_without_ip_and_frames_cut_short_pass) {
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

TEST_F(InspectionTest, a_payload_of_too_many_keys_is_searched_as_long_as_there_is_time) {
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n");
  const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(4000, 53).payload({'e', 'v', 'i', 'l'}).build();
  const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const KeyHits many{rules_->generation(), nullptr, match::max_hits + 1};
  inspection_->begin(1'000'000'000);
  EXPECT_FALSE(inspection_->frame(frame, now_ += 1000, many).overload);
  EXPECT_THAT(alerts(), ElementsAre(1));
  inspection_->begin(0);
  const std::uint64_t searched = inspection_->counters().searched;
  EXPECT_TRUE(inspection_->frame(frame, now_ += 1000, many).overload);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_EQ(inspection_->counters().searched, searched);
  EXPECT_EQ(inspection_->counters().left, 1U);
  EXPECT_EQ(inspection_->counters().many_keys, 2U);
  EXPECT_EQ(inspection_->counters().by_device, 2U);
  inspection_->frame(frame, now_ += 1000, {rules_->generation(), nullptr, 0});
  inspection_->frame(frame, now_ += 1000, {rules_->generation() + 1, nullptr, match::max_hits + 1});
  inspection_->frame(frame, now_ += 1000);
  EXPECT_EQ(inspection_->counters().many_keys, 2U) << "of other rules";
  EXPECT_EQ(inspection_->counters().by_device, 3U) << "nobody has searched by these rules but a core";
}

// A conversation cut at random, a segment of it late now and then; what a device finds in its segments changes nothing.
TEST_F(InspectionTest, what_a_device_has_found_takes_the_place_of_the_search) {
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
TEST_F(InspectionTest, parts_of_a_rule_come_in_several_pieces) {
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

// More rules than are kept. Of those that have held four are known, and told once only.
TEST_F(InspectionTest, of_many_rules_that_are_open_none_is_lost) {
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

TEST_F(InspectionTest, what_was_left_of_a_stream_does_not_pass_when_it_is_sent_again) {
  for (const char* const rule : {"drop tcp any any -> any 80 (content:\"evil\"; sid:1;)\n",
                                 "drop http any any -> any 80 (http.uri; content:\"evil\"; sid:1;)\n"}) {
    for (const bool drop : {false, true}) {
      InspectionSettings settings;
      settings.drop_on_overload = drop;
      sequence_[0] = 1000;
      sequence_[1] = 5000;
      drops_.clear();
      use(rule, settings);
      handshake();
      const std::string request = "GET /evil HTTP/1.0\r\n";
      inspection_->begin(0);
      EXPECT_EQ(segment(true, ack, request).drop, drop) << rule;
      inspection_->begin(match::Detector::unlimited);
      sequence_[0] -= static_cast<std::uint32_t>(request.size());
      EXPECT_EQ(segment(true, ack, request).drop, drop) << rule;
      EXPECT_EQ(segment(false, ack).drop, drop) << rule;
      const std::vector<DropReason> both{DropReason::budget, DropReason::flow_drop, DropReason::flow_drop};
      EXPECT_EQ(drops_, drop ? both : std::vector<DropReason>()) << rule;
    }
  }
}

TEST_F(InspectionTest, other_rules_take_over_in_the_midst_of_a_flow) {
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

TEST_F(InspectionTest, nothing_is_confirmed_once_the_time_is_over) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  use("alert udp any any -> any 53 (content:\"evil\"; sid:1;)\n", settings);
  inspection_->begin(0);
  EXPECT_TRUE(udp("an evil name").overload);
  EXPECT_THAT(alerts(), IsEmpty());
  EXPECT_FALSE(udp("a good name").overload);
  EXPECT_EQ(inspection_->counters().left, 1U);
  inspection_->begin(match::Detector::unlimited);
  EXPECT_FALSE(udp("an evil name").overload);
  EXPECT_THAT(alerts(), ElementsAre(1));
}

// Else an inspector that is short of time would leave, or drop, what the rule's header excludes.
TEST_F(InspectionTest, a_rule_without_a_pattern_has_no_candidates_but_what_its_header_admits) {
  InspectionSettings settings;
  settings.drop_on_overload = true;
  use("pass ip 192.0.2.10 any -> any any (sid:1;)\n"
      "drop ip any any -> any any (fragbits:M; sid:2;)\n"
      "drop ip any any -> any any (ip_proto:47; sid:3;)\n"
      "drop ip any any -> any any (ttl:1; sid:4;)\n",
      settings);
  inspection_->begin(0);
  EXPECT_FALSE(udp("a name").overload);
  segment(true, ack, "one two");
  EXPECT_FALSE(inspection_->last().overload);
  EXPECT_EQ(inspection_->counters().left, 0U);
  const auto from_there = PacketBuilder().ipv4("192.0.2.10", "10.1.0.1").udp(4000, 53).payload(4);
  EXPECT_TRUE(feed(from_there).overload) << "the first is one then";
}

}  // namespace
}  // namespace sluice::function
