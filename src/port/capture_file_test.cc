#include "port/capture_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../tests/support/pcap_file.h"

namespace sluice::port {
namespace {

std::string word(std::uint32_t value, bool swapped = false) {
  value = swapped ? __builtin_bswap32(value) : value;
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string words(std::initializer_list<std::uint32_t> values) {
  std::string text;
  for (const std::uint32_t value : values) text += word(value);
  return text;
}

// 2.4, as two numbers of 16 bits.
std::uint32_t version(bool swapped) {
  return swapped ? 0x00020004U : 0x00040002U;
}

// A pcap's header.
std::string pcap() {
  return words({0xa1b2c3d4U, version(false), 0U, 0U, 262144U, 1U});
}

// A packet's header in it.
std::string of_length(std::uint32_t length) {
  return words({1U, 1U, length, length});
}

// A pcapng's first block, or one of a later section.
std::string section_alone() {
  return words({0x0a0d0d0a, 28, 0x1a2b3c4d, 1, ~0U, ~0U, 28});
}

std::string interface(std::uint32_t link, std::uint32_t longest = 0) {
  return words({1, 20, link, longest, 20});
}

// With an interface: 48 bytes.
std::string section() {
  return section_alone() + interface(1);
}

// A section, an interface, a packet of 8 bytes, and statistics, which are no packet.
std::string pcapng(bool swapped) {
  const auto w = [&](std::uint32_t value) { return word(value, swapped); };
  return w(0x0a0d0d0a) + w(28) + w(0x1a2b3c4d) + w(1) + w(~0U) + w(~0U) + w(28) +         // section
         w(1) + w(20) + w(swapped ? 1U << 16 : 1) + w(0) + w(20) +                        // interface
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
  std::string cut(const std::string& wrong, std::uint64_t at, unsigned packets) const {
    return path_ + ": " + wrong + ", at byte " + std::to_string(at) + " behind " + std::to_string(packets) +
           (packets == 1 ? " whole packet" : " whole packets") +
           ": capture it again, or write what is whole to a file of its own (tcpdump -r FILE -w OTHER)";
  }
  const std::string path_ = testing::TempDir() + "sluice_capture_" + std::to_string(getpid());
  static constexpr const char* inside = "the file ends inside a packet";
  static constexpr const char* inside_block = "the file ends inside a block";
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
  EXPECT_EQ(said(whole.substr(0, 20)), path_ + ": is cut inside its own header: it has no packets");
}

TEST_F(CaptureFile, WhatWasCutAndHowLongPacketsAreIsReported) {
  const std::string cut_one = words({1U, 1U, 4U, 9U}) + "abcd";
  const std::string enhanced = words({6, 40, 0, 0, 0, 8, 100, 0, 0, 40}), simple = words({3, 20, 5, 0, 20});
  struct Case {
    std::string bytes;
    std::uint64_t packets, cut;
    std::uint32_t longest;
  };
  for (const Case& one :
       {Case{pcap(), 0, 0, 0}, Case{pcap() + of_length(3) + "abc" + cut_one, 2, 1, 4}, Case{pcapng(false), 2, 0, 8},
        Case{pcapng(true), 2, 0, 8}, Case{section() + enhanced + simple, 2, 2, 8}}) {
    std::ofstream(path_, std::ios::binary) << one.bytes;
    const auto facts = check_capture(path_);
    ASSERT_TRUE(facts) << facts.error().message;
    EXPECT_EQ(facts->packets, one.packets);
    EXPECT_EQ(facts->cut, one.cut);
    EXPECT_EQ(facts->longest, one.longest);
  }
}

TEST_F(CaptureFile, EitherByteOrderAndNanoseconds) {
  for (const std::uint32_t magic : {0xa1b2c3d4U, 0xa1b23c4dU}) {
    for (const bool swapped : {false, true}) {
      std::string text = word(magic, swapped);
      for (const std::uint32_t one : {version(swapped), 0U, 0U, 65535U, 1U, 1U, 1U, 3U, 3U}) {
        text += word(one, swapped);
      }
      EXPECT_EQ(said(text + "abc"), "");
      EXPECT_EQ(said(text + "ab"), cut(inside, 24, 0));
    }
  }
}

// 262,144 is the most that libpcap takes.
TEST_F(CaptureFile, ALengthThatNoPacketHasIsSaid) {
  for (const std::uint32_t length : {262'144U, 262'145U, 0xffffffffU}) {
    const std::string text = pcap() + of_length(1) + "x" + of_length(length) + std::string(262'145, 'x');
    const std::string wrong = "a packet has a length of " + std::to_string(length) + " bytes";
    EXPECT_EQ(said(text), length == 262'144 ? cut(inside, 24 + 17 + 16 + 262'144, 2) : cut(wrong, 24 + 17, 1));
  }
}

// 16 MB is the most that libpcap takes, and 12 bytes are what every block has. The file is long enough for all of them.
TEST_F(CaptureFile, ALengthThatNoBlockHasIsSaid) {
  for (const std::uint32_t length : {0U, 11U, 12U, 16U << 20, (16U << 20) + 4, 0xffffffffU}) {
    std::string block = words({0x0bad, length}) + std::string((16U << 20) + 8, '\0');
    if (length >= 12 && length < block.size()) {
      block.resize(length);
      block.replace(length - 4, 4, word(length));
    }
    const bool fine = length == 12 || length == 16U << 20;
    const std::string wrong = "a block has a length of " + std::to_string(length) + " bytes";
    EXPECT_EQ(said(section() + block), fine ? "" : cut(wrong, 48, 0)) << length;
  }
}

TEST_F(CaptureFile, BothLengthsOfABlockAreTheSame) {
  for (const bool swapped : {false, true}) {
    std::string text = pcapng(swapped);
    text.replace(84, 4, word(41, swapped));
    EXPECT_EQ(said(text), cut("a block has a length of 40 bytes in front and 41 at its end", 48, 0));
  }
}

TEST_F(CaptureFile, PacketsOfEveryKindOfBlockAreCounted) {
  for (const std::uint32_t type : {1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    const bool is_packet = type == 2 || type == 3 || type == 6;
    EXPECT_EQ(said(section() + words({type, 16, 0, 16}) + "x"), cut(inside_block, 64, is_packet ? 1 : 0)) << type;
  }
}

// Their headers lie anywhere in the pieces that are read, and across their ends; one piece is 256 KB.
TEST_F(CaptureFile, ManyPacketsAreReadInLargePieces) {
  constexpr unsigned packets = 40'000;
  std::string text = pcap();
  for (unsigned i = 0; i < packets; ++i) {
    text += of_length(i % 61) + std::string(i % 61, 'x');
  }
  const std::uint64_t whole = text.size();
  ASSERT_EQ(said(text), "");
  EXPECT_EQ(said(text + "x"), cut(inside, whole, packets));
  unsigned pieces = 0;
  std::uint64_t last = 0;
  EXPECT_FALSE(check_capture(path_, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, whole + 1);
    EXPECT_GE(done, last);
    last = done;
    ++pieces;
    return true;
  }));
  EXPECT_GE(pieces, whole >> 18);
  EXPECT_LE(pieces, (whole >> 18) + 2);
}

// Bytes that this process has read so far.
std::uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  EXPECT_TRUE(io >> key >> value && key == "rchar:");
  return value;
}

TEST_F(CaptureFile, WhatIsInLongPacketsIsNotRead) {
  constexpr unsigned length = 262'144;
  constexpr unsigned packets = 200;
  for (const bool blocks : {false, true}) {
    std::uint64_t at = blocks ? 48 : 24;
    std::ofstream file(path_, std::ios::binary);
    file << (blocks ? section() : pcap());
    for (unsigned i = 0; i < packets; ++i, at += 16 + length) {  // a file with holes
      file.seekp(static_cast<std::streamoff>(at));
      file << (blocks ? words({6, 16 + length}) : of_length(length));
      file.seekp(static_cast<std::streamoff>(at + 12 + length));
      file << word(16 + length);
    }
    file.close();
    const std::uint64_t before = bytes_read();
    EXPECT_TRUE(check_capture(path_));
    EXPECT_LT(bytes_read() - before, at / 10) << at;
    std::filesystem::resize_file(path_, at - 1);
    const auto refused = check_capture(path_);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, cut(blocks ? inside_block : inside, at - 16 - length, packets - 1));
  }
}

