// The element's entry in the list of elements: reads [vxlan].
#include "engine/advice.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "function/vxlan/vxlan.h"

namespace sluice::function {
namespace {

class Type final : public engine::Advice {
 public:
  std::vector<std::string> notes(engine::SectionView& view, Occasion /*occasion*/) const override {
    return local_notes(view.section, view.ports);
  }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Advice>(name, &type);
}

const bool registered = engine::register_element(
    {.name = "vxlan",
     .text = "ends VXLAN tunnels: each is a port of its own, whose device is \"vxlan\"",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Vxlan>(read_tunnels(settings, ports), ports);
     },
     .options = vxlan_sections,
     .has_ports = true,
     .find_trait = find_type_trait});

}  // namespace
}  // namespace sluice::function
