// When the id of a next hop may come to mean another one, and where gateways that name no port lie.
#include "function/route/adjacency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "function/route/gpu_rest.h"

namespace sluice::function {
namespace {

using Clock = AdjacencyTable::Clock;
using namespace std::chrono_literals;

packet::IpAddress address(unsigned n) {
  return packet::IpAddress::v4(0x0a000000U + n);
}

class AdjacencyTest : public testing::Test {
 protected:
  static constexpr std::uint32_t own_ids = AdjacencyTable::elsewhere_id + 1;
  Clock::time_point settled_ = Clock::time_point::min();  // what was freed rests until the test says otherwise
  AdjacencyTable table_{own_ids + 100, 4, [this] { return settled_; }};

  // A group of the neighbours n and n + 1, held by nothing else.
  Expected<lookup::NextHopId> group(unsigned n) {
    const auto a = table_.hold(0, address(n));
    const auto b = table_.hold(0, address(n + 1));
    auto id = table_.hold_group({{*a, 1}, {*b, 1}});
    table_.release(*a);
    table_.release(*b);
    return id;
  }
};

TEST_F(AdjacencyTest, AFreedIdRestsHoweverManyAreFreedAfterIt) {
  std::set<lookup::NextHopId> freed;
  for (unsigned i = 0; i < 80; ++i) {
    const auto id = table_.hold(0, address(i));
    ASSERT_TRUE(id);
    table_.release(*id);
    EXPECT_TRUE(freed.insert(*id).second) << "id " << *id << " names two next hops";
  }
  settled_ = Clock::time_point::max();
  EXPECT_TRUE(freed.contains(table_.hold(0, address(200)).value()));
}

TEST_F(AdjacencyTest, AFullTableTakesNoIdThatRestsAndSaysWhatToDo) {
  std::vector<lookup::NextHopId> held;
  for (unsigned i = 0; i < 100; ++i) {
    held.push_back(table_.hold(0, address(i)).value());
  }
  const auto full = table_.hold(0, address(200));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "the router has 100 next hops, neighbours and ECMP groups, of 100, the most that fit: name fewer gateways, "
            "or let the kernel keep fewer neighbours (sysctl net.ipv4.neigh.default.gc_thresh3)");
  table_.release(held[7]);
  const auto resting = table_.hold(0, address(200));
  ASSERT_FALSE(resting);
  EXPECT_EQ(resting.error().message,
            "the router has 99 next hops, neighbours and ECMP groups, of 100; some were freed just now and can be used "
            "in a moment: try again");
  settled_ = Clock::now();
  EXPECT_EQ(table_.hold(0, address(200)).value(), held[7]);
}

TEST_F(AdjacencyTest, ANextHopThatComesBackGetsItsIdBack) {
  const auto id = table_.hold(0, address(1));
  table_.release(*id);
  EXPECT_EQ(table_.at(*id).kind(), AdjacencyKind::unresolved) << "what is under way goes on";
  EXPECT_NE(table_.hold(1, address(1)).value(), *id);  // the same address on another link is another next hop
  EXPECT_EQ(table_.hold(0, address(1)).value(), *id);
  EXPECT_EQ(table_.at(*id).kind(), AdjacencyKind::unresolved);
  // It rests no more.
  settled_ = Clock::time_point::max();
  EXPECT_NE(table_.hold(0, address(2)).value(), *id);
}

TEST_F(AdjacencyTest, AFreedGroupKeepsItsMembersWhileItRests) {
  std::vector<std::uint32_t> slots;
  for (unsigned i = 0; i < 4; ++i) {
    const auto id = group(10 * i);
    ASSERT_TRUE(id) << id.error().message;
    slots.push_back(table_.at(*id).group());
    const lookup::NextHopId first = table_.member(slots[0], 0);
    table_.release(*id);
    EXPECT_EQ(table_.member(slots[0], 0), first);
  }
  EXPECT_EQ(std::set<std::uint32_t>(slots.begin(), slots.end()).size(), 4U);
  const auto resting = group(90);
  ASSERT_FALSE(resting);
  EXPECT_EQ(resting.error().message,
            "the router has 0 ECMP groups, of 4; some were freed just now and can be used in a moment: try again");
  settled_ = Clock::time_point::max();
  const auto id = group(90);
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(table_.at(*id).group(), slots[0]);
}

TEST_F(AdjacencyTest, TooManyGroupsInUseIsAnErrorThatSaysWhatToDo) {
  for (unsigned i = 0; i < 4; ++i) {
    ASSERT_TRUE(group(10 * i));
  }
  const auto full = group(90);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "the router has 4 ECMP groups, of 4, the most that fit: let routes share their sets of next hops, or take "
            "fewer paths (FRR: maximum-paths; BIRD: merge paths)");
}

