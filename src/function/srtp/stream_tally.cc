#include "function/srtp/stream_tally.h"

#include <utility>

#include "function/srtp/drop_reasons.h"

namespace sluice::function {

StreamLoss loss_of(packet::Reason reason) {
  const std::pair<packet::Reason, StreamLoss> named[] = {{srtp_auth_failed, StreamLoss::auth_failed},
                                                         {srtp_replayed, StreamLoss::replayed},
                                                         {srtp_too_old, StreamLoss::too_old},
                                                         {srtp_policed, StreamLoss::policed},
                                                         {srtp_wrong_port, StreamLoss::wrong_port},
                                                         {srtp_other_lane, StreamLoss::other_lane},
                                                         {srtp_ended, StreamLoss::ended}};
  for (const auto& [name, loss] : named) {
    if (name == reason) return loss;
  }
  return StreamLoss::others;
}

}  // namespace sluice::function
