// Traits of elements' types (engine/element.h), asked of those that a configuration names or of all that there are.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "control/config.h"
#include "control/pipeline_maker.h"
#include "engine/advice.h"
#include "engine/element.h"
#include "engine/section_view.h"

namespace sluice::control {

// Of all elements of the chain.
inline std::vector<std::string> kept_ports(Config& config) {
  std::vector<std::string> all;
  for (const std::string& name : config.engine.chain) {
    const engine::ElementType* const type = engine::find_element(name);
    const auto* const advice = type == nullptr ? nullptr : type->trait<engine::Advice>();
    if (advice == nullptr) continue;
    Settings section = config.section(name);
    std::ranges::move(advice->keeps_ports(section), std::back_inserter(all));
  }
  return all;
}

// Calls f(trait, view) for each element of the chain whose type has the trait T, in order.
template <class T, class F>
void each_of_chain(Config& config, const F& f) {
  const engine::PortTable ports = described_ports(config.engine);
  const std::vector<std::string> kept = kept_ports(config);
  for (const std::string& name : config.engine.chain) {
    const engine::ElementType* const type = engine::find_element(name);
    const T* const trait = type == nullptr ? nullptr : type->trait<T>();
    if (trait == nullptr) continue;
    engine::SectionView view{config.section(name),
                             config.engine,
                             ports,
                             config.file(),
                             config.profile.profile.has_value() && config.profile.admits,
                             kept};
    f(*trait, view);
  }
}

// All types with the trait T, by their names.
template <class T>
std::vector<std::pair<const engine::ElementType*, const T*>> types_with() {
  std::vector<std::pair<const engine::ElementType*, const T*>> all;
  for (const engine::ElementType& type : engine::element_types()) {
    if (const T* const trait = type.trait<T>()) all.emplace_back(&type, trait);
  }
  std::ranges::sort(all, {}, [](const auto& one) { return one.first->name; });
  return all;
}

}  // namespace sluice::control
