// Which copies the element makes, and when it makes none: each call of the contract by itself.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "function/mirror/mirror_rings_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;

class MirrorTest : public MirrorRings {};

const Bytes web = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(1000, 80).payload(Bytes(200)).build();
const Bytes mail = PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").tcp(1000, 25).payload(Bytes(200)).build();
const Bytes other = PacketBuilder().ethertype(0x88b5).payload(Bytes(46)).build();

const packet::Reason for_a_test = packet::register_reason("mirror_test", "for a test");

TEST_F(MirrorTest, EachDirectionIsCopiedOnce) {
  for (const auto& [direction, copies] : {std::pair{"rx", 1}, {"tx", 1}, {"both", 2}}) {
    use("from = [\"lan\", \"wan\"]\ndirection = \"" + std::string(direction) + "\"\n");
    pass(web);
    EXPECT_EQ(taken(wan), std::vector<Bytes>{web}) << direction;
    EXPECT_EQ(taken(monitor), std::vector<Bytes>(static_cast<std::size_t>(copies), web)) << direction;
    EXPECT_EQ(metric("mirror_copied_frames"), static_cast<std::uint64_t>(copies));
  }
}

TEST_F(MirrorTest, OtherPortsAreNotCopied) {
  use("from = [\"wan\"]\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
  use("from = [\"lan\"]\ndirection = \"tx\"\n");
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
}

// As an element in front takes frames out of a tunnel, whose port is another than the one that they came in by.
TEST_F(MirrorTest, WhatHasComeOutOfATunnelHasComeInByItsPort) {
  came_in_by_ = wan;
  use("from = [\"wan\"]\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web});
  use("from = [\"lan\"]\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
}

// By the time that results are there an element may have said what a frame leaves by.
TEST_F(MirrorTest, WhatHasBeenSentHasComeInByItsPort) {
  use("from = [\"lan\"]\ndirection = \"rx\"\n");
  pass({web}, [](engine::Batch& batch) { batch.send(0, wan); });
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web});
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
}

// A tunnel, which stands in front, takes all frames over that leave by its port.
TEST_F(MirrorTest, WhatGoesIntoATunnelIsCopiedBeforehand) {
  class Tunnel : public engine::TxHook {
   public:
    bool hooks(std::uint16_t port) const override { return port == wan; }
    unsigned leave(std::uint32_t, std::uint16_t, rte_mbuf** frames, unsigned count, engine::Emitter& out) override {
      for (unsigned i = 0; i < count; ++i) out.drop(frames[i], for_a_test);
      return 0;
    }
  } tunnel;
  use("from = [\"wan\"]\ndirection = \"tx\"\n");
  engine::TxHook* const hooks[] = {&tunnel, mirror_.get()};
  emitter_->set_hooks(hooks);
  pass(web);
  EXPECT_TRUE(taken(wan).empty());
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web});
}

TEST_F(MirrorTest, CopiesAreCutAndTheOriginalIsNot) {
  use("length = 64\ndirection = \"rx\"\n");
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{Bytes(web.begin(), web.begin() + 64)});
  pass(other);  // is shorter
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{other});
  EXPECT_EQ(metric("mirror_copied_frames"), 2U);
  EXPECT_EQ(metric("mirror_cut_frames"), 1U);
}

TEST_F(MirrorTest, RulesChooseInEachDirection) {
  for (const char* const direction : {"rx", "tx"}) {
    use("direction = \"" + std::string(direction) +
        "\"\n[[mirror.session.rule]]\nprotocol = \"tcp\"\ndestination_port = 80\n");
    for (const Bytes& frame : {web, mail, other}) pass(frame);
    EXPECT_EQ(taken(monitor), std::vector<Bytes>{web}) << direction;
  }
}

TEST_F(MirrorTest, WhatALaterElementDropsIsCopied) {
  use("direction = \"rx\"\n");
  pass({web}, [](engine::Batch& batch) { batch.drop(0, for_a_test); });
  EXPECT_TRUE(taken(wan).empty());
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web});
}

TEST_F(MirrorTest, NoCopyIsMadeOnceADeadlineIsNear) {
  use("from = [\"lan\", \"wan\"]\n");
  pass(
      {web}, [](engine::Batch&) {}, rte_rdtsc() - rte_get_tsc_hz() * 8 / 10);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(metric("mirror_skipped_frames"), 2U);
}

