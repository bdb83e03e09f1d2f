#include "function/srtp/rtsp/profile_admission.h"

namespace sluice::function::rtsp {

engine::StreamDemand ProfileAdmission::demand(const Medium& medium) const {
  const MediumRate rate = rate_of(medium);
  return {.largest_packet = largest_packet_,
          .deadline = deadlines_.of(medium.kind, medium.server),
          .rate = rate.sum(),
          .share = medium.share,
          .burst = medium_burst(rate, burst_time_, largest_packet_ + tag_)};
}

bool ProfileAdmission::admit(const Medium& medium) {
  if (!budget_.admit(medium)) {
    why_ = budget_.why();
    return false;
  }
  const engine::StreamAnswer answer = streams_.add(demand(medium));
  if (answer.accepted()) return true;
  budget_.ended(medium);
  why_ = answer.text();
  return false;
}

void ProfileAdmission::ended(const Medium& medium) {
  budget_.ended(medium);
  streams_.remove(demand(medium));
}

// A profile that only counts holds nobody to anything.
MediumRate ProfileAdmission::held_to(const Medium& medium) const {
  return streams_.enforced() ? rate_of(medium) : budget_.held_to(medium);
}

}  // namespace sluice::function::rtsp
