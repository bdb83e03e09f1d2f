// For tests of the element "ipsec": frames through both of its passes as the engine does it, on a core or on a GPU.
#pragma once

#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstdlib>
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
    for (Pass& pass : passes_) {
      pass.area = static_cast<std::byte*>(allocate(std::size_t{capacity} * element_->shape().bytes_per_frame));
      pass.buffers = static_cast<std::uint8_t*>(allocate(std::size_t{capacity} * buffer));
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
    Pass& routed = fill(0, frames);
    Pass& departs = fill(1, {});
    for (engine::Row& row : routed.rows) row = decided;
    const std::vector<std::uint16_t> came_by(frames.size(), came_from);
    for (const engine::Span span : spans(routed.batch.count)) {
      element().choose(routed.batch, span, came_by.data(), emitter_);
      const std::uint32_t first = departs.batch.count;
      for (std::uint32_t i = span.first; i < span.end(); ++i) {
        if (routed.rows[i].fate == engine::Fate::later) add(departs, bytes_of(routed.batch, i), 1);
      }
      const std::uint32_t chosen = departs.batch.count - first;
      if (chosen != 0) element_->classify(departs.batch, {first, chosen});
    }
    if (departs.batch.count != 0) {
      compute(departs.batch, work);
      element_->apply(departs.batch, {0, departs.batch.count}, emitter_);
    }
    std::vector<Judged> all;
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < routed.batch.count; ++i) {
      const bool left = routed.rows[i].fate == engine::Fate::later;
      all.push_back(left ? judge(departs.batch, next++) : judge(routed.batch, i));
    }
    EXPECT_EQ(next, departs.batch.count);
    return all;
  }
  // Frames that have come by port 0.
  std::vector<Judged> open(const std::vector<Bytes>& frames, Work work = Work::done) {
    Pass& pass = fill(0, frames);
    for (const engine::Span span : spans(pass.batch.count)) element().admit(pass.batch, span);
    for (const engine::Span span : spans(pass.batch.count)) element_->classify(pass.batch, span);
    compute(pass.batch, work);
    element_->apply(pass.batch, {0, pass.batch.count}, emitter_);
    std::vector<Judged> all;
    for (std::uint32_t i = 0; i < pass.batch.count; ++i) all.push_back(judge(pass.batch, i));
    return all;
  }
  // Whether what an element makes of `frame`, which the router has sent by port 2, a virtual one, leaves by port 1.
  bool leaves_wrapped(const Bytes& frame, const Bytes& wrapped) {
    Pass& routed = fill(0, {frame});
    routed.rows[0] = {engine::Fate::sent, packet::no_reason, 2};
    const std::uint16_t came_by = 0;
    element().choose(routed.batch, {0, 1}, &came_by, emitter_);
    EXPECT_EQ(routed.rows[0].fate, engine::Fate::sent);
    rte_mbuf* one = routed.pointers[0];
    std::ranges::copy(wrapped, rte_pktmbuf_mtod(one, std::uint8_t*));
    one->data_len = static_cast<std::uint16_t>(wrapped.size());
    one->pkt_len = one->data_len;
    return element().leave(0, 1, &one, 1, emitter_) == 1;
  }

  Ipsec& element() { return static_cast<Ipsec&>(*element_); }
  std::uint64_t metric(std::string_view name) const {
    for (const engine::Metric& metric : element_->trait<engine::Metrics>()->metrics()) {
      if (metric.name == name) return metric.value;
    }
    ADD_FAILURE() << name;
    return 0;
  }

 private:
  struct Pass {
    std::byte* area = nullptr;
    std::uint8_t* buffers = nullptr;
    std::vector<rte_mbuf> mbufs;
    std::vector<rte_mbuf*> pointers;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint16_t> lengths;
    std::vector<engine::Row> rows;
    engine::Batch batch;
  };

  static std::vector<engine::Span> spans(std::uint32_t count) {
    std::vector<engine::Span> all;
    for (std::uint32_t first = 0; first < count; first += engine::most_classified) {
      all.push_back({first, std::min<std::uint32_t>(count - first, engine::most_classified)});
    }
    return all;
  }

  Pass& fill(std::size_t index, const std::vector<Bytes>& frames) {
    Pass& pass = passes_[index];
    pass.mbufs.assign(capacity, rte_mbuf{});
    pass.pointers.resize(capacity);
    pass.addresses.resize(capacity);
    pass.lengths.resize(capacity);
    pass.rows.resize(capacity);
    engine::Batch& batch = pass.batch;
    batch.frame = pass.addresses.data();
    batch.length = pass.lengths.data();
    batch.mbuf = pass.pointers.data();
    batch.row = pass.rows.data();
    batch.area[0] = pass.area;
    batch.capacity = capacity;
    batch.count = 0;
    batch.departs = index == 1;
    batch.pass = index == 1 ? 2 : 0;
    for (const Bytes& frame : frames) add(pass, frame, 0);
    return pass;
  }
  static void add(Pass& pass, const Bytes& frame, std::uint16_t port) {
    ASSERT_LT(pass.batch.count, capacity);
    const std::uint32_t i = pass.batch.count++;
    rte_mbuf& mbuf = pass.mbufs[i];
    mbuf.buf_addr = pass.buffers + std::size_t{i} * buffer;
    mbuf.buf_len = buffer;
    mbuf.data_off = headroom;
    mbuf.nb_segs = 1;
    mbuf.data_len = pass.lengths[i] = static_cast<std::uint16_t>(frame.size());
    mbuf.pkt_len = mbuf.data_len;
    std::ranges::copy(frame, pass.buffers + std::size_t{i} * buffer + headroom);
    pass.pointers[i] = &mbuf;
    pass.addresses[i] = reinterpret_cast<std::uint64_t>(pass.buffers + std::size_t{i} * buffer + headroom);
    pass.rows[i] = {engine::Fate::goes_on, packet::no_reason, port};
  }

  void compute(engine::Batch& batch, Work work) {
    if (work == Work::null) return element().null_result(batch);
    if (work == Work::lost) element().lost(batch);
    if (gpu_ == nullptr || work == Work::lost || !element().needs_device(batch))
      return element_->compute(batch, {0, batch.count});
    const auto begun = element().begin_cycle(0, gpu_->stream(0));
    EXPECT_TRUE(begun) << (begun ? "" : begun.error().message);
    device::GpuStream& stream = gpu_->stream(1);
    const auto launched = element_->launch(batch, stream);
    EXPECT_TRUE(launched) << (launched ? "" : launched.error().message);
    EXPECT_TRUE(stream.mark());
    device::MarkState state = device::MarkState::pending;
    while (state == device::MarkState::pending) state = stream.poll();
    EXPECT_EQ(state, device::MarkState::done) << gpu_->why();
  }

  static Bytes bytes_of(const engine::Batch& batch, std::uint32_t i) {
    return {batch.data(i), batch.data(i) + batch.length[i]};
  }
  static Judged judge(const engine::Batch& batch, std::uint32_t i) {
    return {batch.row[i].fate, batch.row[i].reason, bytes_of(batch, i)};
  }

  void* allocate(std::size_t bytes) {
    if (gpu_ != nullptr) return gpu_->allocate_host(bytes).value();
    memory_.emplace_back(std::aligned_alloc(64, (bytes + 63) / 64 * 64), std::free);
    return memory_.back().get();
  }

  device::Gpu* const gpu_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::unique_ptr<engine::Element> element_;
  Pass passes_[2];
  engine::LaneCounters counters_;
  engine::Emitter emitter_{std::vector<port::Port*>(3), 0, counters_, nullptr};
};

}  // namespace sluice::function::test
