#include "control/device_capacity.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace sluice::control {

void DeviceCapacity::look(bool computes) {
  if (std::exchange(computes_, computes) == computes) return;
  if (computes) {
    admission_.set_capacity(measured_);
    spdlog::info("streams: the device that [profile] is of computes: {}", admission_.text());
    return;
  }
  engine::StreamCapacity none = measured_;
  none.rate = 0;
  none.measured = false;
  admission_.set_capacity(none);
  spdlog::warn("streams: the device that [profile] is of does not compute, the CPU does: {}{}",
               admission_.enforced() ? "new streams are refused; " : "", admission_.text());
}

}  // namespace sluice::control
