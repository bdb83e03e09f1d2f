#include "port/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/machine.h"
#include "port/dpdk_log.h"
#include "port/packet_port.h"
#include "port/pci_device.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

namespace fs = std::filesystem;

std::uint64_t free_hugepage_bytes() {
  std::uint64_t bytes = 0;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/sys/kernel/mm/hugepages", ec)) {
    const std::string name = entry.path().filename();  // hugepages-2048kB
    std::uint64_t pages = 0;
    std::ifstream(entry.path() / "free_hugepages") >> pages;
    bytes += pages * std::strtoull(name.c_str() + std::strlen("hugepages-"), nullptr, 10) * 1024;
  }
  return bytes;
}

std::string pmd_folder() {
  if (const char* folder = std::getenv("SLUICE_PMD_DIR")) {
    return folder;
  }
  std::error_code ec;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path().parent_path() / "pmds";
  return fs::is_directory(beside, ec) ? beside.string() : std::string();
}

// DPDK takes no drivers from a folder that anyone may write, or that lies in one, and says so in lines that are not
// shown.
Expected<void> check_pmd_folder(const std::string& given) {
  std::error_code ec;
  for (fs::path folder = fs::canonical(given, ec); !ec; folder = folder.parent_path()) {
    if ((fs::status(folder, ec).permissions() & fs::perms::others_write) != fs::perms::none) {
      return make_error("DPDK's drivers are in " + given + ", and anyone may write to " + folder.string() +
                        ", so DPDK refuses them: move them, with the program, to a folder of root's such as /opt");
    }
    if (folder == folder.parent_path()) {
      break;
    }
  }
  return {};
}

// DPDK starts without a PCI device that it cannot have, and then knows no reason.
Expected<void> check_pci_devices(const std::vector<PortOptions>& ports) {
  for (const PortOptions& port : ports) {
    const std::string address = pci_address(port.device);
    if (auto usable = address.empty() ? Expected<void>() : check_pci_device(address); !usable) {
      return make_error("[[port]] '" + port.name + "' (" + port.device + "): " + usable.error().message);
    }
  }
  return {};
}

// Every core that this process may use: DPDK's main thread must not be tied to one that a lane wants.
std::string all_cores() {
  std::string list;
  for (const int core : allowed_cores()) {
    list += (list.empty() ? "" : ",") + std::to_string(core);
  }
  return list;
}

std::string megabytes(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MB";
}

bool fits_hugepages(const MemoryOptions& memory, std::uint64_t free_bytes) {
  return memory.hugepages != Hugepages::off && free_bytes >= memory.size;
}

std::string advice(std::uint64_t available) {
  const std::uint64_t most = (available >> 20) / 64 * 64;
  return most == 0 ? "free some"
                   : "set size = \"" + std::to_string(most) +
                         "M\" or less, with limits of tables that fit (docs/configuration.md), or free some";
}

// What rte_eal_init is given, the program's name first.
Expected<std::vector<std::string>> eal_arguments(const MemoryOptions& memory, const std::vector<PortOptions>& ports,
                                                 bool hugepages) {
  std::vector<std::string> args = {"sluice",      "--no-telemetry",
                                   "--log-level", "lib.eal:error",
                                   "--log-level", "pmd:warning",
                                   "--log-level", "lib.vhost.*:warning",
                                   "--lcores",    "0@(" + all_cores() + ")",
                                   "-m",          std::to_string(memory.size >> 20)};
  // Nothing of this process is left in the file system either way; DPDK takes only one of the two ways at a time.
  if (hugepages) {
    args.emplace_back("--in-memory");
  } else {
    args.insert(args.end(), {"--no-huge", "--no-shconf"});
  }
  bool pci = false;
  for (const PortOptions& port : ports) {
    if (!pci_address(port.device).empty()) {
      args.insert(args.end(), {"-a", port.device});
      pci = true;
    }
  }
  if (!pci) {
    // Without a PCI device nothing needs physical addresses, and virtual ones keep pools in one piece.
    args.insert(args.end(), {"--no-pci", "--iova-mode=va"});
  }
  if (const std::string folder = pmd_folder(); !folder.empty()) {
    if (auto safe = check_pmd_folder(folder); !safe) {
      return tl::unexpected(safe.error());
    }
    args.insert(args.end(), {"-d", folder});
  }
  // Vector code of rte_fib and rte_acl is off above 256 bits unless asked for.
  args.emplace_back("--force-max-simd-bitwidth=512");
  return args;
}

}  // namespace

