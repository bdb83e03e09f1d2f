// The cases of suricata-verify: the rules of each over its capture, and the alerts and drops that the case asks for, of
// the EVE lines as they are written. Each check agrees, or is named below with the reason. Data:
// tests/support/public_data.h.
// SLUICE_VERIFY_LIST=FILE writes what became of each that does not agree, with the lines that were written.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "../tests/support/capture_file.h"
#include "../tests/support/public_data.h"
#include "function/inspect/alert_log.h"
#include "function/inspect/inspection.h"

namespace sluice::function {
namespace {

using nlohmann::json;

struct Difference {
  unsigned checks;
  const char* why;
};

// Cases with rules that are refused, with all of their checks.
const std::map<std::string, Difference> refused{
    {"detect-pcre/detect-pcre-05", {5, "captures of pcre into variables"}},
    {"eve-tag-04", {1, "tag: packets after an alert"}},
    {"eve-tag-05", {1, "tag: packets after an alert"}},
    {"lua/lua-hashlib", {1, "DNS"}},
};

// Checks that ask for what no line has.
const std::map<std::string, const char*> unwritten{
    {"alert.rule", "no line has the rule's text"},
    {"packet", "no line has the packet's bytes"},
    {"verdict.action", "no line has a `verdict`"},
};

// Checks that were run and do not agree.
const std::map<std::string, Difference> differing{
    {"bug-78-http-uri", {1, "HTTP is inspected with the request's packet, not two packets later"}},
    {"detect-engine-proto", {1, "HTTP is known with the request's first packet, not when that is acknowledged"}},
    {"eve-alert-metadata-off", {1, "there is no setting to leave out flow, http and metadata"}},
    {"exception-policy-master-switch/exception-policy-master-switch-02", {1, "an exception policy lets the flow by"}},
    {"exception-policy-master-switch/exception-policy-master-switch-05", {1, "an exception policy lets the flow by"}},
    {"firewall/ruletype-firewall-44-yaml-config-only", {1, "rules of Suricata's firewall mode"}},
    {"util-action-tests/util-action-13", {1, "an action-order with drop before pass"}},
};

// Writes the lines, and keeps which frame each is of.
class Recorder final : public AlertSink {
 public:
  Recorder(const std::filesystem::path& eve, bool forwards) : path_(eve) {
    AlertLogSettings settings;
    settings.eve = eve.string();
    settings.alerts_per_second = 0;
    settings.stats_seconds = 0;
    settings.wait_for_capacity = true;
    settings.forwards = forwards;
    auto log = AlertLog::open(settings, 1);
    EXPECT_TRUE(log) << log.error().message;
    log_ = std::move(*log);
  }
  void alert(const Alert& alert) override {
    alerts_.push_back(frame_);
    log_->lane(0).alert(alert);
  }
  void dropped(const DroppedFrame& frame) override {
    drops_.push_back(frame_);
    log_->lane(0).dropped(frame);
  }
  void next_frame() { ++frame_; }

  // The lines that were written, with Suricata's number of their frame, from 1.
  std::vector<json> events() {
    log_->stop();
    std::vector<json> all;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      all.push_back(json::parse(line));
      std::deque<unsigned>& frames = all.back()["event_type"] == "drop" ? drops_ : alerts_;
      EXPECT_FALSE(frames.empty()) << line;
      if (frames.empty()) continue;
      all.back()["pcap_cnt"] = frames.front();
      frames.pop_front();
    }
    return all;
  }

