#include "control/config_json.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/option.h"
#include "control/config_sections.h"

namespace sluice::control {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json section_json(const std::vector<Option<T>>& options, const T& of) {
  ordered_json all;
  for (const Option<T>& option : options) all[option.key] = ordered_json::parse(option.show(of));
  return all;
}

}  // namespace

std::string config_json(const Config& config) {
  ordered_json ports = ordered_json::array();
  for (const port::PortOptions& port : config.engine.ports) ports.push_back(section_json(port_settings(), port));
  ordered_json all = {
      {"file", std::filesystem::absolute(config.file()).string()},
      {"plugins", section_json(plugin_settings(), config.plugins)},
      {"engine", section_json(engine_settings(), config.engine)},
      {"memory", section_json(memory_settings(), config.engine.memory)},
      {"port", ports},
      {"api", section_json(api_settings(), config.api)},
      {"log", section_json(log_settings(), config.log)},
  };
  if (!config.profile.file.empty()) {
    all["profile"] = section_json(profile_settings(), config.profile);
  }
  for (const std::string& name : config.engine.chain) {
    if (const std::string section = config.in_force(name); !section.empty()) all[name] = ordered_json::parse(section);
  }
  return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace sluice::control
