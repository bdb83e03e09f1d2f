// The public sets of rules, where they are (tests/support/public_data.h): how many of their rules load.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "../tests/support/public_data.h"
#include "match/rules/fast_pattern.h"
#include "match/rules/rule_set.h"

namespace sluice::match {
namespace {

namespace fs = std::filesystem;

// An archive of the data folder, unpacked; gone with this.
class Unpacked {
 public:
  explicit Unpacked(const std::string& name) {
    why_not_ = test::why_no_data(name);
    if (!why_not_.empty()) return;
    std::string folder = testing::TempDir() + "sluice-public-XXXXXX";
    folder_ = mkdtemp(folder.data());
    const std::string unpack = "tar -xJf '" + test::data_path(name) + "' -C '" + folder_.string() + "'";
    EXPECT_EQ(std::system(unpack.c_str()), 0) << unpack;
  }
  ~Unpacked() {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;

  // Empty: it is there.
  const std::string& why_not() const { return why_not_; }
  std::vector<std::string> rule_files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.path().extension() == ".rules") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

 private:
  std::string why_not_;
  fs::path folder_;
};

#define SKIP_WITHOUT(data)                                         \
  if (!(data).why_not().empty()) GTEST_SKIP() << (data).why_not(); \
  static_assert(true)

struct Count {
  std::size_t rules = 0;
  std::size_t load = 0;
  std::size_t active = 0, active_load = 0;  // not commented out
  std::map<std::string, std::size_t> reasons;

  void add(const std::vector<std::string>& files) {
    ReadOptions options;
    options.commented_out = true;
    const auto set = read_rules(files, options);
    ASSERT_TRUE(set) << set.error().message;
    load += set->rules.size();
    rules += set->rules.size() + set->refused.size();
    for (const Refusal& refusal : set->refused) {
      ++reasons[refusal.reason];
      active += refusal.commented_out ? 0 : 1;
    }
    for (const Rule& rule : set->rules) {
      active += rule.commented_out ? 0 : 1;
      active_load += rule.commented_out ? 0 : 1;
      const auto best = best_pattern(rule);
      EXPECT_TRUE(!best || !best->bytes.empty()) << rule.sid;
    }
  }
  double share() const { return static_cast<double>(load) / static_cast<double>(rules); }
  std::string str() const {
    std::string text = std::to_string(load) + " of " + std::to_string(rules) + " load\n";
    for (const auto& [reason, count] : reasons) text += std::to_string(count) + "  " + reason + "\n";
    return text;
  }
};

TEST(PublicRules, OfTheCommunityRulesNinetyFivePercentLoad) {
  const Unpacked data("rules/snort2-community-2022-03.tar.xz");
  SKIP_WITHOUT(data);
  Count count;
  count.add(data.rule_files());
  EXPECT_EQ(count.rules, 4005U);
  EXPECT_GE(count.share(), 0.95) << count.str();
  // The others are 38 about attachments of mail, and one about TLS.
  EXPECT_EQ(count.active, 545U);
  EXPECT_GE(count.active_load, 506U) << count.str();
}

TEST(PublicRules, OfTheOldCategoriesNinetyNinePercentLoad) {
  const Unpacked data("rules/snort-2.2.0-gpl-categories.tar.xz");
  SKIP_WITHOUT(data);
  Count count;
  count.add(data.rule_files());
  EXPECT_GE(count.rules, 2707U);
  EXPECT_GE(count.share(), 0.99) << count.str();
}

// Each file is a set of its own. Some of their rules are refused: by which option, the test says.
TEST(PublicRules, OfSuricatasTestRulesMostLoad) {
  const Unpacked data("dpi/suricata-verify-plain-dev.tar.xz");
  SKIP_WITHOUT(data);
  Count count;
  std::size_t files = 0;
  for (const std::string& file : data.rule_files()) {
    ReadOptions options;
    const auto set = read_rules(std::vector<std::string>{file}, options);
    ASSERT_TRUE(set) << set.error().message;
    ++files;
    count.load += set->rules.size();
    count.rules += set->rules.size() + set->refused.size();
    for (const Refusal& refusal : set->refused) ++count.reasons[refusal.reason];
  }
  EXPECT_EQ(files, 205U);
  EXPECT_GE(count.share(), 0.97) << count.str();
  EXPECT_LE(count.reasons.size(), 3U) << count.str();
}

}  // namespace
}  // namespace sluice::match
