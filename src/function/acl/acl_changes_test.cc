// Lists and named sets that change while batches are under way, and where lines of rules with `log` go then.
#include <gtest/gtest.h>

#include "function/acl/acl_trial_test.h"
#include "function/element_trial_test.h"

namespace sluice::function {
namespace {

Bytes frame_from(const char* from) {
  return PacketBuilder().ipv4(from, "192.0.2.200").udp(7, 1).payload(20).build();
}

bool denies(engine::Element& acl, const char* from) {
  return judge_alone(acl, frame_from(from)) == acl_denied;
}

std::string reload(engine::Element& acl, const std::string& text) {
  auto fresh = acl_of(text);
  auto change = acl.reload(*fresh);
  if (!change) return change.error().message;
  change->commit();
  return change->text;
}

// Sets change while batches are under way.
TEST(AclChanges, ChangeWithoutAReload) {
  auto acl = acl_of(R"(
[[acl.set]]
name = "bad"
entries = ["192.0.2.1"]
[[acl.set]]
name = "spare"
type = "ports"
[[acl.rule]]
source = "@bad"
action = "deny"
)");
  ASSERT_TRUE(acl->prepare({}));
  engine::NamedSets& sets = *acl->trait<engine::NamedSets>();
  const auto denied = [&](const char* from) { return denies(*acl, from); };
  EXPECT_TRUE(denied("192.0.2.1"));
  EXPECT_FALSE(denied("192.0.2.2"));
  EXPECT_EQ(*sets.add_to_set("bad", {"192.0.2.2", "192.0.2.1", "2001:db8::/32"}),
            "2 entries added to bad, which has 3 now; 1 was there already");
  EXPECT_TRUE(denied("192.0.2.2"));
  EXPECT_EQ(*sets.remove_from_set("bad", {"192.0.2.1"}), "1 entry removed from bad, which has 2 now");
  EXPECT_FALSE(denied("192.0.2.1"));
  const auto wrong = sets.add_to_set("bad", {"192.0.2.9", "nobody"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("entry 2 of 2, 'nobody': ")) << wrong.error().message;
  EXPECT_FALSE(denied("192.0.2.9")) << "all or nothing";
  EXPECT_EQ(sets.add_to_set("bed", {"192.0.2.9"}).error().message, "there is no set \"bed\"; did you mean \"bad\"?");
  const auto list = sets.list_sets("", 1);
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].count, 2U);
  EXPECT_EQ((*list)[0].uses, 1U);
  EXPECT_TRUE((*list)[0].changed);
  EXPECT_EQ((*list)[0].entries, std::vector<std::string>{"192.0.2.2"});
  EXPECT_FALSE((*list)[1].changed);

  // A reload leaves a set alone that is configured as before, and counts go on.
  const char* const same =
      "[[acl.set]]\nname = \"bad\"\nentries = [\"192.0.2.1\"]\n"
      "[[acl.rule]]\nsource = \"192.0.2.77\"\naction = \"deny\"\n"
      "[[acl.rule]]\ndestination = \"@bad\"\naction = \"deny\"\n"
      "[[acl.rule]]\nname = \"now-named\"\nsource = \"@bad\"\naction = \"deny\"\n";
  EXPECT_EQ(reload(*acl, same), "3 ACL rules are in force");
  EXPECT_TRUE(denied("192.0.2.2"));
  EXPECT_FALSE(denied("192.0.2.1"));
  EXPECT_EQ(acl->trait<engine::CountedRules>()->list(10).rules[2].frames, 3U);
  const char* const other =
      "[[acl.set]]\nname = \"bad\"\nentries = [\"192.0.2.1\", \"192.0.2.3\"]\n"
      "[[acl.rule]]\nsource = \"@bad\"\naction = \"deny\"\n";
  EXPECT_EQ(reload(*acl, other), "1 ACL rule is in force; what was changed by `ctl acl set` is gone of bad");
  EXPECT_TRUE(denied("192.0.2.1"));
  EXPECT_FALSE(denied("192.0.2.2"));
}

// Keys that were made for a list before a reload, whose tags say something else: they are tagged for the list that
// judges them.
TEST(AclChanges, KeysOfAnotherListAreTaggedAnew) {
  const auto list = [](const char* first, const char* second) {
    return std::string("[[acl.set]]\nname = \"a\"\nentries = [\"192.0.2.1\"]\n") +
           "[[acl.set]]\nname = \"b\"\nentries = [\"192.0.2.2\"]\n" + "[[acl.rule]]\nsource = \"@" + first +
           "\"\naction = \"permit\"\n[[acl.rule]]\nsource = \"@" + second + "\"\naction = \"deny\"\n";
  };
  auto acl = acl_of(list("a", "b"));
  ASSERT_TRUE(acl->prepare({}));
  ElementTrial batch(*acl, {frame_from("192.0.2.1"), frame_from("192.0.2.2"), frame_from("192.0.2.3")});
  const auto denied = [&] {
    batch.compute();
    std::vector<bool> each;
    for (const packet::Reason reason : batch.apply()) each.push_back(reason == acl_denied);
    return each;
  };
  batch.classify();
  reload(*acl, list("b", "a"));
  EXPECT_EQ(denied(), (std::vector<bool>{true, false, false})) << "classified before, judged after";
  batch.classify(0, 1);
  reload(*acl, list("a", "b"));
  batch.classify(1, 3);
  EXPECT_EQ(denied(), (std::vector<bool>{false, true, false})) << "classified half before";
  batch.classify();
  reload(*acl, "[[acl.rule]]\nsource = \"192.0.2.3\"\naction = \"deny\"\n");
  EXPECT_EQ(denied(), (std::vector<bool>{false, false, true}));
  batch.classify();
  reload(*acl, list("a", "b"));
  EXPECT_EQ(denied(), (std::vector<bool>{false, true, false})) << "classified without tags";
}

// Each by the log of its list: lines that wait when a reload gives rules another one are written, and counted.
TEST(AclChanges, LinesOfAListBeforeAreCounted) {
  const auto list = [](const char* per_second) {
    return std::string("[acl]\nlog_per_second = ") + per_second + "\n[[acl.rule]]\naction = \"deny\"\nlog = true\n";
  };
  auto acl = acl_of(list("5"));
  ASSERT_TRUE(acl->prepare({}));
  for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(denies(*acl, "192.0.2.1"));
  EXPECT_EQ(reload(*acl, list("6")), "1 ACL rule is in force");
  for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(denies(*acl, "192.0.2.1"));
  EXPECT_EQ(reload(*acl, list("7")), "1 ACL rule is in force");
  acl->trait<engine::Output>()->stopped();
  std::uint64_t lines = 0;
  for (const engine::Metric& metric : acl->trait<engine::Metrics>()->metrics())
    lines += metric.name == "acl_log_lines" ? metric.value : 0;
  EXPECT_EQ(lines, 5U);
}

}  // namespace
}  // namespace sluice::function
