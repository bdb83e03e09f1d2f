#include "cli/text.h"

#include <spdlog/fmt/fmt.h>

namespace sluice::cli {

std::string bound_text(std::uint64_t ns, bool on_gpu) {
  return on_gpu ? "bound " + short_duration(ns) + " (but for late cycles and overruns)"
                : "estimate " + short_duration(ns) + " (of an idle core, no bound)";
}

std::string clock_text(std::uint64_t seconds) {
  const std::uint64_t days = seconds / 86400;
  const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return days == 0 ? clock : fmt::format("{}d {}", days, clock);
}

}  // namespace sluice::cli
