// For tests of elements on an engine: frames come in by a capture, through the real data path between two ports, and
// leave by captures.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../tests/support/gpu.h"
#include "../tests/support/pcap_file.h"
#include "engine/engine.h"
#include "packet/builder.h"

namespace sluice::function {

// Why there is no such device; empty: there is.
inline std::string missing(const std::string& device) {
  return device == "cpu" ? "" : test::why_no_gpu();
}

class CaptureTrial {
 public:
  using Maker = std::function<std::unique_ptr<engine::Pipeline>(const engine::PortTable&)>;

  // `batch`: frames.
  CaptureTrial(std::string device, std::uint32_t batch) : device_(std::move(device)), batch_(batch) {
    std::string name = std::filesystem::temp_directory_path() / "sluice-capture-test-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~CaptureTrial() { std::filesystem::remove_all(folder_); }
  CaptureTrial(const CaptureTrial&) = delete;
  CaptureTrial& operator=(const CaptureTrial&) = delete;

  const std::string& device() const { return device_; }

  // An engine, not started, whose port "in" delivers these, once, or for ever: then what leaves by "out" is not kept.
  // Null: it could not be made, which fails the test.
  std::unique_ptr<engine::Engine> make(const std::vector<packet::Bytes>& frames, const Maker& maker,
                                       bool for_ever = false) const {
    test::write_pcap(file("in.pcap"), frames);
    test::write_pcap(file("none.pcap"), {});
    engine::Options options;
    options.device = device_;
    options.deadline = std::chrono::milliseconds(20);
    options.batch = batch_;
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
        [&](const engine::PortTable& ports) -> Expected<std::unique_ptr<engine::Pipeline>> { return maker(ports); });
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    return engine ? std::move(*engine) : nullptr;
  }

  // From its start until it has received so many frames, or for 20 s.
  static engine::EngineStats run(engine::Engine& engine, std::size_t frames) {
    engine.start();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (engine.stats().total.rx_frames < frames && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    engine.stop();
    return engine.stats();
  }

  // What left by "out", and by the port that it came in by. Once the engine is gone, which closes the captures.
  std::vector<packet::Bytes> sent() const { return test::read_pcap(file("out.pcap")); }
  std::vector<packet::Bytes> back() const { return test::read_pcap(file("back.pcap")); }

 private:
  std::string file(const char* name) const { return folder_ / name; }

  std::string device_;
  std::uint32_t batch_;
  std::filesystem::path folder_;
};

}  // namespace sluice::function