TEST_F(AdjacencyTest, EveryMemberOfAGroupGetsASlotAndTheRestFollowsTheWeights) {
  struct Case {
    std::vector<std::uint8_t> weights;
    std::vector<std::uint32_t> slots;
  };
  std::vector<std::uint8_t> one_heavy(32, 1);
  std::vector<std::uint32_t> about_its_share(32, 1);
  one_heavy[31] = 10;  // of 41: 15.6 of 64
  about_its_share[31] = 15;
  std::fill_n(about_its_share.begin(), 18, 2);
  const Case cases[] = {
      {{1, 1}, {32, 32}},
      {{1, 3}, {16, 48}},
      {{1, 1, 1}, {22, 21, 21}},
      {{3, 2, 1}, {32, 21, 11}},
      {{0, 1}, {32, 32}},
      {{1, 200}, {1, 63}},
      {{255, 1, 1}, {62, 1, 1}},
      {one_heavy, about_its_share},
      {std::vector<std::uint8_t>(60, 7),
       [] {
         std::vector<std::uint32_t> slots(60, 1);
         std::fill_n(slots.begin(), 4, 2);
         return slots;
       }()},
      {std::vector<std::uint8_t>(64, 1), std::vector<std::uint32_t>(64, 1)},
  };
  settled_ = Clock::time_point::max();
  for (const Case& one : cases) {
    std::vector<std::pair<lookup::NextHopId, std::uint8_t>> members;
    for (unsigned i = 0; i < one.weights.size(); ++i) {
      members.emplace_back(table_.hold(0, address(i)).value(), one.weights[i]);
    }
    const auto id = table_.hold_group(members);
    ASSERT_TRUE(id) << id.error().message;
    std::vector<std::uint32_t> slots(members.size());
    for (std::uint32_t hash = 0; hash < AdjacencyTable::group_slots; ++hash) {
      const lookup::NextHopId member = table_.member(table_.at(*id).group(), hash);
      const auto at = std::ranges::find(members, member, [](const auto& of) { return of.first; });
      ASSERT_NE(at, members.end());
      ++slots[static_cast<std::size_t>(at - members.begin())];
    }
    EXPECT_EQ(slots, one.slots) << members.size() << " members, the first of weight " << +one.weights[0];
    EXPECT_EQ(table_.next_hops(*id).size(), members.size());
    table_.release(*id);
    for (const auto& [member, weight] : members) table_.release(member);
  }
}

TEST_F(AdjacencyTest, MoreMembersThanSlotsAreAnErrorThatTakesNothing) {
  std::vector<std::pair<lookup::NextHopId, std::uint8_t>> members;
  for (unsigned i = 0; i < 65; ++i) {
    members.emplace_back(table_.hold(0, address(i)).value(), 1);
  }
  const auto refused = table_.hold_group(members);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "a route has 65 next hops, more than the 64 that one can have: take fewer paths");
  EXPECT_EQ(table_.used(), 65U);
}

packet::MacAddress mac_of(PortIndex port) {
  return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(port)}};
}

// Gateways of any port whose MAC address is known on each of three ports, in their first `ports`.
class LateLinksTest : public testing::Test {
 protected:
  static constexpr PortIndex ports = 3;

  void hold(const std::string& text) {
    const packet::IpAddress gateway = *packet::IpAddress::parse(text);
    for (PortIndex port = 0; port < ports; ++port) table_.set_mac(port, gateway, mac_of(port));
    ids_[gateway] = table_.hold(AdjacencyTable::any_port, gateway).value();
  }
  void set(const packet::IpPrefix& prefix, std::uint32_t metric, std::optional<PortIndex> port) {
    table_.set_on_link(prefix, metric, port);
    if (port) {
      links_[{prefix, metric}] = *port;
    } else {
      links_.erase({prefix, metric});
    }
  }
  // By looking at every link for every gateway.
  void expect_each_on_the_longest() const {
    for (const auto& [gateway, id] : ids_) {
      PortIndex port = AdjacencyTable::any_port;
      int longest = -1;
      for (const auto& [route, link] : links_) {  // of one prefix the lowest metric first
        if (route.first.length > longest && route.first.contains(gateway)) {
          longest = route.first.length;
          port = link == OnLinkPrefixes::elsewhere ? AdjacencyTable::any_port : link;
        }
      }
      const bool covered = port != AdjacencyTable::any_port;
      ASSERT_EQ(table_.next_hops(id).at(0).port, port) << gateway.str();
      ASSERT_EQ(table_.at(id).word, covered ? Adjacency::of(AdjacencyKind::forward, port, mac_of(port), true).word
                                            : Adjacency::of(AdjacencyKind::awaited, port, {}, true).word)
          << gateway.str();
    }
  }

  AdjacencyTable table_{1000, 4};
  std::map<packet::IpAddress, lookup::NextHopId> ids_;
  std::map<std::pair<packet::IpPrefix, std::uint32_t>, PortIndex> links_;
};

