// A chain of stages before a bridge, from capture to capture, on the CPU and on the GPU's path: what each stage drops,
// that the rest leaves in order, and that nobody writes into another's area.
#include "function/chain/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "engine/batch_writer.h"
#include "engine/burst.h"
#include "engine/engine.h"
#include "function/await_gpu_test.h"
#include "function/bridge/bridge.h"
#include "function/capture_trial_test.h"
#include "packet/builder.h"

namespace sluice::function {
namespace {

using packet::Bytes;

const packet::Reason second_byte = packet::register_reason("test_second", "dropped by the first stage");
const packet::Reason third_byte = packet::register_reason("test_third", "dropped by the second stage");

// Drops frames whose byte `at` is `value`; computes that byte plus one as its result, on whichever device.
class ByteStage final : public engine::Stage {
 public:
  ByteStage(std::size_t at, std::uint8_t value, packet::Reason reason, std::uint32_t bytes)
      : at_(at), value_(value), reason_(reason), bytes_(bytes) {}

  std::uint32_t bytes_per_frame() const override { return bytes_; }
  Expected<void> prepare(const engine::LanePlan& plan) override {
    lanes_ = plan.lanes;
    return {};
  }
  Expected<void> attach(device::Gpu&, const engine::DevicePlan&) override { return {}; }
  void describe(const engine::Batch& batch, std::byte* area, std::uint32_t first) override {
    ASSERT_LT(batch.lane, lanes_);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(area) % 64, 0U);
    for (std::uint32_t i = first; i < batch.count; ++i) {
      std::fill_n(area + std::size_t{i} * bytes_, bytes_, std::byte{value_});  // the whole of it
      area[std::size_t{i} * bytes_] = std::byte{reinterpret_cast<const std::uint8_t*>(batch.frame[i])[at_]};
    }
  }
  Expected<void> launch(const engine::Batch& batch, std::byte* area, device::GpuStream&) override {
    compute(batch, area, 0, batch.count);
    return {};
  }
  void compute(const engine::Batch&, std::byte* area, std::uint32_t first, std::uint32_t count) override {
    for (std::uint32_t i = first; i < first + count; ++i) {
      std::byte& byte = area[std::size_t{i} * bytes_];
      byte = std::byte{static_cast<std::uint8_t>(std::to_integer<unsigned>(byte) + 1)};
    }
  }
  void stand_in(const engine::Batch&, std::byte*) override {}
  packet::Reason judge(const engine::Batch&, std::byte* area, std::uint32_t i, std::uint64_t) override {
    const std::byte* const mine = area + std::size_t{i} * bytes_;
    EXPECT_TRUE(std::all_of(mine + 1, mine + bytes_, [&](std::byte b) { return b == std::byte{value_}; }));
    return std::to_integer<unsigned>(*mine) == value_ + 1U ? reason_ : packet::no_reason;
  }
  Expected<Change> reload(Stage& fresh) override {
    const auto& other = static_cast<const ByteStage&>(fresh);
    if (other.value_ == 0) return make_error("0 is no value");
    return Change{"value " + std::to_string(other.value_), [this, value = other.value_] { value_ = value; }};
  }

  void judged(const engine::Batch& batch, std::byte*) override { frames_judged += batch.count; }
  void lost(const engine::Batch&, std::byte*) override { ++batches_lost; }

  static inline std::atomic<unsigned> batches_lost{0};        // as told to all stages
  static inline std::atomic<std::uint64_t> frames_judged{0};  // of all stages, in batches that were judged

 private:
  std::size_t at_;
  std::uint8_t value_;
  packet::Reason reason_;
  std::uint32_t bytes_;
  std::uint32_t lanes_ = 0;
};

class ReloadedBridge final : public PeerFunction {
 public:
  explicit ReloadedBridge(bool good) : PeerFunction({}), good_(good) {}
  Expected<void> attach(device::Gpu&, const engine::DevicePlan&) override { return {}; }
  Expected<void> launch(engine::Batch&, device::GpuStream&) override { return {}; }
  void compute(engine::Batch&, std::uint32_t, std::uint32_t) override {}
  Expected<std::string> reconfigure(engine::Function& fresh) override {
    if (!static_cast<const ReloadedBridge&>(fresh).good_) return make_error("no good");
    return std::string("bridged");
  }

