#include "control/rtsp/profile_admission.h"

#include <spdlog/spdlog.h>

namespace sluice::control::rtsp {

engine::StreamDemand ProfileAdmission::demand(std::uint64_t rate) const {
  return {.deadline = deadline_, .rate = rate_of(rate).sum()};
}

bool ProfileAdmission::admit(std::uint64_t rate) {
  if (!budget_.admit(rate)) return false;
  const engine::StreamAnswer answer = streams_.add(demand(rate));
  if (answer.accepted()) return true;
  budget_.ended(rate);
  spdlog::debug("rtsp: a medium is not admitted: {}", answer.text());
  return false;
}

void ProfileAdmission::ended(std::uint64_t rate) {
  budget_.ended(rate);
  streams_.remove(demand(rate));
}

// A profile that only counts holds nobody to anything.
MediumRate ProfileAdmission::held_to(std::uint64_t rate) const {
  return streams_.enforced() ? rate_of(rate) : budget_.held_to(rate);
}

}  // namespace sluice::control::rtsp
