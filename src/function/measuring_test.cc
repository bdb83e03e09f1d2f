// echo and touch: the device gives the same bytes and verdicts as the CPU, and the CPU those of the definition, for
// frames of every size and alignment, in runs or scattered, by every path. Nothing beside the frames changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "../tests/support/gpu.h"
#include "function/echo/echo.h"
#include "function/test_batch.h"
#include "function/touch/touch.h"

namespace sluice::function {
namespace {

struct Case {
  const char* name;
  BatchShape shape;
  EchoPath path = EchoPath::automatic;
};

auto fixed(std::uint32_t bytes) {
  return [bytes](std::mt19937&) { return bytes; };
}

std::vector<Case> cases() {
  const auto sizes = [](std::uint32_t from, std::uint32_t to) {
    return [=](std::mt19937& random) { return std::uniform_int_distribution<std::uint32_t>(from, to)(random); };
  };
  std::vector<Case> all = {
      {"one_frame", {.count = 1}},
      {"one_frame_of_14", {.count = 1, .size = fixed(14)}},
      {"mixed_sizes", {}},
      {"small_frames", {.count = 700, .size = sizes(14, 80)}},
      {"frames_of_64", {.count = 1000, .size = fixed(64)}},
      {"no_multiple_of_the_group", {.count = 133}},
      {"aligned_to_2", {.headroom = 262}},
      {"aligned_to_2_small", {.count = 300, .headroom = 258, .size = sizes(14, 40)}},
      {"odd_lengths_at_14_mod_16", {.headroom = 270, .size = sizes(14, 131)}},
      {"objects_of_no_round_size", {.object_bytes = 2306, .headroom = 256}},
      {"descending", {.order = FrameOrder::descending}},
      {"runs_of_32", {.order = FrameOrder::runs_of_32}},
      {"shuffled", {.order = FrameOrder::shuffled}},
      {"jumbo", {.count = 40, .object_bytes = 9472, .size = sizes(14, 9000)}},
      {"jumbo_shuffled",
       {.count = 40, .object_bytes = 9472, .headroom = 258, .order = FrameOrder::shuffled, .size = fixed(9000)}},
  };
  return all;
}

std::uint32_t sum_of(const std::uint8_t* data, std::size_t size) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += data[i];
  return sum;
}

class Measuring : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = device::Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
  }

  void launch(engine::Element& element, engine::Batch& batch, unsigned s = 0) {
    device::GpuStream& stream = gpu_->stream(s);
    auto launched = element.launch(batch, stream);
    ASSERT_TRUE(launched) << launched.error().message;
    ASSERT_TRUE(stream.mark());
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    device::MarkState state = device::MarkState::pending;
    while (state == device::MarkState::pending && std::chrono::steady_clock::now() < until) state = stream.poll();
    ASSERT_EQ(state, device::MarkState::done) << gpu_->why();
  }

  // Runs the element on the GPU and on the CPU over equal batches.
  void compare(engine::Element& element, const BatchShape& shape) {
    TestBatch on_gpu(gpu_.get(), shape), on_cpu(nullptr, shape);
    ASSERT_TRUE(element.attach(*gpu_, {1, 4, shape.count, shape.object_bytes}));
    launch(element, on_gpu.batch());
    element.compute(on_cpu.batch(), {0, shape.count});
    for (std::uint32_t i = 0; i < shape.count; ++i)
      ASSERT_EQ(on_gpu.verdicts()[i], on_cpu.verdicts()[i])
          << "frame " << i << " of " << on_gpu.batch().length[i] << " bytes";
    const auto mismatch = std::mismatch(on_gpu.memory().begin(), on_gpu.memory().end(), on_cpu.memory().begin()).first;
    const auto at = static_cast<std::size_t>(mismatch - on_gpu.memory().begin());
    EXPECT_EQ(at, on_gpu.memory().size())
        << "byte " << at % shape.object_bytes << " of object " << at / shape.object_bytes;
  }

  std::unique_ptr<device::Gpu> gpu_;
};

TEST_P(Measuring, TouchOnTheDeviceIsTouchOnTheCpuByEveryPath) {
  for (TouchPath path : {TouchPath::automatic, TouchPath::copy, TouchPath::direct}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    Touch touch({0}, path);
    compare(touch, GetParam().shape);
  }
}

TEST_P(Measuring, EchoOnTheDeviceIsEchoOnTheCpuByEveryPath) {
  for (EchoPath path : {EchoPath::automatic, EchoPath::copy, EchoPath::direct, EchoPath::direct_down}) {
    SCOPED_TRACE("path " + std::to_string(static_cast<int>(path)));
    Echo echo({0}, 0x5A, path);
    compare(echo, GetParam().shape);
  }
}

