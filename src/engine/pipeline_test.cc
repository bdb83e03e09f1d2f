// A pipeline by itself, of made-up elements: what is called when, what rows become, reloads, traits, areas, fusion.
#include "engine/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "engine/batch_ring.h"
#include "engine/options.h"
#include "engine/wrapped_element.h"

namespace sluice::engine {
namespace {

using testing::ElementsAre;

// What all elements of a test were called for, in order.
using Calls = std::vector<std::string>;

struct RecorderTraits {
  bool metrics = false, gate = false, grouping = false, demand = false;
};

class Recorder : public Element, public Metrics, public HostGate, public Grouping, public DeviceDemand {
 public:
  Recorder(std::string name, Calls& calls, Shape shape = {}, RecorderTraits traits = {})
      : name_(std::move(name)), calls_(calls), shape_(shape), traits_(traits) {}
  Shape shape() const override { return shape_; }
  void* find_trait(std::string_view name) override {
    if (name == Metrics::trait_name && traits_.metrics) return offer<Metrics>(name, this);
    if (name == HostGate::trait_name && traits_.gate) return offer<HostGate>(name, this);
    if (name == DeviceDemand::trait_name && traits_.demand) return offer<DeviceDemand>(name, this);
    return traits_.grouping ? offer<Grouping>(name, this) : nullptr;
  }
  Expected<void> prepare(const Plan& plan) override {
    sends = plan.sends;
    pipeline = plan.pipeline;
    return note("prepare");
  }
  void classify(Batch& batch, Span span) override {
    note("classify " + std::to_string(span.first) + "+" + std::to_string(span.count));
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      live += batch.is_live(i) ? 1 : 0;
      if (drops && batch.is_live(i)) batch.drop(i, measured);
      if (to_host && batch.is_live(i)) batch.to_host(i, measured);
    }
    if (shape_.bytes_per_frame != 0) memory = area(batch);
  }
  Expected<void> launch(Batch&, device::GpuStream&) override { return note("launch"); }
  Expected<void> launch_together(std::span<Batch* const> batches, device::GpuStream&) override {
    return note("together " + std::to_string(batches.size()));
  }
  bool needs_device(const Batch& batch) const override { return batch.count > 2; }
  void compute(Batch&, Span) override { note("compute"); }
  void apply(Batch&, Span, Emitter&) override { note("apply"); }
  Expected<Change> reload(Element&) override {
    note("reload");
    if (refuses) return make_error(name_ + " refuses");
    return Change{name_ + " is new", [this] { note("commit"); }};
  }
  std::vector<Metric> metrics() const override { return {{.name = "made_up", .text = "", .value = live}}; }
  packet::Reason judge_from_host(std::uint32_t, const std::uint8_t*, std::uint32_t) const override { return judges; }
  Expected<void> note(const std::string& what) {
    calls_.push_back(name_ + " " + what);
    return {};
  }

  static inline const packet::Reason measured = packet::register_reason("pipeline_test", "for a test");
  bool drops = false, to_host = false, refuses = false, sends = true;
  std::uint64_t live = 0;
  packet::Reason judges = packet::no_reason;
  std::byte* memory = nullptr;
  Pipeline* pipeline = nullptr;

 private:
  const std::string name_;
  Calls& calls_;
  const Shape shape_;
  const RecorderTraits traits_;
};

struct NoStream : device::GpuStream {
  void* raw() const override { return nullptr; }
  Expected<void> mark() override { return {}; }
  device::MarkState poll() override { return device::MarkState::done; }
  unsigned pending_marks() const override { return 0; }
};

class PipelineTest : public testing::Test {
 protected:
  Recorder& add(const std::string& name, Shape shape = {}, RecorderTraits traits = {}) {
    auto element = std::make_unique<Recorder>(name, calls_, shape, traits);
    Recorder& added = *element;
    elements_.push_back(std::move(element));
    return added;
  }
  Pipeline& made(bool fused = true) {
    pipeline_ = std::make_unique<Pipeline>(std::exchange(elements_, {}), fused);
    return *pipeline_;
  }
  Calls calls() { return std::exchange(calls_, {}); }

