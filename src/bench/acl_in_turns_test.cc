// The stage with and without its classifier, on the CPU, batch by batch.
#include "bench/acl_in_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "function/fused/fused.h"
#include "function/test_batch.h"
#include "packet/builder.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t frames = 32;

class AclInTurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    function::Acl::AclOptions options;
    options.rules.resize(1);
    options.rules[0].action.kind = lookup::acl::ActionKind::deny;
    stage_ = std::make_unique<AclInTurns>(std::move(options), turns_);
    const auto prepared = stage_->prepare({});
    ASSERT_TRUE(prepared) << prepared.error().message;
    const packet::Bytes frame = packet::PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").udp(1, 2).payload(20).build();
    for (std::uint32_t i = 0; i < frames; ++i) {
      std::copy(frame.begin(), frame.end(), reinterpret_cast<std::uint8_t*>(batch().frame[i]));
      batch().length[i] = static_cast<std::uint16_t>(frame.size());
    }
    area_.resize(std::size_t{frames} * stage_->bytes_per_frame() + 64);
  }
  engine::Batch& batch() { return frames_.batch(); }
  std::byte* area() { return area_.data() + (64 - reinterpret_cast<std::uintptr_t>(area_.data()) % 64) % 64; }
  // All frames, in two bursts.
  void describe() {
    batch().count = frames / 2;
    stage_->describe(batch(), area(), 0);
    batch().count = frames;
    stage_->describe(batch(), area(), frames / 2);
  }
  std::uint32_t denied() {
    stage_->compute(batch(), area(), 0, frames);
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < frames; ++i) {
      count += stage_->judge(batch(), area(), i, 0) == function::acl_denied ? 1 : 0;
    }
    stage_->judged(batch(), area());
    return count;
  }

  std::shared_ptr<AclTurns> turns_ = std::make_shared<AclTurns>();
  std::unique_ptr<AclInTurns> stage_;
  function::TestBatch frames_{nullptr, {.count = frames, .size = [](std::mt19937&) { return 64; }}};
  std::vector<std::byte> area_;
};

TEST_F(AclInTurnsTest, ABatchKeepsWhatWasInForceWhenItBegan) {
  describe();
  turns_->set(false, true);
  EXPECT_EQ(denied(), frames) << "it began before";
  describe();
  turns_->set(true, true);
  EXPECT_EQ(denied(), 0U) << "it began without";
  describe();
  EXPECT_EQ(denied(), frames);
}

TEST_F(AclInTurnsTest, WithoutItsClassifierItJoinsInWithNothingAndApartNotAtAll) {
  turns_->set(false, true);
  describe();
  function::FusedWork work;
  EXPECT_TRUE(stage_->join(batch(), area(), work));
  EXPECT_EQ(work.parts(), 0U);
  turns_->set(false, false);
  EXPECT_FALSE(stage_->join(batch(), area(), work));
  turns_->set(true, false);
  describe();
  EXPECT_FALSE(stage_->join(batch(), area(), work));
  EXPECT_EQ(work.parts(), 0U);
}

}  // namespace
}  // namespace sluice::cli::bench
