// What is reported of counters, and what a change of lists keeps.
#include "function/acl/rule_hits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::function {
namespace {

using lookup::acl::AclRule;
using lookup::acl::ActionKind;

constexpr std::uint32_t writers = 3;

AclRule to_port(std::uint16_t port, ActionKind kind = ActionKind::permit) {
  AclRule rule;
  rule.destination_port = {port, port};
  rule.action.kind = kind;
  return rule;
}

// Follows a list as the stage does: `held` stands for the list in force, which holds its counters.
class Followed {
 public:
  explicit Followed(RuleHits& hits) : hits_(hits) {}
  std::shared_ptr<HitCounters> follow(const std::vector<AclRule>& rules, bool deny_others = false) {
    auto next = hits_.next(rules, deny_others);
    auto counters = next->counters;
    hits_.enter(std::move(next));
    return counters;
  }

 private:
  RuleHits& hits_;
};

std::vector<std::uint64_t> frames(const RuleHits& hits) {
  const auto listing = hits.list(1000);
  std::vector<std::uint64_t> all;
  for (const engine::CountedRule& rule : listing.rules) all.push_back(rule.frames);
  all.push_back(listing.unmatched.frames);
  return all;
}
using Frames = std::vector<std::uint64_t>;

TEST(HitCounters, AreTheSumOfAllWritersAndShareNoCacheLine) {
  HitCounters counters(writers, 5);
  for (std::uint32_t writer = 0; writer < writers; ++writer) {
    for (std::uint32_t place = 0; place < 5; ++place) counters.add(writer, place, 100 * place + writer);
  }
  for (std::uint32_t place = 0; place < 5; ++place) {
    EXPECT_EQ(counters.sum(place).frames, writers);
    EXPECT_EQ(counters.sum(place).bytes, 300U * place + 3);
  }
  const auto line = [&](std::uint32_t writer, std::uint32_t place) {
    return reinterpret_cast<std::uintptr_t>(&counters.at(writer, place)) / 128;
  };
  EXPECT_LT(line(0, 4), line(1, 0));
  EXPECT_LT(line(1, 4), line(2, 0));
}

TEST(RuleHits, ListSaysWhatThereIs) {
  RuleHits hits(writers);
  const auto counters = Followed(hits).follow({to_port(1, ActionKind::deny), to_port(2), to_port(3)}, true);
  counters->add(0, 0, 64);
  counters->add(2, 0, 1500);
  counters->add(1, 3, 100);
  auto listing = hits.list(2);
  EXPECT_EQ(listing.count, 3U);
  ASSERT_EQ(listing.rules.size(), 2U);
  EXPECT_EQ(listing.rules[0].action, "deny");
  EXPECT_EQ(listing.rules[0].match, "destination_port=1");
  EXPECT_EQ(listing.rules[0].frames, 2U);
  EXPECT_EQ(listing.rules[0].bytes, 1564U);
  EXPECT_EQ(listing.rules[1].frames, 0U);
  EXPECT_EQ(listing.unmatched.action, "deny");
  EXPECT_EQ(listing.unmatched.match, "");
  EXPECT_EQ(listing.unmatched.frames, 1U);
  EXPECT_EQ(listing.unmatched.bytes, 100U);
}

TEST(RuleHits, ARuleThatStaysKeepsItsCount) {
  RuleHits hits(writers);
  Followed list(hits);
  auto counters = list.follow({to_port(1), to_port(2), to_port(3), to_port(4)});
  for (std::uint32_t place = 0; place < 5; ++place) {
    for (std::uint32_t i = 0; i <= place; ++i) counters->add(0, place, 64);
  }
  EXPECT_EQ(frames(hits), (Frames{1, 2, 3, 4, 5}));
  AclRule of_line = to_port(4);
  of_line.line = 77;
  AclRule raised = to_port(3);
  raised.priority = 1;
  // 4 has moved, to another line of the file too; 2 has another action, 3 another priority; 1 stays; 9 is new.
  counters = list.follow({raised, of_line, to_port(9), to_port(2, ActionKind::deny), to_port(1)});
  EXPECT_EQ(frames(hits), (Frames{0, 4, 0, 0, 1, 5}));
  counters = list.follow({to_port(1)}, true);
  EXPECT_EQ(frames(hits), (Frames{1, 0})) << "another default is a new one";
}

TEST(RuleHits, EqualRulesAreDistinguishedByTheirOrder) {
  RuleHits hits(writers);
  Followed list(hits);
  auto counters = list.follow({to_port(1), to_port(2), to_port(1)});
  counters->add(0, 0, 64);
  counters = list.follow({to_port(2), to_port(1), to_port(1), to_port(1)});
  EXPECT_EQ(frames(hits), (Frames{0, 1, 0, 0, 0}));
}

// Batches judged late, by any of several lists, count where their rules are now; lists end in any order.
TEST(RuleHits, NothingIsLostWhileListsAreHeld) {
  RuleHits hits(writers);
  Followed list(hits);
  auto first = list.follow({to_port(1), to_port(2)});
  auto second = list.follow({to_port(3), to_port(2)});
  auto third = list.follow({to_port(2), to_port(4), to_port(3)});
  first->add(0, 1, 10);   // to port 2
  first->add(0, 0, 10);   // gone
  first->add(0, 2, 10);   // the default
  second->add(1, 1, 20);  // to port 2
  second->add(1, 0, 20);  // to port 3
  third->add(2, 0, 40);   // to port 2
  const Frames all = {3, 0, 1, 1};
  EXPECT_EQ(frames(hits), all);
  hits.fold();
  EXPECT_EQ(frames(hits), all) << "all are held";
  second.reset();
  hits.fold();
  EXPECT_EQ(frames(hits), all);
  first->add(0, 1, 10);
  first.reset();
  hits.fold();
  EXPECT_EQ(frames(hits), (Frames{4, 0, 1, 1}));
  const auto fourth = list.follow({to_port(2)});
  EXPECT_EQ(frames(hits), (Frames{4, 1}));
  EXPECT_EQ(hits.list(1).rules[0].bytes, 80U);
}

TEST(RuleHits, TotalsNeverFall) {
  RuleHits hits(writers);
  Followed list(hits);
  const auto totals = [&] {
    Frames all;
    for (const HitCount& one : hits.totals()) all.push_back(one.frames);
    return all;
  };
  auto first = list.follow({to_port(1), to_port(2, ActionKind::deny), to_port(3, ActionKind::mark)});
  for (std::uint32_t place = 0; place < 4; ++place) first->add(0, place, 64);
  EXPECT_EQ(totals(), (Frames{1, 1, 1, 0, 0, 1})) << "permit, deny, mark, police, reject, none";
  auto second = list.follow({to_port(2, ActionKind::deny), to_port(1, ActionKind::deny)}, true);
  EXPECT_EQ(totals(), (Frames{1, 1, 1, 0, 0, 1}));
  first->add(1, 0, 64);
  second->add(1, 1, 64);
  EXPECT_EQ(totals(), (Frames{2, 2, 1, 0, 0, 1}));
  first.reset();
  hits.fold();
  EXPECT_EQ(totals(), (Frames{2, 2, 1, 0, 0, 1}));
  const auto third = list.follow({to_port(2, ActionKind::police)});
  second.reset();
  hits.fold();
  EXPECT_EQ(totals(), (Frames{2, 2, 1, 0, 0, 1}));
  third->add(0, 0, 64);
  EXPECT_EQ(totals(), (Frames{2, 2, 1, 1, 0, 1}));
  EXPECT_EQ(hits.totals()[1].bytes, 128U);
}

// A list that was worked out and not taken changes nothing.
TEST(RuleHits, AChangeThatIsDroppedChangesNothing) {
  RuleHits hits(writers);
  const auto counters = Followed(hits).follow({to_port(1)});
  counters->add(0, 0, 64);
  hits.next(std::vector{to_port(2)}, true).reset();
  EXPECT_EQ(frames(hits), (Frames{1, 0}));
  EXPECT_EQ(hits.list(5).rules[0].match, "destination_port=1");
}

}  // namespace
}  // namespace sluice::function
