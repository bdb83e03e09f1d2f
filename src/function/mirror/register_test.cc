// What [mirror] may say, and where a mistake is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/settings.h"
#include "engine/advice.h"
#include "engine/element.h"
#include "engine/port_table.h"

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> mistakes(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "m.toml", diagnostics);
  EXPECT_TRUE(file) << text;
  const engine::PortTable ports({{.name = "lan", .mac = {}},
                                 {.name = "wan", .mac = {}},
                                 {.name = "host", .mac = {}, .has_twin = true},
                                 {.name = "left", .mac = {}, .peer = 4, .names_peer = true},
                                 {.name = "right", .mac = {}, .peer = 3},
                                 {.name = "mon0", .mac = {}},
                                 {.name = "mon1", .mac = {}},
                                 {.name = "vx", .mac = {}, .is_virtual = true}});
  Settings section = file->section("mirror");
  const auto element = engine::find_element("mirror")->make(section, ports);
  EXPECT_TRUE(element) << text;
  section.finish();
  return diagnostics.lines;
}

// Lines 1 to 3, and more from line 4 on.
std::string session(const std::string& more, const std::string& name = "a", const std::string& to = "mon0") {
  return "[[mirror.session]]\nname = \"" + name + "\"\nto = \"" + to + "\"\n" + more;
}

TEST(MirrorSettings, WhatIsLeftOutHasADefault) {
  EXPECT_THAT(mistakes(""), IsEmpty());
  EXPECT_THAT(mistakes(session("")), IsEmpty());
  EXPECT_THAT(mistakes(session("from = [\"lan\"]\ndirection = \"tx\"\nlength = 64\n")), IsEmpty());
}

TEST(MirrorSettings, EachMistakeIsOneErrorWithItsPlace) {
  EXPECT_THAT(mistakes("[[mirror.session]]\nto = \"mon0\"\n"), ElementsAre(HasSubstr("name")));
  EXPECT_THAT(mistakes("[[mirror.session]]\nname = \"a\"\n"), ElementsAre(HasSubstr("to")));
  EXPECT_THAT(mistakes(session("", "a", "dmz")),
              ElementsAre(HasSubstr("m.toml:3: [[mirror.session]] to = \"dmz\": there is no port \"dmz\"")));
  EXPECT_THAT(mistakes(session("from = [\"lan\", \"dmz\"]\n")),
              ElementsAre(AllOf(HasSubstr("m.toml:4"), HasSubstr("there is no port \"dmz\""))));
  EXPECT_THAT(mistakes(session("from = [\"mon0\"]\n")),
              ElementsAre(AllOf(HasSubstr("m.toml:4"), HasSubstr("is the port that the copies leave by"))));
  EXPECT_THAT(mistakes(session("from = []\n")), ElementsAre(AllOf(HasSubstr("m.toml:4"), HasSubstr("names no port"))));
  EXPECT_THAT(mistakes(session("direction = \"in\"\n")), ElementsAre(HasSubstr("m.toml:4")));
  for (const char* const length : {"-1", "1", "63", "65536"}) {
    EXPECT_THAT(mistakes(session("length = " + std::string(length) + "\n")), ElementsAre(HasSubstr("m.toml:4")))
        << length;
  }
  EXPECT_THAT(mistakes(session("lenght = 64\n")), ElementsAre(HasSubstr("m.toml:4")));
}

TEST(MirrorSettings, SessionsHaveNamesOfTheirOwnAndMakeNoLoop) {
  EXPECT_THAT(mistakes(session("") + session("")), ElementsAre(AllOf(HasSubstr("m.toml:5"), HasSubstr("already"))));
  EXPECT_THAT(mistakes(session("") + session("from = [\"wan\"]\n", "b")), IsEmpty()) << "one monitor for both";
  EXPECT_THAT(mistakes(session("from = [\"lan\"]\n") + session("from = [\"mon0\"]\n", "b", "mon1")),
              ElementsAre(AllOf(HasSubstr("m.toml:8"), HasSubstr("session \"a\""))));
  EXPECT_THAT(mistakes(session("from = [\"mon1\"]\n") + session("from = [\"mon0\"]\n", "b", "mon1")),
              ElementsAre(HasSubstr("m.toml:4"), HasSubstr("m.toml:8")));
  EXPECT_THAT(mistakes(session("", "a", "vx")),
              ElementsAre(HasSubstr("m.toml:3: [[mirror.session]] to = \"vx\": \"vx\" is the end of a tunnel")));
  EXPECT_THAT(mistakes(session("from = [\"vx\"]\n")), IsEmpty()) << "whose frames are copied";
  std::string many;
  for (const char name : std::string("abcdefghi")) many += session("", {name});
  EXPECT_THAT(mistakes(many), ElementsAre(HasSubstr("more than 7 sessions")));
}

TEST(MirrorSettings, AMonitorPortIsUsedForNothingElse) {
  EXPECT_THAT(mistakes(session("", "a", "host")),
              ElementsAre(AllOf(HasSubstr("m.toml:3: [[mirror.session]] to = \"host\""), HasSubstr("has a twin"))));
  EXPECT_THAT(mistakes(session("", "a", "right")),
              ElementsAre(AllOf(HasSubstr("m.toml:3"), HasSubstr("is the peer of \"left\""))));
  EXPECT_THAT(mistakes(session("", "a", "left")), IsEmpty()) << "the file does not say that it is one's peer";
}

TEST(MirrorSettings, WithoutASessionThereIsANote) {
  const auto* const advice = engine::find_element("mirror")->trait<engine::Advice>();
  ASSERT_NE(advice, nullptr);
  Diagnostics diagnostics;
  const engine::Options options;
  const engine::PortTable ports;
  const auto view_of = [&](const std::string& text) {
    return engine::SectionView{Settings::from_text(text, "m.toml", diagnostics)->section("mirror"), options, ports,
                               "m.toml"};
  };
  engine::SectionView none = view_of(""), some = view_of(session("") + session("", "b", "mon1"));
  EXPECT_THAT(advice->notes(none, engine::Advice::Occasion::check), ElementsAre(HasSubstr("m.toml: [mirror] has no")));
  EXPECT_THAT(advice->notes(some, engine::Advice::Occasion::check), IsEmpty());
  EXPECT_THAT(advice->keeps_ports(some.section), ElementsAre("mon0", "mon1"));
}

TEST(MirrorSettings, RulesAreMatchesOfTheAcl) {
  const auto rule = [](const std::string& line) { return session("[[mirror.session.rule]]\n" + line + "\n"); };
  EXPECT_THAT(mistakes(rule("protocol = \"tcp\"\ndestination_port = [80, 443]")), IsEmpty());
  EXPECT_THAT(mistakes(rule("source = \"@hosts\"") + "[[mirror.set]]\nname = \"hosts\"\nentries = [\"10.0.0.1\"]\n"),
              IsEmpty());
  EXPECT_THAT(mistakes(rule("source = \"@hosts\"")),
              ElementsAre(AllOf(HasSubstr("m.toml:5"), HasSubstr("write it as [[mirror.set]] before"))));
  EXPECT_THAT(mistakes(rule("source = \"10.0.0.1/8\"")), ElementsAre(HasSubstr("m.toml:5")));
  for (const char* const line :
       {"ingress = \"lan\"", "egress = \"lan\"", "action = \"deny\"", "priority = 1", "mark = 1", "log = true"}) {
    EXPECT_THAT(mistakes(rule(line)), ElementsAre(AllOf(HasSubstr("m.toml:5"), HasSubstr("leave it out")))) << line;
  }
}

}  // namespace
}  // namespace sluice::function
