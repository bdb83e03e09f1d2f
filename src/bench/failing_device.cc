#include "bench/failing_device.h"

#include <algorithm>
#include <sstream>

#include "device/fault_kernels.h"
#include "device/gpu.h"

namespace sluice::cli::bench {
namespace {

struct Named {
  Failure failure;
  std::string_view name;
};
constexpr Named failures[] = {{Failure::lose, "lose"}, {Failure::fault, "fault"}, {Failure::endless, "endless"}};

}  // namespace

std::string_view failure_name(Failure failure) {
  return std::ranges::find(failures, failure, &Named::failure)->name;
}

Expected<std::vector<Failure>> parse_failures(const std::string& text) {
  std::vector<Failure> all;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto* const found = std::ranges::find(failures, word, &Named::name);
    if (found == std::end(failures)) return make_error(word + ": lose, fault or endless, or several between commas");
    if (std::ranges::find(all, found->failure) == all.end()) all.push_back(found->failure);
  }
  return all.empty() ? make_error("names none: lose, fault or endless") : Expected<std::vector<Failure>>(all);
}

Expected<void> FailingDevice::attach(device::Gpu& gpu, const engine::DevicePlan& /*plan*/) {
  gpu_ = &gpu;
  return {};
}

Expected<void> FailingDevice::begin_cycle(std::uint32_t /*device*/, device::GpuStream& stream) {
  if (next_.load(std::memory_order_relaxed) == none) [[likely]]
    return {};
  switch (static_cast<Failure>(next_.exchange(none, std::memory_order_acquire))) {
    case Failure::lose:
      gpu_->lose("the bench has given it up");
      return {};
    case Failure::fault:
      return device::launch_faulting(stream);
    case Failure::endless:
      return device::launch_endless(stream);
  }
  return {};
}

}  // namespace sluice::cli::bench
