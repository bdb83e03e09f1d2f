// That an element whose verdicts are compared with a core's is found out when they differ.
#include "bench/inspect_compared.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "engine/counters.h"
#include "engine/emitter.h"
#include "engine/options.h"
#include "function/acl/acl.h"
#include "function/test_batch.h"
#include "packet/builder.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t frames = engine::batch_range.least;

class ComparedAclTest : public testing::Test {
 protected:
  void SetUp() override {
    // The first rule is of no frame, the second denies every second one.
    std::vector<lookup::acl::AclRule> rules(2);
    rules[0].protocol = {packet::protocol_tcp, 0xff};
    rules[1].destination_port = {9, 9};
    for (lookup::acl::AclRule& rule : rules) rule.action.kind = lookup::acl::ActionKind::deny;
    check_.frames_per_lane = frames;
    element_ = compared_acl(rules, check_);
    const auto prepared = element_->prepare({});
    ASSERT_TRUE(prepared) << prepared.error().message;
    area_.resize(std::size_t{frames} * element_->shape().bytes_per_frame + 64);
    batch().area[0] = area_.data() + (64 - reinterpret_cast<std::uintptr_t>(area_.data()) % 64) % 64;
    for (std::uint32_t i = 0; i < frames; ++i) {
      const packet::Bytes frame =
          packet::PacketBuilder().ipv4("192.0.2.1", "192.0.2.2").udp(1, i % 2 == 0 ? 9 : 8).payload(20).build();
      std::copy(frame.begin(), frame.end(), batch().data(i));
      batch().length[i] = static_cast<std::uint16_t>(frame.size());
    }
    place(*element_);
    element_->classify(batch(), {0, frames});
  }
  static void place(engine::Element& element) {
    element.place(0);
    if (auto* const wrapper = element.trait<engine::Wrapper>()) wrapper->inner().place(0);
  }
  engine::Batch& batch() { return frames_.batch(); }
  // In two bursts.
  void apply() {
    element_->apply(batch(), {0, frames / 2}, out_);
    element_->apply(batch(), {frames / 2, frames / 2}, out_);
  }

  ChainCheck check_;
  std::unique_ptr<engine::Element> element_;
  function::TestBatch frames_{nullptr, {.count = frames, .size = [](std::mt19937&) { return 64; }}};
  std::vector<std::byte> area_;
  engine::LaneCounters counters_;
  engine::Emitter out_{{}, 0, counters_, nullptr};
};

TEST_F(ComparedAclTest, CountsTheFramesThatGoOnToItAndWhatItDrops) {
  batch().drop(0, engine::undecided);  // by an element in front
  element_->compute(batch(), {0, frames});
  apply();
  EXPECT_EQ(check_.frames, frames - 1);
  EXPECT_EQ(check_.wanted, frames - 1);
  EXPECT_EQ(check_.dropped, frames / 2 - 1);
  EXPECT_EQ(check_.wrong, 0U);
}

TEST_F(ComparedAclTest, FindsFramesOutThatGoOnAgainstTheRules) {
  // As without rules: every frame goes on.
  element_->compute(batch(), {0, frames});
  element_->trait<engine::NullDevice>()->null_result(batch());
  apply();
  EXPECT_EQ(check_.frames, frames);
  EXPECT_EQ(check_.wrong, frames / 2);
}

}  // namespace
}  // namespace sluice::cli::bench
