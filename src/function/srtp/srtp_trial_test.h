// For tests of the element "srtp": frames through classify(), compute() or launch(), and apply(), as the engine does
// it.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../tests/support/gpu.h"
#include "base/settings.h"
#include "device/gpu.h"
#include "engine/element.h"
#include "engine/emitter.h"
#include "engine/port_table.h"
#include "engine/traits.h"
#include "function/media_streams.h"
#include "function/srtp/srtp.h"
#include "function/trial_batch_test.h"
#include "packet/builder.h"

namespace sluice::function {

using packet::Bytes;
using packet::PacketBuilder;

// 30 bytes and 44 bytes, in base64.
inline const std::string key30 = "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz";
inline const std::string other_key30 = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";

// A stream from 10.0.0.1:5004 to 10.0.0.2:6000, or of IPv6.
inline std::string stream_text(const std::string& action, const std::string& more = "", const std::string& key = key30,
                               const std::string& suite = "AES_CM_128_HMAC_SHA1_80", bool ipv6 = false) {
  return "[[srtp.stream]]\naction = \"" + action + "\"\nsource = \"" + (ipv6 ? "2001:db8::1" : "10.0.0.1") +
         "\"\nsource_port = 5004\ndestination = \"" + (ipv6 ? "2001:db8::2" : "10.0.0.2") +
         "\"\ndestination_port = 6000\ncrypto = \"1 " + suite + " inline:" + key + "\"\n" + more + "\n";
}

inline std::unique_ptr<engine::Element> srtp_of(const std::string& text, std::vector<std::string>* mistakes = nullptr) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  const engine::PortTable ports(
      {{.name = "lan", .mac = {}, .has_twin = true}, {.name = "wan", .mac = {}, .has_twin = true}});
  Settings section = file->section("srtp");
  auto element = engine::find_element("srtp")->make(section, ports);
  section.finish();
  if (mistakes != nullptr) {
    *mistakes = diagnostics.lines;
  } else {
    EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  }
  return element ? std::move(*element) : nullptr;
}

inline Bytes rtp(std::uint16_t sequence, std::size_t payload, std::uint32_t ssrc = 0x11223344) {
  Bytes bytes = {0x80,
                 96,
                 static_cast<std::uint8_t>(sequence >> 8),
                 static_cast<std::uint8_t>(sequence),
                 0,
                 0,
                 0,
                 9,
                 static_cast<std::uint8_t>(ssrc >> 24),
                 static_cast<std::uint8_t>(ssrc >> 16),
                 static_cast<std::uint8_t>(ssrc >> 8),
                 static_cast<std::uint8_t>(ssrc)};
  for (std::size_t i = 0; i < payload; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 7 + sequence));
  return bytes;
}

inline Bytes rtcp(std::uint32_t ssrc = 0x11223344) {
  Bytes bytes = rtp(6, 16, ssrc);
  bytes[1] = 200;
  std::memmove(bytes.data() + 4, bytes.data() + 8, 4);
  return bytes;
}

inline PacketBuilder udp_frame(const Bytes& payload, bool ipv6 = false, std::uint16_t source_port = 5004,
                               std::uint16_t destination_port = 6000) {
  PacketBuilder builder;
  ipv6 ? builder.ipv6("2001:db8::1", "2001:db8::2") : builder.ipv4("10.0.0.1", "10.0.0.2");
  return builder.udp(source_port, destination_port).payload(payload);
}

struct Judged {
  packet::Reason reason = packet::no_reason;  // of a frame that is dropped
  engine::Fate fate = engine::Fate::goes_on;
  Bytes frame;
  std::string name() const { return std::string(reason == packet::no_reason ? "passes" : packet::reason_name(reason)); }
};

// An element and one lane's batch, on a CPU core or on a GPU.
class SrtpTrial {
 public:
  static constexpr std::uint32_t capacity = 64, buffer = 2048;
  static constexpr std::uint16_t port_of(std::uint32_t lane) { return lane == 0 ? 0 : 1; }

  // The device of the trials that are made from now on; null: the core.
  static inline device::Gpu* on = nullptr;

