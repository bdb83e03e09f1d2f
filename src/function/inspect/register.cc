// The element's entry in the list of elements: reads [inspect].
#include <algorithm>
#include <utility>

#include "engine/element.h"
#include "engine/port_table.h"
#include "function/inspect/inspect_settings.h"
#include "function/inspect/inspect_type.h"

namespace sluice::function {
namespace {

Expected<std::unique_ptr<engine::Element>> make_inspect(Settings& settings, const engine::PortTable& ports) {
  InspectOptions options = usual_inspect();
  option::read(inspect_settings(), settings, options);
  flow::ConversationSettings& tables = options.inspection.conversations;
  tables.http_transactions = 2 * tables.http_connections;
  tables.http.response_layers = tables.http.request_layers;
  tables.streams.drop_without_capacity = options.inspection.drop_on_overload;
  options.log.fields.payload_printable = options.log.fields.payload;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    options.log.ports.push_back(ports[port].name);
    options.lanes = std::max(options.lanes, ports[port].lanes);
  }
  return std::make_unique<Inspect>(std::move(options));
}

std::vector<OptionSection> inspect_sections() {
  const InspectOptions usual = usual_inspect();
  return {option::section("[inspect]", inspect_settings(), "What it does: [inspect.md](inspect.md).", &usual)};
}

const bool registered = engine::register_element(
    {.name = "inspect",
     .text = "drops and reports what rules of Snort and Suricata hold for: intrusion prevention",
     .make = make_inspect,
     .options = inspect_sections,
     .follows_conversations = true,
     .one_thread = true,
     .classify_time = std::chrono::nanoseconds(75),
     .find_trait = find_inspect_type_trait});

}  // namespace
}  // namespace sluice::function
