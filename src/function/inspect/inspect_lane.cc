#include "function/inspect/inspect_lane.h"

#include <rte_cycles.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::function {
namespace {

// The flow table is gone through in so many steps of a millisecond; of those that were left out, so many are made up
// for.
constexpr std::uint32_t sweep_steps = 4096;
constexpr std::uint64_t most_steps = static_cast<std::uint64_t>(engine::longest_idle.count());
// Of a capture, whose time goes by as fast as it is read, and which has no deadline.
constexpr std::uint64_t most_steps_of_captures = 256;
// Datagrams in fragments that are forgotten in each.
constexpr std::uint32_t fragments_a_step = 64;
// Of a batch's time, for what flows report that end between batches.
constexpr std::uint64_t share_between = 64;

std::uint64_t wall_clock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

std::uint64_t microseconds(std::uint64_t ticks) {
  return ticks / (rte_get_tsc_hz() / 1'000'000);
}

using flow::http::StopReason;

std::uint64_t stopped(const flow::http::Counters& http, StopReason reason) {
  return http.stopped[static_cast<std::size_t>(reason)];
}

// Connections that spoke HTTP and are parsed no further; those that went on to other protocols are none.
std::uint64_t stopped_by_contents(const flow::http::Counters& http) {
  return stopped(http, StopReason::header_too_long) + stopped(http, StopReason::gap) +
         stopped(http, StopReason::bad_chunk);
}

// Lives as long as it is pinned.
std::shared_ptr<InspectionSearch> pinned(InspectionSearch* search) {
  return {std::shared_ptr<void>(), search};
}

// All that a lane counts.
struct Counted {
  Counted(Inspection& inspection, const BatchBudget& budget, std::uint64_t senders_unnotified)
      : inspection(inspection),
        budget(budget),
        conversations(inspection.conversations()),
        unnotified(senders_unnotified) {}

