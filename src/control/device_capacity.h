// What streams may take follows the device that was measured. While it does not compute (it has failed, or its tables
// are not there yet), the lanes' own cores do, of which the profile says nothing, and new streams are refused. Those
// that are there stay, and give back what they took. One line of the log for each change.
//
// Thread-safety: none (the control thread). Cost: a comparison when nothing happened.
#pragma once

#include "engine/stream_admission.h"

namespace sluice::control {

class DeviceCapacity {
 public:
  // It outlives this, and has the capacity of the device.
  explicit DeviceCapacity(engine::StreamAdmission& admission)
      : admission_(admission), measured_(admission.state().capacity) {}
  void look(bool computes);

 private:
  engine::StreamAdmission& admission_;
  const engine::StreamCapacity measured_;
  bool computes_ = true;
};

}  // namespace sluice::control