 private:
  bool good_;
};

std::unique_ptr<Chain> chain_of(std::uint8_t first, std::uint8_t second, std::unique_ptr<engine::Function> last,
                                std::vector<std::unique_ptr<engine::Stage>> stages = {}) {
  stages.push_back(std::make_unique<ByteStage>(14, first, second_byte, 3));
  stages.push_back(std::make_unique<ByteStage>(15, second, third_byte, 5));
  return std::make_unique<Chain>(std::move(stages), std::move(last));
}

class ChainTest : public testing::TestWithParam<std::string> {};

TEST_P(ChainTest, each_stage_drops_its_own_and_the_rest_leaves_in_order) {
  if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  std::vector<Bytes> frames = leading_frames(), expected = frames;
  std::uint64_t by_first = 0, by_second = 0;
  for (unsigned i = 0; i < 1000; ++i) {
    Bytes frame = packet::PacketBuilder().ethertype(0x88b5).payload(50).build();  // no IP: a bridge takes all
    frame[14] = static_cast<std::uint8_t>(i % 3);
    frame[15] = static_cast<std::uint8_t>(i % 5);
    frame[16] = static_cast<std::uint8_t>(i % 256);
    frames.push_back(frame);
    if (i % 3 == 1) {
      ++by_first;
    } else if (i % 5 == 2) {
      ++by_second;
    } else {
      expected.push_back(frame);
    }
  }
  const CaptureTrial trial(GetParam(), 64);
  auto engine = trial.make(frames, [&](const engine::PortTable&) {
    std::vector<std::unique_ptr<engine::Stage>> stages;
    stages.push_back(std::make_unique<AwaitGpu>());
    return chain_of(1, 2, std::make_unique<Bridge>(std::vector<std::uint16_t>{1, 0}), std::move(stages));
  });
  ASSERT_TRUE(engine);
  ByteStage::frames_judged = 0;
  const engine::EngineStats stats = CaptureTrial::run(*engine, frames.size());
  engine.reset();
  EXPECT_EQ(stats.drops[second_byte], by_first);
  EXPECT_EQ(stats.drops[third_byte], by_second);
  EXPECT_EQ(stats.imbalance(), 0);
  EXPECT_EQ(ByteStage::frames_judged, 2 * frames.size());
  EXPECT_GE(stats.total.frames_gpu, GetParam() == "cpu" ? 0 : frames.size() - leading_frames().size());
  EXPECT_EQ(trial.sent(), expected);
}

INSTANTIATE_TEST_SUITE_P(Devices, ChainTest, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

TEST(Chain, is_reloaded_as_a_whole_or_not_at_all) {
  const auto value = [](Chain& chain, std::uint8_t would_be) {
    return chain.reconfigure(*chain_of(would_be, would_be, std::make_unique<ReloadedBridge>(true)));
  };
  auto chain = chain_of(1, 2, std::make_unique<ReloadedBridge>(true));
  EXPECT_FALSE(chain->reconfigure(*chain_of(7, 0, std::make_unique<ReloadedBridge>(true)))) << "the second refuses";
  EXPECT_FALSE(chain->reconfigure(*chain_of(7, 8, std::make_unique<ReloadedBridge>(false)))) << "the last refuses";
  const auto text = value(*chain, 9);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "bridged; value 9; value 9");
}

TEST(Chain, says_what_its_stages_take_over_where_the_last_has_nothing) {
  const auto bridge = [] { return std::make_unique<Bridge>(std::vector<std::uint16_t>{0}); };
  const auto text = chain_of(1, 2, bridge())->reconfigure(*chain_of(9, 9, bridge()));
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "value 9; value 9");
}

// A stage is told of a batch that a failing device has begun; what is held for it must go even if nobody judges it.
class LastThatCannotRepeat final : public PeerFunction {
 public:
  explicit LastThatCannotRepeat(bool repeats) : PeerFunction({0}), repeats_(repeats) {}
  Expected<void> attach(device::Gpu&, const engine::DevicePlan&) override { return {}; }
  Expected<void> launch(engine::Batch&, device::GpuStream&) override { return {}; }
  void compute(engine::Batch&, std::uint32_t, std::uint32_t) override {}
  bool recomputable() const override { return repeats_; }

 private:
  bool repeats_;
};

TEST(Chain, tells_its_stages_of_a_lost_batch) {
  for (const bool repeats : {true, false}) {
    const auto chain = chain_of(1, 2, std::make_unique<LastThatCannotRepeat>(repeats));
    std::vector<std::byte> extra(64 * (chain->layout().extra_bytes_per_frame + 2));
    engine::Batch batch;
    batch.capacity = 64;
    batch.count = 10;
    batch.extra = extra.data();
    ByteStage::batches_lost = 0;
    ByteStage::frames_judged = 0;
    chain->lost(batch);
    EXPECT_EQ(ByteStage::batches_lost, 2U);
    EXPECT_EQ(ByteStage::frames_judged, repeats ? 0U : 20U);
  }
}

