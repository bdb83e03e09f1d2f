#include "ipsec/spd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "ipsec/ipsec_trial_test.h"

namespace sluice::ipsec {
namespace {

using test::bypassing;
using test::selector;

const PolicyEntry* find(const Spd& spd, const FlowKey& flow) {
  const PacketKey key = packet_key(flow);
  const PolicyEntry* found = nullptr;
  const Tuples tuples = spd.tuples();
  spd.find(tuples, {&key, 1}, &found, nullptr);
  return found;
}

Spd::Handle put(Spd& spd, const Policy& policy) {
  return spd.put(spd.make(policy, true).value());
}

TEST(Spd, FindsTheLowestPriority) {
  Spd spd(16);
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "0.0.0.0/0"), 20));
  put(spd, bypassing(Direction::out, selector("0.0.0.0/0", "0.0.0.0/0"), 30));
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16", 17, {}, {53, 0xffff}), 40));
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1", 17, 1, 53))->policy.priority, 20U);
  EXPECT_EQ(find(spd, test::flow("11.0.0.1", "10.1.0.1", 17, 1, 53))->policy.priority, 30U);
  EXPECT_EQ(find(spd, test::flow("2001:db8::1", "2001:db8::2")), nullptr);
}

TEST(Spd, TakesTheLongerPrefixesOfOnePriorityAndThenTheFirst) {
  Spd spd(16);
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "10.1.0.0/16"), 20));
  put(spd, bypassing(Direction::out, selector("10.0.0.0/16", "10.1.0.0/16"), 20));
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "10.1.0.0/24"), 20));
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "10.1.0.0/24", 17), 20));
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1"))->policy.selector, selector("10.0.0.0/16", "10.1.0.0/16"));
  EXPECT_EQ(find(spd, test::flow("10.1.0.1", "10.1.0.1"))->policy.selector, selector("10.0.0.0/8", "10.1.0.0/24"));
  EXPECT_EQ(find(spd, test::flow("10.1.0.1", "10.1.9.1"))->policy.selector, selector("10.0.0.0/8", "10.1.0.0/16"));
  spd.take(selector("10.0.0.0/8", "10.1.0.0/24"));
  EXPECT_EQ(find(spd, test::flow("10.1.0.1", "10.1.0.1"))->policy.selector, selector("10.0.0.0/8", "10.1.0.0/24", 17));
}

// The same of masks that many policies have: whichever is listed first.
TEST(Spd, TakesTheFirstOfOneRankOfTwoTables) {
  for (const bool sources_first : {true, false}) {
    Spd spd(64);
    const auto add = [&](bool sources) {
      for (int i = 0; i < 12; ++i) {
        const std::string narrow = "10.0." + std::to_string(i) + ".0/24";
        put(spd,
            bypassing(Direction::out, sources ? selector(narrow, "10.0.0.0/8") : selector("10.0.0.0/8", narrow), 20));
      }
    };
    add(sources_first);
    add(!sources_first);
    EXPECT_EQ(spd.tuples().lists->ipv4.large.size(), 2U);
    EXPECT_EQ(find(spd, test::flow("10.0.3.1", "10.0.4.1"))->policy.selector,
              sources_first ? selector("10.0.3.0/24", "10.0.0.0/8") : selector("10.0.0.0/8", "10.0.4.0/24"));
  }
}

TEST(Spd, ReplacesOnlyWhereItIsToldTo) {
  Spd spd(16);
  const Selector one = selector("10.0.0.0/8", "10.1.0.0/16");
  put(spd, bypassing(Direction::out, one, 20));
  const auto refused = spd.make(bypassing(Direction::out, one, 30), false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "there is a policy 10.0.0.0/8 -> 10.1.0.0/16 already");
  const Spd::Handle before = put(spd, bypassing(Direction::out, one, 30));
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before->policy.priority, 20U);
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1"))->policy.priority, 30U);
  EXPECT_EQ(spd.size(), 1U);
  EXPECT_EQ(spd.take(one)->policy.priority, 30U);
  EXPECT_EQ(spd.take(one), nullptr);
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1")), nullptr);
}

