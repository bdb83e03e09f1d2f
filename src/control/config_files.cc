// Files that are written by one setting and used by another.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "control/config_sections.h"
#include "control/section_views.h"
#include "engine/section_files.h"
#include "port/capture_file.h"

namespace sluice::control {
namespace {

constexpr SettingKey profile_file = {"profile", "file"};

std::string path_of(Settings& root, const SettingKey& key) {
  return root.has(key.section) ? root.section(key.section).text(key.key, "") : "";
}

// The log's first. Of two that are one file the later is said to be wrong.
std::vector<SettingKey> in_order_of_file(Settings& root) {
  std::vector<SettingKey> keys = written_files();
  const auto line = [&](const SettingKey& key) {
    return root.has(key.section) ? root.section(key.section).line(key.key) : 0;
  };
  std::ranges::stable_sort(keys.begin() + 1, keys.end(), {}, line);
  return keys;
}

// What is read of the file, in a sentence's middle; empty: nothing. `mine`: the section whose own reader sees to its
// files, where it does; empty: none.
std::string reading_use(Settings& root, const std::string& file, const std::string& path, std::string_view mine) {
  if (same_file(path, file)) return "this configuration";
  if (same_file(path, path_of(root, profile_file))) return "the file of " + profile_file.str();
  for (const auto& [type, files] : types_with<engine::SectionFiles>()) {
    if (!root.has(type->name) || (type->name == mine && files->keeps_them_apart())) continue;
    Settings section = root.section(type->name);
    for (const engine::SectionFiles::Read& one : files->reads(section)) {
      if (same_file(path, one.path)) return one.what;
    }
  }
  return {};
}

// What else the file is, in a sentence's middle; empty: nothing.
std::string other_use(Settings& root, const std::string& file, const std::vector<port::PortOptions>& ports,
                      const SettingKey& mine, const std::string& path) {
  if (std::string use = reading_use(root, file, path, mine.section); !use.empty()) return use;
  for (const SettingKey& key : in_order_of_file(root)) {
    if (key == mine) break;
    if (key.section == mine.section) continue;  // a section's own reader sees to those
    if (same_file(path, path_of(root, key))) return "the file of " + key.str();
  }
  for (const port::PortOptions& port : ports) {
    for (const Capture& capture : captures_of(port.device)) {
      if (same_file(path, capture.path)) return "a capture of port '" + port.name + "'";
    }
  }
  return {};
}

// Why the capture must not be written: opening it empties what is there, which only of a capture is what was meant.
// Empty: it may be.
std::string emptied_by(Settings& root, const std::string& file, const Capture& capture) {
  if (std::string use = reading_use(root, file, capture.path, ""); !use.empty()) return use;
  return port::may_be_emptied(capture.path) ? "" : "there and no capture";
}

}  // namespace

std::vector<SettingKey> written_files() {
  std::vector<SettingKey> keys = {{"log", "file"}};
  for (const auto& [type, files] : types_with<engine::SectionFiles>()) {
    for (const std::string_view key : files->written()) keys.push_back({type->name, key});
  }
  return keys;
}

void check_written_files(Settings root, const std::string& file, std::vector<Settings> port_sections,
                         const std::vector<port::PortOptions>& ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (const Capture& capture : captures_of(ports[i].device)) {
      if (!capture.written) continue;
      if (const std::string use = emptied_by(root, file, capture); !use.empty()) {
        port_sections[i].error(
            "device", "tx_pcap=" + capture.path + " is " + use + ", which writing would empty: name a file of its own");
        break;
      }
    }
  }
  for (const SettingKey& key : written_files()) {
    const std::string path = path_of(root, key);
    if (path.empty() || path == "-") continue;
    if (const std::string use = other_use(root, file, ports, key, path); !use.empty()) {
      root.section(key.section).error(key.key, "is " + use + ": name a file of its own");
    }
  }
}

}  // namespace sluice::control
