#include "port/pci_device.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

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

  void group(const std::string& address, const std::string& name) {
    const fs::path group = fs::path(bus_) / address / "iommu_group";
    fs::create_directory(group);
    if (!name.empty()) std::ofstream(group / "name") << name << "\n";
  }
  // As by a thread without any capability.
  Expected<void> check_without_rights(const std::string& address) {
    Expected<void> checked;
    std::thread([&] {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
      ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
      checked = check_pci_device(address, bus_);
    }).join();
    return checked;
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
  const char* const drivers[] = {"vfio-pci", "mlx5_vfio_pci", "mlx5_core", ""};
  for (int i = 0; i < 4; ++i) {
    const std::string address = "0000:3b:00." + std::to_string(i);
    add(address, drivers[i]);
    if (std::string(drivers[i]).find("vfio") != std::string::npos) group(address, "");
    EXPECT_TRUE(check_without_rights(address)) << drivers[i];
  }
}

TEST_F(PciDevice, OneWithoutAnIommuNeedsRightsThatAreSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"uio_pci_generic", nullptr}, {"igb_uio", nullptr}, {"vfio-pci", nullptr}, {"vfio-pci", "vfio-noiommu"}};
  for (int i = 0; i < 4; ++i) {
    const std::string address = "0000:3b:00." + std::to_string(i);
    add(address, cases[i].first);
    if (cases[i].second != nullptr) group(address, cases[i].second);
    const auto checked = check_without_rights(address);
    ASSERT_FALSE(checked) << i;
    EXPECT_EQ(checked.error().message,
              address + " (" + cases[i].first +
                  ") has no IOMMU and needs physical addresses: run as root or with CAP_SYS_ADMIN and CAP_SYS_RAWIO; "
                  "systemd's unit gets them from share/sluice/systemd/nic-without-iommu.conf (docs/production.md)");
  }
}

}  // namespace
}  // namespace sluice::port
