#include "control/checksum_watch.h"

#include <spdlog/spdlog.h>

namespace sluice::control {

void ChecksumWatch::look(const std::vector<Port>& ports) {
  watched_.resize(ports.size());
  unfinished_.resize(ports.size(), false);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Watched& watched = watched_[i];
    Port& oldest = watched.before[watched.next++ % seconds];
    const std::uint64_t checked = ports[i].checked - oldest.checked;
    const std::uint64_t wrong = ports[i].wrong - oldest.wrong;
    oldest = ports[i];
    const bool was = unfinished_[i];
    const bool is = was ? wrong != 0 && 4 * wrong >= checked : wrong >= least_wrong && 2 * wrong >= checked;
    unfinished_[i] = is;
    if (is == was) continue;
    if (is) {
      spdlog::warn(
          "port {}: {} of {} TCP and UDP frames that were looked at have wrong checksums, and their receivers drop "
          "them: senders leave them to a network card that is not there. In the hosts that send: ethtool -K DEV tx "
          "off; or take the interface by net_af_packet, which finishes them",
          ports[i].name, wrong, checked);
    } else {
      spdlog::info("port {}: most TCP and UDP checksums are right again", ports[i].name);
    }
  }
}

}  // namespace sluice::control
