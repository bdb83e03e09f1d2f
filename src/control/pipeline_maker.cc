#include "control/pipeline_maker.h"

#include <algorithm>
#include <sstream>

#include "base/thrown.h"
#include "control/chain_hints.h"
#include "control/config_sections.h"
#include "engine/jobs.h"
#include "engine/traits.h"
#include "port/virtual_device.h"

namespace sluice::control {

namespace {

// What is wrong with the element's section goes to the diagnostics. Null: the element itself refuses.
std::unique_ptr<engine::Element> make_element(Config& config, const engine::ElementType& type,
                                              const engine::PortTable& ports) {
  const std::size_t before = config.diagnostics().lines.size();
  Settings section = config.section(type.name);
  Expected<std::unique_ptr<engine::Element>> made;
  if (const std::string broken = try_make(type, section, ports, made); !broken.empty()) {
    section.error("", broken);
    return nullptr;
  }
  section.finish();
  if (!made && config.diagnostics().lines.size() == before) section.error("", made.error().message);
  return made ? std::move(*made) : nullptr;
}

// Null: an element refuses, or the chain is none, which read_engine() has said.
std::unique_ptr<engine::Pipeline> make_with_mistakes(Config& config, const engine::PortTable& ports) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  for (const std::string& name : config.engine.chain) {
    const engine::ElementType* const type = engine::find_element(name);
    if (type == nullptr) return nullptr;
    elements.push_back(make_element(config, *type, ports));
    if (elements.back() == nullptr) return nullptr;
  }
  if (elements.empty()) return nullptr;
  auto pipeline = std::make_unique<engine::Pipeline>(std::move(elements));
  const bool was_right = config.ok();
  for (std::size_t e = 0; e < config.engine.chain.size(); ++e) {
    auto* const rule = pipeline->elements()[e]->trait<engine::ChainRule>();
    if (rule == nullptr) continue;
    Settings section = config.section(config.engine.chain[e]);
    const auto with = [&](std::string_view name) { return chain_text(chain_with(name, config.engine.chain, {})); };
    if (!rule->check_chain(*pipeline, section, was_right, with)) return nullptr;
  }
  config.engine.passes = pipeline->passes();
  config.engine.jobs = pipeline->first<engine::JobUser>() != nullptr;
  if ((pipeline->passes() > 1 || config.engine.jobs) && was_right)
    check_timing(config.section("engine"), config.engine);
  return pipeline;
}

// Before DPDK refuses in the middle: frames and tables are the two that take memory.
void check_tables_fit(Config& config, const engine::Tables::Memory& needed) {
  const std::uint64_t tables = needed.bytes;
  const std::uint64_t frames = frames_bytes(config.engine);
  const std::uint64_t size = config.engine.memory.size;
  if (needed.keys.empty() || tables + frames <= size || refuse_replay_frames(config.ports(), config.engine, tables))
    return;
  Settings section = config.section(config.engine.chain.back());
  const auto given = std::ranges::find_if(needed.keys, [&](std::string_view key) { return section.has(key); });
  std::string keys;
  for (const std::string_view key : needed.keys) keys += (keys.empty() ? "" : " or ") + std::string(key);
  const std::string need = "the tables need " + megabytes(tables) + " and the frames " + megabytes(frames);
  // At what the file says: the size, where it leaves the tables' keys at their defaults.
  if (Settings memory = config.section("memory"); given == needed.keys.end() && memory.has("size")) {
    memory.error("size", need + ": raise it to \"" + megabytes(tables + frames) + "\", or set a lower [" +
                             section.name() + "] " + keys);
    return;
  }
  section.error(given != needed.keys.end() ? *given : needed.keys.at(0),
                need + ", and [memory] size is " + megabytes(size) + ": lower " + keys +
                    ", or raise [memory] size to \"" + megabytes(tables + frames) + "\"");
}

std::vector<packet::IpAddress> addresses_of(const port::PortOptions& port) {
  std::vector<packet::IpAddress> all;
  for (const port::InterfaceAddress& one : port.addresses) all.push_back(one.address);
  return all;
}

}  // namespace

std::string try_make(const engine::ElementType& type, Settings& section, const engine::PortTable& ports,
                     Expected<std::unique_ptr<engine::Element>>& made) {
  const auto said = [&](const std::string& what) {
    return "function '" + std::string(type.name) + "'" + (type.origin.empty() ? "" : " of " + type.origin) + ": " +
           what;
  };
  try {
    made = type.make(section, ports);
  } catch (...) {
    if (type.origin.empty()) throw;  // want of memory, which who asked answers for
    return said("its make fails: " + what_was_thrown());
  }
  return made && *made == nullptr ? said("its make returned nothing, neither an element nor an Error") : "";
}

Expected<std::unique_ptr<engine::Pipeline>> make_pipeline(Config& config, const engine::PortTable& ports) {
  const std::size_t before = config.diagnostics().lines.size();
  auto pipeline = make_with_mistakes(config, ports);
  if (config.diagnostics().lines.size() > before) return make_error(config.mistakes(before));
  if (!pipeline) return make_error(config.mistakes());
  return pipeline;
}

Expected<std::unique_ptr<engine::Pipeline>> make_checked_pipeline(Config& config, const engine::PortTable& ports,
                                                                  const engine::TableProgress& progress) {
  const std::size_t before = config.diagnostics().lines.size();
  auto pipeline = make_with_mistakes(config, ports);
  if (engine::Tables* tables = pipeline ? pipeline->tables() : nullptr) {
    tables->watch_loading(progress);
    // Sizes that were mistaken are not what is meant.
    if (config.ok()) check_tables_fit(config, tables->memory());
    if (const auto read = tables->read(); !read) {
      std::istringstream lines(config.placed(read.error().message));
      for (std::string line; std::getline(lines, line);) config.add_problem(line);
    }
  }
  if (config.diagnostics().lines.size() > before) return make_error(config.mistakes(before));
  if (!pipeline) return make_error(config.mistakes());
  return pipeline;
}

engine::PortTable described_ports(const engine::Options& options) {
  std::vector<engine::PortInfo> ports;
  for (const port::PortOptions& port : options.ports) {
    engine::PortInfo info;
    info.name = port.name;
    info.mtu = port.mtu;
    info.has_twin = !port.twin.empty();
    info.lanes = port.lane_count();
    info.twin = port.twin;
    info.is_virtual = port::is_virtual(port.device);
    info.device = port.device;
    info.names_peer = !port.peer.empty();
    info.addresses = addresses_of(port);
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

engine::PortTable with_addresses(const engine::PortTable& ports, const engine::Options& changed) {
  std::vector<engine::PortInfo> all;
  for (std::size_t p = 0; p < ports.size(); ++p) {
    all.push_back(ports[p]);
    all.back().addresses = addresses_of(changed.ports.at(p));
  }
  return engine::PortTable(std::move(all));
}

}  // namespace sluice::control
