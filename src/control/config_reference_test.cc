// docs/configuration.md has what settings declare, and elements declare what they read. Runs in the repository's root.
#include "control/config_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "base/settings.h"
#include "engine/port_table.h"

namespace sluice::control {
namespace {

constexpr const char* how = "run scripts/config-reference, which writes the tables of docs/configuration.md anew";

// Each with its title.
std::map<std::string, std::string> blocks_of(const std::string& text) {
  const std::string begin = "<!-- settings of ", end = "<!-- end of settings -->\n";
  std::map<std::string, std::string> blocks;
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    const std::size_t after = text.find(end, at);
    const std::size_t title = at + begin.size();
    blocks[text.substr(title, text.find(" -->", at) - title)] = text.substr(at, after + end.size() - at);
    at = std::min(after, text.size());
  }
  return blocks;
}

// Elements of this room's tests.
bool is_of_tests(std::string_view name) {
  return name == "probe" || name == "submitter" || name == "watch" || name == "metrics_plugin";
}

TEST(ConfigReference, PageHasWhatSettingsDeclare) {
  std::ifstream file("docs/configuration.md");
  const auto written = blocks_of(std::string((std::istreambuf_iterator<char>(file)), {}));
  auto declared = blocks_of(reference());
  std::erase_if(declared, [](const auto& one) { return is_of_tests(one.first.substr(1, one.first.size() - 2)); });
  for (const auto& [title, text] : declared) {
    EXPECT_EQ(written.contains(title) ? written.at(title) : "", text) << how;
  }
  for (const auto& [title, text] : written) EXPECT_TRUE(declared.contains(title)) << title << " is no section: " << how;
}

// "tunnel.fdb." of "[[vxlan.tunnel.fdb]]".
std::string prefix_of(const std::string& title, std::string_view element) {
  std::string name = title.substr(title.find_first_not_of('['));
  name.resize(name.find(']'));
  return name == element ? "" : name.substr(element.size() + 1) + ".";
}

TEST(ConfigReference, ElementsDeclareWhatTheyRead) {
  for (const engine::ElementType& type : engine::element_types()) {
    if (is_of_tests(type.name)) continue;
    ASSERT_TRUE(type.options) << type.name;
    std::string text;
    std::set<std::string> declared;
    for (const OptionSection& section : type.options()) {
      text += section.title + "\n";
      const std::string prefix = prefix_of(section.title, type.name);
      for (const OptionFacts& option : section.options) {
        EXPECT_TRUE(declared.insert(prefix + option.key).second) << section.title << " " << option.key;
        EXPECT_NE(option.values, "") << section.title << " " << option.key;
        EXPECT_NE(option.usual, "") << section.title << " " << option.key;
        EXPECT_NE(option.text, "") << section.title << " " << option.key;
      }
    }
    Diagnostics mistakes;
    auto file = Settings::from_text(text, "a.toml", mistakes);
    ASSERT_TRUE(file) << text;
    Settings section = file->section(type.name);
    (void)type.make(section, engine::PortTable());
    const std::vector<std::string> asked = section.asked();
    for (const std::string& key : asked) EXPECT_TRUE(declared.contains(key)) << type.name << " reads " << key;
    for (const std::string& key : declared) {
      EXPECT_THAT(asked, testing::Contains(key)) << type.name << " declares it and does not read it";
    }
  }
}

}  // namespace
}  // namespace sluice::control