 private:
  const std::filesystem::path path_;
  std::unique_ptr<AlertLog> log_;
  std::deque<unsigned> alerts_, drops_;  // each one's frame; a frame that is dropped has one line of `drop`
  unsigned frame_ = 0;
};

// What stands at "alert.signature_id", "vlan[0]"; null: nothing does.
json value_at(const json& event, const std::string& path) {
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  std::replace(pointer.begin(), pointer.end(), '[', '/');
  std::erase(pointer, ']');
  return event.value(json::json_pointer(pointer), json());
}

// "has-key" and "not-has-key" name one key or several.
bool is_each(const json& keys, const json& event, bool there) {
  const json all = keys.is_array() ? keys : json::array({keys});
  return std::all_of(all.begin(), all.end(),
                     [&](const json& key) { return value_at(event, key.get<std::string>()).is_null() != there; });
}

bool agrees(const json& match, const json& event) {
  return std::all_of(match.items().begin(), match.items().end(), [&](const auto& wanted) {
    if (wanted.key() == "has-key") return is_each(wanted.value(), event, true);
    if (wanted.key() == "not-has-key") return is_each(wanted.value(), event, false);
    return value_at(event, wanted.key()) == wanted.value();
  });
}

// Why no line can agree with the check; nullptr: some may.
const char* why_unwritten(const json& match) {
  const std::string keys = match.value("has-key", json()).dump();
  for (const auto& [field, why] : unwritten) {
    if (match.contains(field) || keys.find('"' + field + '"') != std::string::npos) return why;
  }
  return nullptr;
}

class SuricataVerify : public testing::Test {
 protected:
  void SetUp() override {
    constexpr const char* name = "dpi/suricata-verify-plain-dev.tar.xz";
    if (const std::string why = test::why_no_data(name); !why.empty()) GTEST_SKIP() << why;
    folder_ = std::filesystem::temp_directory_path() / ("sluice-verify-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    ASSERT_EQ(std::system(("tar -C " + folder_.string() + " -xf " + test::data_path(name)).c_str()), 0);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().filename() == "INDEX.jsonl") root_ = entry.path().parent_path();
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_, root_;
};

// Why the case cannot be run, or "".
std::string run_case(const json& one, const std::filesystem::path& root, std::vector<json>& events) {
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
  Recorder recorder(root / "eve.json", arguments.find("--simulate-ips") != std::string::npos);
  {
    Inspection inspection(std::make_unique<InspectionSearch>(*rules), settings, recorder);
    for (const auto& frame : test::read_capture((root / one["pcap"].get<std::string>()).string())) {
      recorder.next_frame();
      inspection.frame(frame.bytes, frame.microseconds);
    }
    inspection.finish();
  }
  events = recorder.events();
  std::filesystem::remove(root / "eve.json");
  return "";
}

// What became of the checks, all cases together.
struct Tally {
  unsigned cases = 0, checks = 0, right = 0;
  std::map<std::string, unsigned> refused, differing;  // checks, by case
  std::map<std::string, unsigned> unasked;             // checks, by reason
  std::ofstream list;
};

void check_events(const std::string& name, const json& checks, const std::vector<json>& events, Tally& tally) {
  for (const json& check : checks) {
    const json& match = check["match"];
    if (const char* const why = why_unwritten(match)) {
      ++tally.unasked[why];
      tally.list << "NOT ASKED " << name << ": " << why << "\n";
      continue;
    }
    const auto got =
        std::count_if(events.begin(), events.end(), [&](const json& event) { return agrees(match, event); });
    if (got == check["count"].get<long>()) {
      ++tally.right;
      continue;
    }
    ++tally.differing[name];
    tally.list << "DIFFERS " << name << " " << match.dump() << ": " << got << " instead of " << check["count"] << "\n";
    for (const json& event : events) tally.list << "  " << event.dump() << "\n";
  }
}

void expect_named(const char* what, const std::map<std::string, Difference>& named,
                  const std::map<std::string, unsigned>& got) {
  for (const auto& [name, difference] : named) {
    EXPECT_TRUE(got.contains(name)) << name << " agrees by now";
    std::printf("  %s, %u: %s: %s\n", what, difference.checks, name.c_str(), difference.why);
  }
  for (const auto& [name, checks] : got) {
    const auto known = named.find(name);
    EXPECT_EQ(checks, known == named.end() ? 0 : known->second.checks) << what << ": " << name;
  }
}

unsigned sum_of(const std::map<std::string, unsigned>& counts) {
  unsigned sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

TEST_F(SuricataVerify, EveryCheckAgreesOrIsNamedWithAReason) {
  std::ifstream index(root_ / "INDEX.jsonl");
  Tally tally;
  if (const char* const file = std::getenv("SLUICE_VERIFY_LIST")) tally.list.open(file);
  for (std::string line; std::getline(index, line); ++tally.cases) {
    const json one = json::parse(line);
    const auto name = one["test"].get<std::string>();
    const json& checks = one["alerts"];
    tally.checks += static_cast<unsigned>(checks.size());
    std::vector<json> events;
    if (const std::string why = run_case(one, root_, events); !why.empty()) {
      tally.refused[name] = static_cast<unsigned>(checks.size());
      tally.list << "NOT RUN " << name << ": " << why << "\n";
      continue;
    }
    check_events(name, checks, events, tally);
  }
  expect_named("refused", refused, tally.refused);
  expect_named("differs", differing, tally.differing);
  for (const auto& [why, checks] : tally.unasked) std::printf("  not asked, %u: %s\n", checks, why.c_str());
  const unsigned not_run = sum_of(tally.refused), unasked = sum_of(tally.unasked), wrong = sum_of(tally.differing);
  std::printf(
      "suricata-verify: %u checks of %u cases: %u agree, %u differ, %u ask for what no line has, %u are of refused "
      "rules\n",
      tally.checks, tally.cases, tally.right, wrong, unasked, not_run);
  EXPECT_EQ(tally.right + wrong + unasked + not_run, tally.checks);
  EXPECT_EQ(tally.cases, 205U);
  EXPECT_EQ(tally.checks, 408U);
  for (const auto& [field, why] : unwritten) EXPECT_TRUE(tally.unasked.contains(why)) << why << ": asked by no check";
}

}  // namespace
}  // namespace sluice::function
