#include "control/function_maker.h"

#include <algorithm>
#include <functional>
#include <sstream>

#include "control/chain_hints.h"
#include "control/config_sections.h"
#include "function/chain/chain.h"
#include "function/srtp/address_settings.h"
#include "packet/ip_address.h"

namespace sluice::control {

namespace {

// One function of the chain by its `make` or `make_stage`. What is wrong with its section goes to the diagnostics.
// Null: the function itself refuses.
template <typename Made>
std::unique_ptr<Made> make_part(
    Config& config, const std::string& name, const engine::PortTable& ports,
    const std::function<Expected<std::unique_ptr<Made>>(Settings&, const engine::PortTable&)>& make) {
  const std::size_t before = config.diagnostics().lines.size();
  Settings section = config.section(name);
  auto made = make(section, ports);
  section.finish();
  if (!made && config.diagnostics().lines.size() == before) section.error("", made.error().message);
  return made ? std::move(*made) : nullptr;
}

// Of the stage "srtp" before a router, whose section has been read without a mistake.
void refuse_many(Settings& srtp) {
  for (Settings& stream : srtp.sections("stream")) {
    const auto destination = packet::IpAddress::parse(stream.text("destination", ""));
    if (destination && function::is_of_many(*destination)) stream.error("destination", function::many_before_router);
  }
}

// Null: a part refuses, or the chain is none, which read_engine() has said.
std::unique_ptr<engine::Function> make_with_mistakes(Config& config, const engine::PortTable& ports) {
  std::vector<std::unique_ptr<engine::Stage>> stages;
  std::unique_ptr<engine::Function> last;
  for (const std::string& name : config.engine.chain) {
    const engine::FunctionType* const type = engine::find_function(name);
    if (type == nullptr) return nullptr;
    if (type->make_stage) {
      stages.push_back(make_part<engine::Stage>(config, name, ports, type->make_stage));
      if (stages.back() == nullptr) return nullptr;
    } else {
      last = make_part<engine::Function>(config, name, ports, type->make);
    }
  }
  if (last == nullptr || stages.empty()) return last;
  // A bridge's frames are not addressed to the twins, so that the host would not have them.
  const bool has_srtp = std::ranges::find(config.engine.chain, "srtp") != config.engine.chain.end();
  if (Settings srtp = config.section("srtp"); has_srtp && srtp.has("rtsp") && last->routing() == nullptr) {
    srtp.error("rtsp", "the proxy needs a router, which is the last function: set [engine] chain = " +
                           chain_text(chain_with("route", config.engine.chain, {})));
    return nullptr;
  }
  if (Settings srtp = config.section("srtp"); has_srtp && config.ok() && last->routing() != nullptr) refuse_many(srtp);
  return std::make_unique<function::Chain>(std::move(stages), std::move(last));
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

}  // namespace

Expected<std::unique_ptr<engine::Function>> make_function(Config& config, const engine::PortTable& ports) {
  const std::size_t before = config.diagnostics().lines.size();
  auto function = make_with_mistakes(config, ports);
  if (config.diagnostics().lines.size() > before) return make_error(config.mistakes(before));
  if (!function) return make_error(config.mistakes());
  return function;
}

Expected<std::unique_ptr<engine::Function>> make_checked_function(Config& config, const engine::PortTable& ports,
                                                                  const engine::TableProgress& progress) {
  const std::size_t before = config.diagnostics().lines.size();
  auto function = make_with_mistakes(config, ports);
  if (engine::Tables* tables = function ? function->tables() : nullptr) {
    tables->watch_loading(progress);
    // Sizes that were mistaken are not what is meant.
    if (config.ok()) check_tables_fit(config, tables->memory());
    if (const auto read = tables->read(); !read) {
      std::istringstream lines(config.placed(read.error().message));
      for (std::string line; std::getline(lines, line);) config.add_problem(line);
    }
  }
  if (config.diagnostics().lines.size() > before) return make_error(config.mistakes(before));
  if (!function) return make_error(config.mistakes());
  return function;
}

engine::PortTable described_ports(const engine::Options& options) {
  std::vector<engine::PortInfo> ports;
  for (const port::PortOptions& port : options.ports) {
    engine::PortInfo info;
    info.name = port.name;
    info.mtu = port.mtu;
    info.has_twin = !port.twin.empty();
    info.lanes = port.lane_count();
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
