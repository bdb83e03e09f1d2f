// What the kernel says about the machine and this process: cores, NUMA nodes, memory. Any thread. Cost: a few files of
// /proc and /sys each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// The cores that the calling thread may run on, ascending.
std::vector<int> allowed_cores();

// The NUMA node of a core; 0 on a kernel that knows no nodes.
int numa_node_of_core(int core);

// What a device's folder in /sys (such as /sys/bus/pci/devices/0000:3b:00.0 or /sys/class/net/eth1/device) says about
// its NUMA node; -1: nothing.
int numa_node_of_device(const std::string& folder);

// The processor's name and how many cores this process may use: "AMD EPYC 9555 64-Core Processor, 16 cores".
std::string machine_text(const std::string& root = "");

// What this process holds in memory; hugepages are not counted there.
std::uint64_t resident_bytes();

// "40 MB resident" for people; `hugepages`: that it holds hugepages besides.
std::string resident_text(bool hugepages);

// What this process may still take without swapping: what the machine has available, or what the memory limits of its
// control group (of a container, of a systemd unit) and of those above leave. Page cache that can go counts as free.
// Where the kernel says nothing there is no limit; where /sys shows no control groups (under `ip netns exec`), those
// that the first process sees count. `root`: where /proc and /sys are looked for.
struct AvailableMemory {
  std::uint64_t bytes;
  bool limited;  // by a control group, and not by the machine
};
AvailableMemory available_memory(const std::string& root = "");

}  // namespace sluice