TEST_P(Measuring, TheCpuDoesWhatTheDefinitionSays) {
  TestBatch before(nullptr, GetParam().shape), touched(nullptr, GetParam().shape), echoed(nullptr, GetParam().shape);
  const std::uint32_t count = GetParam().shape.count;
  Touch({0}).compute(touched.batch(), {0, count});
  Echo({0}, 0xC3, EchoPath::automatic).compute(echoed.batch(), {0, count});
  EXPECT_TRUE(std::ranges::equal(before.memory(), touched.memory()));
  std::vector<std::uint8_t> expected(before.memory().begin(), before.memory().end());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = before.batch().frame[i] - reinterpret_cast<std::uint64_t>(before.memory().data());
    const std::uint32_t length = before.batch().length[i];
    EXPECT_EQ(touched.verdicts()[i], sum_of(expected.data() + at, length));
    EXPECT_EQ(echoed.verdicts()[i], touched.verdicts()[i]);
    for (std::uint32_t b = 12; b < length; ++b) expected[at + b] ^= 0xC3;
  }
  EXPECT_TRUE(std::ranges::equal(echoed.memory(), expected));
}

INSTANTIATE_TEST_SUITE_P(shapes, Measuring, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Batches large enough to travel in pieces on two streams at once.
class MeasuringLarge : public Measuring {};
TEST_P(MeasuringLarge, EchoInPieces) {
  Echo echo({0}, 0x11, GetParam().path);
  compare(echo, GetParam().shape);
}
TEST_P(MeasuringLarge, TouchOfLongRuns) {
  Touch touch({0});
  compare(touch, GetParam().shape);
}
INSTANTIATE_TEST_SUITE_P(
    pieces, MeasuringLarge,
    testing::Values(
        Case{"copy", {.count = 3000, .size = fixed(1408)}, EchoPath::copy},
        Case{"copy_descending", {.count = 3000, .order = FrameOrder::descending, .size = fixed(1408)}, EchoPath::copy},
        Case{"direct_down", {.count = 3000, .size = fixed(1408)}, EchoPath::direct_down},
        Case{"automatic", {.count = 3000, .size = fixed(1408)}, EchoPath::automatic}),
    [](const auto& info) { return info.param.name; });

using MeasuringTwice = Measuring;
TEST_F(MeasuringTwice, BatchesOfTwoStreamsDoNotDisturbEachOther) {
  const BatchShape shape{.count = 500, .size = fixed(1408)};
  Echo echo({0}, 0x77, EchoPath::copy);
  ASSERT_TRUE(echo.attach(*gpu_, {1, 4, shape.count, shape.object_bytes}));
  TestBatch before(nullptr, shape);
  TestBatch batches[2] = {{gpu_.get(), shape}, {gpu_.get(), shape}};
  for (unsigned round = 0; round < 4; ++round)
    for (unsigned s = 0; s < 2; ++s) launch(echo, batches[s].batch(), s);
  for (auto& batch : batches)
    EXPECT_TRUE(std::ranges::equal(batch.memory(), before.memory())) << "four times XOR is nothing";
}

TEST_F(MeasuringTwice, ABatchBeyondThePlanGoesTheDirectWay) {
  const BatchShape planned{.count = 16, .size = fixed(100)}, larger{.count = 64, .size = fixed(2000)};
  Echo echo({0}, 0x5A, EchoPath::copy);
  Touch touch({0}, TouchPath::copy);
  for (engine::Element* element : {static_cast<engine::Element*>(&echo), static_cast<engine::Element*>(&touch)}) {
    ASSERT_TRUE(element->attach(*gpu_, {1, 4, planned.count, 128}));
    TestBatch on_gpu(gpu_.get(), larger), on_cpu(nullptr, larger);
    launch(*element, on_gpu.batch());
    element->compute(on_cpu.batch(), {0, larger.count});
    EXPECT_TRUE(std::ranges::equal(on_gpu.memory(), on_cpu.memory()));
    EXPECT_TRUE(std::ranges::equal(on_gpu.verdicts(), on_cpu.verdicts()));
  }
}

TEST_F(MeasuringTwice, AnEmptyBatchIsNothingToDo) {
  Touch touch({0});
  Echo echo({0}, 0, EchoPath::automatic);
  engine::Batch empty;
  EXPECT_TRUE(touch.launch(empty, gpu_->stream(0)));
  EXPECT_TRUE(echo.launch(empty, gpu_->stream(0)));
}

}  // namespace
}  // namespace sluice::function
