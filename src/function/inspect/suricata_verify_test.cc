// The cases of suricata-verify: the rules of each over its capture, and the alerts that the case asks for. Data:
// $SLUICE_DATA. SLUICE_VERIFY_LIST=FILE writes each case's outcome.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "../tests/support/capture_file.h"
#include "function/inspect/inspection.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using nlohmann::json;

// Why a check does not agree: settings of Suricata's own file, or another point in time.
const std::map<std::string, std::string> disagreeing{
    {"detect-engine-proto", "HTTP is known with the request's first packet, not when that is acknowledged"},
    {"exception-policy-master-switch/exception-policy-master-switch-02", "an exception policy lets the flow by"},
    {"exception-policy-master-switch/exception-policy-master-switch-05", "an exception policy lets the flow by"},
    {"firewall/ruletype-firewall-44-yaml-config-only", "rules of Suricata's firewall mode"},
    {"util-action-tests/util-action-13", "an action-order with drop before pass"},
};

// As Suricata writes it.
std::string address(const packet::IpAddress& address) {
  if (address.family == 4) return address.str();
  std::string text;
  for (std::size_t i = 0; i < address.bytes.size(); i += 2) {
    std::array<char, 8> group{};
    std::snprintf(group.data(), group.size(), "%s%02x%02x", i == 0 ? "" : ":", address.bytes[i], address.bytes[i + 1]);
    text += group.data();
  }
  return text;
}

const char* protocol_name(std::uint8_t protocol) {
  switch (protocol) {
    case packet::protocol_tcp:
      return "TCP";
    case packet::protocol_udp:
      return "UDP";
    case packet::protocol_icmp:
      return "ICMP";
    case packet::protocol_icmpv6:
      return "IPv6-ICMP";
    default:
      return "other";
  }
}

struct Recorded : AlertSink {
  void alert(const Alert& alert) override {
    const match::PacketFacts& packet = *alert.packet;
    alerts.push_back({{"event_type", "alert"},
                      {"alert.signature_id", alert.rules->detector().rules().rules[alert.rule].sid},
                      {"alert.action", alert.blocked ? "blocked" : "allowed"},
                      {"pcap_cnt", frame},
                      {"proto", protocol_name(packet.protocol)},
                      {"src_ip", address(packet.source)},
                      {"dest_ip", address(packet.destination)},
                      {"src_port", packet.source_port},
                      {"dest_port", packet.destination_port}});
    json& one = alerts.back();
    if (alert.transaction == nullptr) return;
    one["tx_id"] = alert.transaction->number;
    one["http.http_method"] = alert.transaction->method();
  }
  std::vector<json> alerts;
  unsigned frame = 0;  // from 1

  static bool knows(const std::string& field) {
    static const std::set<std::string> fields{
        "event_type", "alert.signature_id", "alert.action", "proto", "pcap_cnt",        "src_ip",
        "dest_ip",    "src_port",           "dest_port",    "tx_id", "http.http_method"};
    return fields.contains(field);
  }
  unsigned count(const json& match) const {
    return static_cast<unsigned>(std::count_if(alerts.begin(), alerts.end(), [&](const json& one) {
      return std::all_of(match.items().begin(), match.items().end(),
                         [&](const auto& field) { return one.value(field.key(), json()) == field.value(); });
    }));
  }
};

// Whether the check is about nothing but alerts, and what is known of them.
bool is_known(const json& check) {
  const json& match = check["match"];
  if (match.value("event_type", "alert") != "alert" || !check["count"].is_number()) return false;
  return std::all_of(match.items().begin(), match.items().end(),
                     [](const auto& field) { return Recorded::knows(field.key()); });
}

class SuricataVerify : public testing::Test {
 protected:
  void SetUp() override {
    const char* const data = std::getenv("SLUICE_DATA");
    const std::string archive = std::string(data == nullptr ? "" : data) + "/dpi/suricata-verify-plain-dev.tar.xz";
    if (data == nullptr || !std::filesystem::exists(archive)) {
      GTEST_SKIP() << "SLUICE_DATA names no folder with " << archive;
    }
    folder_ = std::filesystem::temp_directory_path() / ("sluice-verify-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(std::system(("tar -C " + folder_.string() + " -xf " + archive).c_str()), 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().filename() == "INDEX.jsonl") root_ = entry.path().parent_path();
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_, root_;
};

// Why the case cannot be run, or "".
std::string run_case(const json& one, const std::filesystem::path& root, Recorded& recorded) {
  if (one["rules"].is_null() || one["pcap"].is_null()) return "no rules or no capture";
  const std::string path = (root / one["rules"].get<std::string>()).string();
  auto set = match::read_rules(std::vector<std::string>{path}, {});
  if (!set) return set.error().message;
  if (!set->refused.empty()) return "refused: " + set->refused[0].message;
  auto rules = InspectionRules::make(std::move(*set));
  if (!rules) return rules.error().message;
  InspectionSettings settings;
  settings.conversations.flows.capacity = 4096;
  settings.conversations.extras = 1024;
  const std::string arguments = one["args"].dump();
  settings.conversations.flows.midstream = arguments.find("stream.midstream=true") != std::string::npos;
  if (arguments.find("response-body-decompress-layer-limit=3") != std::string::npos) {
    settings.conversations.http.response_layers = 3;
  }
  if (arguments.find("response-body-limit=1mb") != std::string::npos) {
    settings.conversations.http.response_body_limit = 1 << 20;
  }
  Inspection inspection(std::make_unique<InspectionSearch>(*rules), settings, recorded);
  for (const auto& frame : test::read_capture((root / one["pcap"].get<std::string>()).string())) {
    ++recorded.frame;
    inspection.frame(frame.bytes, frame.microseconds);
  }
  inspection.finish();
  return "";
}

TEST_F(SuricataVerify, alerts_are_as_many_as_each_case_says) {
  std::ifstream index(root_ / "INDEX.jsonl");
  std::ofstream list;
  if (const char* const file = std::getenv("SLUICE_VERIFY_LIST")) list.open(file);
  unsigned checks = 0, right = 0, cases = 0, run = 0;
  std::set<std::string> wrong;
  for (std::string line; std::getline(index, line); ++cases) {
    const json one = json::parse(line);
    const auto name = one["test"].get<std::string>();
    Recorded recorded;
    if (const std::string why = run_case(one, root_, recorded); !why.empty()) {
      list << "SKIP " << name << ": " << why << "\n";
      continue;
    }
    ++run;
    for (const json& check : one["alerts"]) {
      if (!is_known(check)) continue;
      ++checks;
      const unsigned got = recorded.count(check["match"]);
      if (got == check["count"].get<unsigned>()) {
        ++right;
        continue;
      }
      const std::string what =
          name + " " + check["match"].dump() + ": " + std::to_string(got) + " instead of " + check["count"].dump();
      list << "WRONG " << what << "\n";
      wrong.insert(name);
      const auto known = disagreeing.find(name);
      std::printf("  %s: %s\n", what.c_str(), known == disagreeing.end() ? "?" : known->second.c_str());
      EXPECT_NE(known, disagreeing.end()) << what;
    }
  }
  std::printf("suricata-verify: %u of %u cases run, %u of %u checks of alerts right\n", run, cases, right, checks);
  for (const auto& [name, reason] : disagreeing) EXPECT_TRUE(wrong.contains(name)) << name << " agrees by now";
  EXPECT_GE(run, 201U);
  EXPECT_GE(checks, 371U);
}

}  // namespace
}  // namespace sluice::function