TEST_F(CaptureFile, IsLeftWhenAsked) {
  std::ofstream(path_, std::ios::binary) << pcap();
  std::filesystem::resize_file(path_, 64 << 20);  // packets of no bytes
  unsigned asked = 0;
  const auto stopped = check_capture(path_, [&](std::uint64_t, std::uint64_t) { return ++asked < 3; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().message, path_ + ": interrupted while it was read");
  EXPECT_EQ(asked, 3U);
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
      const std::string at_end = size == 28 ? path_ + ": describes no interface: capture it again" : "";
      EXPECT_EQ(said(whole.substr(0, size)), size == begin ? at_end : cut(inside_block, begin, packets)) << size;
    }
  }
}

TEST_F(CaptureFile, WhatIsNoCaptureIsSaid) {
  EXPECT_EQ(said(""), path_ + ": is empty: it has not even a capture's header");
  EXPECT_EQ(said("abc"), path_ + ": is no capture: neither pcap nor pcapng");
  EXPECT_EQ(said("no capture at all, but a text"), path_ + ": is no capture: neither pcap nor pcapng");
  EXPECT_EQ(said(pcap().substr(0, 10)), path_ + ": is cut inside its own header: it has no packets");
  EXPECT_EQ(said(words({0xa1b2c3d4U, 0x00040009U, 0U, 0U, 65535U, 1U})),
            path_ + ": is of version 9.4 of pcap, and libpcap reads 2.0 to 2.4: is it damaged?");
  const auto missing = check_capture("/nonexistent");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/nonexistent: No such file or directory");
}

