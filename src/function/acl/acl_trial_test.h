// For tests of the stage: frames go in by a capture, through ["acl", "bridge"], and out by a capture.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../tests/support/gpu.h"
#include "../tests/support/pcap_file.h"
#include "base/settings.h"
#include "engine/counted_rules.h"
#include "engine/engine.h"
#include "function/acl/acl.h"
#include "function/await_gpu_test.h"
#include "function/bridge/bridge.h"
#include "function/chain/chain.h"
#include "packet/builder.h"

namespace sluice::function {

using packet::Bytes;
using packet::PacketBuilder;

// The stage that a configuration's text makes; null after a mistake, which fails the test.
inline std::unique_ptr<engine::Stage> acl_of(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  Settings section = file->section("acl");
  auto stage = engine::find_function("acl")->make_stage(section, engine::PortTable());
  section.finish();
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return stage && diagnostics.ok() ? std::move(*stage) : nullptr;
}

inline std::unique_ptr<Chain> before_bridge(std::unique_ptr<engine::Stage> stage) {
  std::vector<std::unique_ptr<engine::Stage>> stages;
  stages.push_back(std::make_unique<AwaitGpu>());
  stages.push_back(std::move(stage));
  return std::make_unique<Chain>(std::move(stages), std::make_unique<Bridge>(std::vector<std::uint16_t>{1, 0}));
}

struct Outcome {
  std::vector<Bytes> sent;
  std::vector<Bytes> back;  // out of the port that the frames came in by
  engine::EngineStats stats;
  engine::CountedRules::Listing counted;  // of all rules
  std::map<std::string_view, std::uint64_t> figures;
};

class AclTrial {
 public:
  explicit AclTrial(std::string device)
      : device_(std::move(device)),
        folder_(std::filesystem::temp_directory_path() / ("sluice-acl-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~AclTrial() { std::filesystem::remove_all(folder_); }
  AclTrial(const AclTrial&) = delete;
  AclTrial& operator=(const AclTrial&) = delete;

  using Maker = std::function<std::unique_ptr<engine::Function>(const engine::PortTable&)>;

  // A running engine whose port "in" delivers leading_frames() and these, once or for ever. Null: it could not be made.
  std::unique_ptr<engine::Engine> start(const std::vector<Bytes>& frames, const Maker& make, bool for_ever = false) {
    std::vector<Bytes> all = leading_frames();
    all.insert(all.end(), frames.begin(), frames.end());
    test::write_pcap(file("in.pcap"), all);
    test::write_pcap(file("none.pcap"), {});
    engine::Options options;
    options.device = device_;
    options.deadline = std::chrono::milliseconds(20);
    options.batch = 128;
    options.cpu_below = 0;
    options.memory.frames = 4096;
    options.ports.resize(2);
    options.ports[0].name = "in";
    options.ports[0].device =
        "net_pcap0,rx_pcap=" + file("in.pcap") + ",tx_pcap=" + file("back.pcap") + (for_ever ? ",infinite_rx=1" : "");
    options.ports[1].name = "out";
    options.ports[1].device =
        for_ever ? "net_null1,no-rx=1" : "net_pcap1,rx_pcap=" + file("none.pcap") + ",tx_pcap=" + file("out.pcap");
    auto engine = engine::Engine::create(
        options,
        [&](const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Function>> { return make(ports); });
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    if (!engine) return nullptr;
    (*engine)->start();
    return std::move(*engine);
  }

  std::unique_ptr<engine::Engine> start(const std::vector<Bytes>& frames, std::unique_ptr<engine::Stage> stage,
                                        bool for_ever = false) {
    return start(
        frames, [&](const engine::PortTable&) { return before_bridge(std::move(stage)); }, for_ever);
  }

  // What became of the leading frames and these.
  Outcome run(const std::vector<Bytes>& frames, const Maker& make) {
    auto engine = start(frames, make);
    if (!engine) return {};
    const std::size_t all = leading_frames().size() + frames.size();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (engine->stats().total.rx_frames < all && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    engine->stop();
    Outcome outcome;
    outcome.stats = engine->stats();
    if (const auto* const rules = engine->function().counted_rules()) outcome.counted = rules->list(1000);
    for (const engine::Figure& figure : engine->function().figures()) outcome.figures[figure.name] = figure.value;
    engine.reset();  // closes the captures
    outcome.sent = test::read_pcap(file("out.pcap"));
    outcome.back = test::read_pcap(file("back.pcap"));
    EXPECT_EQ(outcome.stats.total.rx_frames, all);
    EXPECT_EQ(outcome.stats.imbalance(), 0);
    return outcome;
  }

  // Through the stage and a bridge, without the leading frames.
  Outcome run(const std::vector<Bytes>& frames, std::unique_ptr<engine::Stage> stage) {
    Outcome outcome = run(frames, [&](const engine::PortTable&) { return before_bridge(std::move(stage)); });
    EXPECT_GE(outcome.sent.size(), leading_frames().size());
    if (outcome.sent.size() >= leading_frames().size()) {
      outcome.sent.erase(outcome.sent.begin(), outcome.sent.begin() + engine::burst_size);
    }
    if (device_ != "cpu") {
      EXPECT_GE(outcome.stats.total.frames_gpu, frames.size());
    }
    return outcome;
  }

 private:
  std::string file(const char* name) const { return (folder_ / name).string(); }

  std::string device_;
  std::filesystem::path folder_;
};

}  // namespace sluice::function
