// Lists and named sets that change while batches are under way, and where lines of rules with `log` go then.
#include <gtest/gtest.h>

#include "function/acl/acl_trial_test.h"

namespace sluice::function {
namespace {

Bytes frame_from(const char* from) {
  return PacketBuilder().ipv4(from, "192.0.2.200").udp(7, 1).payload(20).build();
}

bool denies(engine::Stage& stage, const char* from) {
  Bytes frame = frame_from(from);
  return stage.judge_transit(0, frame.data(), static_cast<std::uint32_t>(frame.size()), 0) == acl_denied;
}

std::string reload(engine::Stage& stage, const std::string& text) {
  auto fresh = acl_of(text);
  auto change = stage.reload(*fresh);
  if (!change) return change.error().message;
  change->commit();
  return change->text;
}

// Sets change while batches are under way.
TEST(AclChanges, ChangeWithoutAReload) {
  auto stage = acl_of(R"(
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
  ASSERT_TRUE(stage->prepare({}));
  engine::NamedSets& sets = *stage->named_sets();
  const auto denied = [&](const char* from) { return denies(*stage, from); };
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
  EXPECT_EQ(reload(*stage, same), "3 ACL rules are in force");
  EXPECT_TRUE(denied("192.0.2.2"));
  EXPECT_FALSE(denied("192.0.2.1"));
  EXPECT_EQ(stage->counted_rules()->list(10).rules[2].frames, 3U);
  const char* const other =
      "[[acl.set]]\nname = \"bad\"\nentries = [\"192.0.2.1\", \"192.0.2.3\"]\n"
      "[[acl.rule]]\nsource = \"@bad\"\naction = \"deny\"\n";
  EXPECT_EQ(reload(*stage, other), "1 ACL rule is in force; what was changed by `ctl acl set` is gone of bad");
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
  auto stage = acl_of(list("a", "b"));
  ASSERT_TRUE(stage->prepare({}));
  std::vector<Bytes> frames = {frame_from("192.0.2.1"), frame_from("192.0.2.2"), frame_from("192.0.2.3")};
  std::vector<std::uint64_t> address;
  std::vector<std::uint16_t> length;
  for (Bytes& frame : frames) {
    address.push_back(reinterpret_cast<std::uint64_t>(frame.data()));
    length.push_back(static_cast<std::uint16_t>(frame.size()));
  }
  engine::Batch batch;
  batch.frame = address.data();
  batch.length = length.data();
  batch.capacity = 64;
  const std::size_t bytes = (std::size_t{stage->bytes_per_frame()} * 64 + 63) / 64 * 64;
  const std::unique_ptr<std::byte, decltype(&std::free)> area(static_cast<std::byte*>(std::aligned_alloc(64, bytes)),
                                                              &std::free);
  const auto judged = [&] {
    stage->compute(batch, area.get(), 0, batch.count);
    std::vector<bool> denied;
    for (std::uint32_t i = 0; i < batch.count; ++i)
      denied.push_back(stage->judge(batch, area.get(), i, 0) == acl_denied);
    stage->judged(batch, area.get());
    return denied;
  };
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload(*stage, list("b", "a"));
  EXPECT_EQ(judged(), (std::vector<bool>{true, false, false})) << "described before, judged after";
  batch.count = 1;
  stage->describe(batch, area.get(), 0);
  reload(*stage, list("a", "b"));
  batch.count = 3;
  stage->describe(batch, area.get(), 1);
  EXPECT_EQ(judged(), (std::vector<bool>{false, true, false})) << "described half before";
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload(*stage, "[[acl.rule]]\nsource = \"192.0.2.3\"\naction = \"deny\"\n");
  EXPECT_EQ(judged(), (std::vector<bool>{false, false, true}));
  batch.count = 3;
  stage->describe(batch, area.get(), 0);
  reload(*stage, list("a", "b"));
  EXPECT_EQ(judged(), (std::vector<bool>{false, true, false})) << "described without tags";
}

// Each by the log of its list: lines that wait when a reload gives rules another one are written, and counted.
TEST(AclChanges, LinesOfAListBeforeAreCounted) {
  const auto list = [](const char* per_second) {
    return std::string("[acl]\nlog_per_second = ") + per_second + "\n[[acl.rule]]\naction = \"deny\"\nlog = true\n";
  };
  auto stage = acl_of(list("5"));
  ASSERT_TRUE(stage->prepare({}));
  for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(denies(*stage, "192.0.2.1"));
  EXPECT_EQ(reload(*stage, list("6")), "1 ACL rule is in force");
  for (unsigned i = 0; i < 2; ++i) EXPECT_TRUE(denies(*stage, "192.0.2.1"));
  EXPECT_EQ(reload(*stage, list("7")), "1 ACL rule is in force");
  stage->stopped();
  std::uint64_t lines = 0;
  for (const engine::Figure& figure : stage->figures()) lines += figure.name == "acl_log_lines" ? figure.value : 0;
  EXPECT_EQ(lines, 5U);
}

}  // namespace
}  // namespace sluice::function