  // A batch of the pass, with rows that go on.
  Batch& batch(std::uint32_t count, unsigned pass = 0) {
    rows_.assign(count, Row{});
    batch_.row = rows_.data();
    batch_.count = count;
    batch_.pass = pass;
    return batch_;
  }

  Calls calls_;
  std::vector<std::unique_ptr<Element>> elements_;
  std::unique_ptr<Pipeline> pipeline_;
  std::vector<Row> rows_;
  Batch batch_;
  NoStream stream_;
};

TEST_F(PipelineTest, CallsItsElementsInOrder) {
  add("a", {.on_device = true});
  add("b");
  add("c", {.on_device = true, .ends_chain = true});
  Pipeline& pipeline = made();
  ASSERT_EQ(pipeline.passes(), 1U);
  ASSERT_TRUE(pipeline.prepare({}));
  EXPECT_THAT(calls(), ElementsAre("a prepare", "b prepare", "c prepare"));
  Batch& rows = batch(3);
  pipeline.classify(rows, {0, 3});
  EXPECT_THAT(calls(), ElementsAre("a classify 0+3", "b classify 0+3", "c classify 0+3"));
  pipeline.compute(rows, {0, 3});
  EXPECT_THAT(calls(), ElementsAre("a compute", "c compute")) << "those with device work";
  Batch* const one = &rows;
  ASSERT_TRUE(pipeline.launch({&one, 1}, stream_));
  EXPECT_THAT(calls(), ElementsAre("a launch", "c launch"));
}

TEST_F(PipelineTest, GivesRowsToBeClassifiedInParts) {
  add("a");
  Pipeline& pipeline = made();
  pipeline.classify(batch(150), {10, 140});
  EXPECT_THAT(calls(), ElementsAre("a classify 10+64", "a classify 74+64", "a classify 138+12"));
}

TEST_F(PipelineTest, WhatAnElementDropsIsLiveForNoLaterOne) {
  const Recorder& first = add("a");
  add("b").drops = true;
  const Recorder& last = add("c");
  made().classify(batch(5), {0, 5});
  EXPECT_EQ(first.live, 5U);
  EXPECT_EQ(last.live, 0U);
  for (const Row& row : rows_) EXPECT_EQ(row.reason, Recorder::measured);
}

// The host forwards it only if all elements let it.
TEST_F(PipelineTest, WhatIsForTheHostIsLiveForLaterElements) {
  for (const bool agrees : {false, true}) {
    SCOPED_TRACE(agrees ? "another one agrees" : "nobody else says anything");
    add("a").to_host = true;
    Recorder& next = add("b");
    next.to_host = agrees;
    const Recorder& last = add("c");
    made().classify(batch(5), {0, 5});
    EXPECT_EQ(next.live, 5U);
    EXPECT_EQ(last.live, 5U);
    for (std::uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(rows_[i].fate, Fate::to_host);
      EXPECT_EQ(rows_[i].reason, Recorder::measured);
      EXPECT_FALSE(batch_.goes_on(i));
    }
  }
}

TEST_F(PipelineTest, ALaterElementDropsWhatIsForTheHost) {
  add("a").to_host = true;
  add("b").drops = true;
  add("c").to_host = true;
  made().classify(batch(5), {0, 5});
  for (const Row& row : rows_) EXPECT_EQ(row.fate, Fate::dropped);
}

TEST_F(PipelineTest, APassBeginsWhereChangedPayloadsAreLookedAt) {
  struct Case {
    std::vector<Payloads> payloads;
    unsigned passes;
  };
  constexpr Payloads u = Payloads::untouched, r = Payloads::read, c = Payloads::changed, l = Payloads::read_late;
  for (const Case& one : {Case{{u, u}, 1}, Case{{r, r, u}, 1}, Case{{u, c, u}, 1}, Case{{r, c}, 2}, Case{{c, r}, 2},
                          Case{{c, c}, 2}, Case{{r, u, c, u, r}, 3}, Case{{c, u, u}, 1}, Case{{l, u}, 1},
                          Case{{l, r, u}, 1}, Case{{l, c, u}, 2}, Case{{u, c, l, u}, 1}, Case{{c, l, c}, 2}}) {
    for (const Payloads payloads : one.payloads) add("e", {.bytes_per_frame = 4, .payloads = payloads});
    const Pipeline& pipeline = made();
    EXPECT_EQ(pipeline.passes(), one.passes);
    std::vector<unsigned> areas(one.payloads.size());
    for (unsigned pass = 0; pass < pipeline.passes(); ++pass) {
      const auto bytes = pipeline.areas(pass);
      for (std::size_t e = 0; e < areas.size(); ++e) areas[e] += bytes[e] != 0 ? 1 : 0;
    }
    EXPECT_THAT(areas, testing::Each(1U)) << "each element is in one pass";
  }
}

// Also where no payload is looked at; and who ends links is asked again there, and nowhere else.
TEST_F(PipelineTest, APassBeginsBehindAnElementThatChangesHeaders) {
  class Station : public Element, public Ingress {
   public:
    void* find_trait(std::string_view name) override { return offer<Ingress>(name, this); }
    void admit(Batch& batch, Span) override { passes.push_back(batch.pass); }
    void apply(Batch&, Span, Emitter&) override {}
    std::vector<unsigned> passes;
  };
  add("a");
  add("unwraps", {.changes_headers = true});
  add("inspects", {.payloads = Payloads::read});
  add("encrypts", {.payloads = Payloads::changed});
  auto element = std::make_unique<Station>();
  const Station& station = *element;
  elements_.push_back(std::move(element));
  Pipeline& pipeline = made();
  ASSERT_EQ(pipeline.passes(), 3U);
  for (unsigned pass = 0; pass < 3; ++pass) pipeline.classify(batch(1, pass), {0, 1});
  EXPECT_THAT(calls(),
              ElementsAre("a classify 0+1", "unwraps classify 0+1", "inspects classify 0+1", "encrypts classify 0+1"));
  EXPECT_THAT(station.passes, ElementsAre(0U, 1U));
  add("a");
  add("last", {.changes_headers = true});
  EXPECT_EQ(made().passes(), 1U);
}

TEST_F(PipelineTest, SaysWhetherPayloadsAreChangedBehindAnElementOfAPass) {
  const Recorder& first = add("a");
  const Recorder& reads = add("b", {.payloads = Payloads::read});
  auto inner = std::make_unique<Recorder>("c", calls_);
  const Recorder& wrapped = *inner;
  add("d", {.payloads = Payloads::changed});
  elements_.insert(elements_.begin() + 2, std::make_unique<WrappedElement>(std::move(inner)));
  const Recorder& last = add("e");
  const Pipeline& pipeline = made();
  ASSERT_EQ(pipeline.passes(), 2U) << "a, b and c; d and e";
  for (const Recorder* const one : {&first, &reads, &last}) EXPECT_FALSE(pipeline.changes_behind(*one));
  EXPECT_FALSE(pipeline.changes_behind(wrapped));
  const Recorder& in_front = add("f");
  auto other = std::make_unique<Recorder>("g", calls_);
  const Recorder& inside = *other;
  elements_.push_back(std::make_unique<WrappedElement>(std::move(other)));
  add("h", {.payloads = Payloads::changed});
  const Pipeline& one_pass = made();
  EXPECT_TRUE(one_pass.changes_behind(in_front));
  EXPECT_TRUE(one_pass.changes_behind(inside)) << "which another one wraps";
}

TEST_F(PipelineTest, AReloadIsOfAllElementsOrNone) {
  add("end", {.ends_chain = true});
  Recorder& other = add("b");
  Pipeline& pipeline = made();
  add("end", {.ends_chain = true});
  add("b");
  Pipeline fresh(std::exchange(elements_, {}));
  const auto text = pipeline.reload(fresh);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "end is new; b is new");
  EXPECT_THAT(calls(), ElementsAre("b reload", "end reload", "end commit", "b commit"));
  other.refuses = true;
  const auto refused = pipeline.reload(fresh);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "b refuses");
  EXPECT_THAT(calls(), ElementsAre("b reload")) << "nothing is committed";
}