TEST_F(LateLinksTest, TheLongestPrefixHasTheGatewayInWhateverOrderTheyComeAndGo) {
  for (const char* gateway : {"10.0.0.2", "10.0.1.2", "192.0.2.1", "2001:db8::2", "2001:db8:1::2"}) hold(gateway);
  const std::array<const char*, 3> families[] = {{"10.0.0.0/24", "10.0.0.0/8", "0.0.0.0/0"},
                                                 {"2001:db8::/64", "2001:db8::/32", "::/0"}};
  for (const auto& family : families) {
    std::array<PortIndex, ports> coming{0, 1, 2};  // a port for each prefix
    do {
      std::array<PortIndex, ports> going{0, 1, 2};
      do {
        for (const PortIndex port : coming) {
          set(*packet::IpPrefix::parse(family[port]), 0, port);
          expect_each_on_the_longest();
        }
        for (const PortIndex port : going) {
          set(*packet::IpPrefix::parse(family[port]), 0, std::nullopt);
          expect_each_on_the_longest();
        }
      } while (std::ranges::next_permutation(going).found);
    } while (std::ranges::next_permutation(coming).found);
  }
}

TEST_F(LateLinksTest, AnyCourseOfLinksAndGatewaysEndsAsALookAtAllOfThemSays) {
  std::mt19937 random(7);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto any_address = [&] {
    const std::string words[] = {std::to_string(below(2)), std::to_string(below(3)), std::to_string(below(200))};
    return below(2) != 0 ? "10." + words[0] + "." + words[1] + "." + words[2]
                         : "2001:db8:" + words[0] + ":" + words[1] + "::" + words[2];
  };
  constexpr unsigned lengths4[] = {0, 8, 16, 24, 25, 32};
  constexpr unsigned lengths6[] = {0, 32, 48, 64, 121, 128};
  for (int step = 0; step < 3000; ++step) {
    const packet::IpAddress address = *packet::IpAddress::parse(any_address());
    const auto prefix = packet::IpPrefix::of(address, (address.family == 4 ? lengths4 : lengths6)[below(6)]);
    switch (below(5)) {
      case 0:
        hold(address.str());  // new, or once more
        break;
      case 1:
        set(prefix, below(2), std::nullopt);
        break;
      case 2:
        set(prefix, below(2), OnLinkPrefixes::elsewhere);
        break;
      default:
        set(prefix, below(2), static_cast<PortIndex>(below(ports)));
    }
    if (links_.size() > 30) {
      const auto route = std::next(links_.begin(), below(30))->first;
      set(route.first, route.second, std::nullopt);
    }
    if (ids_.size() > 50) {
      const auto freed = std::next(ids_.begin(), below(50));
      for (std::uint32_t used = table_.used(); table_.used() == used;) table_.release(freed->second);
      ids_.erase(freed);
    }
    ASSERT_NO_FATAL_FAILURE(expect_each_on_the_longest()) << "step " << step;
  }
}

TEST(Adjacency, ByDefaultAFreedIdRestsForASecond) {
  AdjacencyTable table(AdjacencyTable::elsewhere_id + 2, 1);
  const auto id = table.hold(0, address(1));
  table.release(*id);
  const auto freed = Clock::now();
  while (!table.hold(0, address(2))) {
    ASSERT_LT(Clock::now() - freed, 5s);
  }
  EXPECT_GE(Clock::now() - freed, 990ms);
}

TEST(GpuRest, NothingIsSettledBeforeTheTablesWereUpToDateAndAGracePassed) {
  GpuRest rest;
  const Clock::time_point start{1h};
  EXPECT_EQ(rest.settled(start, 1s), Clock::time_point::min());
  bool up_to_date = false;
  const auto cycle = [&](Clock::duration at) { rest.cycle(start + at, 1s, [&] { return up_to_date; }); };
  cycle(0s);
  cycle(3s);  // a backlog of changes
  EXPECT_EQ(rest.settled(start + 3s, 1s), Clock::time_point::min());
  up_to_date = true;
  cycle(4s);
  up_to_date = false;  // what was freed until then is on its way, whatever comes after it
  cycle(4900ms);
  EXPECT_EQ(rest.settled(start + 4900ms, 1s), Clock::time_point::min());
  cycle(5s);
  EXPECT_EQ(rest.settled(start + 5s, 1s), start + 4s);
  cycle(9s);
  EXPECT_EQ(rest.settled(start + 9s, 1s), start + 4s);
  // A lost GPU holds nothing up.
  EXPECT_EQ(rest.settled(start + 18s, 1s), start + 4s);
  EXPECT_EQ(rest.settled(start + 20s, 1s), start + 19s);
}

}  // namespace
}  // namespace sluice::function
