#include "port/link_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::port {
namespace {

using Frame = std::vector<std::uint8_t>;

// Bytes of hexadecimal digits, with blanks wherever they help.
Frame hex(const std::string& text) {
  std::string digits;
  for (const char c : text) {
    if (c != ' ') digits += c;
  }
  Frame frame;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    frame.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return frame;
}

const std::string ip4 = "45 00 00 1c 00 00 40 00 40 11 00 00 0a 01 00 02 0a 02 00 02 11 11 00 35 00 08 00 00";
const std::string ip6 =
    "60 00 00 00 00 08 11 40 20010db8000000000000000000000001 20010db8000000000000000000000002 1111 0035 0008 0000";
const std::string none = "00 00 00 00 00 00";
const std::string snap4 = "aa aa 03 00 00 00 08 00 ", to = "02 00 00 00 00 01 ", from = "02 00 00 00 00 02 ",
                  third = "02 00 00 00 00 03 ", fourth = "02 00 00 00 00 04 ";

std::string of(const std::string& packet, const std::string& addresses = none + none) {
  return addresses + (packet == ip6 ? "86dd" : "0800") + packet;
}

struct Read {
  LinkFate fate;
  std::vector<Frame> frames;
};

Read read(std::uint32_t link, const Frame& frame) {
  Read result{LinkFate::read, {}};
  result.fate = to_ethernet(link, frame, [&](Bytes one) { result.frames.emplace_back(one.begin(), one.end()); });
  return result;
}

struct Case {
  std::uint32_t link;
  std::string frame;
  std::string ethernet;  // empty: no packet
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << link_text(one.link) << ": " << one.frame;
}

// A data frame of 802.11, from a network: its addresses are to, third, from.
const std::string wireless = "08 02 00 00 " + to + third + from + "10 00 ";

class OneFrame : public testing::TestWithParam<Case> {};

TEST_P(OneFrame, BecomesOneOfEthernet) {
  const Case& one = GetParam();
  const Frame frame = hex(one.frame);
  const Read found = read(one.link, frame);
  EXPECT_TRUE(is_read_link(one.link));
  if (one.ethernet.empty()) {
    EXPECT_EQ(found.fate, LinkFate::no_packet);
    EXPECT_TRUE(found.frames.empty());
    return;
  }
  EXPECT_EQ(found.fate, LinkFate::read);
  ASSERT_EQ(found.frames.size(), 1U);
  EXPECT_EQ(found.frames[0], hex(one.ethernet));
  // No cut reads beyond the end, which AddressSanitizer would see of an exact copy.
  for (std::size_t size = 0; size < frame.size(); ++size)
    read(one.link, Frame(frame.begin(), frame.begin() + static_cast<long>(size)));
}

INSTANTIATE_TEST_SUITE_P(
    Links, OneFrame,
    testing::Values(
        Case{0, "02 00 00 00" + ip4, of(ip4)}, Case{0, "00 00 00 02" + ip4, of(ip4)},
        Case{0, "1e 00 00 00" + ip6, of(ip6)}, Case{0, "00 00 00 18" + ip6, of(ip6)},
        Case{108, "00 00 00 02" + ip4, of(ip4)}, Case{108, "00 00 00 1c" + ip6, of(ip6)},
        Case{0, "07 00 00 00 ff 03", ""}, Case{1, of(ip4), of(ip4)}, Case{12, ip4, of(ip4)}, Case{14, ip6, of(ip6)},
        Case{101, ip4, of(ip4)}, Case{228, ip4, of(ip4)}, Case{229, ip6, of(ip6)}, Case{101, "ff 00", ""},
        Case{113, "0000 0001 0006 020000000002 0000 0800" + ip4, of(ip4, none + from)},
        Case{113, "0000 0001 0000 0000000000000000 86dd" + ip6, of(ip6)},
        Case{113, "0000 0300 0006 000000000000 0000 8100 0001 0800" + ip4, none + none + "8100 0001 0800" + ip4},
        Case{113, "0000 0001 0006 020000000002 0000 0004" + snap4 + ip4, of(ip4, none + from)},
        Case{113, "0000 0001 0006 020000000002 0000 0001 ffff", ""},
        Case{276, "0800 0000 00000002 0001 00 06 020000000002 0000" + ip4, of(ip4, none + from)},
        Case{276, "86dd 0000 00000002 fffe 00 00 0000000000000000" + ip6, of(ip6)},
        Case{9, "ff 03 00 21" + ip4, of(ip4)}, Case{9, "00 57" + ip6, of(ip6)}, Case{9, "21" + ip4, of(ip4)},
        Case{50, "ff 03 00 57" + ip6, of(ip6)}, Case{9, "ff 03 c0 21 01", ""},
        Case{51, "11 00 0001 001e 0021" + ip4, of(ip4)}, Case{51, "11 09 0000 0004 0101 0000", ""},
        Case{166, "00 03 00 21" + ip4, of(ip4)}, Case{166, "ff 03 00 21" + ip4, of(ip4)},
        Case{204, "01 ff 03 00 21" + ip4, of(ip4)}, Case{104, "0f 00 0800" + ip4, of(ip4)},
        Case{104, "ff 03 00 21" + ip4, of(ip4)}, Case{205, "00 0f 00 86dd" + ip6, of(ip6)},
        Case{107, "18 41 03 cc" + ip4, of(ip4)}, Case{107, "18 41 03 8e" + ip6, of(ip6)},
        Case{107, "18 41 03 00 80 000000 0800" + ip4, of(ip4)}, Case{107, "18 40 00 01 0800" + ip4, of(ip4)},
        Case{206, "01 18 41 03 cc" + ip4, of(ip4)}, Case{107, "18 41 03 08 00", ""}));

INSTANTIATE_TEST_SUITE_P(
    OfMakers, OneFrame,
    testing::Values(
        Case{178, "4d4743 00" + of(ip4), of(ip4)}, Case{178, "4d4743 81 0006 0101 05 0201 02" + of(ip4), of(ip4)},
        Case{178, "4d4743 02 00000002" + ip6, of(ip6)}, Case{178, "4d4743 82 0001 00 00000002" + ip4, of(ip4)},
        Case{178, "4d4744 00" + of(ip4), ""}, Case{167, "4d4743 01" + of(ip4), of(ip4)},
        Case{179, "4d4743 01 00 21" + ip4, of(ip4)}, Case{180, "4d4743 01 18 41 03 cc" + ip4, of(ip4)},
        Case{181, "4d4743 01 0f 00 86dd" + ip6, of(ip6)},
        Case{281, to + from + "00000000 0800" + ip4, of(ip4, to + from)}, Case{282, "00000000" + of(ip4), of(ip4)},
        Case{284, to + from + "c0000001 86dd" + ip6, of(ip6, to + from)},
        Case{285, to + from + "dada0000 c0000001 0800" + ip4, of(ip4, to + from)},
        Case{99, none + "0800" + none + none + none + none + none + none + ip4, of(ip4)},
        Case{226, "0102" + std::string(44, '0') + ip4, of(ip4)}, Case{15, std::string(48, '0') + ip4, of(ip4)},
        Case{102, std::string(48, '0') + ip4, of(ip4)},
        Case{16, "00 00000000 0021" + std::string(34, '0') + ip4, of(ip4)},
        Case{103, "00 00000000 c021" + std::string(34, '0') + ip4, ""}, Case{7, "01 02 d4 00 0001" + ip4, of(ip4)},
        Case{7, "01 02 c4 ff ffff c4 00 0001" + ip6, of(ip6)}, Case{129, "01 02 0000 c4 00 0001" + ip6, of(ip6)}));

INSTANTIATE_TEST_SUITE_P(
    Others, OneFrame,
    testing::Values(
        Case{239, "02 00 0000 0800 0100 00000000 2000 0900" + ip4, of(ip4)},
        Case{239, "02 00 0000 0008 0001 00000000 0020 0009" + ip4, of(ip4)},
        Case{239, "02 00 0000 0800 0100 00000000", ""}, Case{117, "09 02 00 00 00 00 00 00 00 00 00 00" + ip4, of(ip4)},
        Case{192, "00 00 0800 69000000" + wireless + snap4 + ip4, of(ip4, to + from)},
        Case{192, "00 00 0800 01000000" + of(ip4), of(ip4)}, Case{192, "00 00 0000 c0000000" + none, ""},
        Case{258, "0c000000 01000000 01000000" + of(ip4), of(ip4)},
        Case{258, "0000000c 00000001 0000000c" + ip4, of(ip4)}, Case{258, "00000000 02010000 c0000000" + none, ""},
        Case{10, "50" + to + from + snap4 + ip4, of(ip4)}, Case{6, "10 40" + to + from + snap4 + ip4, of(ip4)},
        Case{6, "10 40" + to + "82 0000000002 0630 0011 0020" + snap4 + ip4, of(ip4)}, Case{100, snap4 + ip4, of(ip4)},
        Case{123, "02 00 0001" + snap4 + ip4, of(ip4)}, Case{219, "0001 01 40" + ip4, of(ip4)},
        Case{219, "0001 00 40 0002 01 40" + ip6, of(ip6)},
        Case{219, "0001 01 40 00 00 00 00" + none, none + none + "8847 0001 01 40 00 00 00 00" + none},
        Case{9, "ff 03 02 81 0001 01 40" + ip4, of(ip4)}, Case{106, ip4, of(ip4)}, Case{19, snap4 + ip4, of(ip4)},
        Case{113, "0000 0200 0000 0000000000000000 0007 ff 03 00 21" + ip4, of(ip4)},
        Case{143, "00 00 0000 0000" + of(ip4), of(ip4)}, Case{240, "00000000" + of(ip4), of(ip4)},
        Case{138, "0000000000000001 0000000000000002 0800" + ip4, of(ip4)},
        // 802.11: from a network, to it, without one, between access points; the receiver's headers.
        Case{105, wireless + snap4 + ip4, of(ip4, to + from)},
        Case{105, "08 01 00 00 " + third + from + to + "10 00" + snap4 + ip4, of(ip4, to + from)},
        Case{105, "08 00 00 00 " + to + from + third + "10 00" + snap4 + ip4, of(ip4, to + from)},
        Case{105, "08 03 00 00 " + third + fourth + to + "10 00" + from + snap4 + ip4, of(ip4, to + from)},
        Case{105, "88 02 00 00 " + to + third + from + "10 00 0000" + snap4 + ip4, of(ip4, to + from)},
        Case{105, "88 82 00 00 " + to + third + from + "10 00 0000 00000000" + snap4 + ip4, of(ip4, to + from)},
        Case{105, "88 03 00 00 " + third + fourth + to + "10 00" + from + "0001 00 1f 01000000" + snap4 + ip4,
             of(ip4, to + from)},
        Case{105, "08 42 00 00 " + to + third + from + "10 00" + snap4 + ip4, of(ip4, to + from)},  // decrypted
        Case{105, "80 00 00 00 " + to + third + from + "10 00", ""},
        Case{105, "48 01 00 00 " + to + third + from + "10 00", ""}, Case{105, wireless + "42 42 03 00 00", ""},
        Case{105, wireless + "aa aa 03 00 00 f8 86dd" + ip6, of(ip6, to + from)},
        Case{127, "00 00 0800 00000000" + wireless + snap4 + ip4, of(ip4, to + from)},
        Case{127, "00 00 0900 02000000 10" + wireless + snap4 + ip4 + "deadbeef", of(ip4, to + from)},
        Case{127,
             "00 00 1100 03000000 0000000000000001 30 88 02 00 00 " + to + third + from + "10 00 0000 0000" + snap4 +
                 ip4 + "deadbeef",
             of(ip4, to + from)},
        Case{127, "00 00 1900 030000a0 00000080 00000000 0000000000000001 10" + wireless + snap4 + ip4 + "deadbeef",
             of(ip4, to + from)},
        Case{163, "80211001 00000010 0000000000000000" + wireless + snap4 + ip4, of(ip4, to + from)},
        Case{119, "80211001 00000010 0000000000000000" + wireless + snap4 + ip4, of(ip4, to + from)},
        Case{119, "44000000 90000000" + std::string(136 * 2, '0') + wireless + snap4 + ip4, of(ip4, to + from)}));

TEST(LinkFrame, EverySubframeOfAnAggregateIsRead) {
  const std::string one = to + fourth + "0024" + snap4 + ip4, padded = to + fourth + "0025" + snap4 + ip4 + "00 00";
  const std::string header = "88 02 00 00 " + to + third + from + "10 00 8000";
  const Read found = read(105, hex(header + padded + one));
  EXPECT_EQ(found.fate, LinkFate::read);
  ASSERT_EQ(found.frames.size(), 2U);
  EXPECT_EQ(found.frames[0], hex(of(ip4, to + fourth) + "00"));
  EXPECT_EQ(found.frames[1], hex(of(ip4, to + fourth)));
}

TEST(LinkFrame, WhyAFrameIsNotReadIsReported) {
  const auto fate = [](std::uint32_t link, const std::string& frame) { return read(link, hex(frame)).fate; };
  const std::string end = "00 " + to + third + from;
  EXPECT_EQ(fate(105, "08 42 00 " + end + "10 00 1234567800000000"), LinkFate::encrypted);
  EXPECT_EQ(fate(105, "08 06 00 " + end + "10 00" + snap4 + ip4), LinkFate::in_pieces) << "more follow";
  EXPECT_EQ(fate(105, "08 02 00 " + end + "11 00" + ip4), LinkFate::in_pieces) << "the second";
  EXPECT_EQ(fate(105, "08 02 00 " + end), LinkFate::cut);
  EXPECT_EQ(fate(127, "00 00 0800 0000"), LinkFate::cut);
  EXPECT_EQ(fate(113, "0000 0001"), LinkFate::cut);
  EXPECT_EQ(fate(276, "0800"), LinkFate::cut);
  EXPECT_EQ(fate(101, ""), LinkFate::cut);
  EXPECT_EQ(fate(0, "02 00 00 00"), LinkFate::cut);
  EXPECT_EQ(fate(195, ip4), LinkFate::other_link);
  EXPECT_EQ(fate(4711, ip4), LinkFate::other_link);
  EXPECT_FALSE(is_read_link(195));
  EXPECT_EQ(link_text(195), "195 (IEEE 802.15.4)");
  EXPECT_EQ(link_text(4711), "4711");
}

}  // namespace
}  // namespace sluice::port
