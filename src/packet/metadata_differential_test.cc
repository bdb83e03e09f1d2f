// The parser of metadata, of frames and of frames in others, against a second one that is slow and plain, which takes a
// frame's headers off one by one.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "packet/builder.h"
#include "packet/flow_hash.h"
#include "packet/metadata.h"

namespace sluice::packet {

void PrintTo(const Metadata& m, std::ostream* out) {
  *out << "network " << m.network << " transport " << m.transport << " payload " << m.payload << " to " << m.payload_end
       << " end " << m.end << " family " << int{m.family} << " protocol " << int{m.protocol} << " fragment "
       << m.fragment_offset << " at " << m.fragment_header << " named at " << m.fragment_named_at << " whole "
       << m.whole << " cut " << m.chain_cut << " later " << m.later << " ports " << m.has_ports << " header "
       << m.has_header;
}

namespace {

class Reference {
 public:
  explicit Reference(const Bytes& frame) : frame_(frame) {
    if (frame.size() < 14) return;
    m.type = half(12);
    m.network = 14;
    while (m.type == 0x8100 || m.type == 0x88a8 || m.type == 0x9100) {
      if (frame.size() < m.network + 4U) return;
      m.type = half(m.network + 2);
      m.network += 4;
      ++m.tags;
    }
    if (m.type == 0x0800) ipv4();
    if (m.type == 0x86dd) ipv6();
    if (m.family != 0) transport();
  }

  Metadata m;

 private:
  std::uint8_t byte(std::size_t at) const { return frame_.at(at); }
  std::uint16_t half(std::size_t at) const { return static_cast<std::uint16_t>(byte(at) * 256 + byte(at + 1)); }
  std::uint32_t there() const { return static_cast<std::uint32_t>(frame_.size()) - m.network; }
  std::uint32_t left() const { return m.end - m.transport; }

  void take_length(std::uint32_t length) {
    m.ip_length = length;
    m.whole = length <= there();
    m.end = m.whole ? m.network + length : static_cast<std::uint32_t>(frame_.size());
  }

  void ipv4() {
    if (there() < 20 || byte(m.network) / 16 != 4) return;
    const std::uint32_t header = byte(m.network) % 16 * 4U;
    if (header < 20 || header > half(m.network + 2) || header > there()) return;
    m.family = 4;
    take_length(half(m.network + 2));
    m.transport = m.network + header;
    m.protocol = m.fragment_protocol = byte(m.network + 9);
    m.fragment_offset = half(m.network + 6) % 0x2000;
    m.more_fragments = half(m.network + 6) / 0x2000 % 2 == 1;
    m.later = m.fragment_offset > 0;
    m.hides_transport = m.protocol == 6 && m.fragment_offset == 1;
  }

  void ipv6() {
    if (there() < 40 || byte(m.network) / 16 != 6) return;
    m.family = 6;
    const bool unsaid = half(m.network + 4) == 0 && byte(m.network + 6) == 0;
    take_length(unsaid ? there() : 40U + half(m.network + 4));
    m.transport = m.network + 40;
    extension(m.network + 6);
  }

  void extension(std::uint32_t named_at) {
    m.protocol = byte(named_at);
    if (m.protocol != 0 && m.protocol != 43 && m.protocol != 44 && m.protocol != 60) return;
    if (left() < 8) {
      m.chain_cut = true;
      return;
    }
    const std::uint32_t at = m.transport;
    if (m.protocol == 43) m.routed = true;
    if (m.protocol != 44) {
      const std::uint32_t size = 8U + byte(at + 1) * 8U;
      m.protocol = byte(at);
      m.chain_cut = size > left();
      m.transport = m.chain_cut ? m.end : at + size;
      return m.chain_cut ? void() : extension(at);
    }
    m.transport += 8;
    const std::uint16_t offset = half(at + 2) / 8;
    const bool more = byte(at + 3) % 2 == 1;
    if (m.fragment_offset == 0 && !m.more_fragments) {
      m.behind_atomic = m.fragment_header != 0 && (offset != 0 || more);
      m.fragment_header = at;
      m.fragment_named_at = named_at;
      m.fragment_protocol = byte(at);
      m.fragment_offset = offset;
      m.more_fragments = more;
    }
    if (offset == 0) return extension(at);
    m.protocol = byte(at);
    m.later = true;
    m.hides_transport = m.protocol == 6 && offset == 1;
  }

