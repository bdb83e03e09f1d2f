#include "port/capture_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "../tests/support/pcap_file.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

std::string word(std::uint32_t value, bool swapped = false) {
  value = swapped ? __builtin_bswap32(value) : value;
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A section, an interface, a packet of 8 bytes, and statistics, which are no packet.
std::string pcapng(bool swapped) {
  const auto w = [&](std::uint32_t value) { return word(value, swapped); };
  return w(0x0a0d0d0a) + w(28) + w(0x1a2b3c4d) + w(1) + w(~0U) + w(~0U) + w(28) +         // section
         w(1) + w(20) + w(1) + w(0) + w(20) +                                             // interface
         w(6) + w(40) + w(0) + w(0) + w(0) + w(8) + w(8) + w(0) + w(0) + w(40) +          // packet: bytes 48 to 88
         w(5) + w(24) + w(0) + w(0) + w(0) + w(24) + w(3) + w(20) + w(4) + w(0) + w(20);  // statistics, simple packet
}

class CaptureFile : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  std::string said(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const auto good = check_capture(path_);
    return good ? "" : good.error().message;
  }
  std::string cut(const char* wrong, unsigned at, unsigned packets) const {
    return path_ + ": " + wrong + ", at byte " + std::to_string(at) + " behind " + std::to_string(packets) +
           " whole ones: capture it again, or write those to a file of their own (tcpdump -r FILE -w OTHER)";
  }
  const std::string path_ = testing::TempDir() + "sluice_capture_" + std::to_string(getpid());
  static constexpr const char* inside = "the file ends inside a packet";
};

TEST_F(CaptureFile, PcapIsWholeOnlyWhereAPacketEnds) {
  test::write_pcap(path_, {test::Frame(60), test::Frame(100), test::Frame(1)});
  std::ifstream file(path_, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(whole.size(), 24U + 76 + 116 + 17);
  for (unsigned size = 24; size <= whole.size(); ++size) {
    const unsigned packets = size < 100 ? 0 : size < 216 ? 1 : size < 233 ? 2 : 3;
    const unsigned begin = packets == 0 ? 24 : packets == 1 ? 100 : packets == 2 ? 216 : 233;
    EXPECT_EQ(said(whole.substr(0, size)), size == begin ? "" : cut(inside, begin, packets)) << size;
  }
  EXPECT_EQ(said(whole.substr(0, 20)), cut(inside, 0, 0)) << "not even its header";
}

TEST_F(CaptureFile, EitherByteOrderAndNanoseconds) {
  for (const std::uint32_t magic : {0xa1b2c3d4U, 0xa1b23c4dU}) {
    for (const bool swapped : {false, true}) {
      std::string text = word(magic, swapped);
      for (const std::uint32_t one : {0x00040002U, 0U, 0U, 65535U, 1U, 1U, 1U, 3U, 3U}) {
        text += word(one, swapped);
      }
      EXPECT_EQ(said(text + "abc"), "");
      EXPECT_EQ(said(text + "ab"), cut(inside, 24, 0));
    }
  }
}

TEST_F(CaptureFile, ALengthThatNoPacketHasIsSaid) {
  std::string text = word(0xa1b2c3d4);
  for (const std::uint32_t one : {0x00040002U, 0U, 0U, 65535U, 1U, 1U, 1U, 300'000U, 300'000U}) {
    text += word(one);
  }
  EXPECT_EQ(said(text + std::string(300'000, 'x')), cut("a packet has a length of 300000 bytes", 24, 0));
}

TEST_F(CaptureFile, PcapngIsWholeOnlyWhereABlockEnds) {
  for (const bool swapped : {false, true}) {
    const std::string whole = pcapng(swapped);
    for (unsigned size = 4; size <= whole.size(); ++size) {
      const unsigned ends[] = {0, 28, 48, 88, 112, 132};
      unsigned begin = 0;
      for (const unsigned end : ends) {
        begin = end <= size ? end : begin;
      }
      const unsigned packets = (begin >= 88 ? 1 : 0) + (begin >= 132 ? 1 : 0);
      EXPECT_EQ(said(whole.substr(0, size)), size == begin ? "" : cut(inside, begin, packets)) << size;
    }
  }
}

TEST_F(CaptureFile, APortOfACutOneIsRefused) {
  test::write_pcap(path_, {test::Frame(60)});
  PortOptions port;
  port.device = "net_pcap0,rx_pcap=" + path_ + ",tx_pcap=/dev/null";
  EXPECT_TRUE(check_device(port, {}));
  std::filesystem::resize_file(path_, 99);
  const auto refused = check_device(port, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, cut(inside, 24, 0));
}

TEST_F(CaptureFile, WhatIsNoCaptureIsTheReadersToSay) {
  EXPECT_EQ(said(""), "");
  EXPECT_EQ(said("no capture at all, but a text"), "");
  EXPECT_TRUE(check_capture("/nonexistent"));
  EXPECT_TRUE(check_capture("/dev/zero"));
  EXPECT_TRUE(check_capture(testing::TempDir()));
}

}  // namespace
}  // namespace sluice::port
