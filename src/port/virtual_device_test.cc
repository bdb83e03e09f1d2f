#include "port/virtual_device.h"

#include <gtest/gtest.h>

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

TEST(VirtualDevice, TellsDriversApart) {
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
      {port("net_af_packet0,iface=a", 1946), "net_af_packet0,iface=a"},
      {port("net_af_packet0,iface=a", 1947), "net_af_packet0,iface=a,framesz=3072,blocksz=12288"},
      {port("net_af_packet0,iface=a", 9000, 2), "net_af_packet0,iface=a,qpairs=2,framesz=9216,blocksz=36864"},
      {port("net_af_packet0,iface=a,qpairs=4", 1500, 2), "net_af_packet0,iface=a,qpairs=4"},
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

// A block of af_packet's ring is whole pages and whole slots, which is where DPDK looks for them.
TEST(VirtualDevice, BlocksOfAPacketRingAreWholePagesOfWholeSlots) {
  for (unsigned mtu = 1947; mtu <= 9600; ++mtu) {
    const std::string device = complete_arguments(port("net_af_packet0,iface=a", mtu), {});
    const unsigned long slot = std::stoul(device_argument(device, "framesz"));
    const unsigned long block = std::stoul(device_argument(device, "blocksz"));
    ASSERT_GE(slot, mtu + 22 + 80);
    ASSERT_EQ(block % 4096, 0U);
    ASSERT_EQ(block % slot, 0U);
  }
}

}  // namespace
}  // namespace sluice::port