// One that is replaced in place stays the first of its rank.
TEST(Spd, KeepsThePlaceOfAReplacedPolicy) {
  Spd spd(16);
  const Selector one = selector("10.0.0.0/8", "10.1.0.0/16"), other = selector("10.0.0.0/16", "10.0.0.0/8");
  put(spd, bypassing(Direction::out, one, 20));
  put(spd, bypassing(Direction::out, other, 20));
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1"))->policy.selector, one);
  put(spd, bypassing(Direction::out, one, 20));
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1"))->policy.selector, one);
  put(spd, bypassing(Direction::out, one, 30));
  put(spd, bypassing(Direction::out, one, 20));
  EXPECT_EQ(find(spd, test::flow("10.0.0.1", "10.1.0.1"))->policy.selector, other);
}

TEST(Spd, RefusesPoliciesThatCannotBe) {
  Spd spd(1);
  const Selector any = selector("0.0.0.0/0", "0.0.0.0/0");
  const Template tunnel = test::tunnel_template("192.0.2.1", "192.0.2.2");
  Template ah = tunnel;
  ah.protocol = Protocol::ah;
  const auto refused = [&](const Policy& policy) {
    const auto made = spd.make(policy, false);
    return made ? std::string("accepted") : made.error().message;
  };
  Policy policy = test::protecting(Direction::out, any, 1, tunnel);
  EXPECT_EQ(refused(policy), "accepted");
  policy.templates = {tunnel, ah};
  EXPECT_EQ(refused(policy), "accepted");
  policy.templates = {ah, tunnel};
  EXPECT_EQ(refused(policy),
            "the policy 0.0.0.0/0 -> 0.0.0.0/0 needs a template of ESP or AH, or ESP and then AH around it");
  policy.templates = {};
  EXPECT_NE(refused(policy), "accepted");
  policy.templates = {{.protocol = Protocol::esp, .mode = Mode::tunnel}};
  EXPECT_NE(refused(policy), "accepted");
  policy.direction = Direction::in;
  EXPECT_EQ(refused(policy), "accepted");
  policy = bypassing(Direction::out, any, 1);
  policy.templates = {tunnel};
  EXPECT_EQ(refused(policy),
            "the policy 0.0.0.0/0 -> 0.0.0.0/0 has templates, which only a policy that protects may have");
  put(spd, bypassing(Direction::out, any, 1));
  EXPECT_EQ(refused(bypassing(Direction::out, selector("10.0.0.0/8", "0.0.0.0/0"), 1)),
            "no capacity for the policy 10.0.0.0/8 -> 0.0.0.0/0: there is one for 1");
}

// One after the other comes to a mask and goes again, each of a rank behind the others.
TEST(Spd, FindsPoliciesOfAMaskHoweverManyItHas) {
  Spd spd(64);
  const auto one = [](int i) { return selector("10.0.0.0/8", "10.1.0." + std::to_string(i)); };
  const auto finds = [&](int i) {
    const PolicyEntry* const found = find(spd, test::flow("10.0.0.1", "10.1.0." + std::to_string(i)));
    return found != nullptr && found->policy.selector == one(i);
  };
  constexpr int most = 24;
  for (int i = 0; i < most; ++i) {
    put(spd, bypassing(Direction::out, one(i), static_cast<std::uint32_t>(i)));
    for (int known = 0; known <= i; ++known) ASSERT_TRUE(finds(known)) << known << " of " << i;
    ASSERT_FALSE(finds(i + 1));
  }
  for (int i = most - 1; i >= 0; --i) {
    ASSERT_NE(spd.take(one(i)), nullptr);
    ASSERT_FALSE(finds(i));
    for (int known = 0; known < i; ++known) ASSERT_TRUE(finds(known)) << known << " of " << i;
  }
}