  void transport() {
    m.payload = m.transport;
    m.payload_end = m.end;
    if (m.later) return;
    const std::map<unsigned, std::uint32_t> headers = {{6, 20}, {17, 8}, {136, 8}, {132, 12}, {1, 8}, {58, 8}, {33, 0}};
    const auto known = headers.find(m.protocol);
    if (known == headers.end()) return;
    if (m.protocol != 1 && m.protocol != 58 && left() >= 4) {
      m.has_ports = true;
      m.source_port = half(m.transport);
      m.destination_port = half(m.transport + 2);
    }
    std::uint32_t size = known->second;
    if (size == 0 || left() < size) return;
    if (m.protocol == 6) size = byte(m.transport + 12) / 16 * 4U;
    if (size < 8 || (m.protocol == 6 && size < 20) || size > left()) return;
    m.has_header = true;
    m.payload += size;
    if (m.protocol != 17) return;
    const std::uint32_t said = half(m.transport + 4);
    if (said == 0 && m.family == 6) return;
    m.payload_end = said < 8 ? m.payload : std::min(m.end, m.transport + said);
  }

  const Bytes& frame_;
};

class Frames {
 public:
  explicit Frames(unsigned seed) : random_(seed) {}

  Bytes next() {
    Bytes frame = builder().build();
    for (unsigned left = pick(4); left > 0 && !frame.empty(); --left) mutate(frame);
    return frame;
  }

 private:
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }

  PacketBuilder builder() {
    PacketBuilder builder;
    for (unsigned tags = pick(4) == 0 ? pick(7) : 0; tags > 0; --tags) builder.vlan(5);
    if (pick(2) == 0) {
      builder.ipv4("192.0.2.1", "198.51.100.2");
      if (pick(4) == 0) builder.options(Bytes(pick(41)));
    } else {
      builder.ipv6("2001:db8::1", "2001:db8::2");
      static constexpr std::uint8_t kinds[] = {protocol_hop_by_hop, protocol_routing, protocol_destination_options,
                                               protocol_fragment};
      for (unsigned count = pick(2) == 0 ? pick(11) : 0; count > 0; --count) {
        const std::uint8_t kind = kinds[pick(std::size(kinds))];
        Bytes bytes(kind == protocol_fragment ? 6 : pick(20));
        // A place, of a fragment header; the length byte is reserved there.
        if (kind == protocol_fragment && pick(3) == 0) bytes[1] = static_cast<std::uint8_t>(pick(20));
        builder.extension(kind, bytes);
      }
      if (pick(8) == 0) builder.ip_length(0);
    }
    if (pick(4) == 0) builder.fragment(static_cast<std::uint16_t>(pick(3) * 8), pick(2) == 0);
    static constexpr std::uint8_t protocols[] = {6, 17, 1, 58, 132, 136, 33, 50, 51, 59, 0, 44};
    switch (pick(3)) {
      case 0:
        builder.udp(1000, 53);
        break;
      case 1:
        builder.tcp(1000, 80);
        break;
      default:
        builder.protocol(protocols[pick(std::size(protocols))]);
    }
    return builder.payload(pick(60)).pad_to(pick(2) * 80);
  }

  void mutate(Bytes& frame) {
    const auto any = [&] { return pick(static_cast<unsigned>(frame.size())); };
    switch (pick(4)) {
      case 0:
        frame[any()] ^= static_cast<std::uint8_t>(1U << pick(8));
        break;
      case 1:
        frame[any()] = static_cast<std::uint8_t>(pick(256));
        break;
      case 2:
        frame.resize(any() + 1);
        break;
      default:  // the header's first bytes: versions, lengths
        if (frame.size() >= 20)
          frame[12 + pick(8)] = static_cast<std::uint8_t>(pick(2) == 0 ? pick(256) : 0x40 + pick(48));
    }
  }

