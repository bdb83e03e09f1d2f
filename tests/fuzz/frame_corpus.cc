// frame_corpus FOLDER: writes the seeds of frame_fuzz, one frame of each kind, well formed and not.
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "packet/builder.h"
#include "packet/headers.h"

using namespace sluice::packet;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: frame_corpus FOLDER\n";
    return 2;
  }
  const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "10.1.0.1"); };
  const auto v6 = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8:1::1"); };
  const auto behind = [](Bytes front, const Bytes& inner) {
    front.insert(front.end(), inner.begin(), inner.end());
    return front;
  };
  const Bytes frame = v4().udp(7, 8).payload(4).build();
  const Bytes packet(frame.begin() + sizeof(EthernetHeader), frame.end());
  const std::vector<std::pair<const char*, PacketBuilder>> seeds = {
      {"arp", PacketBuilder().arp_request("10.0.0.1", "10.0.0.2").pad_to(60)},
      {"vlan", v4().vlan(7).udp(1, 2)},
      {"lldp", PacketBuilder().ethertype(0x88cc).payload(46)},
      {"ipv4_udp", v4().udp(1234, 80).payload(18)},
      {"ipv4_tcp", v4().tcp(1234, 80).tcp_flags(tcp_syn)},
      {"ipv4_icmp", v4().icmp(8, 0, 0x00010001).payload(4)},
      {"ipv4_options", v4().options({0x94, 4, 0, 0}).udp(1, 2)},
      {"ipv4_first_fragment", v4().udp(1, 2).payload(24).fragment(0, true)},
      {"ipv4_last_fragment", v4().udp(1, 2).payload(24).fragment(32, false)},
      {"ipv4_dhcp", PacketBuilder().ipv4("0.0.0.0", "255.255.255.255").udp(68, 67).payload(8)},
      {"ipv4_multicast", PacketBuilder().ipv4("10.0.0.1", "224.0.0.5").protocol(89).payload(4)},
      {"ipv4_link_local", PacketBuilder().ipv4("169.254.0.1", "10.0.0.1").udp(1, 2)},
      {"ipv4_martian", PacketBuilder().ipv4("127.0.0.1", "240.0.0.1").udp(1, 2)},
      {"ipv4_bad_checksum", v4().udp(1, 2).ip_checksum(1)},
      {"ipv4_bad_length", v4().udp(1, 2).ip_length(1500)},
      {"ipv4_cut", v4().udp(1, 2).cut_to(30)},
      {"ipv6_udp", v6().udp(1234, 80).payload(2)},
      {"ipv6_tcp", v6().tcp(1234, 80)},
      {"ipv6_icmp", v6().icmp6(128, 0, 0x00010001)},
      {"ipv6_hop_by_hop", v6().extension(protocol_hop_by_hop, {5, 2, 0, 0}).icmp6(143, 0)},
      {"ipv6_routing", v6().extension(protocol_routing, Bytes(6)).udp(1, 2)},
      {"ipv6_fragment", v6().udp(1, 2).payload(8).fragment(0, true)},
      {"ipv6_link_local", PacketBuilder().ipv6("fe80::1", "ff02::1").icmp6(135, 0)},
      {"ipv6_loopback", PacketBuilder().ipv6("::1", "::1").udp(1, 2)},
      {"ipv6_cut", v6().udp(1, 2).cut_to(50)},
      {"tags", v4().vlan(1).vlan(2).vlan(3).vlan(4).vlan(5).udp(1, 2)},
      {"ipv6_extensions", v6().extension(protocol_hop_by_hop, {5, 2, 0, 0})
                              .extension(protocol_destination_options, {1, 0})
                              .fragment(0, false)
                              .tcp(1234, 80)},
      {"ip_in_ip", v4().protocol(4).payload(packet)},
      {"gre", v4().protocol(47).payload(behind({0x20, 0, 8, 0, 0, 0, 0, 1}, packet))},
      {"gre_mpls", v4().protocol(47).payload(behind({0, 0, 0x88, 0x47, 0, 0, 0x11, 64}, packet))},
      {"pptp",
       v4().protocol(47).payload(behind({0x30, 1, 0x88, 0x0b, 0, 32, 0, 1, 0, 0, 0, 1, 0xff, 3, 0x21}, packet))},
      {"vxlan", v4().udp(50000, 4789).payload(behind({8, 0, 0, 0, 0, 0, 7, 0}, frame))},
      {"geneve", v6().udp(50000, 6081).payload(behind({1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0}, frame))},
      {"gtp_u",
       v4().udp(50000, 2152).payload(behind({0x34, 255, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0}, packet))},
      {"mpls", PacketBuilder().ethertype(0x8847).payload(behind({0, 0, 0x10, 64, 0, 0, 0x21, 64}, packet))},
      {"pppoe", PacketBuilder().ethertype(0x8864).payload(behind({0x11, 0, 0, 5, 0, 34, 0, 0x21}, packet))},
      {"nsh", PacketBuilder().ethertype(0x894f).payload(behind({0, 2, 1, 3, 0, 0, 1, 255}, frame))},
  };
  for (const auto& [name, builder] : seeds) {
    const Bytes bytes = builder.build();
    std::ofstream file(std::string(argv[1]) + "/" + name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) {
      std::cerr << "cannot write " << argv[1] << "/" << name << "\n";
      return 1;
    }
  }
}
