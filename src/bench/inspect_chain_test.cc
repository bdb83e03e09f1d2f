// What the verification of a chain says of frames that leave by another way than their route's.
#include "bench/inspect_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "engine/emitter.h"
#include "engine/lane.h"
#include "function/acl/acl.h"

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;

class VerifyChain : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    options_.lanes = 1;
    options_.frames = 512;
    options_.deadline_ms = 100;
    auto table = RouterTable::make({}, {3000, 1000});
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table).release();
    auto rules = InspectRules::load(options_);
    ASSERT_TRUE(rules) << rules.error().message;
    rules_ = std::move(*rules).release();
  }
  static void TearDownTestSuite() {
    delete rules_;
    delete table_;
  }
  void SetUp() override { ASSERT_TRUE(reference_.read(table_->routes_path())); }

  Expected<void> verify(const std::string& device, const ChainCase& one, ChainSeen& seen) const {
    return verify_chain(options_, *table_, reference_, *rules_, one, device, seen);
  }

  static BenchOptions options_;
  static RouterTable* table_;
  static InspectRules* rules_;
  RouteReference reference_;
};
BenchOptions VerifyChain::options_;
RouterTable* VerifyChain::table_ = nullptr;
InspectRules* VerifyChain::rules_ = nullptr;

TEST_F(VerifyChain, EachFrameThatLeavesGoesToItsNextHopOnEachDevice) {
  for (const char* const device : {"cpu", "cuda:0"}) {
    ChainSeen seen;
    ChainCase one;
    one.payload = "text";
    const auto right = verify(device, one, seen);
    ASSERT_TRUE(right) << device << ": " << right.error().message;
    EXPECT_GE(seen.left, options_.frames / 4) << device;
    EXPECT_GT(seen.acl.dropped, 0U) << device << ": of which none leave";
  }
}

// In order, and each frame three times.
TEST_F(VerifyChain, SoDoConversations) {
  ChainCase one;
  one.acl = false;
  one.protocol = "streams";
  one.payload = "text";
  ChainSeen seen;
  const auto right = verify("cpu", one, seen);
  ASSERT_TRUE(right) << right.error().message;
  EXPECT_EQ(seen.left, seen.inspect.frames);
  EXPECT_GT(seen.inspect.conversations, 0U);
}

TEST(DroppedBesides, IsWhatNeitherVerdictsNorTheEndExplain) {
  engine::EngineStats stats;
  stats.drops.resize(packet::reason_count());
  stats.drops[function::acl_denied] = 100;
  stats.drops[engine::stopped] = 512;
  stats.total.dropped = 612;
  EXPECT_EQ(dropped_besides(stats, 100), 0U);
  EXPECT_EQ(dropped_besides(stats, 90), 10U);
  EXPECT_EQ(dropped_besides(stats, 110), 0U) << "frames that were judged after the counters were read";
  stats.drops[engine::tx_full] = 3;
  stats.total.dropped = 615;
  EXPECT_EQ(dropped_besides(stats, 100), 3U);
  EXPECT_THAT(drops_text(stats), testing::AllOf(HasSubstr("3 tx_full"), HasSubstr("512 stopped")));
}

TEST_F(VerifyChain, ANextHopThatIsNotTheRoutesIsSaid) {
  // Most addresses lie in no other of the 3,000.
  reference_.set(RouteReference::Prefix::parse("0.0.0.0/0"), {255});
  ChainSeen seen;
  ChainCase one;
  one.payload = "text";
  const auto right = verify("cpu", one, seen);
  ASSERT_FALSE(right);
  EXPECT_THAT(right.error().message, HasSubstr("route: of "));
  EXPECT_THAT(right.error().message, HasSubstr("with a destination address that is no next hop's of its route"));
}

}  // namespace
}  // namespace sluice::cli::bench
