// A real GPU that fails, and comes back where it can: each way in a process of its own, because where it cannot it is
// of no use to that process any more. On the SIMT shim its faults stand in for kernels that fault or never end
// (device/fault_kernels.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "../tests/support/gpu.h"
#include "../tests/support/own_process.h"
#include "device/copy.h"
#include "device/fault_kernels.h"
#include "engine/trial_test.h"

namespace sluice::engine {
namespace {

constexpr const char* child_of = "SLUICE_LOSS_CHILD";

enum class Fault { none, faults, endless, refused, hangs };

// Its next launch fails. What it has on the GPU is a word, which tells whether the GPU works.
class FailingElement : public PeerElement {
 public:
  using PeerElement::PeerElement;
  Expected<void> attach(device::Gpu& gpu, const DevicePlan& /*plan*/) override {
    gpu_ = &gpu;
    auto memory = gpu.allocate_device(sizeof(std::uint64_t));
    if (!memory) return tl::unexpected(memory.error());
    word_ = std::move(*memory);
    const std::uint64_t up = 0x123456789abcdef;
    std::uint64_t down = 0;
    auto copied = device::copy(gpu, word_.as<void>(), &up, sizeof up);
    copied = copied ? device::copy(gpu, &down, word_.as<void>(), sizeof down) : copied;
    return copied && down != up ? make_error("the GPU has lost a word") : copied;
  }
  void detach(std::uint32_t /*device*/) override { word_ = {}; }
  bool can_detach() const override { return true; }
  Expected<void> launch(Batch& batch, device::GpuStream& stream) override {
    if (auto ok = PeerElement::launch(batch, stream); !ok) return ok;
    switch (next.exchange(Fault::none)) {
      case Fault::none:
        return {};
      case Fault::faults:
        return device::launch_faulting(stream);
      case Fault::endless:
        return device::launch_endless(stream);
      case Fault::refused: {
        const auto memory = gpu_->allocate_device(std::size_t{1} << 50);
        return memory ? Expected<void>() : tl::unexpected(memory.error());
      }
      case Fault::hangs:
        for (;;) pause();
    }
    return {};
  }
  std::atomic<Fault> next{Fault::none};

