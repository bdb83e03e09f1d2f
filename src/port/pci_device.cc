#include "port/pci_device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string_view>

#include "base/capability.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

namespace fs = std::filesystem;

// DPDK reaches the device through these.
constexpr std::array<std::string_view, 5> drivers_for_dpdk = {"igb_uio", "uio_pci_generic", "mlx4_core", "mlx5_core",
                                                              "mana"};

// vfio-pci has variants for single kinds of devices, such as mlx5_vfio_pci.
bool serves_dpdk(const std::string& driver) {
  return driver.find("vfio") != std::string::npos ||
         std::ranges::find(drivers_for_dpdk, driver) != drivers_for_dpdk.end();
}

bool needs_physical_addresses(const fs::path& device, const std::string& driver) {
  if (driver == "igb_uio" || driver == "uio_pci_generic") {
    return true;
  }
  if (driver.find("vfio") == std::string::npos) {
    return false;
  }
  std::string group;
  std::ifstream(device / "iommu_group" / "name") >> group;
  std::error_code error;
  return group == "vfio-noiommu" || !fs::exists(device / "iommu_group", error);
}

}  // namespace

std::string pci_address(const std::string& device) {
  static const std::regex pattern("([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
  std::string address = device_name(device);
  std::smatch parts;
  if (!std::regex_match(address, parts, pattern)) {
    return {};
  }
  if (!parts[1].matched) {
    address.insert(0, "0000:");
  }
  std::ranges::transform(address, address.begin(), [](unsigned char c) { return std::tolower(c); });
  return address;
}

Expected<void> check_pci_device(const std::string& address, const std::string& bus) {
  const fs::path device = fs::path(bus) / address;
  std::error_code error;
  if (!fs::exists(device, error)) {
    return make_error("there is no PCI device " + address + ": see lspci -D");
  }
  const std::string driver = fs::read_symlink(device / "driver", error).filename();
  if (!driver.empty() && !serves_dpdk(driver)) {
    return make_error(address + " is bound to " + driver + ": bind it to vfio-pci: dpdk-devbind.py -b vfio-pci " +
                      address);
  }
  if (needs_physical_addresses(device, driver) && !(has_capability(CAP_SYS_ADMIN) && has_capability(CAP_SYS_RAWIO))) {
    return make_error(address + " (" + driver +
                      ") has no IOMMU and needs physical addresses: run as root or with CAP_SYS_ADMIN and "
                      "CAP_SYS_RAWIO; systemd's unit gets them from share/sluice/systemd/nic-without-iommu.conf "
                      "(docs/production.md)");
  }
  return {};
}

}  // namespace sluice::port
