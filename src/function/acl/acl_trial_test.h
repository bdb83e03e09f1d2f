// For tests of the element: frames go in by a capture, through ["acl", "bridge"], and out by a capture.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engine/counted_rules.h"
#include "engine/engine.h"
#include "function/acl/acl.h"
#include "function/await_gpu_test.h"
#include "function/bridge/bridge.h"
#include "function/capture_trial_test.h"
#include "packet/builder.h"

namespace sluice::function {

using packet::Bytes;
using packet::PacketBuilder;

// The element that a configuration's text makes; null after a mistake, which fails the test.
inline std::unique_ptr<engine::Element> acl_of(const std::string& text,
                                               const engine::PortTable& ports = engine::PortTable()) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  Settings section = file->section("acl");
  auto element = engine::find_element("acl")->make(section, ports);
  section.finish();
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return element && diagnostics.ok() ? std::move(*element) : nullptr;
}

inline std::unique_ptr<engine::Pipeline> before_bridge(std::unique_ptr<engine::Element> element) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  elements.push_back(std::make_unique<AwaitGpu>());
  elements.push_back(std::move(element));
  elements.push_back(std::make_unique<Bridge>(std::vector<std::uint16_t>{1, 0}));
  return std::make_unique<engine::Pipeline>(std::move(elements));
}

struct Outcome {
  std::vector<Bytes> sent;
  std::vector<Bytes> back;  // out of the port that the frames came in by
  engine::EngineStats stats;
  engine::CountedRules::Listing counted;  // of all rules
  std::map<std::string_view, std::uint64_t> metrics;
};

class AclTrial {
 public:
  explicit AclTrial(std::string device) : trial_(std::move(device), 128) {}

  using Maker = CaptureTrial::Maker;

  // A running engine whose port "in" delivers leading_frames() and these, once or for ever. Null: it could not be made.
  std::unique_ptr<engine::Engine> start(const std::vector<Bytes>& frames, const Maker& make, bool for_ever = false) {
    auto engine = made(frames, make, for_ever);
    if (engine) engine->start();
    return engine;
  }

  std::unique_ptr<engine::Engine> start(const std::vector<Bytes>& frames, std::unique_ptr<engine::Element> element,
                                        bool for_ever = false) {
    return start(
        frames, [&](const engine::PortTable&) { return before_bridge(std::move(element)); }, for_ever);
  }

  // What became of the leading frames and these.
  Outcome run(const std::vector<Bytes>& frames, const Maker& make) {
    auto engine = made(frames, make, false);
    if (!engine) return {};
    const std::size_t all = leading_frames().size() + frames.size();
    Outcome outcome;
    outcome.stats = CaptureTrial::run(*engine, all);
    if (const auto* const rules = engine->pipeline().first<engine::CountedRules>()) outcome.counted = rules->list(1000);
    for (const engine::Metric& metric : engine->pipeline().metrics()) outcome.metrics[metric.name] = metric.value;
    engine.reset();  // closes the captures
    outcome.sent = trial_.sent();
    outcome.back = trial_.back();
    EXPECT_EQ(outcome.stats.total.rx_frames, all);
    EXPECT_EQ(outcome.stats.imbalance(), 0);
    return outcome;
  }

  // Through the element and a bridge, without the leading frames.
  Outcome run(const std::vector<Bytes>& frames, std::unique_ptr<engine::Element> element) {
    Outcome outcome = run(frames, [&](const engine::PortTable&) { return before_bridge(std::move(element)); });
    EXPECT_GE(outcome.sent.size(), leading_frames().size());
    if (outcome.sent.size() >= leading_frames().size()) {
      outcome.sent.erase(outcome.sent.begin(), outcome.sent.begin() + engine::burst_size);
    }
    if (trial_.device() != "cpu") {
      EXPECT_GE(outcome.stats.total.frames_gpu, frames.size());
    }
    return outcome;
  }

 private:
  std::unique_ptr<engine::Engine> made(const std::vector<Bytes>& frames, const Maker& make, bool for_ever) const {
    std::vector<Bytes> all = leading_frames();
    all.insert(all.end(), frames.begin(), frames.end());
    return trial_.make(all, make, for_ever);
  }

  CaptureTrial trial_;
};

}  // namespace sluice::function
