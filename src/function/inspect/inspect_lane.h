// What one lane thread has for inspection: its conversations, its side of the rules, its clock and budget, its
// counters.
//
// Threads: all calls are the lane thread's, but publish_rules() and reclaim(), of the thread that reloads, metric() and
// its like, of any, and finish(), of the control thread once lanes have ended.
#pragma once

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "base/published.h"
#include "engine/batch.h"
#include "engine/counters.h"
#include "engine/traits.h"
#include "flow/plain_packet.h"
#include "function/inspect/alert_log.h"
#include "function/inspect/batch_budget.h"
#include "function/inspect/capture_time.h"
#include "function/inspect/http_capacity_notes.h"
#include "function/inspect/inspection.h"

namespace sluice::function {

// What a capture's driver stamps a frame with, microseconds since the epoch: libpcap takes the seconds of a pcap file,
// which have 32 bits, for signed, so that times from January 2038 on come as times before 1970.
constexpr std::uint64_t time_of_stamp(std::uint64_t stamp) {
  constexpr std::uint64_t seconds = std::uint64_t{1} << 32, microseconds = 1'000'000;
  return static_cast<std::int64_t>(stamp) < 0 ? stamp + seconds * microseconds : stamp;
}

// What drivers mark frames with that bring a time: net_pcap's.
struct FrameStamps {
  static FrameStamps of_drivers();  // as they have registered until now
  std::uint64_t flag = 0;           // of rte_mbuf::ol_flags; 0: no driver stamps frames
  int offset = -1;                  // of the time
};

// The clock of frames: the wall clock's time at the start, and what has passed since; of a frame that a capture
// brought, the capture's. Microseconds since the epoch.
class FrameClock {
 public:
  // Ports are open: what they mark frames with is known.
  explicit FrameClock(const FrameStamps& stamps = FrameStamps::of_drivers());
  std::uint64_t now() const;
  // Where no driver stamps frames, they are not read: of a batch that has been on a device a frame's buffer is in no
  // near cache.
  bool has_stamped(const rte_mbuf& frame) const { return stamps_.flag != 0 && (frame.ol_flags & stamps_.flag) != 0; }
  std::uint64_t of(const rte_mbuf& frame, std::uint64_t now) const {
    if (!has_stamped(frame)) return now;
    return time_of_stamp(*RTE_MBUF_DYNFIELD(&frame, stamps_.offset, const std::uint64_t*));
  }

 private:
  std::uint64_t wall_;
  std::chrono::steady_clock::time_point start_;
  FrameStamps stamps_;
};

class InspectLane {
 public:
  // `budget`: for confirming what a batch brings. `ticks`: by which it sees how long that, and what comes between
  // batches, has taken.
  InspectLane(std::shared_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertLane& sink,
              const FrameClock& clock, const BatchBudget& budget, std::uint64_t (*ticks)() = rte_rdtsc);
  InspectLane(const InspectLane&) = delete;
  InspectLane& operator=(const InspectLane&) = delete;

  void touch_memory() { inspection_.touch_memory(); }

