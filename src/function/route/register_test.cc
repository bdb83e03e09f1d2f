// What [route] says twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/settings.h"
#include "engine/advice.h"
#include "engine/element.h"
#include "engine/port_table.h"

namespace sluice::function {
namespace {

std::vector<std::string> mistakes(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "r.toml", diagnostics);
  EXPECT_TRUE(file) << text;
  const engine::PortTable ports({{.name = "lan", .mac = {}}, {.name = "wan", .mac = {}}});
  Settings section = file->section("route");
  EXPECT_TRUE(engine::find_element("route")->make(section, ports)) << text;
  return diagnostics.lines;
}

std::string neighbour(const std::string& port, const std::string& address, const std::string& mac) {
  return "[[route.neighbour]]\nport = \"" + port + "\"\naddress = \"" + address + "\"\nmac = \"" + mac + "\"\n";
}

TEST(RouteSettings, ANeighbourHasOneMacAddress) {
  const std::string one = "02:00:00:00:00:01";
  const std::string two = "02:00:00:00:00:02";
  const std::string first = neighbour("lan", "10.0.0.2", one);
  const auto refused = [&](const std::string& address) {
    return "r.toml:8: [[route.neighbour]] mac = \"" + two + "\": " + address +
           " has another one on this port in line 4, " + one + ": keep one, a neighbour has one MAC address";
  };
  EXPECT_THAT(mistakes(first + neighbour("lan", "10.0.0.2", two)), testing::ElementsAre(refused("10.0.0.2")));
  EXPECT_THAT(mistakes(neighbour("wan", "fd00::2", one) + neighbour("wan", "fd00:0::2", two)),
              testing::ElementsAre(refused("fd00::2")));
  for (const std::string& other :
       {neighbour("lan", "10.0.0.2", one), neighbour("wan", "10.0.0.2", two), neighbour("lan", "10.0.0.3", two)}) {
    EXPECT_THAT(mistakes(first + other), testing::IsEmpty()) << other;
  }
  EXPECT_THAT(mistakes(first + neighbour("nowhere", "10.0.0.2", two)),
              testing::ElementsAre("r.toml:6: [[route.neighbour]] port = \"nowhere\": there is no [[port]] named "
                                   "\"nowhere\""));
}

TEST(RouteSettings, WhatIsMissingIsSaidOnce) {
  EXPECT_THAT(mistakes("[[route.connected]]\n"),
              testing::ElementsAre("r.toml:1: [[route.connected]] prefix: is missing: give a text in quotes",
                                   "r.toml:1: [[route.connected]] port: is missing: give a text in quotes"));
  EXPECT_THAT(mistakes("[[route.neighbour]]\nport = 3\nmac = 4\n"),
              testing::ElementsAre("r.toml:2: [[route.neighbour]] port = 3: allowed is a text in quotes",
                                   "r.toml:1: [[route.neighbour]] address: is missing: give a text in quotes",
                                   "r.toml:3: [[route.neighbour]] mac = 4: allowed is a text in quotes"));
  EXPECT_THAT(mistakes("[[route.connected]]\nport = \"\"\nprefix = \"10.0.0.0/8\"\n"),
              testing::ElementsAre("r.toml:2: [[route.connected]] port = \"\": there is no [[port]] named \"\""));
}

TEST(RouteSettings, APrefixOnAPortThatTheChainKeepsIsNoted) {
  Diagnostics diagnostics;
  const engine::Options options;
  const engine::PortTable ports;
  const std::string text = "[[route.connected]]\nprefix = \"10.0.0.0/24\"\nport = \"mon\"\n";
  engine::SectionView view{
      Settings::from_text(text, "r.toml", diagnostics)->section("route"), options, ports, "r.toml", false, {"mon"}};
  const auto* const advice = engine::find_element("route")->trait<engine::Advice>();
  ASSERT_NE(advice, nullptr);
  EXPECT_THAT(
      advice->notes(view, engine::Advice::Occasion::check),
      testing::ElementsAre(testing::StartsWith("r.toml:3: [[route.connected]] port = \"mon\": the chain uses")));
  view.kept_ports.clear();
  EXPECT_THAT(advice->notes(view, engine::Advice::Occasion::check), testing::IsEmpty());
}

TEST(RouteSettings, AConnectedPrefixHasOneLink) {
  const std::string lan = "[[route.connected]]\nprefix = \"10.0.0.0/24\"\nport = \"lan\"\n";
  EXPECT_THAT(mistakes(lan + "[[route.connected]]\nprefix = \"10.0.0.0/24\"\nport = \"wan\"\n"),
              testing::ElementsAre("r.toml:5: [[route.connected]] prefix = \"10.0.0.0/24\": another "
                                   "[[route.connected]] has it: give each prefix one link"));
}

}  // namespace
}  // namespace sluice::function
