// The tables of docs/configuration.md are what the settings' declarations say. Runs in the repository's root.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "control/config_sections.h"

namespace sluice::control {
namespace {

// Without a value of its own a setting's default is what a section without it gives.
template <class T>
std::string table_of(const std::vector<Option<T>>& settings,
                     const std::vector<std::pair<std::string, std::string>>& told) {
  std::string rows = "| key | default | meaning |\n|---|---|---|\n";
  for (const Option<T>& setting : settings) {
    std::string value = "`" + setting.show(T()) + "`";
    for (const auto& [key, text] : told) {
      if (key == setting.key) value = text;
    }
    rows += "| `" + setting.key + "` | " + value + (value.empty() ? "| " : " | ") + setting.text + " |\n";
  }
  return rows;
}

TEST(ConfigReference, IsWhatTheSettingsDeclare) {
  std::ifstream file("docs/configuration.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  const std::string required = "(required)";
  const std::pair<const char*, std::string> tables[] = {
      {"[engine]", table_of(engine_settings(), {})},
      {"[memory]", table_of(memory_settings(), {})},
      {"[[port]]",
       table_of(port_settings(), {{"name", required}, {"device", required}, {"lanes", "`queues`"}, {"peer", ""}})},
      {"[plugins]", table_of(plugin_settings(), {})},
      {"[api]", table_of(api_settings(), {})},
      {"[log]", table_of(log_settings(), {})}};
  for (const auto& [section, table] : tables) {
    const std::size_t at = page.find("\n## " + std::string(section) + "\n");
    ASSERT_NE(at, std::string::npos) << section;
    const std::size_t next = page.find("\n## ", at + 1);
    EXPECT_NE(page.substr(at, next - at).find(table), std::string::npos)
        << "docs/configuration.md, " << section << ": the table has to be\n"
        << table;
  }
}

}  // namespace
}  // namespace sluice::control
