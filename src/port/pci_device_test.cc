#include "port/pci_device.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace sluice::port {
namespace {

namespace fs = std::filesystem;

// The kernel's folder of devices, made up.
class PciDevice : public testing::Test {
 protected:
  PciDevice() {
    std::string name = testing::TempDir() + "sluice-pci-XXXXXX";
    bus_ = mkdtemp(name.data());
  }
  ~PciDevice() override { fs::remove_all(bus_); }
  void add(const std::string& address, const std::string& driver) {
    fs::create_directory(fs::path(bus_) / address);
    if (!driver.empty()) fs::create_directory_symlink("../../drivers/" + driver, fs::path(bus_) / address / "driver");
  }

  std::string bus_;
};

TEST_F(PciDevice, AnAddressIsMadeWhole) {
  EXPECT_EQ(pci_address("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(pci_address("3B:00.1,queues=4"), "0000:3b:00.1");
  EXPECT_EQ(pci_address("10000:e1:00.0"), "10000:e1:00.0");
  EXPECT_EQ(pci_address("net_af_packet0,iface=3b:00.0"), "");
  EXPECT_EQ(pci_address("replay,mix=64"), "");
}

TEST_F(PciDevice, OneThatIsNotThereIsSaid) {
  EXPECT_EQ(check_pci_device("0000:3b:00.0", bus_).error().message,
            "there is no PCI device 0000:3b:00.0: see lspci -D");
}

TEST_F(PciDevice, OneThatTheKernelHoldsIsSaidWithWhatToDo) {
  add("0000:3b:00.0", "ixgbe");
  EXPECT_EQ(check_pci_device("0000:3b:00.0", bus_).error().message,
            "0000:3b:00.0 is bound to ixgbe: bind it to vfio-pci: dpdk-devbind.py -b vfio-pci 0000:3b:00.0");
}

TEST_F(PciDevice, OneThatDpdkReachesIsFine) {
  const char* const drivers[] = {"vfio-pci", "mlx5_vfio_pci", "igb_uio", "uio_pci_generic", "mlx5_core", ""};
  for (int i = 0; i < 6; ++i) {
    const std::string address = "0000:3b:00." + std::to_string(i);
    add(address, drivers[i]);
    EXPECT_TRUE(check_pci_device(address, bus_)) << drivers[i];
  }
}

}  // namespace
}  // namespace sluice::port
