#include "port/device_arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace sluice::port {
namespace {

TEST(DeviceArguments, ArgumentsThatADriverDoesNotKnowAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"net_af_packet0,iface=a,qpairs=2,blocksz=4096,framesz=2048,framecnt=512,qdisc_bypass=0", ""},
      {"net_af_xdp0,iface=a,start_queue=0,queue_count=1,xdp_prog=x,busy_budget=0,force_copy=1,shared_umem=0", ""},
      {"net_ring0", ""},
      {"net_af_packet0", "which interface? Give it with iface=, as in net_af_packet0,iface=eth1"},
      {"net_af_xdp1,iface=", "which interface? Give it with iface=, as in net_af_xdp1,iface=eth1"},
      {"net_af_packet0,ifcae=eth1", "net_af_packet has no argument 'ifcae'; did you mean \"iface\"?"},
      {"net_af_packet0,iface=a,queue_count=1",
       "net_af_packet has no argument 'queue_count'; known are iface, qpairs, blocksz, framesz, framecnt, "
       "qdisc_bypass"},
      {"net_tap0,iface=t,mac=fixed,persist", ""},
      {"net_tap0,iface=t,remote=eth1",
       "the argument remote: the kernel would serve the interface's frames, too: use net_af_packet0,iface=..."},
      {"net_tap0,ifcae=t", "net_tap has no argument 'ifcae'; did you mean \"iface\"?"},
      {"net_pcap0,rx_pcap=a,rx_pcap=b,tx_pcap=c,phy_mac=0,infinite_rx=1", ""},
      {"net_pcap0,rx_file=a",
       "net_pcap has no argument 'rx_file'; known are rx_pcap, tx_pcap, tx_iface, phy_mac, infinite_rx"},
      {"net_memif0,role=server,id=0,socket=/run/"
       "s,socket-abstract=no,bsize=2048,rsize=10,mac=02:00:00:00:00:01,zero-copy=no,secret=s",
       ""},
      {"net_pcap0", "which capture? Give it with rx_pcap=, as in net_pcap0,rx_pcap=in.pcap"},
      {"net_pcap0,infinite_rx=1", "which capture? Give it with rx_pcap=, as in net_pcap0,rx_pcap=in.pcap"},
      {"net_pcap0,tx_pcap=a", ""},
      {"net_pcap0,tx_iface=a", ""},
      {"net_memif0,role=boss", "the argument role='boss': allowed is client or server or slave or master"},
      {"net_memif0,zero-copy=maybe", "the argument zero-copy='maybe': allowed is yes or no"},
      {"net_memif0,mac=fixed", "the argument mac='fixed': allowed is a MAC address such as 02:00:00:00:00:01"},
      {"net_tap0,mac=x", "the argument mac='x': allowed is a MAC address such as 02:00:00:00:00:01 or fixed"},
      {"net_memif0,id=core", "the argument id='core': allowed is a whole number"},
      {"net_null0,size=64,copy=1,no-rx=1", ""},
      {"net_null0,size=foo", "the argument size='foo': allowed is a whole number"},
      {"net_null0,sise=64", "net_null has no argument 'sise'; did you mean \"size\"?"},
      {"net_null0,no-rx=2", "the argument no-rx='2': allowed is 0 or 1"},
      {"net_ring0,size=64", "net_ring has no argument 'size'; known are nodeaction, internal"},
      {"net_vhost0,iface=/run/x,queues=2,client=1", ""},
      {"net_vhost0", "which socket? Give it with iface=, as in net_vhost0,iface=/run/vhost.sock"},
      {"net_virtio_user0", "which socket or device? Give it with path=, as in net_virtio_user0,path=/run/vhost.sock"},
      {"net_tun0,iface=t",
       "net_tun0 cannot be a port: a TUN interface has no Ethernet header, which Sluice needs: use net_tap"},
      {"net_af_packet0,iface=eth1,iface=eth1", "the argument iface is there twice: give it once"},
      {"net_tap0,persist,iface=t,persist", "the argument persist is there twice: give it once"},
      {"net_pcap0,rx_pcap=a,rx_pcap=b,tx_iface=a,tx_iface=b", ""},
      {"net_pcap0,rx_iface=eth1",
       "the argument rx_iface: the kernel would serve the interface's frames, too: use net_af_packet0,iface=..."},
      {"net_pcap0,iface=eth1",
       "the argument iface: the kernel would serve the interface's frames, too: use net_af_packet0,iface=..."},
      {"net_af_packet0,iface", "the argument iface has no value: write iface=..."},
      {"net_af_packet0,iface=a,",
       "net_af_packet has no argument ''; known are iface, qpairs, blocksz, framesz, framecnt, qdisc_bypass"},
  };
  for (const auto& [device, message] : cases) {
    const auto fine = check_arguments(device);
    EXPECT_EQ(fine ? "" : fine.error().message, message) << device;
  }
}

TEST(DeviceArguments, KindsThatCannotBeAPortSayWhatToUse) {
  for (const char* device : {"net_bonding0", "net_bonding0,mode=1,slave=net_null1", "eth_bond0,mode=1"}) {
    const auto fine = check_arguments(device);
    ASSERT_FALSE(fine) << device;
    EXPECT_NE(fine.error().message.find(" cannot be a port: a bond of DPDK needs members"), std::string::npos)
        << fine.error().message;
  }
  EXPECT_FALSE(check_arguments("net_vdev_netvsc0,iface=eth1"));
  for (const char* device : {"net_failsafe0", "net_failsafe0,dev(net_af_packet7,iface=eth1)", "net_failsafe0,fd(7)"}) {
    const auto fine = check_arguments(device);
    ASSERT_FALSE(fine) << device;
    EXPECT_EQ(fine.error().message,
              "net_failsafe0 cannot be a port: Sluice does not see the devices in it, and the kernel would serve their "
              "interfaces too: give the port its device itself, such as net_af_packet0,iface=eth1");
  }
}

// DPDK opens these, and is_driver(), on which isolation from the kernel rests, does not know them.
TEST(DeviceArguments, ADriverUnderAnotherNameSaysWhichToUse) {
  const std::pair<const char*, const char*> cases[] = {
      {"eth_af_packet0,iface=eth1", "'eth_af_packet0': use net_af_packet0"},
      {"eth_af_packet0", "'eth_af_packet0': use net_af_packet0"},
      {"eth_af_xdp12,iface=eth1", "'eth_af_xdp12': use net_af_xdp12"},
      {"eth_tap0,iface=t", "'eth_tap0': use net_tap0"},
      {"eth_pcap0,rx_pcap=a", "'eth_pcap0': use net_pcap0"},
      {"eth_ring0", "'eth_ring0': use net_ring0"},
      {"eth_null0,size=64", "'eth_null0': use net_null0"},
      {"eth_memif0,role=server", "'eth_memif0': use net_memif0"},
      {"eth_vhost0,iface=/run/x", "'eth_vhost0': use net_vhost0"},
      {"net_af_packet_lan,iface=eth1", "'net_af_packet_lan': use net_af_packet and a number, such as net_af_packet0"},
      {"eth_tap_lan,iface=t", "'eth_tap_lan': use net_tap and a number, such as net_tap0"},
  };
  for (const auto& [device, message] : cases) {
    const auto fine = check_arguments(device);
    ASSERT_FALSE(fine) << device;
    EXPECT_EQ(fine.error().message, std::string("Sluice knows no driver by the name ") + message);
  }
}

}  // namespace
}  // namespace sluice::port