TEST_F(PipelineTest, TraitsAreOfTheFirstOrOfAll) {
  add("a");
  Recorder& b = add("b", {}, {.metrics = true, .gate = true});
  Recorder& c = add("c", {}, {.metrics = true, .gate = true});
  const Pipeline& pipeline = made();
  EXPECT_EQ(pipeline.first<Metrics>(), &b);
  EXPECT_EQ(pipeline.first<Timer>(), nullptr);
  EXPECT_THAT(pipeline.all<Metrics>(), ElementsAre(&b, &c));
  EXPECT_EQ(pipeline.metrics().size(), 2U);
  EXPECT_EQ(pipeline.judge_from_host(0, nullptr, 0), packet::no_reason);
  c.judges = Recorder::measured;
  EXPECT_EQ(pipeline.judge_from_host(0, nullptr, 0), Recorder::measured);
}

// What a device may have half done is reported to those who need to know, of the pass alone.
TEST_F(PipelineTest, ALostBatchIsReportedToItsPass) {
  class Recovering : public Element, public Recovery {
   public:
    explicit Recovering(Payloads payloads) : payloads_(payloads) {}
    Shape shape() const override { return {.payloads = payloads_, .on_device = true}; }
    void* find_trait(std::string_view name) override { return offer<Recovery>(name, this); }
    void apply(Batch&, Span, Emitter&) override {}
    void lost(Batch&) override { ++times; }
    int times = 0;

   private:
    Payloads payloads_;
  };
  Recovering* all[2];
  for (unsigned i = 0; i < 2; ++i) {
    auto element = std::make_unique<Recovering>(i == 0 ? Payloads::changed : Payloads::read);
    all[i] = element.get();
    elements_.push_back(std::move(element));
  }
  Pipeline& pipeline = made();
  ASSERT_EQ(pipeline.passes(), 2U);
  pipeline.lost(batch(3, 1));
  EXPECT_EQ(all[0]->times, 0);
  EXPECT_EQ(all[1]->times, 1);
}