  Inspection& inspection;
  const BatchBudget& budget;
  flow::Conversations& conversations;
  const std::uint64_t unnotified;
  const InspectionCounters& counted = inspection.counters();
  const flow::FlowCounters& flows = conversations.table().counters();
  const flow::StreamCounters& streams = conversations.stream_counters();
  const flow::http::Counters& http = conversations.http_counters();
  const flow::FragmentCounters& fragments = inspection.fragments().counters();
  const match::RateCounters& rates = inspection.rate_counters();
  const match::RateCounters& event_filters = inspection.event_filter_counters();
};

struct Row {
  engine::Metric metric;
  std::uint64_t (*value)(const Counted& c);
};

constexpr Row rows[] = {
    {{"inspect_frames", "frames inspected"}, [](const Counted& c) -> std::uint64_t { return c.counted.frames; }},
    {{"inspect_not_ip", "of these, frames that are no IP, which no rule sees"},
     [](const Counted& c) -> std::uint64_t { return c.counted.not_ip; }},
    {{"inspect_in_tunnels", "packets in tunnels, inspected besides the frames that carry them"},
     [](const Counted& c) -> std::uint64_t { return c.counted.in_tunnels; }},
    {{"inspect_prefilter_matches",
      "rules whose best pattern was found, or that have none, and that were confirmed or not"},
     [](const Counted& c) -> std::uint64_t { return c.counted.confirmed; }},
    {{"inspect_alerts", "alerts"}, [](const Counted& c) -> std::uint64_t { return c.counted.alerts; }},
    {{"inspect_left", "prefilter matches that the budget did not reach, or that were given up"},
     [](const Counted& c) -> std::uint64_t { return c.counted.left; }},
    {{"inspect_given_up",
      "of these, prefilter matches whose payload checks took too long, or a limit of regular expressions"},
     [](const Counted& c) -> std::uint64_t { return c.counted.given_up; }},
    {{"inspect_long_steps",
      "searches and confirmings of 500 us or more at once: nearly always the machine did not run the thread"},
     [](const Counted& c) -> std::uint64_t { return c.inspection.long_steps().times; }},
    {{"inspect_long_steps_us", "what these took together, in microseconds"},
     [](const Counted& c) -> std::uint64_t { return microseconds(c.inspection.long_steps().ticks); }},
    {{"inspect_long_batches",
      "batches whose frames took 500 us or more besides that, and four times what such frames do: mostly likewise"},
     [](const Counted& c) -> std::uint64_t { return c.budget.long_batches().times; }},
    {{"inspect_long_batches_us", "what these took together, besides that, in microseconds"},
     [](const Counted& c) -> std::uint64_t { return microseconds(c.budget.long_batches().ticks); }},
    {{"inspect_releases_left",
      "frames, and ends of other flows, that release more of a TCP stream than there was time to hand over"},
     [](const Counted& c) -> std::uint64_t { return c.counted.releases_left; }},
    {{"inspect_http_left", "frames of HTTP that were not parsed, for their batch was late"},
     [](const Counted& c) -> std::uint64_t { return c.counted.http_left; }},
    {{"inspect_searches_refused", "searches of cores that Hyperscan refused"},
     [](const Counted& c) -> std::uint64_t { return c.counted.refused; }},
    {{"inspect_overloaded_frames", "such frames, and those with prefilter matches that were left"},
     [](const Counted& c) -> std::uint64_t { return c.counted.overloaded; }},
    {{"inspect_without_flow", "frames inspected by themselves because the flow table had no capacity"},
     [](const Counted& c) -> std::uint64_t { return c.counted.no_flow; }},
    {{"inspect_searched_bytes", "bytes that cores searched themselves"},
     [](const Counted& c) -> std::uint64_t { return c.counted.searched; }},
    {{"inspect_by_device", "frames whose payload a device has searched, by the rules that judge them"},
     [](const Counted& c) -> std::uint64_t { return c.counted.by_device; }},
    {{"inspect_many_keys", "frames of which the device has found more keys than it reports, for a core to search"},
     [](const Counted& c) -> std::uint64_t { return c.counted.many_keys; }},
    {{"inspect_flows_made", "conversations that began"},
     [](const Counted& c) -> std::uint64_t { return c.flows.made; }},
    {{"inspect_flows_evicted", "conversations ended to give way to others"},
     [](const Counted& c) -> std::uint64_t {
       return c.flows.evicted_closed + c.flows.evicted_new + c.flows.evicted_idle;
     }},
    {{"inspect_flows_expired", "conversations ended because they were silent"},
     [](const Counted& c) -> std::uint64_t { return c.flows.expired; }},
    {{"inspect_without_session", "TCP packets with data of conversations not seen to begin, or silent for too long"},
     [](const Counted& c) -> std::uint64_t { return c.conversations.without_session(); }},
    {{"inspect_stream_gaps", "places in TCP streams where bytes are missing for good"},
     [](const Counted& c) -> std::uint64_t { return c.streams.gaps; }},
    {{"inspect_stream_conflicts", "TCP segments that overlap earlier ones with other bytes"},
     [](const Counted& c) -> std::uint64_t { return c.streams.conflicts + c.conversations.behind_reset(); }},
    {{"inspect_streams_refused", "TCP conversations that no memory was left to put together"},
     [](const Counted& c) -> std::uint64_t { return c.conversations.extras_refused(); }},
    {{"inspect_bad_sequence", "TCP packets that do not fit their conversation"},
     [](const Counted& c) -> std::uint64_t { return c.flows.bad_sequence; }},
    {{"inspect_stream_not_taken",
      "TCP packets inspected by themselves besides, for their stream did not take them whole"},
     [](const Counted& c) -> std::uint64_t { return c.streams.not_taken; }},
    {{"inspect_stream_too_far", "of these, TCP segments too far ahead"},
     [](const Counted& c) -> std::uint64_t { return c.streams.too_far; }},
    {{"inspect_stream_not_held", "of these, TCP segments without memory to wait in"},
     [](const Counted& c) -> std::uint64_t { return c.streams.not_held; }},
    {{"inspect_stream_thrown_away", "TCP segments that waited, and that there was no time for when they were released"},
     [](const Counted& c) -> std::uint64_t { return c.streams.thrown_away; }},
    {{"inspect_stream_not_compared", "TCP segments sent again whose first bytes were not kept, for want of memory"},
     [](const Counted& c) -> std::uint64_t { return c.streams.not_compared; }},
    {{"inspect_stream_depth_reached", "directions of TCP conversations that are put together no further"},
     [](const Counted& c) -> std::uint64_t { return c.streams.depth_reached; }},
    {{"inspect_stream_history_lost", "pieces of TCP streams without memory to be looked at with the next ones"},
     [](const Counted& c) -> std::uint64_t { return c.streams.history_lost; }},
    {{"inspect_http_connections", "TCP conversations looked at as HTTP"},
     [](const Counted& c) -> std::uint64_t { return c.http.connections; }},
    {{"inspect_http_transactions", "HTTP transactions"},
     [](const Counted& c) -> std::uint64_t { return c.http.transactions; }},
    {{"inspect_http_no_memory", "TCP conversations looked at as HTTP no further, for want of memory"},
     [](const Counted& c) -> std::uint64_t { return stopped(c.http, StopReason::no_memory); }},
    {{"inspect_http_evicted", "TCP conversations looked at as HTTP no further, to give way to others"},
     [](const Counted& c) -> std::uint64_t { return stopped(c.http, StopReason::evicted); }},
    {{"inspect_http_set_aside", "HTTP conversations that gave way to others between messages, and go on"},
     [](const Counted& c) -> std::uint64_t { return stopped(c.http, StopReason::set_aside); }},
    {{"inspect_http_stopped", "HTTP conversations looked at no further, for what they brought"},
     [](const Counted& c) -> std::uint64_t { return stopped_by_contents(c.http); }},
    {{"inspect_http_limited", "HTTP conversations that went beyond a limit, for on_http_limit"},
     [](const Counted& c) -> std::uint64_t {
       return std::accumulate(std::begin(c.http.limited), std::end(c.http.limited), std::uint64_t{0});
     }},
    {{"inspect_http_unanswered", "HTTP requests given up because too many waited for answers"},
     [](const Counted& c) -> std::uint64_t { return c.http.unanswered; }},
    {{"inspect_http_fields_cut", "HTTP messages with more header fields than are looked at one by one"},
     [](const Counted& c) -> std::uint64_t { return c.http.fields_truncated; }},
    {{"inspect_http_bad_chunks", "HTTP responses said to be chunked that are not: the rest was looked at as it is"},
     [](const Counted& c) -> std::uint64_t { return c.http.bad_chunks; }},
    {{"inspect_http_bodies_cut", "HTTP bodies not looked at whole: longer than the limit, or decoded to too much"},
     [](const Counted& c) -> std::uint64_t { return c.http.bodies_truncated + c.http.bombs; }},
    {{"inspect_http_bodies_lost", "HTTP bodies cut short, or not decoded, for want of memory"},
     [](const Counted& c) -> std::uint64_t { return c.http.bodies_lost; }},
    {{"inspect_http_bodies_undecoded",
      "HTTP bodies with more codings than are undone, or with an error or a gap in one"},
     [](const Counted& c) -> std::uint64_t { return c.http.bodies_undecoded; }},
    {{"inspect_fragments", "fragments of IP datagrams"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.fragments; }},
    {{"inspect_fragments_datagrams", "datagrams put together from fragments, and inspected whole"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.whole; }},
    {{"inspect_fragments_refused",
      "of the fragments, those left to on_overload because their datagram cannot be inspected"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.refused; }},
    {{"inspect_fragments_malformed", "of these, fragments that no host takes"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.malformed; }},
    {{"inspect_fragments_conflicts", "of these, fragments that do not fit to others of their datagram"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.conflicts; }},
    {{"inspect_fragments_no_memory", "datagrams in fragments that no memory was left to put together"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.no_memory; }},
    {{"inspect_fragments_incomplete", "datagrams of which fragments were missing when their time was over"},
     [](const Counted& c) -> std::uint64_t { return c.fragments.incomplete; }},
    {{"inspect_threshold_no_alert", "matches whose action was taken without an alert, by a threshold"},
     [](const Counted& c) -> std::uint64_t { return c.rates.action_only; }},
    {{"inspect_threshold_no_effect", "matches without effect, by a threshold or detection_filter"},
     [](const Counted& c) -> std::uint64_t { return c.rates.nothing; }},
    {{"inspect_threshold_evicted", "counts of thresholds lost within their period, for want of capacity"},
     [](const Counted& c) -> std::uint64_t { return c.rates.evicted + c.event_filters.evicted; }},
    {{"inspect_unique_on_evicted", "sets of ports (unique_on) lost likewise"},
     [](const Counted& c) -> std::uint64_t { return c.rates.sets_evicted; }},
    {{"inspect_alerts_filtered", "matches whose alert a line of suppress or event_filter keeps back"},
     [](const Counted& c) -> std::uint64_t { return c.inspection.alerts_filtered(); }},
    {{"inspect_unnotified", "senders that a rule of rejectboth could not notify, while the receiver was notified"},
     [](const Counted& c) -> std::uint64_t { return c.unnotified; }},
    {{"inspect_flows", "conversations under way", 0, false},
     [](const Counted& c) -> std::uint64_t { return c.conversations.table().in_use(); }},
};

}  // namespace

