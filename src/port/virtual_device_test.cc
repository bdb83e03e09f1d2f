#include "port/virtual_device.h"

#include <gtest/gtest.h>

#include "port/packet_port.h"

namespace sluice::port {
namespace {

PortOptions port(const std::string& device, unsigned mtu = 1500, unsigned queues = 1) {
  PortOptions options;
  options.name = "p";
  options.device = device;
  options.mtu = mtu;
  options.queues = queues;
  return options;
}

TEST(VirtualDevice, DistinguishesDrivers) {
  EXPECT_TRUE(is_driver("net_tap", "net_tap"));
  EXPECT_TRUE(is_driver("net_tap12,iface=net_ring0", "net_tap"));
  EXPECT_FALSE(is_driver("net_tap0,iface=net_ring0", "net_ring"));
  EXPECT_FALSE(is_driver("net_tapestry0", "net_tap"));
  EXPECT_FALSE(is_driver("net_af_packet0", "net_af_xdp"));
}

TEST(VirtualDevice, NamesADeviceWithoutItsArguments) {
  EXPECT_EQ(device_name("net_af_packet0,iface=x"), "net_af_packet0");
  EXPECT_EQ(device_name("0000:3b:00.0"), "0000:3b:00.0");
}

TEST(VirtualDevice, FindsArgumentsByTheirWholeName) {
  EXPECT_EQ(device_argument("net_af_packet0,iface=eth1,qpairs=2", "iface"), "eth1");
  EXPECT_EQ(device_argument("net_af_packet0,iface=eth1,qpairs=2", "qpairs"), "2");
  EXPECT_EQ(device_argument("net_pcap0,rx_iface=eth1", "iface"), "");
  EXPECT_EQ(device_argument("net_pcap0,rx_pcap=", "rx_pcap"), "");
}

TEST(VirtualDevice, RefusesAnInterfaceThatIsNoEthernet) {
  for (const char* device : {"net_af_packet0,iface=lo", "net_af_xdp0,iface=lo"}) {
    const auto checked = check_device(port(device), MemoryOptions());
    ASSERT_FALSE(checked) << device;
    EXPECT_EQ(checked.error().message,
              "interface 'lo' is no Ethernet (its ARPHRD type is 772, not 1): name one that 'ip link' shows as "
              "link/ether");
  }
}

TEST(VirtualDevice, AddsWhatFollowsFromTheOtherOptionsAndNothingThatIsThere) {
  struct Case {
    PortOptions options;
    std::string expected;
  };
  MemoryOptions memory;
  memory.frame_bytes = 9216;
  const Case cases[] = {
      {port("net_af_packet0,iface=a"), "net_af_packet0,iface=a"},
      {port("net_af_xdp0,iface=a", 1500, 3), "net_af_xdp0,iface=a,queue_count=3"},
      {port("net_af_xdp0,iface=a,queue_count=1"), "net_af_xdp0,iface=a,queue_count=1"},
      {port("net_memif0,role=client"), "net_memif0,role=client,bsize=9216"},
      {port("net_memif0,bsize=2048,role=client"), "net_memif0,bsize=2048,role=client"},
      {port("net_tap0,iface=t", 1500, 2), "net_tap0,iface=t"},
      {port("0000:3b:00.0", 9000, 4), "0000:3b:00.0"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(complete_arguments(one.options, memory), one.expected);
  }
}

TEST(VirtualDevice, SizesThatDoNotFitAreReportedWithoutTheDevice) {
  MemoryOptions memory;
  const std::pair<PortOptions, const char*> cases[] = {
      {port("net_af_packet0,iface=gone", 9000), "mtu = 9000 needs [memory] frame_bytes = 9022"},
      {port("net_af_packet0,iface=gone,framesz=1024"), "framesz = 1024 does not hold"},
      {port("net_af_packet0,iface=gone,framecnt=8"), "framecnt = 8: allowed is a whole number from 64"},
      {port("net_af_packet0,iface=gone,blocksz=1000"), "blocksz = 1000"},
      {port("net_af_packet0,iface=gone,qpairs=2"), "qpairs = 2 and queues = 1"},
      {port("net_af_xdp0,iface=gone", 1800), "mtu = 1800 needs [memory] frame_bytes = 2078"},
      {port("net_af_xdp0,iface=gone", 9000), "mtu may be"},
      {port("net_tap0", 1600), "MTU of 1500 at most, not mtu = 1600"},
      {port("net_memif0", 2027), "mtu = 2027 needs [memory] frame_bytes = 2049"},
      {port("0000:3b:00.0", 9000), "mtu = 9000 needs [memory] frame_bytes = 9022"},
  };
  for (const auto& [options, said] : cases) {
    const auto fits = check_sizes(options, memory);
    ASSERT_FALSE(fits) << options.device;
    EXPECT_NE(fits.error().message.find(said), std::string::npos) << fits.error().message;
  }
  for (const char* device : {"net_null0", "net_ring0", "net_pcap0,rx_pcap=a", "replay"}) {
    EXPECT_TRUE(check_sizes(port(device, 9000), memory)) << device;
  }
  EXPECT_TRUE(check_sizes(port("net_af_packet0,iface=gone", 2026), memory));
}

// A block of a packet socket's ring is whole pages and whole slots.
TEST(VirtualDevice, BlocksOfAPacketRingAreWholePagesOfWholeSlots) {
  for (unsigned mtu = 68; mtu <= 9600; ++mtu) {
    const auto ring = packet_ring_options(port("net_af_packet0,iface=a", mtu));
    ASSERT_TRUE(ring) << ring.error().message;
    ASSERT_GE(ring->slot_bytes, mtu + 22 + 90);
    ASSERT_EQ(ring->block_bytes % 4096, 0U);
    ASSERT_EQ(ring->block_bytes % ring->slot_bytes, 0U);
  }
}

TEST(VirtualDevice, WhereNobodySeesHowLongFramesWaitIsSaid) {
  for (const char* device : {"net_af_xdp0,iface=a", "net_tap0", "net_memif0", "0000:3b:00.0"}) {
    EXPECT_NE(unseen_arrival(device), "") << device;
  }
  for (const char* device : {"net_af_packet0,iface=a", "replay,rate=1", "net_pcap0,rx_pcap=a", "net_null0"}) {
    EXPECT_EQ(unseen_arrival(device), "") << device;
  }
}

}  // namespace
}  // namespace sluice::port
