// For tests of the element "ipsec": frames through both of its passes as the engine does it, on a core or on a GPU.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "device/gpu.h"
#include "engine/element.h"
#include "engine/emitter.h"
#include "engine/pipeline.h"
#include "engine/port_table.h"
#include "engine/traits.h"
#include "function/ipsec/ipsec.h"
#include "function/trial_batch_test.h"
#include "packet/builder.h"

namespace sluice::function::test {

using packet::Bytes;

inline std::unique_ptr<engine::Element> ipsec_of(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "a.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  const engine::PortTable ports({{.name = "lan", .mac = {}},
                                 {.name = "wan", .mac = {}},
                                 {.name = "vx", .mac = {}, .mtu = 1400, .is_virtual = true}});
  Settings section = file->section("ipsec");
  auto element = engine::find_element("ipsec")->make(section, ports);
  section.finish();
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return element ? std::move(*element) : nullptr;
}

struct Judged {
  engine::Fate fate = engine::Fate::goes_on;
  packet::Reason reason = packet::no_reason;  // of a frame that is dropped
  Bytes frame;
  std::string name() const {
    return fate != engine::Fate::dropped ? "passes" : std::string(packet::reason_name(reason));
  }
};

// An element with a batch for each of its passes.
class IpsecTrial {
 public:
  static constexpr std::uint32_t capacity = 512, headroom = 128, frame_bytes = 2048, buffer = headroom + frame_bytes;

  // What becomes of the device's work on a batch.
  enum class Work : std::uint8_t { done, lost, null };

  // `gpu`: on which it computes; null: on the core. `behind`: the elements behind it; null: none.
  explicit IpsecTrial(const std::string& text, device::Gpu* gpu = nullptr, engine::Pipeline* behind = nullptr)
      : gpu_(gpu), element_(ipsec_of(text)) {
    const auto ok = element_->prepare({.lanes = 1, .ports = {0}, .pipeline = behind});
    EXPECT_TRUE(ok) << (ok ? "" : ok.error().message);
    for (auto& pass : passes_) {
      pass = std::make_unique<TrialBatch>(gpu_, element_->shape().bytes_per_frame, capacity, buffer);
    }
    if (gpu_ == nullptr) return;
    const auto attached = element_->attach(*gpu_, {1, 2, capacity, frame_bytes});
    EXPECT_TRUE(attached) << (attached ? "" : attached.error().message);
  }
  IpsecTrial(const IpsecTrial&) = delete;

  // Frames that are about to leave by port 1, or that the router has decided on otherwise: as they leave then, in their
  // order.
  std::vector<Judged> seal(const std::vector<Bytes>& frames, Work work = Work::done, std::uint16_t came_from = 0,
                           engine::Row decided = {engine::Fate::sent, packet::no_reason, 1}) {
    TrialBatch& routed_frames = fill(0, frames);
    TrialBatch& departing_frames = fill(1, {});
    engine::Batch &routed = routed_frames.batch(), &departs = departing_frames.batch();
    std::ranges::fill(routed_frames.rows(), decided);
    const std::vector<std::uint16_t> came_by(frames.size(), came_from);
    for (const engine::Span span : spans(routed.count)) {
      element().choose(routed, span, came_by.data(), emitter_);
      const std::uint32_t first = departs.count;
      for (std::uint32_t i = span.first; i < span.end(); ++i) {
        if (routed.row[i].fate == engine::Fate::later) departing_frames.add(routed_frames.frame(i), headroom, 1);
      }
      const std::uint32_t chosen = departs.count - first;
      if (chosen != 0) element_->classify(departs, {first, chosen});
    }
    if (departs.count != 0) {
      compute(departs, work);
      element_->apply(departs, {0, departs.count}, emitter_);
    }
    std::vector<Judged> all;
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < routed.count; ++i) {
      const bool left = routed.row[i].fate == engine::Fate::later;
      all.push_back(left ? judge(departing_frames, next++) : judge(routed_frames, i));
    }
    EXPECT_EQ(next, departs.count);
    return all;
  }
  // Frames that have come by port 0.
  std::vector<Judged> open(const std::vector<Bytes>& frames, Work work = Work::done) {
    TrialBatch& pass = fill(0, frames);
    engine::Batch& batch = pass.batch();
    for (const engine::Span span : spans(batch.count)) element().admit(batch, span);
    for (const engine::Span span : spans(batch.count)) element_->classify(batch, span);
    compute(batch, work);
    element_->apply(batch, {0, batch.count}, emitter_);
    std::vector<Judged> all;
    for (std::uint32_t i = 0; i < batch.count; ++i) all.push_back(judge(pass, i));
    return all;
  }
  // Whether what an element makes of `frame`, which the router has sent by port 2, a virtual one, leaves by port 1.
  bool leaves_wrapped(const Bytes& frame, const Bytes& wrapped) {
    engine::Batch& routed = fill(0, {frame}).batch();
    routed.row[0] = {engine::Fate::sent, packet::no_reason, 2};
    const std::uint16_t came_by = 0;
    element().choose(routed, {0, 1}, &came_by, emitter_);
    EXPECT_EQ(routed.row[0].fate, engine::Fate::sent);
    rte_mbuf* one = routed.mbuf[0];
    std::ranges::copy(wrapped, rte_pktmbuf_mtod(one, std::uint8_t*));
    one->data_len = static_cast<std::uint16_t>(wrapped.size());
    one->pkt_len = one->data_len;
    return element().leave(0, 1, &one, 1, emitter_) == 1;
  }

  Ipsec& element() { return static_cast<Ipsec&>(*element_); }
  std::uint64_t metric(std::string_view name) const { return metric_of(*element_, name); }

 private:
  static std::vector<engine::Span> spans(std::uint32_t count) {
    std::vector<engine::Span> all;
    for (std::uint32_t first = 0; first < count; first += engine::most_classified) {
      all.push_back({first, std::min<std::uint32_t>(count - first, engine::most_classified)});
    }
    return all;
  }

  TrialBatch& fill(std::size_t index, const std::vector<Bytes>& frames) {
    TrialBatch& pass = *passes_[index];
    pass.clear();
    pass.batch().departs = index == 1;
    pass.batch().pass = index == 1 ? 2 : 0;
    for (const Bytes& frame : frames) pass.add(frame, headroom, 0);
    return pass;
  }

  void compute(engine::Batch& batch, Work work) {
    if (work == Work::null) return element().null_result(batch);
    if (work == Work::lost) element().lost(batch);
    if (gpu_ == nullptr || work == Work::lost || !element().needs_device(batch))
      return element_->compute(batch, {0, batch.count});
    const auto begun = element().begin_cycle(0, gpu_->stream(0));
    EXPECT_TRUE(begun) << (begun ? "" : begun.error().message);
    launch(*element_, batch, *gpu_);
  }

  static Judged judge(TrialBatch& pass, std::uint32_t i) {
    const engine::Row& row = pass.rows()[i];
    return {row.fate, row.reason, pass.frame(i)};
  }

  device::Gpu* const gpu_;
  std::unique_ptr<engine::Element> element_;
  std::unique_ptr<TrialBatch> passes_[2];
  engine::LaneCounters counters_;
  engine::Emitter emitter_{std::vector<port::Port*>(3), 0, counters_, nullptr};
};

}  // namespace sluice::function::test