FrameStamps FrameStamps::of_drivers() {
  // net_pcap writes microseconds there, and sets the flag.
  const int field = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
  const int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
  if (field < 0 || flag < 0) return {};
  return {RTE_BIT64(flag), field};
}

FrameClock::FrameClock(const FrameStamps& stamps)
    : wall_(wall_clock()), start_(std::chrono::steady_clock::now()), stamps_(stamps) {}

std::uint64_t FrameClock::now() const {
  const auto passed = std::chrono::steady_clock::now() - start_;
  return wall_ + static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
}

const std::size_t InspectLane::metric_count = std::size(rows);

engine::Metric InspectLane::metric_text(std::size_t which) {
  return rows[which].metric;
}

InspectLane::InspectLane(std::shared_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertLane& sink,
                         const FrameClock& clock, const BatchBudget& budget, std::uint64_t (*ticks)())
    : sink_(sink),
      search_((searches_.publish(std::move(search)), searches_.pin(reader_))),
      inspection_(pinned(search_), settings, sink),
      clock_(clock),
      budget_(budget),
      ticks_(ticks),
      metrics_(metric_count) {
  // As much as the first frame of a batch may use (confirm_time.h).
  inspection_.set_most_decoding(std::max(budget.most() / 16, match::Detector::least_ticks));
  // Few that cannot be stopped take as long: 16 KB of HTTP that are dear to search, a large regular expression.
  inspection_.set_long_from(std::max(budget.most() / 4, stall_ticks_));
  budget_.set_long_from(stall_ticks_);
}

