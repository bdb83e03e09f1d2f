// Files that are written by one setting and used by another.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "control/config_sections.h"
#include "match/rules/rule_files.h"
#include "port/capture_file.h"

namespace sluice::control {
namespace {

constexpr SettingKey read_alone[] = {{"profile", "file"}, {"route", "table"}, {"acl", "rules"}};

std::string path_of(Settings& root, const SettingKey& key) {
  return root.has(key.section) ? root.section(key.section).text(key.key, "") : "";
}

// Where alerts go, the section's own reader says it, of files that others include, too.
bool is_of_inspect(Settings& root, const std::string& path) {
  if (!root.has("inspect")) return false;
  Settings inspect = root.section("inspect");
  const auto rules = match::rule_files(inspect.texts("rules"));
  return same_file(path, inspect.text("threshold_file", "")) ||
         (rules && std::ranges::any_of(*rules, [&](const std::string& file) { return same_file(path, file); }));
}

bool is_of_a_set(Settings& root, const std::string& path) {
  if (!root.has("acl")) return false;
  std::vector<Settings> sets = root.section("acl").sections("set");
  return std::ranges::any_of(sets, [&](Settings& set) { return same_file(path, set.text("file", "")); });
}

// What is read of the file, in a sentence's middle; empty: nothing. `inspect_says`: it sees to its own files.
std::string reading_use(Settings& root, const std::string& file, const std::string& path, bool inspect_says) {
  if (same_file(path, file)) return "this configuration";
  for (const SettingKey& key : read_alone) {
    if (same_file(path, path_of(root, key))) return "the file of " + key.str();
  }
  if (is_of_a_set(root, path)) return "the file of an [[acl.set]]";
  return !inspect_says && is_of_inspect(root, path) ? "a file of [inspect] rules" : "";
}

// What else the file is, in a sentence's middle; empty: nothing.
std::string other_use(Settings& root, const std::string& file, const std::vector<port::PortOptions>& ports,
                      const SettingKey& mine, const std::string& path) {
  if (std::string use = reading_use(root, file, path, mine.section == "inspect"); !use.empty()) return use;
  for (const SettingKey& key : written_files) {
    if (key.section == mine.section) break;  // a section's own reader sees to those
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
  if (std::string use = reading_use(root, file, capture.path, false); !use.empty()) return use;
  return port::may_be_emptied(capture.path) ? "" : "there and no capture";
}

}  // namespace

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
  for (const SettingKey& key : written_files) {
    const std::string path = path_of(root, key);
    if (path.empty() || path == "-") continue;
    if (const std::string use = other_use(root, file, ports, key, path); !use.empty()) {
      root.section(key.section).error(key.key, "is " + use + ": name a file of its own");
    }
  }
}

}  // namespace sluice::control
