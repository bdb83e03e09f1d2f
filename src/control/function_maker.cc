#include "control/function_maker.h"

namespace sluice::control {

Expected<std::unique_ptr<engine::Function>> make_function(Config& config, const engine::PortTable& ports) {
  const std::string& name = config.engine.chain.at(0);
  const engine::FunctionType* type = engine::find_function(name);
  if (type == nullptr) return make_error("unknown function \"" + name + "\"");
  const std::size_t before = config.diagnostics().lines.size();
  Settings section = config.section(name);
  auto function = type->make(section, ports);
  section.finish();
  if (!function && config.diagnostics().lines.size() == before) section.error("", function.error().message);
  if (config.diagnostics().lines.size() > before) return make_error(config.mistakes(before));
  return function;
}

engine::PortTable described_ports(const engine::Options& options) {
  std::vector<engine::PortInfo> ports;
  for (const port::PortOptions& port : options.ports) {
    engine::PortInfo info;
    info.name = port.name;
    info.mtu = port.mtu;
    info.has_twin = !port.twin.empty();
    info.peer = static_cast<std::uint16_t>(ports.size());
    ports.push_back(std::move(info));
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports.size() == 2) ports[i].peer = static_cast<std::uint16_t>(1 - i);
    for (std::size_t j = 0; j < ports.size(); ++j) {
      if (ports[j].name == options.ports[i].peer) ports[i].peer = static_cast<std::uint16_t>(j);
    }
  }
  return engine::PortTable(std::move(ports));
}

}  // namespace sluice::control