  // What judge() wants to know of a frame.
  FrameBrief brief_of(std::string_view frame) const { return inspection_.brief_of(frame); }
  // Before judge(), some frames ahead: the frame's headers, and more of it unless it is `updates_flow_only`, and the
  // table's index, then its flow.
  void prefetch(const engine::Batch& batch, std::uint32_t i, std::uint32_t hash, bool updates_flow_only) {
    const auto* const frame = reinterpret_cast<const char*>(batch.frame[i]);
    sluice::prefetch(frame);
    if (!updates_flow_only) sluice::prefetch(frame + 64);
    inspection_.conversations().table().prefetch(hash);
  }
  void prefetch_flow(std::uint32_t hash) { inspection_.conversations().table().prefetch_flow(hash); }
  // Then, of a TCP flow that is put together, its record and the frame's payload, and last where that is copied to.
  void prefetch_stream(const engine::Batch& batch, std::uint32_t i, std::uint32_t hash, match::Span payload) {
    inspection_.conversations().prefetch_stream(hash,
                                                bytes_of(batch, i).substr(payload.begin, payload.end - payload.begin));
  }
  void prefetch_history(const engine::Batch& batch, std::uint32_t i, std::uint32_t hash, match::Span payload) {
    if (payload.begin == payload.end) return;
    inspection_.conversations().prefetch_history(hash, flow::plain_source_port(bytes_of(batch, i)),
                                                 payload.end - payload.begin);
  }
  // `hash`: by brief_of(). `tsc`: of the call that judges, the same for all its frames.
  const Judgement& judge(const engine::Batch& batch, std::uint32_t i, const KeyHits& hits, std::uint32_t hash,
                         std::uint64_t tsc) {
    if (tsc != tsc_) begin(tsc);
    if (batch.ticket != batch_ || batch.lane != batch_lane_) [[unlikely]] {
      begin_batch(batch, tsc);
    }
    sink_.set_port(batch.row[i].port);  // the lane's, or a tunnel's
    inspection_.next(batch.count - i);
    goes_by_ = !clock_.has_stamped(*batch.mbuf[i]);
    const std::uint64_t time = goes_by_ ? now_ : captured_.of(clock_.of(*batch.mbuf[i], now_));
    return inspection_.frame(bytes_of(batch, i), time, hits, hash);
  }
  const Judgement& last() const { return inspection_.last(); }
  const InspectionRules& rules() const { return inspection_.rules(); }
  // Of the two ends that a rule of rejectboth names, the sender could not be notified.
  void note_unnotified() { ++unnotified_; }
  // All frames of the batch have been judged, or dropped by others.
  void judged();
  // There is nothing to judge: what is due as time goes by is done. While captures are read time does not go by.
  void idle(std::uint64_t tsc);
  // Ticks that confirming took in it.
  std::uint64_t confirming_took() const { return spent_; }
  void publish();

  // In force from the end of the batch that is judged, or when the lane is idle.
  void publish_rules(std::shared_ptr<InspectionSearch> search) { searches_.publish(std::move(search)); }
  // Frees what the thread has left; how many are left to be freed, 0: it judges by those that were published last.
  std::size_t reclaim() { return searches_.reclaim(); }

  void finish();

  // Their names and texts, and what they are as of the last publish().
  static const std::size_t metric_count;
  static engine::Metric metric_text(std::size_t which);
  std::uint64_t metric(std::size_t which) const { return metrics_[which].get(); }
  // Conversations of HTTP that went beyond a flow::http::Limit, likewise.
  std::uint64_t limited(std::size_t which) const { return limited_[which].get(); }
  // The metric inspect_streams_refused, likewise.
  std::uint64_t streams_refused() const { return streams_refused_.get(); }
  // By HttpCapacityNotes::What, likewise.
  std::uint64_t http_without_capacity(std::size_t what) const { return http_without_capacity_[what].get(); }

 private:
  static std::string_view bytes_of(const engine::Batch& batch, std::uint32_t i) {
    return {reinterpret_cast<const char*>(batch.frame[i]), batch.length[i]};
  }
  void begin(std::uint64_t tsc);
  std::uint64_t between_batches();
  void begin_between();
  void begin_batch(const engine::Batch& batch, std::uint64_t tsc);
  bool look_for_rules();
  bool sweep();

  AlertLane& sink_;
  // Its readers: the thread with the rules in force, and, for as long as it takes their counts over, with the next.
  Published<InspectionSearch> searches_{2};
  std::size_t reader_ = 0;  // with the rules in force
  InspectionSearch* search_;
  Inspection inspection_;
  const FrameClock& clock_;
  BatchBudget budget_;
  std::uint64_t (*const ticks_)();
  const std::uint64_t stall_ticks_ = rte_get_tsc_hz() / 2000;  // 500 us: a frame takes 250 at most, besides confirming
  std::uint64_t tsc_ = 0, now_ = 0;
  CaptureTime captured_;
  bool goes_by_ = false;     // time does, without frames: the last one had its time from the clock
  std::uint64_t spent_ = 0;  // confirming in the last batch
  static constexpr std::uint64_t no_batch = ~std::uint64_t{0};
  std::uint64_t batch_ = no_batch;  // ticket of the batch that is judged
  std::uint32_t batch_lane_ = 0;
  std::uint64_t swept_ = 0;  // milliseconds
  std::uint64_t unnotified_ = 0;
  std::vector<engine::Counter> metrics_;
  std::array<engine::Counter, flow::http::limits> limited_;
  engine::Counter streams_refused_;
  std::array<engine::Counter, std::tuple_size_v<HttpCapacityNotes::Counts>> http_without_capacity_;
};

}  // namespace sluice::function
