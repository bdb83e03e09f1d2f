// Every configuration under examples/ passes the whole check, its function's section too. Runs in the repository's
// root.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "control/config.h"
#include "control/config_json.h"
#include "control/function_maker.h"
#include "match/rules/rule_set.h"

namespace sluice::control {
namespace {

TEST(Examples, PassTheCheck) {
  std::set<std::string> chains;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() != ".toml") continue;
    Config config = Config::from_file(entry.path().string());
    EXPECT_EQ(config.diagnostics().lines, std::vector<std::string>());
    if (!config.ok()) continue;
    const auto function = make_function(config, described_ports(config.engine));
    EXPECT_TRUE(function) << (function ? "" : function.error().message);
    std::string chain;
    for (const std::string& part : config.engine.chain) chain += (chain.empty() ? "" : ", ") + part;
    chains.insert(chain);
  }
  EXPECT_EQ(chains, (std::set<std::string>{"acl, inspect, route", "acl, route", "bridge", "echo", "inspect, bridge",
                                           "inspect, passive", "route", "touch"}))
      << "one example per use";
}

TEST(Examples, EveryRuleLoads) {
  const auto set = match::read_rules(std::vector<std::string>{"examples/local.rules"});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_TRUE(set->refused.empty()) << set->refused[0].line << ": " << set->refused[0].message;
  EXPECT_EQ(set->rules.size(), 10U);
  EXPECT_EQ(set->commented_out, 0U) << "a comment that reads like a rule";
}

TEST(Documentation, HasEveryKey) {
  std::ifstream in("docs/configuration.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Config config = Config::from_file("examples/router.toml");
  const auto json = nlohmann::json::parse(config_json(config));
  unsigned keys = 0;
  for (const auto& [section, value] : json.items()) {
    if (section == "file") continue;
    const std::string heading = section == "port" ? "## [[port]]" : "## [" + section + "]";
    const std::size_t begin = text.find(heading);
    ASSERT_NE(begin, std::string::npos) << heading;
    const std::string part = text.substr(begin, text.find("\n## ", begin) - begin);
    for (const auto& [key, unused] : (section == "port" ? value[0] : value).items()) {
      EXPECT_NE(part.find("| `" + key + "` |"), std::string::npos) << heading << " " << key;
      ++keys;
    }
  }
  EXPECT_GT(keys, 25U);
}

}  // namespace
}  // namespace sluice::control
