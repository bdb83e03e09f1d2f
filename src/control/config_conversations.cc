#include <string>
#include <vector>

#include "base/units.h"
#include "control/config_sections.h"
#include "engine/function.h"

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

void check_conversations(Settings root, const engine::Options& options) {
  for (const std::string& name : options.chain) {
    const engine::FunctionType* const type = engine::find_function(name);
    if (type == nullptr || !type->follows_conversations) continue;
    if (!options.forwarder_cores.empty()) {
      root.section("engine").error("forwarder_cores", "\"" + name +
                                                          "\" follows conversations in the order in which frames come, "
                                                          "on one thread: leave forwarder_cores out");
    }
    refuse_unequal(name, root.sections("port"), options.ports);
    return;
  }
}

}  // namespace sluice::control
