// Traits of elements' types (engine/element.h), asked of those that a configuration names or of all that there are.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "control/config.h"
#include "control/pipeline_maker.h"
#include "engine/element.h"
#include "engine/section_view.h"

namespace sluice::control {

// Calls f(trait, view) for each element of the chain whose type has the trait T, in order.
template <class T, class F>
void each_of_chain(Config& config, const F& f) {
  const engine::PortTable ports = described_ports(config.engine);
  for (const std::string& name : config.engine.chain) {
    const engine::ElementType* const type = engine::find_element(name);
    const T* const trait = type == nullptr ? nullptr : type->trait<T>();
    if (trait == nullptr) continue;
    engine::SectionView view{config.section(name), config.engine, ports, config.file(),
                             config.profile.profile.has_value() && config.profile.admits};
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
