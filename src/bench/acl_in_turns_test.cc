// The element with and without its classifier, on the CPU, batch by batch.
#include "bench/acl_in_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/counters.h"
#include "engine/emitter.h"
#include "engine/options.h"
#include "function/fused/fused.h"
#include "function/test_batch.h"
#include "packet/builder.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t frames = engine::batch_range.least;

class AclInTurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    function::Acl::AclOptions options;
    options.rules.resize(1);
    options.rules[0].action.kind = lookup::acl::ActionKind::deny;
    element_ = std::make_unique<AclInTurns>(std::move(options), turns_);
    const auto prepared = element_->prepare({});
    ASSERT_TRUE(prepared) << prepared.error().message;
    const packet::Bytes frame = packet::PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").udp(1, 2).payload(20).build();
    for (std::uint32_t i = 0; i < frames; ++i) {
      std::copy(frame.begin(), frame.end(), reinterpret_cast<std::uint8_t*>(batch().frame[i]));
      batch().length[i] = static_cast<std::uint16_t>(frame.size());
    }
    area_.resize(std::size_t{frames} * element_->shape().bytes_per_frame + 64);
    batch().area[0] = area_.data() + (64 - reinterpret_cast<std::uintptr_t>(area_.data()) % 64) % 64;
  }
  engine::Batch& batch() { return frames_.batch(); }
  // All frames, in two bursts.
  void classify() {
    std::fill_n(batch().row, frames, engine::Row{});
    batch().count = frames / 2;
    element_->classify(batch(), {0, frames / 2});
    batch().count = frames;
    element_->classify(batch(), {frames / 2, frames / 2});
  }
  std::uint32_t denied() {
    element_->compute(batch(), {0, frames});
    element_->apply(batch(), {0, frames}, out_);
    return static_cast<std::uint32_t>(std::count_if(batch().row, batch().row + frames, [](const engine::Row& row) {
      return row.fate == engine::Fate::dropped && row.reason == function::acl_denied;
    }));
  }

  std::shared_ptr<AclTurns> turns_ = std::make_shared<AclTurns>();
  std::unique_ptr<AclInTurns> element_;
  function::TestBatch frames_{nullptr, {.count = frames, .size = [](std::mt19937&) { return 64; }}};
  std::vector<std::byte> area_;
  engine::LaneCounters counters_;
  engine::Emitter out_{{}, 0, counters_, nullptr};
};

TEST_F(AclInTurnsTest, ABatchKeepsWhatWasInForceWhenItBegan) {
  classify();
  turns_->set(false, true);
  EXPECT_EQ(denied(), frames) << "it began before";
  classify();
  turns_->set(true, true);
  EXPECT_EQ(denied(), 0U) << "it began without";
  classify();
  EXPECT_EQ(denied(), frames);
}

TEST_F(AclInTurnsTest, WithoutItsClassifierItJoinsInWithNothingAndApartNotAtAll) {
  turns_->set(false, true);
  classify();
  function::FusedWork work;
  EXPECT_TRUE(element_->join(batch(), work));
  EXPECT_EQ(work.parts(), 0U);
  turns_->set(false, false);
  EXPECT_FALSE(element_->join(batch(), work));
  turns_->set(true, false);
  classify();
  EXPECT_FALSE(element_->join(batch(), work));
  EXPECT_EQ(work.parts(), 0U);
}

}  // namespace
}  // namespace sluice::cli::bench
