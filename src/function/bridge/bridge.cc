#include "function/bridge/bridge.h"

#include <algorithm>
#include <iterator>

#include "engine/advice.h"
#include "engine/traits.h"
#include "function/bridge/mtu_notes.h"
#include "function/bridge/peer_notes.h"

namespace sluice::function {
namespace {

class Type final : public engine::Advice {
 public:
  std::vector<std::string> notes(engine::SectionView& view, Occasion occasion) const override {
    std::vector<std::string> all = peer_notes(view);
    std::ranges::move(mtu_notes(view.options.ports), std::back_inserter(all));
    // As all that is said of ports.
    if (occasion == Occasion::check) {
      for (std::string& note : all) note.insert(0, view.file + ": ");
    }
    return all;
  }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Advice>(name, &type);
}

const bool registered = engine::register_element(
    {.name = "bridge",
     .text = "sends every frame from its port to the port's peer, unchanged: a wire that a chain can watch",
     .make = [](Settings&, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Bridge>(peers_of(ports));
     },
     .options =
         [] {
           return std::vector{OptionSection{"[bridge]", "No keys."}};
         },
     .ends_chain = true,
     .find_trait = find_type_trait});

}  // namespace
}  // namespace sluice::function