TEST(Chain, launches_batches_of_one_lane_together_where_a_stage_launches_alone) {
  const auto bridge = [] { return std::make_unique<Bridge>(std::vector<std::uint16_t>{0}); };
  EXPECT_EQ(chain_of(1, 2, bridge())->launches_together(), engine::Together::of_any_lane);
  class Alone final : public AwaitGpu {
   public:
    bool launches_alone() const override { return true; }
  };
  std::vector<std::unique_ptr<engine::Stage>> stages;
  stages.push_back(std::make_unique<Alone>());
  EXPECT_EQ(chain_of(1, 2, bridge(), std::move(stages))->launches_together(), engine::Together::of_one_lane);
}

// Hands each frame to the host: those of `exceptional` as what the kernel would forward.
class ToHost final : public engine::Function {
 public:
  explicit ToHost(bool exceptional) : exceptional_(exceptional) {}
  Expected<void> attach(device::Gpu&, const engine::DevicePlan&) override { return {}; }
  Expected<void> launch(engine::Batch&, device::GpuStream&) override { return {}; }
  void compute(engine::Batch&, std::uint32_t, std::uint32_t) override {}
  void collect(engine::Burst& burst, engine::BatchWriter&) override {
    for (unsigned i = 0; i < burst.size(); ++i) burst.punt(i, exceptional_);
  }
  void forward(engine::Batch&, std::uint32_t, std::uint32_t, engine::Emitter&) override {}

 private:
  bool exceptional_;
};

TEST(Chain, tells_its_stages_where_frames_in_no_batch_end) {
  class Asked final : public AwaitGpu {
   public:
    explicit Asked(std::string& calls) : calls_(calls) {}
    packet::Reason judge_transit(std::uint32_t lane, std::uint8_t*, std::uint32_t, std::uint64_t) override {
      calls_ += " judge " + std::to_string(lane);
      return packet::no_reason;
    }
    void judged_transit(std::uint32_t lane) override { calls_ += " end " + std::to_string(lane); }

   private:
    std::string& calls_;
  };
  for (const bool exceptional : {true, false}) {
    std::string calls;
    std::vector<std::unique_ptr<engine::Stage>> stages;
    stages.push_back(std::make_unique<Asked>(calls));
    Chain chain(std::move(stages), std::make_unique<ToHost>(exceptional));
    engine::LaneCounters counters;
    const engine::HostPort host_ports[1] = {};
    engine::Burst burst(counters, host_ports);
    rte_mbuf frames[2] = {};
    burst.frames()[0] = &frames[0];
    burst.frames()[1] = &frames[1];
    engine::Batch batch;
    batch.lane = 3;
    engine::BatchWriter writer(batch);
    for (const unsigned size : {2U, 0U, 1U}) {
      burst.begin(size, 0);
      chain.collect(burst, writer);
      EXPECT_EQ(burst.guarded_ticks() != 0, exceptional && size != 0) << "work of the lane";
    }
    EXPECT_EQ(calls, exceptional ? " judge 3 judge 3 end 3 judge 3 end 3" : "");
  }
}

TEST(Chain, asks_its_stages_about_what_the_host_sends) {
  class Objects final : public AwaitGpu {
   public:
    explicit Objects(packet::Reason reason) : reason_(reason) {}
    packet::Reason judge_from_host(std::uint32_t, const std::uint8_t*, std::uint32_t) const override { return reason_; }

   private:
    packet::Reason reason_;
  };
  const packet::Reason first = engine::tx_full, second = engine::device_lost;
  const std::tuple<packet::Reason, packet::Reason, packet::Reason> cases[] = {
      {packet::no_reason, packet::no_reason, packet::no_reason},
      {first, packet::no_reason, first},
      {packet::no_reason, second, second},
      {first, second, first},
  };
  for (const auto& [one, other, expected] : cases) {
    std::vector<std::unique_ptr<engine::Stage>> stages;
    stages.push_back(std::make_unique<Objects>(one));
    stages.push_back(std::make_unique<Objects>(other));
    const Chain chain(std::move(stages), std::make_unique<ToHost>(false));
    EXPECT_EQ(chain.judge_from_host(0, nullptr, 0), expected);
  }
}

TEST(Chain, has_room_for_every_area_in_the_smallest_batch) {
  const auto chain = chain_of(1, 2, std::make_unique<Bridge>(std::vector<std::uint16_t>{0}));
  EXPECT_GE(chain->layout().extra_bytes_per_frame * 64U, 3U * 64 + 63 + 5 * 64 + 63);
}

}  // namespace
}  // namespace sluice::function
