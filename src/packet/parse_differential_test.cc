// The parser against a second one that is slow and plain: bytes read one at a time, addresses as text prefixes, no fast
// case.
#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <string>

#include "packet/builder.h"
#include "packet/ip_address.h"
#include "packet/parse.h"

namespace sluice::packet {
namespace {

struct Answer {
  std::string reason = "none";
  FrameKind kind = FrameKind::host;
  unsigned ttl = 0, protocol = 0, l3_length = 0;
  bool fragment = false;
  bool operator==(const Answer&) const = default;
};

void PrintTo(const Answer& a, std::ostream* out) {
  *out << a.reason << " kind " << static_cast<int>(a.kind) << " ttl " << a.ttl << " protocol " << a.protocol
       << " length " << a.l3_length << " fragment " << a.fragment;
}

bool in(const IpAddress& address, std::initializer_list<const char*> prefixes) {
  static std::map<std::string, IpPrefix> parsed;
  for (const char* text : prefixes) {
    const auto found = parsed.try_emplace(text, *IpPrefix::parse(text)).first;
    if (found->second.contains(address)) {
      return true;
    }
  }
  return false;
}

unsigned number(const Bytes& frame, std::size_t at) {
  return frame.at(at) * 256U + frame.at(at + 1);
}

Answer refused(const char* reason) {
  Answer answer;
  answer.reason = reason;
  return answer;
}

Answer reference_ipv4(const Bytes& frame) {
  if (frame.size() < 34) {
    return refused("frame_too_short");
  }
  if (frame.at(14) / 16 != 4) {
    return refused("bad_ip_version");
  }
  const unsigned header = frame.at(14) % 16 * 4;
  if (header < 20) {
    return refused("bad_header_length");
  }
  if (frame.size() < 14 + header) {
    return refused("frame_too_short");
  }
  const unsigned total = number(frame, 16);
  if (total < header || 14 + total > frame.size()) {
    return refused("bad_total_length");
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < header; i += 2) {
    sum += number(frame, 14 + i);
  }
  if (sum % 0xffff != 0) {  // the version keeps it from being 0
    return refused("bad_checksum");
  }
  const IpAddress source = IpAddress::from_bytes(4, &frame.at(26));
  const IpAddress destination = IpAddress::from_bytes(4, &frame.at(30));
  const bool group = in(destination, {"224.0.0.0/4", "255.255.255.255"});
  const bool asks_for_address = in(source, {"0.0.0.0"}) && group;
  if (in(source, {"0.0.0.0", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255"}) && !asks_for_address) {
    return refused("bad_source");
  }
  if (in(destination, {"0.0.0.0", "127.0.0.0/8"})) {
    return refused("bad_destination");
  }
  const bool host = group || asks_for_address || in(source, {"169.254.0.0/16"}) ||
                    in(destination, {"169.254.0.0/16"}) || header > 20 || frame.at(0) % 2 == 1;
  const bool fragment = number(frame, 20) % 0x4000 != 0;
  return {"none", host ? FrameKind::host : FrameKind::ipv4, frame.at(22), frame.at(23), total, fragment};
}

Answer reference_ipv6(const Bytes& frame) {
  if (frame.size() < 54) {
    return refused("frame_too_short");
  }
  if (frame.at(14) / 16 != 6) {
    return refused("bad_ip_version");
  }
  // A length of 0 before hop-by-hop options: as long as the frame.
  const bool unsaid = number(frame, 18) == 0 && frame.at(20) == 0;
  const unsigned total = unsaid ? static_cast<unsigned>(frame.size()) - 14 : 40 + number(frame, 18);
  if (14 + total > frame.size() || total > 65535) {
    return refused("bad_total_length");
  }
  const IpAddress source = IpAddress::from_bytes(6, &frame.at(22));
  const IpAddress destination = IpAddress::from_bytes(6, &frame.at(38));
  if (in(source, {"ff00::/8", "::1"})) {
    return refused("bad_source");
  }
  if (in(destination, {"::/127"})) {
    return refused("bad_destination");
  }
  const bool host = in(source, {"::", "fe80::/10"}) || in(destination, {"ff00::/8", "fe80::/10"}) ||
                    frame.at(20) == 0 || frame.at(0) % 2 == 1;
  return {"none", host ? FrameKind::host : FrameKind::ipv6, frame.at(21), frame.at(20), total, frame.at(20) == 44};
}

Answer reference(const Bytes& frame) {
  if (frame.size() < 14) {
    return refused("frame_too_short");
  }
  switch (number(frame, 12)) {
    case 0x0800:
      return reference_ipv4(frame);
    case 0x86dd:
      return reference_ipv6(frame);
    default:
      return {};
  }
}

Answer parsed(const Bytes& frame, bool slow) {
  FrameView view{};
  const auto length = static_cast<std::uint32_t>(frame.size());
  const Reason reason = slow ? detail::parse_slow(frame.data(), length, view) : parse_frame(frame.data(), length, view);
  if (reason != no_reason) {
    return refused(std::string(reason_name(reason)).c_str());
  }
  return {"none", view.kind, view.ttl, view.protocol, view.l3_length, view.fragment};
}

class Frames {
 public:
  explicit Frames(unsigned seed) : random_(seed) {}

  // A frame near what a network carries: random addresses with the special ranges over-represented, then a few
  // mutations.
  Bytes next() {
    Bytes frame = builder().build();
    for (unsigned left = pick(4); left > 0 && !frame.empty(); --left) {
      mutate(frame);
    }
    if (pick(2) == 0 && frame.size() >= 34 && frame[12] == 0x08 && frame[13] == 0x00) {
      repair_checksum(frame);  // so that mutations reach the checks behind the checksum
    }
    return frame;
  }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  IpAddress address(int family) {
    std::uint8_t bytes[16];
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(pick(256));
    }
    static constexpr std::uint8_t special4[] = {0, 1, 126, 127, 128, 169, 223, 224, 239, 240, 255};
    static constexpr std::uint8_t special6[] = {0x00, 0xfd, 0xfe, 0xff};
    if (pick(2) == 0) {
      bytes[0] = family == 4 ? special4[pick(std::size(special4))] : special6[pick(std::size(special6))];
      const unsigned fill = pick(3);
      for (int i = 1; fill != 2 && i < 16; ++i) {
        bytes[i] = fill == 0 ? 0 : 0xff;
      }
      if (pick(2) == 0) {
        bytes[1] = family == 4 ? 254 : static_cast<std::uint8_t>(pick(4) << 6);
      }
      if (pick(2) == 0) {
        bytes[family == 4 ? 3 : 15] = static_cast<std::uint8_t>(pick(3));
      }
      if (pick(4) == 0) {
        bytes[10] = bytes[11] = 0xff;
      }
    }
    return IpAddress::from_bytes(family, bytes);
  }

  PacketBuilder builder() {
    PacketBuilder builder;
    if (pick(8) == 0) {
      builder.eth("02:00:00:00:00:01", pick(2) == 0 ? "ff:ff:ff:ff:ff:ff" : "33:33:00:00:00:01");
    }
    if (pick(2) == 0) {
      builder.ipv4(address(4), address(4));
      if (pick(4) == 0) {
        builder.options(Bytes(pick(41)));
      }
    } else {
      builder.ipv6(address(6), address(6));
      if (pick(4) == 0) {
        builder.extension(pick(2) == 0 ? protocol_hop_by_hop : protocol_destination_options, Bytes(pick(20)));
        if (pick(8) == 0) builder.ip_length(0);
      }
    }
    if (pick(4) == 0) {
      builder.fragment(static_cast<std::uint16_t>(pick(100) * 8), pick(2) == 0);
    }
    if (pick(8) == 0) {
      builder.vlan(static_cast<std::uint16_t>(pick(4096)));
    }
    return builder.ttl(static_cast<std::uint8_t>(pick(256))).udp(1, 2).payload(pick(60)).pad_to(pick(2) * 60);
  }

  void mutate(Bytes& frame) {
    switch (pick(4)) {
      case 0:
        frame[pick(static_cast<unsigned>(frame.size()))] ^= static_cast<std::uint8_t>(1U << pick(8));
        break;
      case 1:
        frame[pick(static_cast<unsigned>(frame.size()))] = static_cast<std::uint8_t>(pick(256));
        break;
      case 2:
        frame.resize(pick(static_cast<unsigned>(frame.size()) + 1));
        break;
      default:  // the header's first bytes: versions, lengths
        if (frame.size() >= 20) {
          frame[12 + pick(8)] = static_cast<std::uint8_t>(pick(2) == 0 ? pick(256) : 0x40 + pick(48));
        }
    }
  }

  static void repair_checksum(Bytes& frame) {
    auto& header = header_at<Ipv4Header>(frame.data(), 14);
    const std::size_t length = (header.version_ihl & 0x0fU) * 4U;
    if (length >= sizeof header && 14 + length <= frame.size()) {
      header.checksum = ipv4_header_checksum(header);
    }
  }

  std::mt19937_64 random_;
};

TEST(ParseDifferential, MutatedFrames) {
  Frames frames(7);
  std::map<std::string, unsigned> seen;
  for (int i = 0; i < 300000; ++i) {
    const Bytes frame = frames.next();
    const Answer expected = reference(frame);
    ASSERT_EQ(parsed(frame, false), expected) << testing::PrintToString(frame);
    ASSERT_EQ(parsed(frame, true), expected) << testing::PrintToString(frame);
    ++seen[expected.reason + (expected.reason == "none" ? std::to_string(static_cast<int>(expected.kind)) : "")];
  }
  // The generator reaches every answer, each often enough to mean something.
  for (const char* answer : {"none0", "none1", "none2", "frame_too_short", "bad_ip_version", "bad_header_length",
                             "bad_total_length", "bad_checksum", "bad_source", "bad_destination"}) {
    EXPECT_GT(seen[answer], 300U) << answer;
  }
}

TEST(ParseDifferential, RandomBytes) {
  std::mt19937 random(8);
  for (int i = 0; i < 200000; ++i) {
    Bytes frame(random() % 100);
    for (auto& byte : frame) {
      byte = static_cast<std::uint8_t>(random());
    }
    if (frame.size() >= 15 && i % 4 != 0) {
      const bool four = i % 2 == 0;
      frame[12] = four ? 0x08 : 0x86;
      frame[13] = four ? 0x00 : 0xdd;
      frame[14] = static_cast<std::uint8_t>(four ? 0x45 : 0x60);
    }
    const Answer expected = reference(frame);
    ASSERT_EQ(parsed(frame, false), expected) << testing::PrintToString(frame);
    ASSERT_EQ(parsed(frame, true), expected) << testing::PrintToString(frame);
  }
}

}  // namespace
}  // namespace sluice::packet