void InspectLane::begin(std::uint64_t tsc) {
  tsc_ = tsc;
  now_ = clock_.now();
}

// What a batch has begun with, its rules, its time and what is left of that, it ends with: so neither of these comes in
// its midst. How long it took.
std::uint64_t InspectLane::between_batches() {
  const std::uint64_t began = ticks_();
  const bool has_exchanged = look_for_rules(), has_swept = sweep();
  return has_exchanged || has_swept ? ticks_() - began : 0;
}

// A step of it each millisecond of the frames' time; of a thread that slept, what it slept through is made up for.
bool InspectLane::sweep() {
  const std::uint64_t ms = (goes_by_ ? now_ : inspection_.now()) / 1000;
  if (ms == swept_) return false;
  const auto steps = static_cast<std::uint32_t>(std::min(ms - swept_, goes_by_ ? most_steps : most_steps_of_captures));
  swept_ = ms;
  flow::FlowTable& table = inspection_.conversations().table();
  begin_between();  // of an idle lane, too, each has some time
  table.sweep(inspection_.now() / 1000, steps * std::max(1U, table.capacity() / sweep_steps));
  inspection_.fragments().expire(inspection_.now() / 1000, steps * fragments_a_step);
  return true;
}

bool InspectLane::look_for_rules() {
  if (!searches_.has_newer(search_)) return false;
  const std::size_t next = 1 - reader_;
  search_ = searches_.pin(next);
  inspection_.exchange(pinned(search_));
  searches_.unpin(std::exchange(reader_, next));
  return true;
}

void InspectLane::begin_batch(const engine::Batch& batch, std::uint64_t tsc) {
  tsc += between_batches();  // the batch has waited for it, and it is no cost of its frames
  batch_ = batch.ticket;
  batch_lane_ = batch.lane;
  inspection_.begin(budget_.begin(tsc, batch.segment[0].rx_tsc, batch.count, batch.bytes), batch.count);
  inspection_.set_late_from(budget_.late_from());
  inspection_.set_looks_until(budget_.looks_until(), tsc, stall_ticks_);
}

// Of a batch that others have dropped whole nothing came here.
void InspectLane::judged() {
  if (batch_ == no_batch) {
    spent_ = 0;
    idle(ticks_());
    return;
  }
  spent_ = inspection_.spent();
  budget_.end(ticks_(), spent_, inspection_.taken() - spent_);
  publish();
  begin_between();
}

// Flows that end there have a small part of a batch's time, and nothing makes them late.
void InspectLane::begin_between() {
  inspection_.begin(budget_.most() == match::Detector::unlimited ? budget_.most() : budget_.most() / share_between);
  batch_ = no_batch;
}

void InspectLane::idle(std::uint64_t tsc) {
  begin(tsc);
  if (goes_by_) inspection_.pass_time(now_);
  between_batches();
  publish();
}

void InspectLane::publish() {
  const Counted counted(inspection_, budget_, unnotified_);
  for (std::size_t f = 0; f < metric_count; ++f) metrics_[f].set(rows[f].value(counted));
  for (std::size_t l = 0; l < limited_.size(); ++l) limited_[l].set(counted.http.limited[l]);
  streams_refused_.set(counted.conversations.extras_refused());
  http_without_capacity_[HttpCapacityNotes::no_memory].set(stopped(counted.http, StopReason::no_memory));
  http_without_capacity_[HttpCapacityNotes::evicted].set(stopped(counted.http, StopReason::evicted));
  http_without_capacity_[HttpCapacityNotes::bodies_lost].set(counted.http.bodies_lost);
}

void InspectLane::finish() {
  inspection_.begin(match::Detector::unlimited);
  inspection_.finish();
  publish();
}

}  // namespace sluice::function