TEST_F(PipelineTest, TheSmallestBatchHasCapacityForEveryArea) {
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
  const std::vector<std::uint32_t> bytes = {3, 0, 5, 1};
  const auto ring = BatchRing::create({0, 2, static_cast<std::uint32_t>(batch_range.least), bytes, 0},
                                      [&](std::size_t size) -> Expected<void*> {
                                        memory.emplace_back(std::aligned_alloc(64, size), &std::free);
                                        return memory.back().get();
                                      });
  ASSERT_TRUE(ring) << ring.error().message;
  const Batch& one = *(*ring)->open();
  std::vector<std::pair<std::uintptr_t, std::size_t>> areas;
  for (std::size_t e = 0; e < bytes.size(); ++e) {
    if (bytes[e] == 0) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(one.area[e]);
    EXPECT_EQ(begin % 64, 0U);
    for (const auto& [other, size] : areas) {
      EXPECT_TRUE(begin >= other + size || begin + std::size_t{bytes[e]} * batch_range.least <= other);
    }
    areas.emplace_back(begin, std::size_t{bytes[e]} * batch_range.least);
  }
}

TEST_F(PipelineTest, GroupedBatchesAreLaunchedTogether) {
  add("a", {.on_device = true}, {.grouping = true});
  add("b", {.on_device = true});
  for (const bool fused : {true, false}) {
    if (!fused) {
      add("a", {.on_device = true}, {.grouping = true});
      add("b", {.on_device = true});
    }
    Pipeline& pipeline = made(fused);
    EXPECT_EQ(pipeline.together(0), fused ? Together::of_one_lane : Together::no);
    Batch other;
    Batch* const batches[] = {&batch(1), &other};
    ASSERT_TRUE(pipeline.launch(batches, stream_));
    EXPECT_THAT(calls(), ElementsAre("a together 2", "b launch", "b launch"));
    ASSERT_TRUE(pipeline.launch({batches, 1}, stream_));
    EXPECT_THAT(calls(), ElementsAre("a launch", "b launch"));
  }
}

