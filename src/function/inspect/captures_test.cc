// What a device reports of payloads in the place of the core's search changes no alert: on every public capture that
// can be read, with the community rules. Data: tests/support/public_data.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "../tests/support/capture_file.h"
#include "../tests/support/public_data.h"
#include "function/inspect/inspection.h"
#include "function/inspect/with_policy_test.h"
#include "match/automaton/key_scan.h"

namespace sluice::function {
namespace {

using Alerts = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  // when, and which rule

struct Recorded : AlertSink {
  void alert(const Alert& alert) override { alerts.emplace_back(alert.microseconds, alert.rule); }
  void dropped(const DroppedFrame& frame) override { limited += frame.reason == DropReason::http_limit ? 1 : 0; }
  Alerts alerts;
  std::size_t limited = 0;  // conversations
};

// The keys of a payload, as GpuMatcher reports them (its tests compare it with the definition).
std::vector<std::uint32_t> keys_of(const InspectionRules& rules, std::string_view frame) {
  const match::PacketFacts facts = match::facts_of(frame);
  std::vector<std::uint32_t> keys;
  match::scan_keys(rules.gram_table().view(), facts.payload, 0, rules.detector().classes().class_of(facts), keys);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

Recorded recorded_of(const std::shared_ptr<InspectionRules>& rules,
                     const std::vector<sluice::test::CapturedFrame>& frames, bool by_device) {
  InspectionSettings settings;
  settings.budget = 1U << 20;
  settings.conversations.flows.capacity = 1U << 14;
  settings.conversations.extras = 1U << 12;
  settings.conversations.flows.seed = 1;
  settings.drop_on_http_limit = true;
  Recorded recorded;
  Inspection inspection(std::make_unique<InspectionSearch>(rules), settings, recorded);
  for (const sluice::test::CapturedFrame& frame : frames) {
    std::vector<std::uint32_t> keys;
    KeyHits hits;
    if (by_device) {
      keys = keys_of(*rules, frame.bytes);
      hits = {rules->generation(), keys.data(), static_cast<std::uint32_t>(keys.size()),
              inspection.brief_of(frame.bytes).updates_flow_only};
    }
    inspection.frame(frame.bytes, frame.microseconds, hits);
  }
  inspection.finish();
  return recorded;
}

class PublicCaptures : public testing::Test {
 protected:
  static constexpr const char* kinds[] = {"pcaps", "dpi", "rules"};
  void SetUp() override {
    for (const char* const kind : kinds) {
      if (const std::string why = sluice::test::why_no_data(kind); !why.empty()) GTEST_SKIP() << why;
    }
    folder_ = std::filesystem::temp_directory_path() / ("sluice-captures-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    for (const char* const kind : kinds) {
      for (const auto& archive : std::filesystem::directory_iterator(sluice::test::data_path(kind))) {
        if (archive.path().extension() != ".xz") continue;
        ASSERT_EQ(std::system(("tar -C " + folder_.string() + " -xf " + archive.path().string()).c_str()), 0);
      }
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> files(const std::string& ending) const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file() && entry.path().string().ends_with(ending)) all.push_back(entry.path().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::filesystem::path folder_;
};

TEST_F(PublicCaptures, AlertsAreTheSameWhoeverSearches) {
  std::vector<std::string> community = files("/community.rules");
  ASSERT_EQ(community.size(), 1U);
  community.push_back(folder_.string() + "/drop.rules");  // where no rule drops, limits of HTTP do not
  std::ofstream(community.back()) << test::with_policy("", true);
  match::ReadOptions options;
  options.commented_out = true;
  auto set = match::read_rules(community, options);
  ASSERT_TRUE(set) << set.error().message;
  auto rules = InspectionRules::make(std::move(*set));
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_TRUE((*rules)->detector().blocks()) << "or limits of HTTP would drop nothing";
  std::vector<std::string> beyond_a_limit;
  std::size_t read = 0, left_out = 0, frames_in_all = 0, alerts = 0;
  for (const std::string& path : files(".pcap")) {
    std::vector<sluice::test::CapturedFrame> frames;
    try {
      frames = sluice::test::read_capture(path);
    } catch (const std::runtime_error&) {
      ++left_out;  // of a kind that the reader does not know
      continue;
    }
    ++read;
    frames_in_all += frames.size();
    const Recorded of_core = recorded_of(*rules, frames, false);
    EXPECT_EQ(recorded_of(*rules, frames, true).alerts, of_core.alerts) << path;
    alerts += of_core.alerts.size();
    if (of_core.limited != 0) beyond_a_limit.push_back(path);
  }
  std::printf("captures: %zu compared, %zu frames, %zu alerts; %zu are of a kind that is not read\n", read,
              frames_in_all, alerts, left_out);
  EXPECT_GT(alerts, 100U);
  // What is ordinary does not: this is an evasion.
  EXPECT_THAT(beyond_a_limit, testing::ElementsAre(testing::EndsWith("/http-evader-151/input.pcap")));
}

}  // namespace
}  // namespace sluice::function
