// The element's entry in the list of elements: reads [ipsec]. No message shows a value of an SA.
#include <memory>

#include "engine/element.h"
#include "engine/port_table.h"
#include "function/ipsec/ipsec.h"
#include "function/ipsec/ipsec_settings.h"
#include "function/ipsec/ipsec_type.h"

namespace sluice::function {
namespace {

const bool registered = engine::register_element(
    {.name = "ipsec",
     .text = "protects and opens packets of IPsec: ESP and AH, tunnels and transport",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Ipsec>(read_ipsec(settings), ports);
     },
     .options = ipsec_sections,
     .begins_chain = true,
     .one_thread = true,
     .launches_alone = true,
     .divides = true,
     .classify_time = std::chrono::nanoseconds(300),
     .find_trait = find_ipsec_type_trait});

}  // namespace
}  // namespace sluice::function
