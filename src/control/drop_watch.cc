#include "control/drop_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace sluice::control {

void DropWatch::look(const std::vector<Port>& ports) {
  Port all{"gateway", 0, std::vector<std::uint64_t>(ports.empty() ? 0 : ports.front().drops.size())};
  for (const Port& port : ports) {
    all.received += port.received;
    for (std::size_t reason = 0; reason < port.drops.size(); ++reason) all.drops[reason] += port.drops[reason];
  }
  if (watched_.empty()) {
    reasons_.resize(ports.size(), packet::no_reason);
    const auto begin = [](const Port& now) {
      Watched watched{now, {}, 0};
      for (Port& slice : watched.slices) slice.drops.resize(now.drops.size());
      return watched;
    };
    for (const Port& port : ports) watched_.push_back(begin(port));
    all_ = begin(all);
    return;
  }
  bool shown = false;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    count(watched_[i], ports[i]);
    const packet::Reason before = std::exchange(reasons_[i], judge(watched_[i], reasons_[i]));
    shown = shown || reasons_[i] != packet::no_reason;
    say("port " + ports[i].name, before, reasons_[i]);
  }
  count(all_, all);
  const packet::Reason before = std::exchange(together_, shown ? packet::no_reason : judge(all_, together_));
  // Where a port shows it by now, it has not ended.
  if (!shown) say(all.name, before, together_);
}

void DropWatch::count(Watched& watched, const Port& now) {
  Port& slice = watched.slices[watched.next++ % seconds];
  slice.received = now.received - watched.before.received;
  for (std::size_t reason = 0; reason < now.drops.size(); ++reason) {
    slice.drops[reason] = now.drops[reason] - watched.before.drops[reason];
  }
  watched.before = now;
}

void DropWatch::say(const std::string& who, packet::Reason before, packet::Reason now) {
  if (now == before) return;
  if (before != packet::no_reason) {
    spdlog::info("{}: no longer drops nearly everything as {}", who, packet::reason_name(before));
  }
  if (now != packet::no_reason) {
    spdlog::warn("{}: drops nearly everything that it receives as {}: {}", who, packet::reason_name(now),
                 packet::reason_text(now));
  }
}

packet::Reason DropWatch::judge(const Watched& watched, packet::Reason known) {
  std::uint64_t received = 0;
  std::vector<std::uint64_t> drops(watched.before.drops.size());
  for (const Port& slice : watched.slices) {
    received += slice.received;
    for (std::size_t reason = 0; reason < drops.size(); ++reason) drops[reason] += slice.drops[reason];
  }
  for (unsigned reason = 1; reason < packet::reason_count(); ++reason) {
    if (packet::is_on_purpose(static_cast<packet::Reason>(reason))) drops[reason] = 0;
  }
  if (known != packet::no_reason && received != 0 && 2 * drops[known] >= received) return known;
  const auto most = std::ranges::max_element(drops);
  if (received < least_frames || most == drops.end() || 5 * *most < 4 * received) return packet::no_reason;
  const auto reason = static_cast<std::size_t>(most - drops.begin());
  const auto long_enough = std::ranges::count_if(watched.slices, [&](const Port& slice) {
    return slice.received != 0 && 2 * slice.drops[reason] >= slice.received;
  });
  return static_cast<std::size_t>(long_enough) >= most_of ? static_cast<packet::Reason>(reason) : packet::no_reason;
}

std::string drop_ailment(const Snapshot& snapshot) {
  return snapshot.drops_nearly_all_as.empty()
             ? ""
             : "gateway: drops nearly everything that it receives as " + snapshot.drops_nearly_all_as;
}

std::string drop_ailment(const PortSnapshot& port) {
  return port.drops_nearly_all_as.empty()
             ? ""
             : "port " + port.name + ": drops nearly everything that it receives as " + port.drops_nearly_all_as;
}

}  // namespace sluice::control
