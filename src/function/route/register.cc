// The router's entry in the list of elements.
#include <algorithm>

#include "engine/advice.h"
#include "engine/answers.h"
#include "engine/element.h"
#include "engine/section_files.h"
#include "engine/traits.h"
#include "function/route/answered_reasons.h"
#include "function/route/route.h"
#include "function/route/route_settings.h"

namespace sluice::function {
namespace {

class Type final : public engine::SectionFiles, public engine::Answers, public engine::Advice {
 public:
  std::vector<Read> reads(Settings& section) const override {
    return {{section.text("table", ""), "the file of [route] table"}};
  }
  std::vector<std::string> notes(engine::SectionView& view, Occasion /*occasion*/) const override {
    std::vector<std::string> all;
    for (Settings& connected : view.section.sections("connected")) {
      const std::string port = connected.text("port", "");
      if (std::ranges::find(view.kept_ports, port) == view.kept_ports.end()) continue;
      all.push_back(
          connected.place("port") + ": [[route.connected]] port = \"" + port +
          "\": the chain uses that port for something else, and what comes in by it is dropped: name another");
    }
    return all;
  }
  std::vector<packet::Reason> answered() const override { return {ttl_expired, too_big}; }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::SectionFiles, engine::Answers, engine::Advice>(name, &type);
}

const bool registered = engine::register_element(
    {.name = "route",
     .text = "IPv4 and IPv6 router",
     .make = [](Settings& settings, const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Router>(read_route(settings, ports), ports);
     },
     .options = route_sections,
     .ends_chain = true,
     .usual = true,
     .find_trait = find_type_trait});

}  // namespace
}  // namespace sluice::function