// An IPv4 packet of 28 bytes.
std::string packet() {
  return std::string("\x45\0\0\x1c\0\0\x40\0\x40\x11\0\0\x0a\1\0\2\x0a\2\0\2\x11\x11\0\x35\0\x08\0\0", 28);
}

std::string ethernet() {
  return std::string(12, '\0') + "\x08" + std::string(1, '\0') + packet();
}

std::string padded(std::string bytes) {
  return bytes + std::string((4 - bytes.size() % 4) % 4, '\0');
}

// A pcapng's enhanced packet block, of which there were `original` bytes; a simple one.
std::string enhanced(std::uint32_t interface, const std::string& bytes, std::uint32_t original) {
  const auto size = static_cast<std::uint32_t>(bytes.size()),
             length = static_cast<std::uint32_t>(32 + padded(bytes).size());
  return words({6, length, interface, 0, 0, size, original}) + padded(bytes) + word(length);
}

std::string simple(const std::string& bytes, std::uint32_t original) {
  const auto length = static_cast<std::uint32_t>(16 + padded(bytes).size());
  return words({3, length, original}) + padded(bytes) + word(length);
}

std::string pcap_of(std::uint32_t link, std::uint32_t snapshot, const std::string& bytes, bool swapped = false,
                    std::uint32_t magic = 0xa1b2c3d4U) {
  std::string text;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  for (const std::uint32_t one : {magic, version(swapped), 0U, 0U, snapshot, link, 1U, 1U, size, size})
    text += word(one, swapped);
  const bool modified = magic == 0xa1b2cd34U;
  return text + (modified ? std::string(8, '\0') : "") + bytes;
}

class CapturesCopied : public CaptureFile {
 protected:
  // The frames of the copy.
  std::vector<std::string> copied(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    std::shared_ptr<const CaptureCopy> copy;
    const auto facts = check_capture(path_, {}, &copy);
    EXPECT_TRUE(facts) << facts.error().message;
    if (!facts) return {};
    facts_ = *facts;
    EXPECT_EQ(copy != nullptr, facts->needs_copy);
    std::vector<std::string> frames;
    if (copy != nullptr) {
      for (const test::Frame& frame : test::read_pcap(copy->path())) frames.emplace_back(frame.begin(), frame.end());
    }
    return frames;
  }
  CaptureFacts facts_;
};

using Frames = std::vector<std::string>;

