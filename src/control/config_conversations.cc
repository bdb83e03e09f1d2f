#include <string>
#include <vector>

#include "base/units.h"
#include "control/config_sections.h"
#include "engine/element.h"

namespace sluice::control {
namespace {

std::string lanes_text(const port::PortOptions& port) {
  return "'" + port.name + "' has " + counted_text(port.queues, "queue") + " and " +
         counted_text(port.lane_count(), "lane");
}

bool as_many(const port::PortOptions& one, const port::PortOptions& other) {
  return one.queues == other.queues && one.lane_count() == other.lane_count();
}

// At a key that makes the difference, which one of the two has.
void refuse_unequal(const std::string& function, std::vector<Settings> sections,
                    const std::vector<port::PortOptions>& ports) {
  for (std::size_t i = 1; i < ports.size(); ++i) {
    if (as_many(ports[0], ports[i])) continue;
    const bool here = sections[i].has("lanes") || sections[i].has("queues");
    Settings& section = sections[here ? i : 0];
    section.error(section.has("lanes") ? "lanes" : "queues",
                  "\"" + function + "\" follows conversations, whose two directions come in by different ports: " +
                      "give all ports as many queues and lanes; " + lanes_text(ports[0]) + ", " + lanes_text(ports[i]));
    return;
  }
}

}  // namespace

void check_helpers(Settings root, const engine::Options& options) {
  if (options.compute_cores.empty()) return;
  if (engine::find_such(options.chain, &engine::ElementType::divides) != nullptr) return;
  std::string names;
  for (const engine::ElementType& type : engine::element_types()) {
    if (type.divides) names += (names.empty() ? "\"" : ", \"") + std::string(type.name) + "\"";
  }
  root.section("engine").error("compute_cores",
                               "no function of the chain has work that other cores can do a part of: leave "
                               "compute_cores out; these have: " +
                                   names);
}

void check_conversations(Settings root, const engine::Options& options) {
  const std::string* const on_one = engine::find_such(options.chain, &engine::ElementType::one_thread);
  if (on_one != nullptr && !options.forwarder_cores.empty()) {
    root.section("engine").error("forwarder_cores", "\"" + *on_one +
                                                        "\" needs a lane's frames to be forwarded by the thread that "
                                                        "collects them: leave forwarder_cores out");
  }
  const std::string* const follower = engine::find_such(options.chain, &engine::ElementType::follows_conversations);
  if (follower != nullptr) refuse_unequal(*follower, root.sections("port"), options.ports);
}

}  // namespace sluice::control
