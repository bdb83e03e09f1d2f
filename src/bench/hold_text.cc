#include "bench/hold_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace sluice::cli::bench {

std::string hold_text(const std::vector<Outcome>& windows) {
  struct Sum {
    double count = 0, stall_us = 0, core_ns = 0, device_us = 0, lanes = 0;
    void add(const Outcome& one) {
      count += 1;
      stall_us += one.stall_us;
      core_ns += one.collecting_ns() + one.forwarding_ns();
      device_us += one.device_p50_us;
      lanes += one.lanes_late;
    }
  } clean, troubled;
  std::vector<std::uint64_t> trouble;
  for (const Outcome& one : windows) {
    (one.clean() ? clean : troubled).add(one);
    trouble.push_back(one.deadline_misses + one.not_let_in());
  }
  std::string text =
      fmt::format("{:.0f} of {} windows of {:.2g} s clean", clean.count, windows.size(), windows.front().seconds);
  const auto add = [&](const char* which, const Sum& sum) {
    text += fmt::format(
        "; in {} threads were stalled for {:.0f} us, a frame took {:.0f} ns of a lane's core, and a batch {:.0f} us on "
        "the device",
        which, sum.stall_us / sum.count, sum.core_ns / sum.count, sum.device_us / sum.count);
  };
  if (clean.count != 0) {
    add("these", clean);
  }
  if (troubled.count == 0) {
    return text;
  }
  add("the others", troubled);
  text += fmt::format(", and {:.1f} lanes were late", troubled.lanes / troubled.count);
  std::ranges::sort(trouble, std::greater<>());
  const std::uint64_t all = std::accumulate(trouble.begin(), trouble.end(), std::uint64_t{0});
  std::uint64_t sum = 0;
  std::size_t worst = 0;
  while (2 * sum < all) {
    sum += trouble[worst++];
  }
  return text + fmt::format("; half of all frames late or not let in are those of {} windows", worst);
}

}  // namespace sluice::cli::bench
