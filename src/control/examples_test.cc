// Every configuration under examples/ passes the whole check, its function's section too. Runs in the repository's
// root.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "control/config.h"
#include "control/config_json.h"
#include "control/pipeline_maker.h"
#include "function/inspect/inspection.h"
#include "match/rules/rule_set.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::control {
namespace {

TEST(Examples, PassTheCheck) {
  std::set<std::string> chains;
  for (const auto& entry : std::filesystem::directory_iterator("examples")) {
    if (entry.path().extension() != ".toml") continue;
    Config config = Config::from_file(entry.path().string());
    EXPECT_EQ(config.diagnostics().lines, std::vector<std::string>());
    if (!config.ok()) continue;
    const auto pipeline = make_pipeline(config, described_ports(config.engine));
    EXPECT_TRUE(pipeline) << (pipeline ? "" : pipeline.error().message);
    std::string chain;
    for (const std::string& part : config.engine.chain) chain += (chain.empty() ? "" : ", ") + part;
    chains.insert(chain);
  }
  EXPECT_EQ(chains, (std::set<std::string>{"acl, inspect, route", "acl, route", "bridge", "echo", "inspect, bridge",
                                           "inspect, passive", "ipsec, route", "mirror, route", "route", "srtp, route",
                                           "touch", "vxlan, route"}))
      << "one example per use";
}

// inspect reads payloads, srtp changes them: each has a pass of its own.
TEST(Examples, WhatReadsPayloadsMayBeBesideWhatChangesThem) {
  for (const std::string chain : {"inspect\", \"srtp", "srtp\", \"inspect"}) {
    std::ifstream file("examples/ips-bridge.toml");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::string given = "chain = [\"inspect";
    ASSERT_NE(text.find(given), std::string::npos);
    text.replace(text.find(given), given.size(), "chain = [\"" + chain);
    Config config = Config::from_text(text, "ips.toml");
    const auto pipeline = make_pipeline(config, described_ports(config.engine));
    ASSERT_TRUE(pipeline) << config.mistakes();
    EXPECT_EQ((*pipeline)->passes(), 2U) << chain;
  }
}

TEST(Examples, EveryRuleLoads) {
  const auto set = match::read_rules(std::vector<std::string>{"examples/local.rules"});
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_TRUE(set->refused.empty()) << set->refused[0].line << ": " << set->refused[0].message;
  EXPECT_EQ(set->rules.size(), 10U);
  EXPECT_EQ(set->commented_out, 0U) << "a comment that reads like a rule";
}

// What the rules of examples/local.rules drop is a request's URI, however it is encoded.
class ExampleRules : public testing::Test, public function::AlertSink {
 protected:
  void SetUp() override {
    auto set = match::read_rules(std::vector<std::string>{"examples/local.rules"});
    ASSERT_TRUE(set) << set.error().message;
    auto rules = function::InspectionRules::make(std::move(*set));
    ASSERT_TRUE(rules) << rules.error().message;
    rules_ = std::move(*rules);
  }
  void alert(const function::Alert& alert) override {
    sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
  }

  // The sids of the rules that hold for a GET, and whether it is dropped.
  std::pair<std::vector<std::uint32_t>, bool> get(const std::string& uri) {
    function::InspectionSettings settings;
    settings.conversations.flows.capacity = 64;
    settings.conversations.extras = settings.conversations.http_connections = 4;
    settings.conversations.http_transactions = 8;
    settings.conversations.stream_bytes = settings.conversations.http_bytes = 1 << 20;
    function::Inspection inspection(std::make_unique<function::InspectionSearch>(rules_), settings, *this);
    const std::string text = "GET " + uri + " HTTP/1.1\r\nHost: a\r\n\r\n";
    using packet::tcp_ack, packet::tcp_syn;
    const auto segment = [&](bool to_server, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledges,
                             std::string_view payload = {}) {
      packet::PacketBuilder builder;
      to_server ? builder.ipv4("198.51.100.1", "192.0.2.80").tcp(4000, 80)
                : builder.ipv4("192.0.2.80", "198.51.100.1").tcp(80, 4000);
      const packet::Bytes frame = builder.tcp_flags(flags)
                                      .tcp_sequence(sequence, acknowledges)
                                      .payload(packet::Bytes(payload.begin(), payload.end()))
                                      .build();
      return inspection.frame({reinterpret_cast<const char*>(frame.data()), frame.size()}, ++now_).drop;
    };
    sids_.clear();
    segment(true, tcp_syn, 1000, 0);
    segment(false, tcp_syn | tcp_ack, 5000, 1001);
    segment(true, tcp_ack, 1001, 5001);
    const bool dropped = segment(true, tcp_ack, 1001, 5001, text);
    return {sids_, dropped};
  }

  std::shared_ptr<function::InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::uint64_t now_ = 1'000'000;
};

TEST_F(ExampleRules, AttacksAreDroppedHoweverTheirUriIsEncoded) {
  constexpr std::uint32_t file = 1000002, sql = 1000003;
  const struct {
    const char* uri;
    std::vector<std::uint32_t> sids;
  } cases[] = {
      {"/etc/passwd", {file}},
      {"/a/../../etc/passwd", {file}},
      {"/%65%74%63/%70asswd", {file}},
      {"/a/%2e%2e/%2e%2e/etc%2fpasswd", {file}},
      {"/a/..%5c..%5cetc%5cpasswd", {file}},
      {"/show?name=../../etc/passwd", {file}},
      {"/show?name=%2e%2e%2f%2E%2E%2Fetc%2fpasswd", {file}},
      {"/show?name=..%2f%65tc/%2f.%2fp%61sswd", {file}},
      {"/show?name=/ETC//./PASSWD", {file}},
      {"/list?id=1+union+select+1", {sql}},
      {"/list?id=1%20%75nion%20s%65lect%201", {sql}},
      {"/list?id=1%0aUNION%2f%2a%2a%2fSELECT%28", {sql}},
      {"/etc/password-rules-html", {}},
      {"/fetch?passwd=x", {}},
      {"/sketch/passwd", {}},
      {"/the-union-selected", {}},
  };
  for (const auto& [uri, sids] : cases) {
    const auto [found, dropped] = get(uri);
    EXPECT_EQ(found, sids) << uri;
    EXPECT_EQ(dropped, !sids.empty()) << uri;
  }
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