// Against all policies one after the other: random changes, searches by bursts with and without a cache. Of many masks,
// which have few policies each, and of few, whose tables come and go.
TEST(Spd, FindsWhatASearchOfAllWouldFind) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const bool varied = seed % 2 == 1;
    test::Random random(seed);
    Spd spd(600);
    struct Known {
      std::uint32_t priority;
      std::uint64_t order;
    };
    std::map<Selector, Known> model;
    std::uint64_t last = 0;
    PolicyCache cache(1024);
    std::vector<FlowKey> usual(100);  // that come again and again
    for (FlowKey& flow : usual) flow = random.flow();
    int found_some = 0, changed = 0, without_large = 0;
    std::size_t most_large = 0;
    for (int round = 0; round < 400; ++round) {
      for (int change = 0; change < 5; ++change) {
        const Selector selector = random.selector(varied).normal();
        const auto at = model.find(selector);
        const bool shrinks = round / 40 % 2 == 1;
        if ((at != model.end() && random.once_in(2)) || (shrinks && !model.empty())) {
          const auto some = std::next(model.begin(), random.below(static_cast<std::uint32_t>(model.size())));
          const Selector gone = at != model.end() ? selector : some->first;
          ASSERT_NE(spd.take(gone), nullptr);
          model.erase(gone);
        } else {
          const std::uint32_t priority = random.below(6);
          put(spd, bypassing(Direction::out, selector, priority));
          const bool stays = at != model.end() && at->second.priority == priority;
          model[selector] = {priority, stays ? at->second.order : ++last};
        }
        ++changed;
      }
      ASSERT_EQ(spd.size(), model.size());
      std::vector<FlowKey> flows(random.below(80) + 1);
      std::vector<PacketKey> keys;
      for (FlowKey& flow : flows) {
        flow = random.once_in(2) ? random.flow() : usual[random.below(static_cast<std::uint32_t>(usual.size()))];
        keys.push_back(packet_key(flow));
      }
      std::vector<const PolicyEntry*> found(keys.size()), again(keys.size()), cached(keys.size());
      const Tuples tuples = spd.tuples();
      spd.find(tuples, keys, found.data(), nullptr);
      spd.find(tuples, keys, again.data(), &cache);
      spd.find(tuples, keys, cached.data(), &cache);
      EXPECT_EQ(again, found);
      EXPECT_EQ(cached, found);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const Selector* best = nullptr;
        const auto rank = [&](const Selector& of) {
          return std::tuple(model[of].priority, 256 - of.source.length - of.destination.length, model[of].order);
        };
        for (const auto& [selector, known] : model) {
          if (selector.matches(flows[i]) && (best == nullptr || rank(selector) < rank(*best))) best = &selector;
        }
        ASSERT_EQ(found[i] == nullptr, best == nullptr);
        if (best != nullptr) {
          ASSERT_EQ(found[i]->policy.selector, *best) << found[i]->policy.selector.str() << " for " << best->str();
          ++found_some;
        }
      }
      most_large = std::max(most_large, tuples.lists->ipv4.large.size() + tuples.lists->ipv6.large.size());
      without_large += tuples.lists->ipv4.large.empty() ? 1 : 0;
    }
    if (!varied) {
      EXPECT_GT(most_large, 4U);
      EXPECT_GT(without_large, 10);
    }
    EXPECT_GT(found_some, 1000);
    EXPECT_EQ(changed, 2000);
  }
}

TEST(Spd, ListsPoliciesAsTheyAreLookedAt) {
  Spd spd(16);
  put(spd, bypassing(Direction::out, selector("0.0.0.0/0", "0.0.0.0/0"), 20));
  put(spd, bypassing(Direction::out, selector("10.0.0.0/8", "0.0.0.0/0"), 20));
  put(spd, bypassing(Direction::out, selector("::/0", "::/0"), 10));
  std::vector<std::string> listed;
  for (const Policy& policy : spd.policies(10)) listed.push_back(policy.selector.str());
  EXPECT_EQ(listed, (std::vector<std::string>{"::/0 -> ::/0", "10.0.0.0/8 -> 0.0.0.0/0", "0.0.0.0/0 -> 0.0.0.0/0"}));
  EXPECT_EQ(spd.policies(2).size(), 2U);
}

}  // namespace
}  // namespace sluice::ipsec