TEST_F(PipelineTest, WhatIsNotForTheDeviceIsComputedBehindIt) {
  add("a", {.on_device = true}, {.grouping = true, .demand = true});
  add("b", {.on_device = true});
  Pipeline& pipeline = made();
  Batch small;
  small.count = 2;
  Batch* const batches[] = {&batch(3), &small};
  ASSERT_TRUE(pipeline.launch(batches, stream_));
  EXPECT_THAT(calls(), ElementsAre("a launch", "b launch", "b launch"));
  pipeline.compute_rest(*batches[0]);
  EXPECT_THAT(calls(), ElementsAre());
  pipeline.compute_rest(small);
  EXPECT_THAT(calls(), ElementsAre("a compute"));
  EXPECT_TRUE(pipeline.needs_device(small)) << "for b";
  add("a", {.on_device = true}, {.demand = true});
  Pipeline& alone = made();
  EXPECT_FALSE(alone.needs_device(small));
  EXPECT_TRUE(alone.needs_device(batch(3)));
}

// Of the elements of this test named so by their size.
constexpr std::uint32_t fusible = 12;
bool fusion_takes = true;
class MadeUpFusion : public Fusion {
 public:
  Expected<bool> launch(std::span<Batch* const>, device::GpuStream&) override { return fusion_takes; }
};
const bool registered = register_fusion([](std::span<Element* const> elements) -> std::unique_ptr<Fusion> {
  if (elements.size() != 2 || elements[0]->shape().bytes_per_frame != fusible) return nullptr;
  return std::make_unique<MadeUpFusion>();
});

TEST_F(PipelineTest, AFusionIsUsedUnlessItSaysNo) {
  for (const bool takes : {true, false}) {
    for (const char* name : {"a", "b"}) add(name, {.bytes_per_frame = fusible, .on_device = true});
    Pipeline& pipeline = made();
    EXPECT_EQ(pipeline.together(0), Together::of_any_lane);
    fusion_takes = takes;
    Batch* const one = &batch(1);
    ASSERT_TRUE(pipeline.launch({&one, 1}, stream_));
    EXPECT_EQ(calls(), takes ? Calls() : (Calls{"a launch", "b launch"}));
  }
  for (const char* name : {"a", "b"}) add(name, {.bytes_per_frame = fusible, .on_device = true});
  EXPECT_EQ(made(false).together(0), Together::no);
}

TEST_F(PipelineTest, AWrappedElementGetsEveryCallAndItsOwnArea) {
  add("before", {.bytes_per_frame = 8});
  auto element = std::make_unique<Recorder>("in", calls_, Shape{.bytes_per_frame = 4, .on_device = true},
                                            RecorderTraits{.metrics = true});
  Recorder& inner = *element;
  elements_.push_back(std::make_unique<WrappedElement>(std::make_unique<WrappedElement>(std::move(element))));
  Pipeline& pipeline = made();
  EXPECT_EQ(pipeline.first<Metrics>(), &inner);
  EXPECT_THAT(pipeline.areas(0), ElementsAre(8U, 4U));
  alignas(64) std::byte memory[2][64];
  Batch& rows = batch(1);
  rows.area[0] = memory[0];
  rows.area[1] = memory[1];
  ASSERT_TRUE(pipeline.prepare({}));
  EXPECT_EQ(inner.pipeline, &pipeline);
  pipeline.classify(rows, {0, 1});
  pipeline.compute(rows, {0, 1});
  EXPECT_EQ(inner.memory, memory[1]);
  EXPECT_THAT(calls(),
              ElementsAre("before prepare", "in prepare", "before classify 0+1", "in classify 0+1", "in compute"));
}

TEST_F(PipelineTest, OneElementThatSendsNothingMakesThePipelineSoForAll) {
  const Recorder& first = add("a");
  add("b", {.sends = false});
  Pipeline& pipeline = made();
  ASSERT_TRUE(pipeline.prepare({}));
  EXPECT_FALSE(pipeline.sends());
  EXPECT_FALSE(first.sends);
}

}  // namespace
}  // namespace sluice::engine
