// Any bytes as a frame: the parser stays inside them, its fast case agrees with the slow one, and what it accepts can
// be hashed, forwarded and answered. The corpus holds plain frames, one file each.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "flow/packet.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/headers.h"
#include "packet/icmp_error.h"
#include "packet/metadata.h"
#include "packet/parse.h"
#include "require.h"

using namespace sluice::packet;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using Frame = std::vector<std::uint8_t>;

bool same(const FrameView& a, const FrameView& b) {
  return a.kind == b.kind && a.ttl == b.ttl && a.protocol == b.protocol && a.l3_offset == b.l3_offset &&
         a.l3_length == b.l3_length && a.fragment == b.fragment;
}

std::uint32_t header_length(const std::uint8_t* ip) {
  return ip[0] >> 4 == 4 ? (ip[0] & 0x0fU) * 4U : 40U;
}

// With and without the fast case, and all of it in the frame; of what is in a tunnel, too.
Metadata metadata_of(const std::uint8_t* data, std::uint32_t length) {
  Metadata meta, slow, inner;
  read_metadata(data, length, Depth::transport, meta);
  read_frame_metadata(data, 0, length, Depth::transport, slow);
  REQUIRE(meta == slow);
  const auto is_inside = [](const Metadata& of, std::uint32_t end) {
    return of.family == 0 || (of.network < of.transport && of.transport <= of.payload && of.payload <= of.payload_end &&
                              of.payload_end <= of.end && of.end <= end);
  };
  REQUIRE(meta.network <= length && is_inside(meta, length));
  const Tunnel tunnel = read_inner(data, length, meta, inner);
  REQUIRE((tunnel != Tunnel::none || inner.family == 0) && is_inside(inner, meta.family == 0 ? length : meta.end));
  return meta;
}

// The frame as the other end would answer: addresses exchanged, and the ports where a transport header would be.
Frame reversed(const Frame& frame, const FrameView& view) {
  Frame back = frame;
  std::uint8_t* ip = back.data() + view.l3_offset;
  const std::size_t size = ip[0] >> 4 == 4 ? 4 : 16;
  std::uint8_t* source = ip + (size == 4 ? 12 : 8);
  std::swap_ranges(source, source + size, source + size);
  const Metadata meta = metadata_of(frame.data(), static_cast<std::uint32_t>(frame.size()));
  if (meta.has_ports && !meta.fragment()) {
    std::uint8_t* const ports = back.data() + meta.transport;
    std::swap_ranges(ports, ports + 2, ports + 2);
  }
  return back;
}

void check_view(const Frame& frame, const FrameView& view) {
  REQUIRE(view.l3_offset == sizeof(EthernetHeader));
  if (view.l3_length == 0) {
    REQUIRE(view.kind == FrameKind::host);
    return;
  }
  REQUIRE(view.l3_offset + std::size_t{view.l3_length} <= frame.size());
  const std::uint8_t* ip = frame.data() + view.l3_offset;
  REQUIRE(ip[0] >> 4 == 4 || ip[0] >> 4 == 6);
  REQUIRE(header_length(ip) >= 20 && header_length(ip) <= view.l3_length);
  if (view.kind != FrameKind::host) {
    REQUIRE(ip[0] == 0x45 ? view.kind == FrameKind::ipv4 : ip[0] >> 4 == 6 && view.kind == FrameKind::ipv6);
    REQUIRE((frame[0] & 1) == 0);
  }
}

void check_forwarding(Frame frame, FrameView view) {
  if (view.kind != FrameKind::ipv4 || view.ttl == 0) {
    return;
  }
  decrement_ttl(header_at<Ipv4Header>(frame.data(), view.l3_offset));
  REQUIRE(ipv4_checksum_ok(frame.data() + view.l3_offset));
  --view.ttl;
  FrameView after{};
  REQUIRE(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), after) == no_reason);
  REQUIRE(same(after, view));
}

// Bytes that an ICMP error may answer become a well-formed frame, which none may answer.
void check_answer(Frame frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  if (!may_answer_with_icmp_error(frame.data(), length)) {
    return;
  }
  const bool v6 = metadata_of(frame.data(), length).family == 6;
  const IpAddress source = IpAddress::parse(v6 ? "2001:db8::1" : "192.0.2.1").value();
  const std::uint8_t own_mac[6] = {2};
  for (const IcmpErrorKind kind : {IcmpErrorKind::time_exceeded, IcmpErrorKind::too_big}) {
    Frame error = frame;
    error.resize(std::max<std::size_t>(2048, frame.size()));
    error.resize(make_icmp_error(error.data(), length, 2048, {kind, 1400, source, own_mac}));
    const Metadata made = metadata_of(error.data(), static_cast<std::uint32_t>(error.size()));
    REQUIRE(made.is_datagram() && made.end == error.size() && made.ip_length <= (v6 ? 1280U : 576U));
    REQUIRE(!may_answer_with_icmp_error(error.data(), static_cast<std::uint32_t>(error.size())));
  }
}

// What flows and rules read of it lies in it, whatever the parser says of it.
void check_facts(std::string_view frame) {
  const auto is_inside = [&](std::string_view part) {
    return part.empty() || (part.data() >= frame.data() && part.data() + part.size() <= frame.data() + frame.size());
  };
  HeaderFacts facts;
  read_headers(frame, facts);
  REQUIRE(is_inside(facts.ip_header) && is_inside(facts.transport_header) && is_inside(facts.payload));
  if (facts.has_tcp) (void)sluice::flow::has_fast_open(facts.transport_header);
  sluice::flow::Packet packet;
  if (sluice::flow::read_packet(facts, packet)) REQUIRE(is_inside(packet.payload));
}

}  // namespace

// Most mutations break the IPv4 header checksum, and nothing behind it would ever be reached: half of them repair it.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 == 0 && size >= 34 && header_at<EthernetHeader>(data, 0).ethertype == be16(ethertype_ipv4)) {
    auto& ip = header_at<Ipv4Header>(data, sizeof(EthernetHeader));
    const std::size_t length = (ip.version_ihl & 0x0fU) * 4U;
    if (length >= sizeof ip && sizeof(EthernetHeader) + length <= size) {
      ip.checksum = ipv4_header_checksum(ip);
    }
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto length = static_cast<std::uint32_t>(size);
  FrameView view{};
  FrameView slow{};
  const Reason reason = parse_frame(data, length, view);
  (void)metadata_of(data, length);
  check_facts({reinterpret_cast<const char*>(data), size});
  check_answer(Frame(data, data + size));
  REQUIRE(reason < reason_count());
  REQUIRE(reason == detail::parse_slow(data, length, slow));
  if (reason != no_reason) {
    return 0;
  }
  REQUIRE(same(view, slow));
  if (view.kind == FrameKind::host && view.l3_length != 0 && data[sizeof(EthernetHeader)] >> 4 == 4) {
    (void)has_source_route(data + sizeof(EthernetHeader));
  }
  const Frame frame(data, data + size);
  check_view(frame, view);
  const std::uint32_t hash = flow_hash(data, length, view);
  if (view.l3_length != 0) {
    const Frame back = reversed(frame, view);
    REQUIRE(flow_hash(back.data(), length, view) == hash);
  }
  check_forwarding(frame, view);
  return 0;
}
