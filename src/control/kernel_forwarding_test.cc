#include "control/kernel_forwarding.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::control {
namespace {

constexpr const char* rest =
    ": it will not forward or answer what the fast path leaves to it (first packets to a neighbour, traceroute, path "
    "MTU, no route): sysctl -w ";

class KernelForwarding : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }
  void set(const std::string& setting, int value) {
    const auto path = root_ / "proc/sys" / setting;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << value << '\n';
  }
  void set(int ipv4, int sl_a, int sl_b, int ipv6) {
    set("net/ipv4/ip_forward", ipv4);
    set("net/ipv4/conf/sl-a/forwarding", sl_a);
    set("net/ipv4/conf/sl-b/forwarding", sl_b);
    set("net/ipv6/conf/all/forwarding", ipv6);
    set_addresses("20010db8000000000000000000000001 0b 40 00 80     sl-b\n");
  }
  void set_addresses(const std::string& lines) {
    std::filesystem::create_directories(root_ / "proc/net");
    std::ofstream(root_ / "proc/net/if_inet6") << lines;
  }
  std::string warning() const { return forwarding_warning(forwarding_off({"sl-a", "sl-b"}, root_.string())); }

  std::filesystem::path root_ =
      std::filesystem::path(testing::TempDir()) / ("kernel_forwarding-" + std::to_string(getpid()));
};

TEST_F(KernelForwarding, SaysWhatIsOffAndWhatToSet) {
  set(1, 1, 1, 1);
  EXPECT_EQ(warning(), "");
  set(0, 0, 0, 1);
  EXPECT_EQ(warning(), "kernel: IPv4 forwarding is off on sl-a, sl-b" + std::string(rest) + "net.ipv4.ip_forward=1");
  set(1, 1, 0, 1);
  EXPECT_EQ(warning(),
            "kernel: IPv4 forwarding is off on sl-b" + std::string(rest) + "net.ipv4.conf.sl-b.forwarding=1");
  set(0, 1, 1, 1);
  EXPECT_EQ(warning(), "") << "the twins' own settings decide";
  set(1, 1, 1, 0);
  EXPECT_EQ(warning(), "kernel: IPv6 forwarding is off" + std::string(rest) + "net.ipv6.conf.all.forwarding=1");
  set(0, 0, 1, 0);
  EXPECT_EQ(warning(), "kernel: IPv4 forwarding is off on sl-a, IPv6 forwarding is off" + std::string(rest) +
                           "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
}

// Its default is off: a router for IPv4 alone is well.
TEST_F(KernelForwarding, Ipv6IsAskedForOnlyWhereATwinHasAnAddress) {
  set(1, 1, 1, 0);
  EXPECT_NE(warning(), "");
  set_addresses(
      "fe800000000000000000000000000001 0b 40 20 80     sl-b\n"
      "20010db8000000000000000000000001 02 40 00 80     eth0\n");
  EXPECT_EQ(warning(), "");
}

TEST_F(KernelForwarding, ANameWithADotIsWrittenAsSysctlTakesIt) {
  set("net/ipv4/conf/sl.10/forwarding", 0);
  set("net/ipv4/conf/sl-b/forwarding", 0);
  EXPECT_EQ(forwarding_warning(forwarding_off({"sl.10", "sl-b"}, root_.string())),
            "kernel: IPv4 forwarding is off on sl.10, sl-b" + std::string(rest) +
                "net/ipv4/conf/sl.10/forwarding=1 net.ipv4.conf.sl-b.forwarding=1");
}

TEST_F(KernelForwarding, AFamilyThatTheKernelDoesNotHaveIsPassedOver) {
  EXPECT_EQ(warning(), "");
}

}  // namespace
}  // namespace sluice::control
