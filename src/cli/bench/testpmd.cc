#include "cli/bench/testpmd.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace sluice::cli::bench {
namespace {

namespace fs = std::filesystem;

bool executable(const std::string& path) {
  return std::system(("command -v '" + path + "' >/dev/null 2>&1").c_str()) == 0;
}

// The sum over both ports of the last "Rx-pps:" that testpmd printed for each.
std::uint64_t last_rx_rate(const std::string& text) {
  std::uint64_t rates[2] = {0, 0};
  unsigned seen = 0;
  const std::string key = "Rx-pps:";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    rates[seen++ % 2] = std::strtoull(text.c_str() + at + key.size(), nullptr, 10);
  }
  return rates[0] + rates[1];
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return text;
  }
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) {
    text.append(buffer, got);
  }
  pclose(pipe);
  return text;
}

}  // namespace

Testpmd run_testpmd_mac(double seconds) {
  std::error_code ec;
  const fs::path beside = fs::read_symlink("/proc/self/exe", ec).parent_path();
  std::string program = (beside / "dpdk-testpmd").string();
  if (!executable(program)) {
    program = "dpdk-testpmd";
  }
  if (!executable(program)) {
    return {0, false, "not found beside this program or in PATH; no comparison"};
  }
  const fs::path pmds = beside.parent_path() / "pmds";
  // With hugepages when they are there, as it runs best.
  for (const bool hugepages : {true, false}) {
    const std::string command = fmt::format(
        "timeout -s KILL {:.0f} timeout -s INT {:.0f} '{}' {} -m 1024 --no-pci --no-telemetry {} -l 0,1 --vdev "
        "net_null0 --vdev "
        "net_null1 -- --nb-cores=1 --forward-mode=mac --auto-start --total-num-mbufs=16384 --burst=64 --stats-period 1 "
        "</dev/null 2>&1",
        seconds + 13, seconds + 6, program, hugepages ? "--in-memory" : "--no-huge --no-shconf",
        fs::is_directory(pmds, ec) ? "-d '" + pmds.string() + "'" : "");
    const double mpps = static_cast<double>(last_rx_rate(output_of(command))) / 1e6;
    if (mpps > 0) {
      return {mpps, hugepages, ""};
    }
  }
  return {0, false, "printed no rate"};
}

}  // namespace sluice::cli::bench