TEST_F(CapturesCopied, WhatTheDriverReadsAsItIsIsLeftAsItIs) {
  EXPECT_EQ(copied(pcap_of(1, 65535, ethernet())), Frames());
  EXPECT_EQ(copied(pcap_of(0x14000001, 65535, ethernet())), Frames()) << "with checksums of frames";
  EXPECT_EQ(copied(section() + interface(1, 262'144) + enhanced(1, ethernet(), 42)), Frames());
  EXPECT_FALSE(facts_.needs_copy);
}

TEST_F(CapturesCopied, PacketsLongerThanTheSnapshotLengthAreRead) {
  for (const bool swapped : {false, true}) {
    EXPECT_EQ(copied(pcap_of(1, 20, ethernet(), swapped)), Frames{ethernet()});
    EXPECT_EQ(facts_.cut, 0U);
    EXPECT_EQ(facts_.longest, 42U);
  }
  EXPECT_EQ(copied(section_alone() + interface(1, 20) + enhanced(0, ethernet(), 42)), Frames{ethernet()});
}

TEST_F(CapturesCopied, OtherLinksAndFormatsAreRead) {
  for (const bool swapped : {false, true}) {
    for (const std::uint32_t magic : {0xa1b2c3d4U, 0xa1b23c4dU, 0xa1b2cd34U}) {
      EXPECT_EQ(copied(pcap_of(101, 65535, packet(), swapped, magic)), Frames{ethernet()}) << magic;
    }
  }
  EXPECT_EQ(copied(pcap_of(0, 65535, std::string("\2\0\0\0", 4) + packet())), Frames{ethernet()});
}

// Of sections, too, each of which counts its interfaces from 0.
TEST_F(CapturesCopied, InterfacesOfAnyLinkAndLengthAreRead) {
  const std::string front = section() + interface(101, 96) + interface(195);
  EXPECT_EQ(copied(front + enhanced(1, packet(), 28) + enhanced(0, ethernet(), 42) + simple(ethernet(), 42) +
                   section_alone() + interface(12, 1000) + enhanced(0, packet(), 100)),
            Frames(4, ethernet()));
  EXPECT_EQ(facts_.packets, 4U);
  EXPECT_EQ(facts_.cut, 1U);
  EXPECT_EQ(facts_.left_out, "");
  EXPECT_EQ(copied(front + enhanced(2, packet(), 28) + enhanced(1, packet(), 28) + enhanced(1, "\xff", 1)),
            Frames{ethernet()});
  EXPECT_EQ(
      facts_.left_out,
      "2 of 3 packets are left out: 1 without a packet of a network, 1 of link type 195 (IEEE 802.15.4), which is "
      "not read");
}

TEST_F(CapturesCopied, ASimplePacketThatWasCutIsReadAsFarAsItIsThere) {
  const std::string front = section_alone() + interface(1, 30) + interface(101);
  EXPECT_EQ(copied(front + simple(ethernet().substr(0, 30), 42) + enhanced(1, packet(), 28)),
            (Frames{ethernet().substr(0, 30), ethernet()}));
  EXPECT_EQ(facts_.cut, 1U);
}

TEST_F(CaptureFile, LinksWithoutANetworkAreRefused) {
  EXPECT_EQ(said(pcap_of(195, 65535, packet())),
            path_ +
                ": has frames of link type 195 (IEEE 802.15.4) alone, of which no network is read: "
                "docs/capture.md lists what is");
  EXPECT_EQ(said(pcap_of(195, 65535, packet()).substr(0, 24)), "") << "no packets";
}

TEST_F(CaptureFile, WhatLibpcapDoesNotReadIsSaid) {
  for (const std::string& more : {interface(101), std::string()}) {
    EXPECT_THAT(said(section() + more + enhanced(0, ethernet(), 42) + enhanced(7, packet(), 28)),
                testing::AllOf(testing::HasSubstr(": a packet is of interface 7, which nothing describes, at byte "),
                               testing::HasSubstr(" behind 1 whole packet: capture it again")));
  }
  std::string longer = enhanced(0, ethernet(), 42);
  longer[20] = 100;  // bytes of the packet that are there
  EXPECT_THAT(said(section() + longer), testing::HasSubstr(": a packet has 100 bytes in a block of "));
  EXPECT_EQ(said(pcapng(false) + pcapng(true)),
            path_ +
                ": has sections of different byte orders, which libpcap does not read: Wireshark's 'editcap FILE "
                "OTHER' writes one");
  EXPECT_EQ(said(section_alone()), path_ + ": describes no interface: capture it again");
  EXPECT_EQ(said("\x1f\x8b\x08 and so on"), path_ + ": is compressed (gzip): 'gzip -dc FILE > OTHER' unpacks it");
  EXPECT_EQ(said(std::string("snoop\0\0\0\0\0\0\2", 12)),
            path_ + ": is a capture of snoop, which libpcap does not read: Wireshark's 'editcap FILE OTHER' can");
}

TEST_F(CaptureFile, WhatIsNoRegularFileIsRefused) {
  const std::string pipe = testing::TempDir() + "capture_pipe_" + std::to_string(getpid());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto checked = check_capture(pipe);
  unlink(pipe.c_str());
  ASSERT_FALSE(checked) << "libpcap would wait for its other end";
  EXPECT_EQ(checked.error().message, pipe + ": is a pipe: name a regular file");
  EXPECT_FALSE(check_capture(testing::TempDir()));
}

}  // namespace
}  // namespace sluice::port
