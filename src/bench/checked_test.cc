// That what compares a device's verdicts with the CPU's sees those that differ, and those that are missing.
#include "bench/checked.h"

#include <gtest/gtest.h>

#include <atomic>

#include "bench/router_rig.h"
#include "bench/verify.h"
#include "function/fused/fusable.h"
#include "function/route/route_batch.h"
#include "function/routing.h"

namespace sluice::cli::bench {
namespace {

enum class Flaw { none, differs, missing };

// Around touch or the router: the first verdict of a batch is another, or none is written. What the check itself
// computes behind that is right.
class Flawed final : public engine::WrappedElement {
 public:
  Flawed(std::unique_ptr<engine::Element> inner, Flaw flaw) : WrappedElement(std::move(inner)), flaw_(flaw) {}
  void compute(engine::Batch& batch, engine::Span span) override {
    const bool is_now = ++calls_ % 2 != 0;
    if (!is_now || flaw_ != Flaw::missing) WrappedElement::compute(batch, span);
    if (is_now && flaw_ == Flaw::differs) ++first_verdict(batch);
  }

 private:
  std::uint32_t& first_verdict(const engine::Batch& batch) const {
    if (inner().trait<function::Routing>() == nullptr) return *reinterpret_cast<std::uint32_t*>(area(batch));
    const function::RouteArea route(area(batch), batch.capacity);
    return route.header->keys6 != 0 ? route.answers6[0] : route.verdict[0];
  }
  const Flaw flaw_;
  std::atomic<unsigned> calls_{0};
};

void expect_flaws_are_seen(RigOptions options) {
  for (const Flaw flaw : {Flaw::none, Flaw::differs, Flaw::missing}) {
    Checked* checked = nullptr;
    options.wrap = [&](std::unique_ptr<engine::Element> inner) {
      auto made = std::make_unique<Checked>(std::make_unique<Flawed>(std::move(inner), flaw));
      checked = made.get();
      return made;
    };
    auto rig = Rig::make(options);
    ASSERT_TRUE(rig) << rig.error().message;
    EXPECT_EQ(checked->trait<function::Fusable>(), nullptr);
    const auto ran = run_until(**rig, checked->checked, 2000);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(checked->wrong != 0, flaw != Flaw::none) << static_cast<int>(flaw);
  }
}

TEST(Checked, SeesWrongSumsOfTouch) {
  RigOptions options;
  options.function = "touch";
  options.mix = "64";
  options.frames = 512;
  options.engine.device = "cpu";
  options.engine.deadline = std::chrono::milliseconds(100);
  options.engine.batch = 128;
  expect_flaws_are_seen(std::move(options));
}

TEST(Checked, SeesWrongNextHopsOfEitherFamily) {
  BenchOptions options;
  options.lanes = 1;
  options.frames = 512;
  options.batch = 128;
  options.deadline_ms = 100;
  auto table = RouterTable::make({}, {300, 100});
  ASSERT_TRUE(table) << table.error().message;
  for (const int family : {4, 6}) {
    SCOPED_TRACE(family);
    expect_flaws_are_seen(router_rig(options, **table, family, engine::Mode::full, "cpu"));
  }
}

}  // namespace
}  // namespace sluice::cli::bench
