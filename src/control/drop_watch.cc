#include "control/drop_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string_view>

namespace sluice::control {
namespace {

constexpr std::string_view on_purpose[] = {"acl_denied",       "acl_rejected",     "acl_policed",  "inspect_dropped",
                                           "inspect_rejected", "blackholed",       "passive",      "measured_only",
                                           "own_frame",        "srtp_unprotected", "srtp_policed", "stopped"};

bool is_on_purpose(packet::Reason reason) {
  return std::ranges::find(on_purpose, packet::reason_name(reason)) != std::end(on_purpose);
}

}  // namespace

void DropWatch::look(const std::vector<Port>& ports) {
  if (watched_.empty()) {
    reasons_.resize(ports.size(), packet::no_reason);
    for (const Port& port : ports) {
      watched_.push_back({port, {}, 0});
      for (Port& slice : watched_.back().slices) slice.drops.resize(port.drops.size());
    }
    return;
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Watched& watched = watched_[i];
    Port& slice = watched.slices[watched.next++ % seconds];
    slice.received = ports[i].received - watched.before.received;
    for (std::size_t reason = 0; reason < ports[i].drops.size(); ++reason) {
      slice.drops[reason] = ports[i].drops[reason] - watched.before.drops[reason];
    }
    watched.before = ports[i];
    const packet::Reason before = reasons_[i];
    reasons_[i] = judge(watched, before);
    if (reasons_[i] == before) continue;
    if (before != packet::no_reason) {
      spdlog::info("port {}: no longer drops nearly everything as {}", ports[i].name, packet::reason_name(before));
    }
    if (reasons_[i] != packet::no_reason) {
      spdlog::warn("port {}: drops nearly everything that it receives as {}: {}", ports[i].name,
                   packet::reason_name(reasons_[i]), packet::reason_text(reasons_[i]));
    }
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
    if (is_on_purpose(static_cast<packet::Reason>(reason))) drops[reason] = 0;
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

std::string drop_ailment(const PortSnapshot& port) {
  return port.drops_nearly_all_as.empty()
             ? ""
             : "port " + port.name + ": drops nearly everything that it receives as " + port.drops_nearly_all_as;
}

}  // namespace sluice::control
