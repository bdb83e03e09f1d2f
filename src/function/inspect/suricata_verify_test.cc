// The cases of suricata-verify: the rules of each over its capture, and the alerts that the case asks for. Data:
// $SLUICE_DATA. SLUICE_VERIFY_LIST=FILE writes each case's outcome.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../tests/support/capture_file.h"
#include "function/inspect/inspection.h"

namespace sluice::function {
namespace {

using nlohmann::json;

struct Recorded : AlertSink {
  void alert(const Alert& alert) override { ++by_rule[alert.rule]; }
  std::map<std::uint32_t, unsigned> by_rule;
};

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
std::string run_case(const json& one, const std::filesystem::path& root, const match::ReadOptions& options,
                     json& outcome) {
  const std::string path = (root / one["rules"].get<std::string>()).string();
  auto set = match::read_rules(std::vector<std::string>{path}, options);
  if (!set) return set.error().message;
  if (!set->refused.empty()) return "refused: " + set->refused[0].message;
  auto rules = InspectionRules::make(std::move(*set));
  if (!rules) return rules.error().message;
  Recorded recorded;
  InspectionSettings settings;
  settings.conversations.flows.capacity = 4096;
  settings.conversations.extras = 1024;
  const std::string arguments = one["args"].dump();
  settings.conversations.flows.midstream = arguments.find("stream.midstream=true") != std::string::npos;
  if (arguments.find("response-body-decompress-layer-limit=3") != std::string::npos) {
    settings.conversations.http.response_layers = 3;
  }
  Inspection inspection(std::make_unique<InspectionSearch>(*rules), settings, recorded);
  for (const auto& frame : test::read_capture((root / one["pcap"].get<std::string>()).string())) {
    inspection.frame(frame.bytes, frame.microseconds);
  }
  inspection.finish();
  unsigned all = 0;
  std::map<std::uint32_t, unsigned> by_sid;
  for (const auto& [rule, count] : recorded.by_rule) {
    all += count;
    by_sid[(*rules)->detector().rules().rules[rule].sid] += count;
  }
  outcome["all"] = all;
  for (const auto& [sid, count] : by_sid) outcome["sid"][std::to_string(sid)] = count;
  return "";
}

TEST_F(SuricataVerify, alerts_are_as_many_as_each_case_says) {
  std::ifstream index(root_ / "INDEX.jsonl");
  std::ofstream list;
  if (const char* const file = std::getenv("SLUICE_VERIFY_LIST")) list.open(file);
  unsigned checks = 0, right = 0, cases = 0, run = 0;
  for (std::string line; std::getline(index, line);) {
    const json one = json::parse(line);
    ++cases;
    json outcome;
    std::string why;
    if (one["rules"].is_null() || one["pcap"].is_null()) {
      why = "no rules or no capture";
    } else {
      why = run_case(one, root_, {}, outcome);
    }
    if (!why.empty()) {
      list << "SKIP " << one["test"].get<std::string>() << ": " << why << "\n";
      continue;
    }
    ++run;
    for (const json& check : one["alerts"]) {
      const json& match = check["match"];
      bool known = true;
      std::string sid;
      for (const auto& [key, value] : match.items()) {
        if (key == "alert.signature_id") {
          sid = std::to_string(value.get<unsigned>());
        } else if (key != "event_type") {
          known = false;
        }
      }
      if (!known || match.value("event_type", "") != "alert" || !check["count"].is_number()) continue;
      ++checks;
      const unsigned got = sid.empty()               ? outcome["all"].get<unsigned>()
                           : outcome.contains("sid") ? outcome["sid"].value(sid, 0U)
                                                     : 0U;
      const bool good = got == check["count"].get<unsigned>();
      right += good;
      if (!good) {
        list << "WRONG " << one["test"].get<std::string>() << " " << match.dump() << ": " << got << " instead of "
             << check["count"] << " keywords " << one["keywords"].dump() << " args " << one["args"].dump() << "\n";
      }
    }
  }
  std::printf("suricata-verify: %u of %u cases run, %u of %u checks of alerts right\n", run, cases, right, checks);
  EXPECT_GE(right * 100, checks * 90);  // what is not: docs/matching.md
}

}  // namespace
}  // namespace sluice::function
