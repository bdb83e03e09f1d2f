#include "packet/reason.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "packet/parse.h"

namespace sluice::packet {
namespace {

const Reason registered_here = register_reason("reason_test_only", "registered by a test");

TEST(Reason, KeepsNameAndText) {
  EXPECT_NE(registered_here, no_reason);
  EXPECT_EQ(reason_name(registered_here), "reason_test_only");
  EXPECT_EQ(reason_text(registered_here), "registered by a test");
  EXPECT_EQ(reason_name(no_reason), "none");
}

TEST(Reason, AnswersUnknownBehindTheTable) {
  EXPECT_LE(reason_count(), max_reasons);
  EXPECT_EQ(reason_name(static_cast<Reason>(reason_count())), "unknown");
  EXPECT_EQ(reason_text(255), "unknown");
}

TEST(Reason, ParserReasonsAreDistinctAndSnakeCase) {
  std::set<std::string> names;
  for (const Reason reason : {frame_too_short, bad_ip_version, bad_header_length, bad_total_length, bad_checksum,
                              bad_source, bad_destination}) {
    const std::string name(reason_name(reason));
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), std::string::npos) << name;
    EXPECT_FALSE(reason_text(reason).empty());
  }
}

TEST(Reason, SaysWhatIsDroppedOnPurpose) {
  EXPECT_FALSE(is_on_purpose(registered_here));
  EXPECT_FALSE(is_on_purpose(no_reason));
  EXPECT_FALSE(is_on_purpose(255));
  ReasonTrial trial;
  EXPECT_TRUE(is_on_purpose(register_reason("reason_test_purpose", "a rule's", DroppedBy::purpose)));
}

TEST(Reason, GoesWithItsTrialUnlessKept) {
  const unsigned before = reason_count();
  {
    ReasonTrial trial;
    const Reason tried = register_reason("reason_test_tried", "of a plug-in");
    EXPECT_EQ(reason_name(tried), "reason_test_tried");
    EXPECT_EQ(reason_count(), before + 1);
    EXPECT_EQ(trial.mistake(), "");
  }
  EXPECT_EQ(reason_count(), before);
  {
    ReasonTrial trial;
    register_reason("reason_test_kept", "of a plug-in");
    trial.keep();
  }
  EXPECT_EQ(reason_name(static_cast<Reason>(before)), "reason_test_kept");
}

TEST(Reason, OfATrialIsTheOneThatIsThereOrAMistake) {
  const unsigned before = reason_count();
  ReasonTrial trial;
  EXPECT_EQ(register_reason("reason_test_only", "registered by a test"), registered_here);
  EXPECT_EQ(trial.mistake(), "");
  EXPECT_EQ(register_reason("reason_test_only", "another text"), no_reason);
  EXPECT_EQ(trial.mistake(), "reason 'reason_test_only' is registered twice");
  std::set<std::string> names;
  for (unsigned i = before; i <= max_reasons; ++i) {
    register_reason(*names.insert("filler_" + std::to_string(i)).first, "filler");
  }
  EXPECT_EQ(reason_count(), max_reasons);
}

TEST(Reason, OfATrialThatFillsTheTableSaysWhatToDo) {
  std::set<std::string> names;  // outlives the trial
  ReasonTrial trial;
  for (unsigned i = reason_count(); i <= max_reasons; ++i) {
    EXPECT_EQ(trial.mistake(), "");
    register_reason(*names.insert("filler_" + std::to_string(i)).first, "filler");
  }
  EXPECT_EQ(
      trial.mistake(),
      "the program and its plug-ins have more than 192 reasons for drops: load fewer plug-ins, or let the plug-in "
      "count several drops under one reason");
}

TEST(Reason, OfATrialHasAName) {
  for (const auto& [name, said] : {std::pair<const char*, const char*>{"bad x \"\n", "reason 'bad x \"?': a name has"},
                                   {"", "reason '': a name has"},
                                   {"Capital", "reason 'Capital': a name has"},
                                   {"1st", "reason '1st': a name has"}}) {
    const unsigned before = reason_count();
    ReasonTrial trial;
    EXPECT_EQ(register_reason(name, "of a plug-in"), no_reason);
    EXPECT_TRUE(trial.mistake().starts_with(said)) << trial.mistake();
    EXPECT_EQ(reason_count(), before);
  }
}

// The EAL runs threads: a death test starts the program anew.
class ReasonDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ReasonDeathTest, RefusesTheSameNameTwice) {
  EXPECT_DEATH(register_reason("reason_test_only", "again"), "'reason_test_only' is registered twice");
}

TEST_F(ReasonDeathTest, RefusesMoreThanTheTableHolds) {
  EXPECT_DEATH(
      {
        std::set<std::string> names;
        for (unsigned i = 0; i <= max_reasons; ++i) {
          register_reason(*names.insert("filler_" + std::to_string(i)).first, "filler");
        }
      },
      "more than 192 reasons for drops: raise max_reasons");
}

}  // namespace
}  // namespace sluice::packet