Expected<void> check_memory(const MemoryOptions& memory, const std::vector<PortOptions>& ports) {
  const std::uint64_t free_bytes = free_hugepage_bytes();
  if (fits_hugepages(memory, free_bytes)) {
    return {};
  }
  if (memory.hugepages == Hugepages::require) {
    const std::uint64_t missing = ((memory.size - free_bytes) + (2 << 20) - 1) / (2 << 20);
    return make_error("[memory] hugepages = \"require\": " + megabytes(memory.size) + " of hugepages are needed and " +
                      megabytes(free_bytes) + " are free; reserve " + std::to_string(missing) +
                      " more 2 MB pages (sysctl vm.nr_hugepages) or set hugepages = \"auto\"");
  }
  // The kernel would say yes, and end a process later, when frames fill the memory.
  const AvailableMemory available = available_memory();
  std::uint64_t rings = 0;
  for (const PortOptions& port : ports) {
    rings += is_driver(port.device, "net_af_packet") ? packet_ring_bytes(port) : 0;
  }
  if (memory.size + rings <= available.bytes) {
    return {};
  }
  return make_error(
      "[memory] size: " + megabytes(memory.size) + " are needed" +
      (rings == 0 ? "" : " and " + megabytes(rings) + " for the rings of packet sockets (framecnt=)") + ", and " +
      (available.limited
           ? "the memory limit of this process's control group (container, unit) leaves " + megabytes(available.bytes)
           : "this machine has " + megabytes(available.bytes) + " available (MemAvailable) and " +
                 megabytes(free_bytes) + " of free hugepages") +
      ": " + advice(available.bytes - std::min(available.bytes, rings)));
}

Expected<EalReport> start_eal(const MemoryOptions& memory, const std::vector<PortOptions>& ports) {
  log_dpdk();
  EalReport report;
  if (auto usable = check_pci_devices(ports); !usable) {
    return tl::unexpected(usable.error());
  }
  if (auto enough = check_memory(memory, ports); !enough) {
    return tl::unexpected(enough.error());
  }
  const std::uint64_t free_bytes = free_hugepage_bytes();
  report.hugepages = fits_hugepages(memory, free_bytes);
  auto args = eal_arguments(memory, ports, report.hugepages);
  if (!args) {
    return tl::unexpected(args.error());
  }
  std::vector<char*> argv;
  for (std::string& arg : *args) {
    argv.push_back(arg.data());
  }
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    return make_error("DPDK did not start: " + std::string(rte_strerror(rte_errno)) +
                      (report.hugepages
                           ? "; try [memory] hugepages = \"off\""
                           : "; is [memory] size = " + megabytes(memory.size) + " more than this machine has free?"));
  }
  if (report.hugepages) {
    report.text = megabytes(memory.size) + " of hugepages";
  } else if (memory.hugepages == Hugepages::off) {
    report.text = megabytes(memory.size) + " of ordinary pages (hugepages = \"off\")";
  } else {
    report.text = megabytes(memory.size) + " of ordinary pages: only " + megabytes(free_bytes) +
                  " of hugepages are free (sysctl vm.nr_hugepages=" + std::to_string(memory.size >> 21) + " would do)";
  }
  return report;
}

void stop_eal() {
  rte_eal_cleanup();
}

}  // namespace sluice::port
