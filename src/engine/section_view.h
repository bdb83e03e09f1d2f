// The configuration that a trait of an element's type gets (element.h, ElementType::find_trait).
#pragma once

#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/options.h"
#include "engine/port_table.h"

namespace sluice::engine {

struct SectionView {
  Settings section;  // the element's own; empty where the file has none
  const Options& options;
  const PortTable& ports;  // as the file describes them
  std::string file;
  bool admits = false;  // streams are admitted by a [profile]
  // Names of ports that elements of the chain keep for themselves (advice.h, keeps_ports).
  std::vector<std::string> kept_ports = {};
};

}  // namespace sluice::engine
