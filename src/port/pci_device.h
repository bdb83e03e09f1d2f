// PCI addresses of NICs, and what stands in the way of opening one. Control path; thread-safety: any thread.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::port {

// The whole address, "0000:3b:00.0", of a port's device ("3B:00.0,a=1"); empty: it is a virtual one.
std::string pci_address(const std::string& device);

// What DPDK would pass over without a word: no such device, one that a driver of the kernel holds, or one without an
// IOMMU while this process may not learn physical addresses. Drivers that share their NIC with DPDK (mlx5_core) are
// fine, and so is none. `bus` is where the kernel shows the devices.
Expected<void> check_pci_device(const std::string& address, const std::string& bus = "/sys/bus/pci/devices");

}  // namespace sluice::port
