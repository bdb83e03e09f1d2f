#include "function/inspect/inspect_lane.h"

#include <algorithm>

namespace sluice::function {
namespace {

// The flow table is gone through in so many steps of a millisecond.
constexpr std::uint32_t sweep_steps = 4096;
// Of a batch's time, for a frame that is in no batch.
constexpr std::uint64_t transit_share = 64;

// Connections that spoke HTTP and are parsed no further; those that went on to other protocols are none.
std::uint64_t stopped_by_contents(const flow::http::Counters& http) {
  using flow::http::StopReason;
  std::uint64_t sum = 0;
  for (const StopReason reason : {StopReason::header_too_long, StopReason::gap, StopReason::bad_chunk}) {
    sum += http.stopped[static_cast<std::size_t>(reason)];
  }
  return sum;
}

std::uint64_t wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

FrameClock::FrameClock() : wall_(wall_clock()), start_(std::chrono::steady_clock::now()) {
  // net_pcap writes microseconds there, and sets the flag.
  const int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
  const int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
  if (field < 0 || flag < 0) return;
  offset_ = field;
  stamped_ = RTE_BIT64(flag);
}

std::uint64_t FrameClock::now() const {
  const auto passed = std::chrono::steady_clock::now() - start_;
  return wall_ + static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
}

const std::array<engine::Figure, InspectLane::figure_count> InspectLane::figure_texts = {{
    {"inspect_frames", "frames inspected"},
    {"inspect_not_ip", "of these, frames that are no IP, which no rule sees"},
    {"inspect_candidates", "rules whose best pattern was found, or that have none, and that were confirmed or not"},
    {"inspect_alerts", "alerts"},
    {"inspect_left", "candidates that the budget did not reach, or that were given up"},
    {"inspect_given_up", "of these, candidates whose payload checks took too long, or a limit of regular expressions"},
    {"inspect_overloaded_frames", "frames with such candidates"},
    {"inspect_without_flow", "frames inspected by themselves because the flow table had no room"},
    {"inspect_searched_bytes", "bytes that cores searched themselves"},
    {"inspect_flows_made", "conversations that began"},
    {"inspect_flows_evicted", "conversations ended to make room for others"},
    {"inspect_stream_gaps", "places in TCP streams where bytes are missing for good"},
    {"inspect_stream_conflicts", "TCP segments that overlap earlier ones with other bytes"},
    {"inspect_streams_refused", "TCP conversations that no memory was left to put together"},
    {"inspect_bad_sequence", "TCP packets that do not fit their conversation"},
    {"inspect_stream_not_taken",
     "TCP packets inspected by themselves besides, for their stream did not take them whole"},
    {"inspect_stream_too_far", "of these, TCP segments too far ahead"},
    {"inspect_stream_not_held", "of these, TCP segments without memory to wait in"},
    {"inspect_stream_not_compared", "TCP segments sent again whose first bytes were not kept, for want of memory"},
    {"inspect_stream_depth_reached", "directions of TCP conversations that are put together no further"},
    {"inspect_stream_history_lost", "pieces of TCP streams without memory to be looked at with the next ones"},
    {"inspect_http_connections", "TCP conversations looked at as HTTP"},
    {"inspect_http_transactions", "HTTP transactions"},
    {"inspect_http_no_memory", "TCP conversations looked at as HTTP no further, for want of memory"},
    {"inspect_http_evicted", "TCP conversations looked at as HTTP no further, to make room for others"},
    {"inspect_http_stopped", "HTTP conversations looked at no further, for what they brought"},
    {"inspect_http_unanswered", "HTTP requests given up because too many waited for answers"},
    {"inspect_http_bodies_cut", "HTTP bodies not looked at whole: longer than the limit, or decoded to too much"},
    {"inspect_http_bodies_lost", "HTTP bodies cut short for want of memory"},
    {"inspect_fragments", "fragments of IP datagrams"},
    {"inspect_fragments_datagrams", "datagrams put together from fragments, and inspected whole"},
    {"inspect_fragments_refused",
     "of the fragments, those left to on_overload because their datagram cannot be inspected"},
    {"inspect_fragments_malformed", "of these, fragments that no host takes"},
    {"inspect_fragments_conflicts", "of these, fragments that do not fit to others of their datagram"},
    {"inspect_fragments_no_memory", "datagrams in fragments that no memory was left to put together"},
    {"inspect_fragments_incomplete", "datagrams of which fragments were missing when their time was over"},
    {"inspect_threshold_no_alert", "matches whose action was taken without an alert, by a threshold"},
    {"inspect_threshold_no_effect", "matches without effect, by a threshold or detection_filter"},
    {"inspect_threshold_evicted", "counts of thresholds lost within their period, for want of room"},
    {"inspect_unique_on_evicted", "sets of ports (unique_on) lost likewise"},
    {"inspect_alerts_filtered", "matches whose alert a line of suppress or event_filter keeps back"},
    {"inspect_untold", "senders that a rule of rejectboth could not tell, while the receiver was told"},
    {"inspect_flows", "conversations under way", 0, false},
}};

InspectLane::InspectLane(std::unique_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertLane& sink,
                         const FrameClock& clock, std::uint64_t ticks)
    : sink_(sink), inspection_(std::move(search), settings, sink), clock_(clock), ticks_(ticks) {}

InspectLane::~InspectLane() {
  delete offered_.load();
  take_back();
}

void InspectLane::begin(std::uint64_t tsc) {
  tsc_ = tsc;
  now_ = clock_.now();
  look_for_rules();
  flow::FlowTable& table = inspection_.conversations().table();
  if (const std::uint64_t ms = now_ / 1000; ms != swept_) {
    swept_ = ms;
    table.sweep(inspection_.now() / 1000, std::max(1U, table.capacity() / sweep_steps));
    inspection_.fragments().expire(inspection_.now() / 1000);
  }
}

void InspectLane::look_for_rules() {
  if (offered_.load(std::memory_order_relaxed) == nullptr) return;
  std::unique_ptr<InspectionSearch> next(offered_.exchange(nullptr, std::memory_order_acquire));
  InspectionSearch* const old = inspection_.exchange(std::move(next)).release();
  old->next = left_.load(std::memory_order_relaxed);
  while (!left_.compare_exchange_weak(old->next, old, std::memory_order_release)) {
  }
}

const Judgement& InspectLane::judge(const engine::Batch& batch, std::uint32_t i, const KeyHits& hits,
                                    std::uint32_t hash, std::uint64_t tsc) {
  if (tsc != tsc_) begin(tsc);
  if (batch.ticket != batch_ || batch.lane != batch_lane_) {
    batch_ = batch.ticket;
    batch_lane_ = batch.lane;
    inspection_.begin(ticks_, batch.count);
    sink_.set_port(batch.segment[0].rx_port);
  }
  inspection_.next(batch.count - i);
  return inspection_.frame(bytes_of(batch, i), clock_.of(*batch.mbuf[i], now_), hits, hash);
}

const Judgement& InspectLane::judge_transit(std::string_view frame, std::uint64_t tsc) {
  begin(tsc);
  inspection_.begin(ticks_ == match::Detector::unlimited ? ticks_ : ticks_ / transit_share);
  batch_ = ~std::uint64_t{0};
  return inspection_.frame(frame, now_);
}

void InspectLane::publish() {
  const InspectionCounters& counted = inspection_.counters();
  flow::Conversations& conversations = inspection_.conversations();
  const flow::FlowCounters& flows = conversations.table().counters();
  const flow::StreamCounters& streams = conversations.stream_counters();
  const flow::http::Counters& http = conversations.http_counters();
  const flow::FragmentCounters& fragments = inspection_.fragments().counters();
  const match::RateCounters& rates = inspection_.rate_counters();
  const std::uint64_t values[] = {counted.frames,
                                  counted.not_ip,
                                  counted.confirmed,
                                  counted.alerts,
                                  counted.left,
                                  counted.given_up,
                                  counted.overloaded,
                                  counted.no_flow,
                                  counted.searched,
                                  flows.made,
                                  flows.evicted_closed + flows.evicted_new + flows.evicted_idle,
                                  streams.gaps,
                                  streams.conflicts + conversations.behind_reset(),
                                  conversations.extras_refused(),
                                  flows.bad_sequence,
                                  streams.not_taken,
                                  streams.too_far,
                                  streams.not_held,
                                  streams.not_compared,
                                  streams.depth_reached,
                                  streams.history_lost,
                                  http.connections,
                                  http.transactions,
                                  http.stopped[static_cast<std::size_t>(flow::http::StopReason::no_memory)],
                                  http.stopped[static_cast<std::size_t>(flow::http::StopReason::evicted)],
                                  stopped_by_contents(http),
                                  http.unanswered,
                                  http.bodies_truncated + http.bombs,
                                  http.bodies_lost,
                                  fragments.fragments,
                                  fragments.whole,
                                  fragments.refused,
                                  fragments.malformed,
                                  fragments.conflicts,
                                  fragments.no_memory,
                                  fragments.incomplete,
                                  rates.action_only,
                                  rates.nothing,
                                  rates.evicted + inspection_.event_filter_counters().evicted,
                                  rates.sets_evicted,
                                  inspection_.alerts_filtered(),
                                  untold_,
                                  conversations.table().in_use()};
  static_assert(std::size(values) == figure_count);
  for (std::size_t f = 0; f < figure_count; ++f) figures_[f].set(values[f]);
}

void InspectLane::offer(std::unique_ptr<InspectionSearch> search) {
  delete offered_.exchange(search.release(), std::memory_order_acq_rel);
}

bool InspectLane::take_back() {
  const bool taken = offered_.load(std::memory_order_acquire) == nullptr;
  for (InspectionSearch* left = left_.exchange(nullptr, std::memory_order_acquire); left != nullptr;) {
    delete std::exchange(left, left->next);
  }
  return taken;
}

void InspectLane::finish() {
  inspection_.begin(match::Detector::unlimited);
  inspection_.finish();
  publish();
}

}  // namespace sluice::function
