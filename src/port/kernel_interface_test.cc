#include <gtest/gtest.h>
#include <unistd.h>

#include "../tests/support/net_namespace.h"
#include "port/port.h"

namespace sluice::port {
namespace {

using test::NetNamespace;

class KernelInterfaceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    ASSERT_EQ(space_.run("ip link set lo up && ip link add x0 mtu 9000 type veth peer name x1 && ip link set x0 up"),
              0);
  }

  static PortOptions on(const std::string& device, unsigned mtu = 1500) {
    PortOptions options;
    options.name = "p";
    options.device = device;
    options.mtu = mtu;
    return options;
  }
  std::string link() const { return space_.output("ip -d link show x0"); }
  // The kernel notes that a cable is in some time after `ip link` has ended.
  static bool comes_up(const Port& port) {
    for (int i = 0; i < 500 && !port.link_up(); ++i) usleep(10'000);
    return port.link_up();
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
};

TEST_F(KernelInterfaceTest, ThereIsNothingToWaitForOnPcap) {
  auto port = Port::open(on("net_pcap7,tx_iface=lo"), {}, 1);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_EQ((*port)->wait_fd(0), -1);
}

TEST_F(KernelInterfaceTest, TheInterfaceGetsItsMtuAndPromiscuousModeBack) {
  for (const char* driver : {"net_af_packet7", "net_af_xdp7"}) {
    {
      auto port = Port::open(on(std::string(driver) + ",iface=x0"), {}, 1);
      ASSERT_TRUE(port) << port.error().message;
      EXPECT_NE(link().find("mtu 1500"), std::string::npos) << link();
      EXPECT_NE(link().find("PROMISC"), std::string::npos) << link();
    }
    EXPECT_NE(link().find("mtu 9000"), std::string::npos) << driver << link();
    EXPECT_EQ(link().find("PROMISC"), std::string::npos) << driver << link();
  }
}

TEST_F(KernelInterfaceTest, ARenamedInterfaceGetsThemBackToo) {
  for (const char* driver : {"net_af_packet7", "net_af_xdp7"}) {
    {
      auto port = Port::open(on(std::string(driver) + ",iface=x0"), {}, 1);
      ASSERT_TRUE(port) << port.error().message;
      ASSERT_EQ(space_.run("ip link set x0 down && ip link set x0 name y0"), 0);
    }
    ASSERT_EQ(space_.run("ip link set y0 name x0 && ip link set x0 up"), 0);
    EXPECT_NE(link().find("mtu 9000"), std::string::npos) << driver << link();
    EXPECT_EQ(link().find("PROMISC"), std::string::npos) << driver << link();
  }
}

TEST_F(KernelInterfaceTest, WhatTheAdministratorSetMeanwhileOrBeforeStays) {
  ASSERT_EQ(space_.run("ip link set x0 promisc on"), 0);
  {
    auto port = Port::open(on("net_af_packet7,iface=x0"), {}, 1);
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_EQ(space_.run("ip link set x0 mtu 1400"), 0);
  }
  EXPECT_NE(link().find("mtu 1400"), std::string::npos) << link();
  EXPECT_NE(link().find("PROMISC"), std::string::npos) << link();
}

// The port's sockets stay bound to the number of the one that was deleted.
TEST_F(KernelInterfaceTest, AnotherInterfaceOfTheSameNameIsNotThePorts) {
  for (const char* driver : {"net_af_packet7", "net_af_xdp7"}) {
    ASSERT_EQ(space_.run("ip link set x1 up"), 0);
    auto port = Port::open(on(std::string(driver) + ",iface=x0"), {}, 1);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_TRUE(comes_up(**port) && !(*port)->interface_deleted());
    ASSERT_EQ(space_.run("ip link set x0 name y0 && ip link set y0 up"), 0);
    EXPECT_TRUE(comes_up(**port) && !(*port)->interface_deleted()) << "renamed, it is the same";
    ASSERT_EQ(space_.run("ip link del y0 && ip link add x0 mtu 1500 type veth peer name x1 && ip link set x0 up && "
                         "ip link set x1 up && ip link set x0 promisc on"),
              0);
    EXPECT_FALSE((*port)->link_up());
    EXPECT_TRUE((*port)->interface_deleted());
    port->reset();
    EXPECT_NE(link().find("PROMISC"), std::string::npos) << "the new one's settings are its own";
    ASSERT_EQ(space_.run("ip link set x0 promisc off"), 0);
  }
}

TEST_F(KernelInterfaceTest, AnMtuAboveTheInterfacesOwnIsSetAndPutBack) {
  ASSERT_EQ(space_.run("ip link set x0 mtu 1500"), 0);
  MemoryOptions memory;
  memory.frame_bytes = 9216;
  memory.frames = 512;
  {
    auto port = Port::open(on("net_af_packet7,iface=x0", 9000), memory, 1);
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_NE(link().find("mtu 9000"), std::string::npos) << link();
  }
  EXPECT_NE(link().find("mtu 1500"), std::string::npos) << link();
}

// A veth whose other end has an XDP program takes no frame that is larger than a page.
TEST_F(KernelInterfaceTest, AnMtuThatTheDeviceRefusesIsAnError) {
  ASSERT_EQ(space_.run("ip link set x1 mtu 1500 up && ip link set x0 mtu 1500"), 0);
  const auto xdp = Port::open(on("net_af_xdp7,iface=x0"), {}, 1);
  ASSERT_TRUE(xdp) << xdp.error().message;
  MemoryOptions memory;
  memory.frame_bytes = 9216;
  memory.frames = 512;
  PortOptions options = on("net_af_packet7,iface=x1", 9000);
  options.name = "jumbo";
  const auto port = Port::open(options, memory, 1);
  ASSERT_FALSE(port);
  for (const char* words : {"[[port]] 'jumbo'", "does not take mtu = 9000", "Invalid argument"}) {
    EXPECT_NE(port.error().message.find(words), std::string::npos) << port.error().message;
  }
  EXPECT_NE(space_.output("ip link show x1").find("mtu 1500"), std::string::npos);
}

}  // namespace
}  // namespace sluice::port