  // Lane 0's frames come by port 0, all others' by port 1.
  explicit SrtpTrial(const std::string& text, std::uint32_t lanes = 1)
      : gpu_(on), element_(srtp_of(text)), frames_(gpu_, element_->shape().bytes_per_frame, capacity, buffer) {
    engine::Plan plan{.lanes = lanes};
    for (std::uint32_t lane = 0; lane < lanes; ++lane) plan.ports.push_back(port_of(lane));
    const auto ok = element_->prepare(plan);
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().message);
    if (gpu_ == nullptr) return;
    const auto attached = element_->attach(*gpu_, {lanes, 2, capacity, buffer});
    EXPECT_TRUE(attached) << (attached ? "" : attached.error().message);
  }
  // Another batch of the same element, beside that one's.
  explicit SrtpTrial(const SrtpTrial& other)
      : gpu_(other.gpu_),
        element_(other.element_),
        frames_(gpu_, element_->shape().bytes_per_frame, capacity, buffer) {}
  SrtpTrial& operator=(const SrtpTrial&) = delete;

  Srtp& element() { return static_cast<Srtp&>(*element_); }
  MediaStreams& streams() { return *element_->trait<MediaStreams>(); }

  struct How {
    std::uint32_t lane = 0;
    std::size_t skipped = capacity;  // a frame that an element in front drops, when results are there
    // The frame is the kernel's to forward: of the element in front, or of the one behind, which has been asked by the
    // time that this one applies results.
    enum class Transit : std::uint8_t { no, before, behind } transit = Transit::no;
    bool new_cycle = true;       // for the GPU, before the batch is launched
    bool lost = false;           // the GPU fails instead of working on it
    bool on_core = false;        // the lane computes what the GPU was to do
    std::uint16_t headroom = 0;  // of the buffers
  };
  std::vector<Judged> run(const std::vector<Bytes>& frames) { return run(frames, How()); }
  std::vector<Judged> run(const std::vector<Bytes>& frames, const How& how) {
    begin(frames, how);
    return end();
  }
  // The same in two steps: all but applying, and that.
  void begin(const std::vector<Bytes>& frames, const How& how) {
    how_ = how;
    const auto count = static_cast<std::uint32_t>(frames.size());
    frames_.clear();
    for (const Bytes& frame : frames) frames_.add(frame, how.headroom, port_of(how.lane));
    batch_.lane = how.lane;
    // In two bursts.
    const std::uint32_t first = count / 2;
    if (how.transit == How::Transit::before) hand_to_kernel();
    batch_.count = first;
    element_->classify(batch_, {0, first});
    batch_.count = count;
    element_->classify(batch_, {first, count - first});
    if (how.transit == How::Transit::behind) hand_to_kernel();
    if (gpu_ != nullptr && how.new_cycle) begin_cycle();
    if (how.lost) element().lost(batch_);
    if (gpu_ != nullptr && !how.lost && !how.on_core) {
      launch(*element_, batch_, *gpu_);
    } else {
      element_->compute(batch_, {0, first});
      element_->compute(batch_, {first, count - first});
    }
  }
  std::vector<Judged> end() {
    std::vector<Judged> all(batch_.count);
    if (how_.skipped < batch_.count) batch_.drop(static_cast<std::uint32_t>(how_.skipped), engine::undecided);
    element_->apply(batch_, {0, batch_.count}, emitter_);
    for (std::uint32_t i = 0; i < batch_.count; ++i) {
      if (i != how_.skipped) all[i].reason = batch_.row[i].reason;
      all[i].fate = batch_.row[i].fate;
      EXPECT_EQ(frames_.mbuf(i).data_len, batch_.length[i]);
      EXPECT_EQ(frames_.mbuf(i).pkt_len, batch_.length[i]);
      all[i].frame = frames_.frame(i);
    }
    return all;
  }
  void begin_cycle() {
    const auto begun = element().begin_cycle(0, gpu_->stream(0));
    EXPECT_TRUE(begun) << (begun ? "" : begun.error().message);
  }
  Judged one(const Bytes& frame, std::uint32_t lane = 0) { return run({frame}, {.lane = lane}).front(); }
  Judged one(const Bytes& frame, const How& how) { return run({frame}, how).front(); }

  std::uint64_t metric(std::string_view name) const { return metric_of(*element_, name); }

 private:
  void hand_to_kernel() {
    for (engine::Row& row : frames_.rows()) row.fate = engine::Fate::to_host;
  }

  device::Gpu* const gpu_;
  std::shared_ptr<engine::Element> element_;
  TrialBatch frames_;
  engine::Batch& batch_ = frames_.batch();
  How how_;
  engine::LaneCounters counters_;
  engine::Emitter emitter_{{}, 0, counters_, nullptr};
};

// The first GPU, for the trials that are made as long as it lives.
struct GpuForTest {
  GpuForTest() : why(test::why_no_gpu()) {
    if (!why.empty()) return;
    auto opened = device::Gpu::open(0, 2);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().message);
    if (opened) gpu = std::move(*opened);
    SrtpTrial::on = gpu.get();
  }
  ~GpuForTest() { SrtpTrial::on = nullptr; }
  GpuForTest(const GpuForTest&) = delete;
  explicit operator bool() const { return gpu != nullptr; }
  const std::string why;
  std::unique_ptr<device::Gpu> gpu;
};

// Tests that run on a CPU core and on a GPU.
class SrtpOn : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cpu") return;
    gpu_.emplace();
    if (!*gpu_) GTEST_SKIP() << gpu_->why;
  }

 private:
  std::optional<GpuForTest> gpu_;
};

}  // namespace sluice::function
