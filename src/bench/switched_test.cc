// The MAC loop inside a running engine: frames are forwarded and rewritten, and a loop that does not rewrite is found
// out.
#include "bench/switched.h"

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "bench/rig.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned frames = 1024;

class SwitchedTest : public testing::Test {
 protected:
  void SetUp() override { make("cpu"); }
  void make(const std::string& device) {
    rig_.reset();
    RigOptions options;
    options.function = "touch";
    options.mix = "64";
    options.frames = frames;
    options.engine.device = device;
    options.engine.cpu_below = device == "cpu" ? -1 : 0;
    options.engine.deadline = std::chrono::milliseconds(100);
    options.engine.batch = 256;
    options.wrap = [this](std::unique_ptr<engine::Element> inner) {
      auto wrapper = std::make_unique<Switched>(std::move(inner));
      switched_ = wrapper.get();
      return wrapper;
    };
    auto rig = Rig::make(options);
    ASSERT_TRUE(rig) << rig.error().message;
    rig_ = std::move(*rig);
    switched_->use_port(rig_->engine().port(0));
  }

  // A turn of the loop with a turn of the element before and after it.
  void turn() {
    rig_->measure(0.02, 0.02);
    const std::uint64_t before = switched_->loops().frames;
    switched_->set(Work::mac_loop);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (switched_->loops().frames < before + 20 * frames && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    switched_->set(Work::full);
    EXPECT_GE(switched_->loops().frames, before + 20 * frames);
    EXPECT_NE(rig_->measure(0.02, 0.2).frames, 0U);
  }

  Switched* switched_ = nullptr;
  std::unique_ptr<Rig> rig_;
};

TEST_F(SwitchedTest, TheLoopRewritesEveryFrameAndGivesThemBack) {
  turn();
  turn();
  const Switched::Loops loops = switched_->loops();
  EXPECT_EQ(loops.wrong, 0U);
  EXPECT_EQ(loops.refreshed, 0U);
  EXPECT_GE(loops.touched, 2 * (frames - 64));
  const auto finished = rig_->finish();
  EXPECT_TRUE(finished) << finished.error().message;
  // What the element got back is addressed to its port again.
  rte_mbuf* burst[64];
  ASSERT_NE(rig_->replay().rx_burst(0, burst, 64), 0);
  const packet::MacAddress mac = rig_->replay().mac();
  EXPECT_EQ(std::memcmp(rte_pktmbuf_mtod(burst[0], void*), mac.bytes.data(), mac.bytes.size()), 0);
  rig_->replay().tx_burst(burst, 64);
}

TEST_F(SwitchedTest, FramesThatTheLoopDidNotRewriteAreFoundOut) {
  // Undoes what the loop wrote to one frame in sixteen, as if it had left it out.
  rig_->replay().observe([](const rte_mbuf* frame) {
    if (port::ReplayPort::frame_index(frame) % 16 == 0) {
      std::memset(rte_pktmbuf_mtod(frame, void*), 0, 12);
    }
  });
  turn();
  const Switched::Loops loops = switched_->loops();
  EXPECT_GE(loops.wrong, (frames - 64) / 16);
  EXPECT_LE(loops.wrong, frames / 16);
  EXPECT_GT(loops.touched, 10 * loops.wrong);
  EXPECT_TRUE(rig_->finish());
}

TEST_F(SwitchedTest, ZeroLoadAndTheFunctionItselfForwardOnEachDevice) {
  for (const char* device : {"cpu", "cuda:0"}) {
    make(device);
    for (const Work work : {Work::zero_load, Work::full, Work::zero_load}) {
      switched_->set(work);
      // The simulated GPU is slow, and slower on a busy machine: until frames have come through.
      std::uint64_t seen = 0;
      std::uint64_t on_gpu = 0;
      for (int window = 0; window < 200 && (seen == 0 || (on_gpu == 0 && rig_->engine().gpu() != nullptr)); ++window) {
        const Outcome outcome = rig_->measure(0.05, 0.1);
        seen += outcome.frames;
        on_gpu += outcome.gpu_frames;
        EXPECT_EQ(outcome.dropped, 0U) << device;
      }
      EXPECT_NE(seen, 0U) << device;
      EXPECT_EQ(on_gpu != 0, rig_->engine().gpu() != nullptr) << device;
    }
    EXPECT_EQ(switched_->loops().frames, 0U);
    EXPECT_TRUE(rig_->finish());
  }
}

}  // namespace
}  // namespace sluice::cli::bench