 private:
  device::Gpu* gpu_ = nullptr;
  device::DeviceMemory word_;
};

// In the child.
class LossChild : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv(child_of) == nullptr) GTEST_SKIP() << "LossOnGpu runs it in a process of its own";
  }
  // `silence`: options.device_silence.
  void make(std::chrono::nanoseconds silence) {
    Options options = replay_options("cuda:0");
    options.batches = 4;
    options.device_silence = silence;
    auto engine = Engine::create(options, [this](const PortTable& ports) -> Expected<std::unique_ptr<Pipeline>> {
      auto element = std::make_unique<FailingElement>(ports);
      element_ = element.get();
      return pipeline_of(std::move(element));
    });
    ASSERT_TRUE(engine) << engine.error().message;
    run_.engine = std::move(*engine);
  }
  static bool comes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  // The process ends here. Of a fault a driver may take longer to tell than a device may be silent: there it has time.
  [[noreturn]] void lose(Fault fault, bool changes_frames, Loss how) {
    make(fault == Fault::faults ? std::chrono::seconds(15) : std::chrono::seconds(0));
    if (HasFatalFailure()) std::_Exit(1);
    element_->changes_frames = changes_frames;
    if (!changes_frames) watch_order(run_, 1);
    Engine& engine = *run_.engine;
    engine.start();
    EXPECT_TRUE(comes([&] { return engine.stats().total.frames_gpu > 100'000; }));
    element_->next.store(fault_ = fault);
    EXPECT_TRUE(comes([&] { return !engine.gpu_up(); }));
    EXPECT_EQ(engine.gpu_loss(0).how(), how) << engine.gpu_loss(0).why();
    const std::uint64_t sent = engine.stats().total.tx_frames;
    EXPECT_TRUE(comes([&] { return engine.stats().total.tx_frames > sent + 10'000; }));
    EXPECT_TRUE(comes([&] { return engine.stats().total.batches_rescued != 0; })) << "of each lane that lost some";
    engine.look_at_devices();
    const EngineStats during = engine.stats();
    std::printf("%s: a batch waited %.1f ms at most, %lu frames lost, %lu aside\n", engine.gpu_loss(0).why().c_str(),
                static_cast<double>(during.total.longest_rescue) / engine.tsc_per_ns() / 1e6,
                static_cast<unsigned long>(during.drops[device_lost]),
                static_cast<unsigned long>(during.total.frames_aside));
    const bool in_doubt = how != Loss::failed;
    EXPECT_EQ(during.total.frames_aside, in_doubt ? during.drops[device_lost] : 0U);
    come_back(!in_doubt);
    engine.stop();
    const EngineStats stats = engine.stats();
    expect_conserved(stats);
    EXPECT_EQ(stats.total.dropped, stats.drops[device_lost]);
    EXPECT_EQ(stats.drops[device_lost] != 0, changes_frames);
    EXPECT_EQ(run_.out_of_order, 0U);
    EXPECT_EQ(element_->wrong_answers.load(), 0U);
    EXPECT_EQ(engine.is_stuck(), in_doubt);
    run_.engine.reset();
    EXPECT_EQ(is_left_behind(), in_doubt);
    std::fflush(stdout);
    std::_Exit(HasFailure() ? 1 : 0);
  }

  void come_back(bool can) {
    Engine& engine = *run_.engine;
    const auto began = std::chrono::steady_clock::now();
    const auto done = engine.reset_device(0);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    // Behind a fault a driver may give no new context.
    const bool is_shim = engine.gpu()->info().name == "host SIMT shim";
    if (can && !done && !is_shim && fault_ == Fault::faults) {
      std::printf("it is not back: %s\n", done.error().message.c_str());
      EXPECT_NE(done.error().message.find("restart the gateway"), std::string::npos);
      EXPECT_FALSE(engine.gpu_up());
      const std::uint64_t computed = engine.stats().total.frames_cpu;
      EXPECT_TRUE(comes([&] { return engine.stats().total.frames_cpu > computed + 10'000; }));
      return;
    }
    EXPECT_EQ(done.has_value(), can) << (done ? "it is back" : done.error().message);
    if (!done) return;
    const std::uint64_t before = engine.stats().total.frames_gpu;
    EXPECT_TRUE(comes([&] { return engine.stats().total.frames_gpu > before + 100'000; }));
    std::printf("it is back after a reset of %.0f ms\n", took.count());
  }

  Trial run_;
  FailingElement* element_ = nullptr;
  Fault fault_ = Fault::none;
};

TEST_F(LossChild, FaultingKernel) {
  lose(Fault::faults, false, Loss::failed);
}
TEST_F(LossChild, FaultingKernelThatChangesFrames) {
  lose(Fault::faults, true, Loss::failed);
}
TEST_F(LossChild, EndlessKernel) {
  lose(Fault::endless, false, Loss::silent);
}
TEST_F(LossChild, EndlessKernelThatChangesFrames) {
  lose(Fault::endless, true, Loss::silent);
}
TEST_F(LossChild, NoDeviceMemory) {
  lose(Fault::refused, false, Loss::failed);
}
TEST_F(LossChild, CallThatHangs) {
  lose(Fault::hangs, false, Loss::hung);
}
TEST_F(LossChild, CallThatHangsAndChangesFrames) {
  lose(Fault::hangs, true, Loss::hung);
}

class LossOnGpu : public testing::TestWithParam<const char*> {};

TEST_P(LossOnGpu, CostsNoFrameThatCanBeComputedAgain) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  test::expect_passes_in_own_process("LossChild." + std::string(GetParam()), child_of);
}
INSTANTIATE_TEST_SUITE_P(Ways, LossOnGpu,
                         testing::Values("FaultingKernel", "FaultingKernelThatChangesFrames", "EndlessKernel",
                                         "EndlessKernelThatChangesFrames", "NoDeviceMemory", "CallThatHangs",
                                         "CallThatHangsAndChangesFrames"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::engine
