// What the element shows of itself: each session's copies.
#include <map>
#include <nlohmann/json.hpp>

#include "function/mirror/mirror.h"

namespace sluice::function {

std::string Mirror::view() const {
  const std::lock_guard lock(showing_);
  auto sessions = nlohmann::ordered_json::array(), monitors = nlohmann::ordered_json::array();
  std::map<std::string, std::uint16_t> ports;
  for (const Shown& one : shown_) {
    const Copies now = copies_at(one.tally);
    sessions.push_back({{"name", one.name},
                        {"to", one.to},
                        {"copied", now.copied - one.before.copied},
                        {"cut", now.cut - one.before.cut},
                        {"skipped", now.skipped - one.before.skipped}});
    ports.emplace(one.to, one.port);
  }
  for (const auto& [name, port] : ports) monitors.push_back({{"port", name}, {"lost", lost_at(port)}});
  nlohmann::ordered_json shown;
  shown["sessions"] = std::move(sessions);
  shown["monitors"] = std::move(monitors);
  return shown.dump();
}

}  // namespace sluice::function
