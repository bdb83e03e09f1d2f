#include "control/send_watch.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace sluice::control {

void SendWatch::look(const std::vector<Port>& ports) {
  watched_.resize(ports.size());
  failing_.resize(ports.size(), false);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Watched& watched = watched_[i];
    const std::uint64_t lost = ports[i].errors - std::exchange(watched.errors, ports[i].errors);
    watched.bad = lost != 0 ? watched.bad + 1 : 0;
    watched.good = lost != 0 ? 0 : watched.good + 1;
    if (!failing_[i] && watched.bad >= seconds_to_begin) {
      failing_[i] = true;
      spdlog::warn(
          "port {}: fails to send frames, {} of them in the last second (tx_errors): longer ones than its interface "
          "carries, of which a bridge notifies no sender, or an interface that is not well",
          ports[i].name, lost);
    } else if (failing_[i] && watched.good >= seconds_to_end) {
      failing_[i] = false;
      spdlog::info("port {}: sends all frames again", ports[i].name);
    }
  }
}

}  // namespace sluice::control
