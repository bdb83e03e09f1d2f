// Frames in, kind or reason out: a table for each protocol.
#include "packet/parse.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "packet/builder.h"

namespace sluice::packet {
namespace {

struct Case {
  const char* what;
  PacketBuilder frame;
  Reason reason;
  FrameKind kind = FrameKind::host;
};

void run(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Bytes frame = c.frame.build();
    FrameView view;
    const Reason reason = parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), view);
    EXPECT_EQ(reason_name(reason), reason_name(c.reason)) << c.what;
    if (reason == no_reason && c.reason == no_reason) {
      EXPECT_EQ(static_cast<int>(view.kind), static_cast<int>(c.kind)) << c.what;
    }
  }
}

PacketBuilder v4(const char* source = "10.0.0.1", const char* destination = "10.1.0.1") {
  return PacketBuilder().ipv4(source, destination).udp(1234, 80).payload(18);
}
PacketBuilder v6(const char* source = "2001:db8::1", const char* destination = "2001:db8:1::1") {
  return PacketBuilder().ipv6(source, destination).udp(1234, 80).payload(18);
}

constexpr auto ok = no_reason;

TEST(Parse, Ipv4Header) {
  run({
      {"plain", v4(), ok, FrameKind::ipv4},
      {"no transport header", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1"), ok, FrameKind::ipv4},
      {"padded", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").icmp(8, 0).pad_to(60), ok, FrameKind::ipv4},
      {"jumbo", v4().payload(9000), ok, FrameKind::ipv4},
      {"largest", v4().payload(65535 - 28), ok, FrameKind::ipv4},
      {"ttl 0 is the router's business", v4().ttl(0), ok, FrameKind::ipv4},
      {"first fragment", v4().fragment(0, true), ok, FrameKind::ipv4},
      {"ends in the Ethernet header", v4().cut_to(13), frame_too_short},
      {"empty", v4().cut_to(0), frame_too_short},
      {"ends in the IP header", v4().cut_to(33), frame_too_short},
      {"ends in the options", v4().options(Bytes(8)).cut_to(41), frame_too_short},
      {"ends in the payload", v4().cut_to(59), bad_total_length},
      {"version 6", v4().ip_version(6), bad_ip_version},
      {"version 0", v4().ip_version(0), bad_ip_version},
      {"header of 16 bytes", v4().ihl(4), bad_header_length},
      {"header of 0 bytes", v4().ihl(0), bad_header_length},
      {"header longer than the packet", PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").ihl(6).pad_to(60),
       bad_total_length},
      {"length below the header", v4().ip_length(19), bad_total_length},
      {"length 0", v4().ip_length(0), bad_total_length},
      {"length one more than the frame", v4().ip_length(47), bad_total_length},
      {"length 65535", v4().ip_length(65535), bad_total_length},
      {"checksum 0", v4().ip_checksum(0), bad_checksum},
      {"checksum off by one", v4().ip_checksum(0x26bf), bad_checksum},
      {"options, checksum wrong", v4().options({1, 1, 1, 1}).ip_checksum(0x1234), bad_checksum},
      {"options", v4().options({1, 1, 1, 1}), ok, FrameKind::host},
      {"options to the full 60 bytes", v4().options(Bytes(40)), ok, FrameKind::host},
  });
}

TEST(Parse, Ipv4Addresses) {
  run({
      {"edge of 0/8", v4("1.0.0.0", "1.0.0.0"), ok, FrameKind::ipv4},
      {"edges of 127/8", v4("126.255.255.255", "128.0.0.0"), ok, FrameKind::ipv4},
      {"edge of multicast", v4("223.255.255.255", "223.255.255.255"), ok, FrameKind::ipv4},
      {"edges of link-local", v4("169.253.255.255", "169.255.0.0"), ok, FrameKind::ipv4},
      {"private to public", v4("192.168.0.1", "8.8.8.8"), ok, FrameKind::ipv4},
      {"0/8 source", v4("0.0.0.1"), ok, FrameKind::ipv4},
      {"unspecified source to unicast", v4("0.0.0.0"), bad_source},
      {"DHCP discover", v4("0.0.0.0", "255.255.255.255"), ok, FrameKind::host},
      {"IGMP report", v4("0.0.0.0", "224.0.0.22"), ok, FrameKind::host},
      {"loopback source", v4("127.0.0.1"), bad_source},
      {"end of loopback", v4("127.255.255.255"), bad_source},
      {"multicast source", v4("224.0.0.1"), bad_source},
      {"class E source", v4("240.0.0.1"), ok, FrameKind::ipv4},
      {"just below broadcast, source", v4("255.255.255.254"), ok, FrameKind::ipv4},
      {"broadcast source", v4("255.255.255.255"), bad_source},
      {"bad source and bad destination", v4("127.0.0.1", "127.0.0.1"), bad_source},
      {"0/8 destination", v4("10.0.0.1", "0.1.2.3"), ok, FrameKind::ipv4},
      {"unspecified source to class E", v4("0.0.0.0", "240.0.0.1"), bad_source},
      {"unspecified destination", v4("10.0.0.1", "0.0.0.0"), bad_destination},
      {"loopback destination", v4("10.0.0.1", "127.0.0.1"), bad_destination},
      {"class E destination", v4("10.0.0.1", "240.0.0.0"), ok, FrameKind::ipv4},
      {"just below broadcast", v4("10.0.0.1", "255.255.255.254"), ok, FrameKind::ipv4},
      {"broadcast", v4("10.0.0.1", "255.255.255.255"), ok, FrameKind::host},
      {"multicast, first", v4("10.0.0.1", "224.0.0.0"), ok, FrameKind::host},
      {"multicast, last", v4("10.0.0.1", "239.255.255.255"), ok, FrameKind::host},
      {"link-local source", v4("169.254.1.1"), ok, FrameKind::host},
      {"link-local destination", v4("10.0.0.1", "169.254.1.1"), ok, FrameKind::host},
      {"unicast in a broadcast frame", v4().eth("02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"), ok, FrameKind::host},
      {"unicast in a multicast frame", v4().eth("02:00:00:00:00:01", "01:00:5e:00:00:01"), ok, FrameKind::host},
  });
}

TEST(Parse, Ipv6) {
  const char* host = "2001:db8::1";
  run({
      {"plain", v6(), ok, FrameKind::ipv6},
      {"no payload", PacketBuilder().ipv6(host, "2001:db8::2").protocol(protocol_no_next), ok, FrameKind::ipv6},
      {"padded", v6().payload(0).pad_to(80), ok, FrameKind::ipv6},
      {"hop limit 0 is the router's business", v6().ttl(0), ok, FrameKind::ipv6},
      {"largest", v6().payload(65535 - 48), ok, FrameKind::ipv6},
      {"beyond what a length can say", v6().payload(65535 - 47), bad_total_length},
      {"fragment", v6().fragment(1280, true), ok, FrameKind::ipv6},
      {"destination options", v6().extension(protocol_destination_options, {}), ok, FrameKind::ipv6},
      {"routing header", v6().extension(protocol_routing, Bytes(6)), ok, FrameKind::ipv6},
      {"hop-by-hop options", v6().extension(protocol_hop_by_hop, {}), ok, FrameKind::host},
      {"ends in the header", v6().cut_to(53), frame_too_short},
      {"ends in what would do for IPv4", v6().cut_to(34), frame_too_short},
      {"ends in the payload", v6().cut_to(79), bad_total_length},
      {"length one more than the frame", v6().ip_length(27), bad_total_length},
      {"version 4", v6().ip_version(4), bad_ip_version},
      {"multicast source", v6("ff02::1"), bad_source},
      {"loopback source", v6("::1"), bad_source},
      {"loopback destination", v6(host, "::1"), bad_destination},
      {"unspecified source", v6("::"), ok, FrameKind::host},
      {"unspecified destination", v6(host, "::"), bad_destination},
      {"IPv4-mapped source", v6("::ffff:10.0.0.1"), ok, FrameKind::ipv6},
      {"IPv4-mapped destination", v6(host, "::ffff:10.0.0.1"), ok, FrameKind::ipv6},
      {"upper half zero, otherwise fine", v6("::2", "::1:0:0:1"), ok, FrameKind::ipv6},
      {"NAT64", v6(host, "64:ff9b::8.8.8.8"), ok, FrameKind::ipv6},
      {"unique local", v6("fc00::1", "fdff::1"), ok, FrameKind::ipv6},
      {"link-local source", v6("fe80::1"), ok, FrameKind::host},
      {"link-local destination", v6(host, "febf::1"), ok, FrameKind::host},
      {"edges of link-local", v6("fe7f::1", "fec0::1"), ok, FrameKind::ipv6},
      {"multicast", v6(host, "ff0e::1"), ok, FrameKind::host},
      {"unicast in a multicast frame", v6().eth("02:00:00:00:00:01", "33:33:00:00:00:01"), ok, FrameKind::host},
  });
}

TEST(Parse, OtherEthertypes) {
  run({
      {"ARP request", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2"), ok, FrameKind::host},
      {"ARP reply", PacketBuilder().arp_reply("10.0.0.1", "10.0.0.2").pad_to(60), ok, FrameKind::host},
      {"VLAN", v4().vlan(100), ok, FrameKind::host},
      {"two VLAN tags", v6().vlan(100).vlan(200), ok, FrameKind::host},
      {"VLAN tag around a bad packet", v4().vlan(1).ip_checksum(0), ok, FrameKind::host},
      {"802.3 length", PacketBuilder().ethertype(38).payload(38), ok, FrameKind::host},
      {"LLDP", PacketBuilder().ethertype(0x88cc).payload(46), ok, FrameKind::host},
      {"an Ethernet header alone", PacketBuilder().ethertype(0x88cc), ok, FrameKind::host},
      {"IPv6 under the ethertype of IPv4", v6().ethertype(ethertype_ipv4), bad_ip_version},
      {"IPv4 under the ethertype of IPv6", v4().ethertype(ethertype_ipv6), bad_ip_version},
  });
}

FrameView view_of(const PacketBuilder& builder) {
  const Bytes frame = builder.build();
  FrameView view{};
  EXPECT_EQ(parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), view), no_reason);
  return view;
}

TEST(Parse, ViewSaysWhatTheHeadersSay) {
  const struct {
    const char* what;
    PacketBuilder frame;
    int ttl, protocol, length;
    bool fragment;
  } cases[] = {
      {"IPv4, padding not counted", v4().ttl(7).payload(0).pad_to(60), 7, 17, 28, false},
      {"IPv4 don't fragment", v4().dont_fragment(), 64, 17, 46, false},
      {"IPv4 first fragment", v4().fragment(0, true), 64, 17, 46, true},
      {"IPv4 last fragment", v4().fragment(1480, false), 64, 17, 38, true},
      {"IPv4 options", v4().options(Bytes(4)), 64, 17, 50, false},
      {"IPv6", v6().ttl(255), 255, 17, 66, false},
      {"IPv6 fragment", v6().fragment(0, true), 64, protocol_fragment, 74, true},
      {"IPv6 hop-by-hop", v6().extension(protocol_hop_by_hop, {}), 64, protocol_hop_by_hop, 74, false},
      {"of no length", v6().extension(protocol_hop_by_hop, {}).ip_length(0), 64, protocol_hop_by_hop, 74, false},
      {"ARP", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2"), 0, 0, 0, false},
  };
  for (const auto& c : cases) {
    const FrameView view = view_of(c.frame);
    EXPECT_EQ(view.l3_offset, 14) << c.what;
    EXPECT_EQ(view.ttl, c.ttl) << c.what;
    EXPECT_EQ(view.protocol, c.protocol) << c.what;
    EXPECT_EQ(view.l3_length, c.length) << c.what;
    EXPECT_EQ(view.fragment, c.fragment) << c.what;
  }
}

TEST(Parse, EveryLengthOfEveryFrameIsSafe) {
  // Under AddressSanitizer a read behind the frame's end stops the test: each frame is its own allocation of just its
  // size.
  for (const PacketBuilder& builder : {v4(), v4().options(Bytes(40)), v6(), v6().extension(protocol_hop_by_hop, {}),
                                       v4().vlan(5), PacketBuilder().arp_request("10.0.0.1", "10.0.0.2")}) {
    const std::size_t whole = builder.build().size();
    for (std::size_t length = 0; length < whole; ++length) {
      Bytes frame = PacketBuilder(builder).cut_to(length).build();
      frame.shrink_to_fit();
      FrameView view{};
      const Reason reason = parse_frame(frame.data(), static_cast<std::uint32_t>(length), view);
      EXPECT_TRUE(reason == frame_too_short || reason == bad_total_length ||
                  (reason == no_reason && view.l3_length == 0))
          << length;
    }
  }
}

TEST(Parse, SourceRoutes) {
  const std::vector<std::pair<Bytes, bool>> cases{
      {{131, 7, 4, 10, 0, 0, 1}, true},                     // loose
      {{137, 7, 4, 10, 0, 0, 1}, true},                     // strict
      {{1, 1, 148, 4, 0, 0, 131, 7, 4, 1, 2, 3, 4}, true},  // behind others
      {{7, 7, 4, 131, 137, 131, 137}, false},               // record route, whose data look like it
      {{148, 4, 0, 0}, false},                              // router alert
      {{0, 131, 7, 4}, false},                              // behind the end
      {{7, 0, 131, 7}, false},                              // behind a malformed one
      {{1, 1, 1, 7}, false},                                // whose length is cut off
      {{7, 40, 131, 7}, false},                             // longer than the header
  };
  for (const auto& [options, expected] : cases) {
    const Bytes frame = v4().options(options).build();
    EXPECT_EQ(has_source_route(frame.data() + sizeof(EthernetHeader)), expected) << testing::PrintToString(options);
  }
}

}  // namespace
}  // namespace sluice::packet