  std::mt19937_64 random_;
};

void compare(const Bytes& frame, std::map<std::string, unsigned>& seen) {
  const Bytes exact = frame;
  const auto length = static_cast<std::uint32_t>(exact.size());
  Metadata meta, slow;
  read_metadata(exact.data(), length, Depth::transport, meta);
  read_frame_metadata(exact.data(), 0, length, Depth::transport, slow);
  ASSERT_EQ(slow, meta) << testing::PrintToString(frame);
  const Reference reference(exact);
  ASSERT_EQ(meta, reference.m) << testing::PrintToString(frame);
  Metadata plain;
  const bool is_plain = read_plain(exact.data(), length, plain);
  ASSERT_EQ(plain, is_plain ? meta : Metadata()) << testing::PrintToString(frame);
  seen["plain"] += is_plain ? 1 : 0;
  // The lane of a frame, of what a router takes.
  FrameView view;
  if (parse_frame(exact.data(), length, view) == no_reason && view.l3_length != 0) {
    ASSERT_EQ(view.l3_length, meta.ip_length) << testing::PrintToString(frame);
    ASSERT_TRUE(meta.whole);
    ++seen["parsed"];
  }
  seen["tags"] += meta.tags > 4 ? 1 : 0;
  seen["broken"] += meta.is_broken() ? 1 : 0;
  seen["chain cut"] += meta.chain_cut ? 1 : 0;
  seen["cut"] += meta.family != 0 && !meta.whole ? 1 : 0;
  seen["later"] += meta.later ? 1 : 0;
  seen["hides"] += meta.hides_transport ? 1 : 0;
  seen["header"] += meta.has_header ? 1 : 0;
  seen["routed"] += meta.routed ? 1 : 0;
  seen["fragment in IPv6"] += meta.fragment_header != 0 && meta.fragment() ? 1 : 0;
}

TEST(MetadataDifferential, MutatedFrames) {
  Frames frames(7);
  std::map<std::string, unsigned> seen;
  for (int i = 0; i < 200'000 && !testing::Test::HasFatalFailure(); ++i) compare(frames.next(), seen);
  for (const char* what : {"plain", "parsed", "tags", "broken", "chain cut", "cut", "later", "hides", "header",
                           "routed", "fragment in IPv6"}) {
    EXPECT_GT(seen[what], 300U) << what;
  }
}

TEST(MetadataDifferential, RandomBytes) {
  std::mt19937 random(8);
  std::map<std::string, unsigned> seen;
  for (int i = 0; i < 100'000 && !testing::Test::HasFatalFailure(); ++i) {
    Bytes frame(random() % 100);
    for (auto& byte : frame) byte = static_cast<std::uint8_t>(random());
    if (frame.size() >= 15 && i % 4 != 0) {
      const bool four = i % 2 == 0;
      frame[12] = four ? 0x08 : 0x86;
      frame[13] = four ? 0x00 : 0xdd;
      frame[14] = static_cast<std::uint8_t>(four ? 0x45 : 0x60);
    }
    compare(frame, seen);
  }
}

// Whatever is behind the headers: what read_inner() finds lies in the frame.
TEST(MetadataDifferential, AnInnerPacketLiesInItsFrame) {
  std::mt19937 random(9);
  unsigned found = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto pick = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
    PacketBuilder builder;
    static constexpr std::uint16_t types[] = {0x8847, 0x8864, 0x894f}, ports[] = {4789, 4790, 6081, 2152, 6635};
    static constexpr std::uint8_t protocols[] = {4, 41, 47, 137};
    switch (pick(3)) {
      case 0:
        builder.ethertype(types[pick(std::size(types))]);
        break;
      case 1:
        builder.ipv4("192.0.2.1", "198.51.100.2").protocol(protocols[pick(std::size(protocols))]);
        break;
      default:
        builder.ipv4("192.0.2.1", "198.51.100.2").udp(1, ports[pick(std::size(ports))]);
    }
    Bytes bytes(pick(80));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(pick(3) == 0 ? pick(256) : pick(3));
    static constexpr std::uint8_t begins[] = {0x30, 0x34, 0x08, 0x0c, 0x11, 0x45, 0x60, 0x00};
    if (!bytes.empty()) bytes[0] = begins[pick(std::size(begins))];
    const Bytes frame = builder.payload(bytes).build();
    const auto length = static_cast<std::uint32_t>(frame.size());
    Metadata outer, inner;
    read_metadata(frame.data(), length, Depth::transport, outer);
    if (read_inner(frame.data(), length, outer, inner) == Tunnel::none) continue;
    ++found;
    ASSERT_GT(inner.network, outer.network);
    ASSERT_LE(inner.network, length);
    if (inner.family == 0) continue;
    ASSERT_LE(inner.transport, inner.payload);
    ASSERT_LE(inner.payload, inner.payload_end);
    ASSERT_LE(inner.payload_end, inner.end);
    ASSERT_LE(inner.end, outer.family == 0 ? length : outer.end);
  }
  EXPECT_GT(found, 5000U);
}

}  // namespace
}  // namespace sluice::packet