TEST_F(MirrorTest, NoCopyIsMadeOfTheLastFramesOfAPool) {
  use("from = [\"lan\", \"wan\"]\n");
  while (rte_mempool_avail_count(pool_.get()) > pool_frames_ / 8) held_.push_back(rte_pktmbuf_alloc(pool_.get()));
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(metric("mirror_skipped_frames"), 2U);
}

TEST_F(MirrorTest, WhatTheMonitorPortDoesNotTakeIsLostByThatName) {
  use("direction = \"rx\"\n");
  fill(monitor);
  pass(web);
  EXPECT_EQ(taken(wan), std::vector<Bytes>{web});
  EXPECT_EQ(metric("mirror_lost_frames"), 1U);
  EXPECT_EQ(counters_.drops[mirror_full].get(), 1U);
  EXPECT_EQ(counters_.drops[engine::tx_full].get(), 0U);
  empty(monitor);
}

TEST_F(MirrorTest, TheMonitorPortIsForNothingElse) {
  mirror_ = unprepared("[[mirror.session]]\nname = \"a\"\nfrom = [\"wan\"]\nto = \"lan\"\n");
  engine::Plan plan;
  plan.ports = {lan};
  ASSERT_TRUE(mirror_->prepare(plan));
  pass(web);
  EXPECT_TRUE(taken(wan).empty());
  EXPECT_EQ(counters_.drops[mirror_port].get(), 1U);
}

TEST_F(MirrorTest, AReloadChangesTheSessions) {
  use("direction = \"rx\"\n");
  auto fresh = unprepared("[[mirror.session]]\nname = \"b\"\nfrom = [\"wan\"]\ndirection = \"tx\"\nto = \"lan\"\n");
  auto change = mirror_->reload(*fresh);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->text, "1 mirror session is in force");
  pass(web);
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{web}) << "it is not committed";
  change->commit();
  EXPECT_TRUE(mirror_->offers_once(lan));
  EXPECT_FALSE(mirror_->offers_once(monitor));
  pass(web);
  EXPECT_TRUE(taken(monitor).empty());
  EXPECT_EQ(counters_.drops[mirror_port].get(), 1U);
}

// The burst of copies is full while copies are made, and leaves; just then two reloads make its port a source.
TEST_F(MirrorTest, AReloadWhileCopiesLeaveMakesNoCopiesOfThose) {
  const auto change_to = [this](const std::string& text) {
    auto fresh = unprepared(text);
    auto change = mirror_->reload(*fresh);
    ASSERT_TRUE(change) << change.error().message;
    change->commit();
  };
  // One is called before the mirror, the other behind it.
  class Reloader : public engine::TxHook {
   public:
    bool hooks(std::uint16_t port) const override { return port == monitor; }
    unsigned leave(std::uint32_t, std::uint16_t, rte_mbuf**, unsigned count, engine::Emitter&) override {
      if (const auto now = std::exchange(reload, nullptr)) now();
      return count;
    }
    std::function<void()> reload;
  } before, behind;
  use("from = [\"wan\"]\ndirection = \"tx\"\n");
  before.reload = [&] {
    change_to("[[mirror.session]]\nname = \"b\"\nfrom = [\"mon\"]\ndirection = \"tx\"\nto = \"lan\"\n");
  };
  behind.reload = [&] { change_to("[[mirror.session]]\nname = \"c\"\nfrom = [\"mon\"]\nto = \"lan\"\n"); };
  engine::TxHook* const hooks[] = {&behind, mirror_.get(), &before};
  emitter_->set_hooks(hooks);
  const std::vector<Bytes> all(64, web);
  pass(all, [](engine::Batch&) {});
  EXPECT_FALSE(before.reload || behind.reload) << "no burst was full";
  EXPECT_EQ(taken(wan), all);
  EXPECT_EQ(taken(monitor), all);
  EXPECT_TRUE(taken(lan).empty()) << "copies of copies";
  // What is in force now holds from the next burst on.
  emitter_->transmit(frame_of(mail), static_cast<std::uint32_t>(mail.size()), monitor);
  emitter_->flush_all();
  EXPECT_EQ(taken(monitor), std::vector<Bytes>{mail});
  EXPECT_EQ(taken(lan), std::vector<Bytes>{mail});
}

}  // namespace
}  // namespace sluice::function
