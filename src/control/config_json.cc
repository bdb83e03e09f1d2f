#include "control/config_json.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/units.h"

namespace sluice::control {
namespace {

using nlohmann::ordered_json;

ordered_json or_auto(int value) {
  return value < 0 ? ordered_json("auto") : ordered_json(value);
}

ordered_json engine_json(const Config& config) {
  const engine::Options& options = config.engine;
  static constexpr const char* polls[] = {"auto", "busy", "adaptive"};
  return {
      {"device", options.device},
      {"deadline", duration_text(options.deadline)},
      {"cycle", options.cycle.count() == 0 ? "auto" : duration_text(options.cycle)},
      {"overlap", options.overlap},
      {"stagger", options.stagger == engine::Stagger::automatic ? ordered_json("auto")
                                                                : ordered_json(options.stagger == engine::Stagger::on)},
      {"batch", options.batch},
      {"batches", options.batches},
      {"streams", options.streams},
      {"poll", polls[static_cast<int>(options.poll)]},
      {"admission", engine::admit_name(options.admission)},
      {"scheduling", options.scheduling == engine::Scheduling::realtime ? "realtime" : "normal"},
      {"forwarder_cores",
       options.forwarder_cores.empty() ? ordered_json("shared") : ordered_json(options.forwarder_cores)},
      {"cores", options.cores.empty() ? ordered_json("auto") : ordered_json(options.cores)},
      {"worker_core", options.worker_core},
      {"busy_cores", config.allow_busy_cores ? "allow" : "refuse"},
      {"mode", engine::mode_name(options.mode)},
      {"cpu_below", or_auto(options.cpu_below)},
      {"chain", options.chain}};
}

ordered_json memory_json(const port::MemoryOptions& memory) {
  static constexpr const char* hugepages[] = {"auto", "off", "require"};
  return {{"hugepages", hugepages[static_cast<int>(memory.hugepages)]},
          {"size", bytes_text(memory.size)},
          {"frames", memory.frames},
          {"frame_bytes", memory.frame_bytes}};
}

ordered_json port_json(const port::PortOptions& port) {
  ordered_json addresses = ordered_json::array();
  for (const port::InterfaceAddress& address : port.addresses) addresses.push_back(address.str());
  return {{"name", port.name},
          {"device", port.device},
          {"queues", port.queues},
          {"lanes", port.lane_count()},
          {"mtu", port.mtu},
          {"twin", port.twin},
          {"address", addresses},
          {"persistent", port.persistent},
          {"unnumbered", port.unnumbered},
          {"peer", port.peer},
          {"descriptors", port.descriptors},
          {"promiscuous", port.promiscuous}};
}

}  // namespace

std::string config_json(const Config& config) {
  ordered_json ports = ordered_json::array();
  for (const port::PortOptions& port : config.engine.ports) ports.push_back(port_json(port));
  ordered_json all = {
      {"file", std::filesystem::absolute(config.file()).string()},
      {"engine", engine_json(config)},
      {"memory", memory_json(config.engine.memory)},
      {"port", ports},
      {"api",
       {{"listen", config.api.listen},
        {"allow_remote", config.api.allow_remote},
        {"read_only", config.api.read_only},
        {"socket", config.api.socket},
        {"group", config.api.group}}},
      {"log", {{"level", config.log.level}, {"file", config.log.file}, {"format", config.log.format}}},
  };
  if (!config.profile.file.empty()) {
    all["profile"] = {{"file", config.profile.file},
                      {"others", config.profile.refuses_others ? "refuse" : "warn"},
                      {"streams", config.profile.admits ? "admit" : "all"},
                      {"bursts", config.profile.counts_bursts ? "admit" : "report"}};
  }
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace sluice::control
