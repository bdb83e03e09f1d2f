#include "function/inspect/inspect.h"

#include <rte_cycles.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/machine.h"
#include "engine/options.h"
#include "function/fused/fused.h"
#include "function/inspect/inspect_lane.h"
#include "function/inspect/inspect_plan.h"
#include "function/inspect/inspect_settings.h"
#include "function/inspect/rule_set_notes.h"
#include "match/automaton/match_batch.h"
#include "match/rules/rule_files.h"

namespace sluice::function {
namespace {

constexpr std::string_view prefix = "inspect_";  // of all metrics

struct alignas(64) Header {
  std::uint64_t described;   // generation of the rules that the classes below are of; 0: of several
  std::uint64_t generation;  // of the rules whose keys are below; 0: nobody has looked
  std::uint64_t bytes;       // of all payloads
};
constexpr std::uint32_t header_per_frame = 1;
static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

constexpr std::uint32_t per_frame =
    header_per_frame + sizeof(match::Span) + (2 + match::max_hits) * sizeof(std::uint32_t) + 2;
// Frames of a burst that comes next, for which there is to be space in the cache.
constexpr std::uint32_t next_burst = 64;
// Frames ahead of the one that is judged: its headers and the flow table's index are fetched, then what that names.
constexpr std::uint32_t index_ahead = 24, flow_ahead = 12, stream_ahead = 8, history_ahead = 4;

// A batch's area: what a device is given of its frames, and what it finds.
struct Area {
  Area(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        span(reinterpret_cast<match::Span*>(area + sizeof(Header))),
        found(reinterpret_cast<std::uint32_t*>(span + capacity)),
        key(found + capacity),
        hash(key + std::size_t{capacity} * match::max_hits),
        klass(reinterpret_cast<std::uint8_t*>(hash + capacity)),
        updates_flow_only(klass + capacity) {}

  Header* header;
  match::Span* span;
  std::uint32_t* found;
  std::uint32_t* key;
  std::uint32_t* hash;  // of its flow
  std::uint8_t* klass;
  std::uint8_t* updates_flow_only;  // not given to the device
};

void fetch_index(InspectLane& lane, const engine::Batch& batch, const Area& a, std::uint32_t n) {
  const bool has_keys = a.header->generation != 0 && a.found[n] != 0;
  if (has_keys) sluice::prefetch(a.key + std::size_t{n} * match::max_hits);
  lane.prefetch(batch, n, a.hash[n], a.updates_flow_only[n] != 0 && !has_keys);
}

// What the devices' keys are distinguished by. Not the rules themselves, which may go while a device still searches for
// their keys.
std::shared_ptr<const std::uint64_t> generation_of(const InspectionRules& rules) {
  return std::make_shared<const std::uint64_t>(rules.generation());
}

// Of the frames before which nobody was judged.
[[gnu::noinline]] void fetch_first(InspectLane& lane, const engine::Batch& batch, const Area& a) {
  const auto each = [&](std::uint32_t ahead, const auto& fetch) {
    for (std::uint32_t n = 0; n < std::min(ahead, batch.count); ++n) fetch(n);
  };
  each(index_ahead, [&](std::uint32_t n) { fetch_index(lane, batch, a, n); });
  each(flow_ahead, [&](std::uint32_t n) { lane.prefetch_flow(a.hash[n]); });
  each(stream_ahead, [&](std::uint32_t n) { lane.prefetch_stream(batch, n, a.hash[n], a.span[n]); });
  each(history_ahead, [&](std::uint32_t n) { lane.prefetch_history(batch, n, a.hash[n], a.span[n]); });
}

}  // namespace

Inspect::Inspect(InspectOptions options) : options_(std::move(options)) {}

// The log's thread asks for metrics, of lanes that go before the log does.
Inspect::~Inspect() {
  if (log_) log_->stop();
}

engine::Shape Inspect::shape() const {
  return {
      .bytes_per_frame = per_frame, .payloads = engine::Payloads::read, .on_device = true, .applies_at_length = true};
}

void* Inspect::find_trait(std::string_view name) {
  return engine::offer<engine::Tables, engine::Metrics, engine::Timer, engine::BoundedWork, engine::Output,
                       engine::DeviceCycle, engine::NullDevice, engine::MemoryNeed, Fusable>(name, this);
}

Expected<void> Inspect::read() {
  if (options_.rules.empty()) return {};  // that has been said at the setting, and others may still be mistaken
  if (progress_ && !progress_("reading rules", 0, 0)) return make_error("interrupted while rules were read");
  const auto files = match::rule_files(options_.rules);
  if (!files) return make_error("[inspect] rules: " + files.error().message + where_from(options_.rules));
  auto set = match::read_rules(*files, options_.reading);
  if (!set) {
    const bool of_lines = set.error().message.starts_with("threshold_file: ");
    return make_error("[inspect] " + (of_lines ? "" : std::string("rules: ")) + set.error().message +
                      where_from(of_lines ? std::vector{options_.reading.threshold_file} : options_.rules));
  }
  // Alerts would be appended to it.
  for (const auto& [key, path] : {std::pair{"eve", &options_.log.eve}, {"fast", &options_.log.fast}}) {
    const auto read =
        std::ranges::find_if(set->files, [&path = *path](const std::string& file) { return same_file(file, path); });
    if (read != set->files.end()) {
      return make_error("[inspect] " + std::string(key) + ": it is a file that [inspect] reads, " + *read +
                        ": name another one");
    }
  }
  // A gateway whose rules are all gone lets everything by: a mistake, more likely than a wish.
  if (set->rules.empty()) {
    return make_error("[inspect] rules: " + why_none(*set) + ": leave inspect out of the chain to inspect nothing");
  }
  if (options_.strict && !set->refused.empty()) return make_error("[inspect] strict: " + why_not_all(*set));
  notes_ = notes_of(*set, options_.lanes);
  read_ = std::move(*set);
  return {};
}

void Inspect::take_read(engine::Tables& checked) {
  auto& other = static_cast<Inspect&>(checked);
  read_ = std::move(other.read_);
  notes_ = std::move(other.notes_);
}

Expected<std::shared_ptr<InspectionRules>> Inspect::compile(match::RuleSet set) {
  InspectionRules::Progress progress;
  if (progress_) {
    progress = [this](std::size_t done, std::size_t total) { return progress_("compiling patterns", done, total); };
  }
  return InspectionRules::make(std::move(set), newest_.get(), progress);
}

void Inspect::take(std::shared_ptr<InspectionRules> rules) {
  newest_ = std::move(rules);
  rule_count_.store(newest_->detector().rules().rules.size(), std::memory_order_relaxed);
  blocks_.store(newest_->detector().blocks(), std::memory_order_relaxed);
}

// Of what lanes take at start, or may take later.
Expected<void> Inspect::check_memory(const engine::Plan& plan) const {
  const InspectionSettings settings = settings_of_thread(options_.inspection, plan);
  const std::uint64_t of_thread = flow::Conversations::memory_bytes(settings.conversations) +
                                  flow::Fragments::memory_bytes(settings.fragments.memory);
  const std::uint64_t needed = plan.threads * of_thread + AlertLog::memory_bytes(options_.log, plan.threads);
  const AvailableMemory there = available_memory();
  if (needed <= there.bytes) return {};
  constexpr std::uint64_t mb = 1 << 20;
  return make_error("[inspect] flows, streams, http, stream_memory, http_memory, fragment_memory: they take " +
                    std::to_string(needed / mb) + " MB, and " +
                    (there.limited ? "this control group" : "this machine") + " has " +
                    std::to_string(there.bytes / mb) + " MB to give: lower them");
}

Expected<void> Inspect::prepare(const engine::Plan& plan) {
  if (plan.forwarders) {
    return make_error(
        "[engine] forwarder_cores: inspect follows conversations in the order in which frames come, on one thread: "
        "leave forwarder_cores out");
  }
  if (auto ok = check_memory(plan); !ok) return ok;
  if (!read_) {
    if (auto ok = read(); !ok) return ok;
  }
  const auto blocking =
      std::ranges::count_if(read_->rules, [](const match::Rule& rule) { return match::blocks(rule.action); });
  auto rules = compile(std::move(*read_));
  read_.reset();
  if (!rules) return tl::unexpected(rules.error());
  take(std::move(*rules));
  spdlog::info("inspect: {} in force, {} of which {} or reject", count_text(rule_count_.load(), "rule"), blocking,
               blocking == 1 ? "drops" : "drop");

  AlertLogSettings log_settings = options_.log;
  if (plan.captures) {
    log_settings.alerts_per_second = 0;
    log_settings.wait_for_capacity = true;
    log_settings.ports.clear();  // of a file no interface is known
  }
  if (plan.captures && plan.lanes > 1) {
    spdlog::warn(
        "inspect: {} lanes read captures, none in the order of the others: where a conversation is in several files it "
        "is not followed, and times are the latest that any lane has seen; put the files together (mergecap), and use "
        "one port with lanes = 1",
        plan.lanes);
  }
  log_settings.forwards = sends_ = plan.sends;
  auto log = AlertLog::open(std::move(log_settings), plan.threads);
  if (!log) return make_error("[inspect] " + log.error().message);
  log_ = std::move(*log);
  clock_ = std::make_unique<FrameClock>();
  const InspectionSettings settings = settings_of_thread(options_.inspection, plan);
  const BatchBudget budget = budget_of(options_.budget, plan);
  for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
    lanes_.push_back(std::make_unique<InspectLane>(std::make_unique<InspectionSearch>(newest_), settings,
                                                   log_->lane(thread), *clock_, budget));
    if (!plan.captures) lanes_.back()->touch_memory();  // a page fault is nothing for a lane with a deadline
  }
  log_->set_watch([this, forwards = plan.sends](std::uint64_t now) {
    if (forwards) note_limits(now);
    note_refused_streams(now);
    note_http_capacity(now);
  });
  log_->set_stats([this] {
    nlohmann::ordered_json values;
    for (const engine::Metric& metric : metrics())
      values[std::string(metric.name.substr(prefix.size()))] = metric.value;
    return nlohmann::ordered_json{{"inspect", std::move(values)}};
  });
  return {};
}

void Inspect::note_limits(std::uint64_t now) {
  HttpLimitNotes::Counts counts{};
  for (const auto& lane : lanes_) {
    for (std::size_t l = 0; l < counts.size(); ++l) counts[l] += lane->limited(l);
  }
  const bool drops = options_.inspection.drop_on_http_limit && blocks_.load(std::memory_order_relaxed);
  if (const std::string line = limit_notes_.line(counts, now, drops); !line.empty()) {
    spdlog::warn("{}", line);
  }
}

void Inspect::note_refused_streams(std::uint64_t now) {
  std::uint64_t refused = 0;
  for (const auto& lane : lanes_) refused += lane->streams_refused();
  if (const std::string line = refused_streams_notes_.line(refused, now); !line.empty()) {
    spdlog::warn("{}", line);
  }
}

void Inspect::note_http_capacity(std::uint64_t now) {
  HttpCapacityNotes::Counts counts{};
  for (const auto& lane : lanes_) {
    for (std::size_t w = 0; w < counts.size(); ++w) counts[w] += lane->http_without_capacity(w);
  }
  if (const std::string line = http_capacity_notes_.line(counts, now); !line.empty()) {
    spdlog::warn("{}", line);
  }
}

Expected<void> Inspect::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  auto matcher = match::GpuMatcher::create(gpu, newest_->gram_table(), match::GpuMatcher::default_sync_bytes, false,
                                           generation_of(*newest_));
  if (!matcher) return make_error("[inspect] " + matcher.error().message);
  mirrors_.set(plan.device, std::move(*matcher));
  return {};
}

void Inspect::detach(std::uint32_t device) {
  if (!mirrors_.empty()) mirrors_.set(device, nullptr);
}

// A step of the way of new tables to the GPU. From the last one on launches search for the new rules' keys.
Expected<void> Inspect::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  return mirrors_[device].sync(stream);
}

// By the rules that the lane has now. A device that searches for those of others gives no answer that is used.
void Inspect::classify(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  const InspectLane& lane = lane_of(batch.lane);
  const std::uint64_t generation = lane.rules().generation();
  if (span.first == 0) *a.header = {generation, 0, 0};
  if (a.header->described != generation) a.header->described = 0;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (!batch.is_live(i)) [[unlikely]] {
      a.hash[i] = 0;
      a.updates_flow_only[i] = 1;
      a.span[i] = {};
      a.klass[i] = 0;
      continue;
    }
    const auto* const frame = reinterpret_cast<const char*>(batch.frame[i]);
    const FrameBrief brief = lane.brief_of({frame, batch.length[i]});
    a.hash[i] = brief.hash;
    a.updates_flow_only[i] = brief.updates_flow_only ? 1 : 0;
    const auto begin = brief.payload.empty() ? 0 : static_cast<std::uint16_t>(brief.payload.data() - frame);
    a.span[i] = {static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(begin + brief.payload.size())};
    a.klass[i] = brief.klass;
    bytes += brief.payload.size();
  }
  a.header->bytes += bytes;
  // A device has read these places, and owns them as much as this core does.
  sluice::prefetch_for_write(a.span + batch.count, next_burst * sizeof(match::Span));
  sluice::prefetch_for_write(a.hash + batch.count, next_burst * sizeof(std::uint32_t));
  sluice::prefetch_for_write(a.klass + batch.count, next_burst);
}

match::MatchBatch Inspect::work_of(const engine::Batch& batch) const {
  const Area a(area(batch), batch.capacity);
  const std::uint64_t rules = *static_cast<const std::uint64_t*>(mirrors_[batch.device].of());
  a.header->generation = a.header->described == rules ? rules : 0;
  return {.frame = batch.frame,
          .span = a.span,
          .klass = a.klass,
          .found = a.found,
          .key = a.key,
          .count = batch.count,
          .bytes = a.header->bytes};
}

Expected<void> Inspect::launch(engine::Batch& batch, device::GpuStream& stream) {
  return mirrors_[batch.device].match(work_of(batch), stream);
}

bool Inspect::join(const engine::Batch& batch, FusedWork& work) {
  if (work.match) return false;
  work.match = {mirrors_[batch.device].view(), work_of(batch)};
  return true;
}

// The core searches when it judges.
void Inspect::compute(engine::Batch& batch, engine::Span span) {
  if (span.first == 0) Area(area(batch), batch.capacity).header->generation = 0;
}

// A device that has found nothing.
void Inspect::null_result(engine::Batch& batch) {
  const Area a(area(batch), batch.capacity);
  a.header->generation = a.header->described;
  std::fill_n(a.found, batch.count, 0);
}

void Inspect::put_keys(const engine::Batch& batch, std::uint32_t i, std::span<const std::uint32_t> keys) const {
  const Area a(area(batch), batch.capacity);
  const std::size_t reported = std::min<std::size_t>(keys.size(), match::max_hits);
  std::copy_n(keys.begin(), reported, a.key + std::size_t{i} * match::max_hits);
  a.found[i] = static_cast<std::uint32_t>(std::min<std::size_t>(keys.size(), match::max_hits + 1));
}

void Inspect::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  const Area a(area(batch), batch.capacity);
  InspectLane& lane = lane_of(batch.lane);
  const std::uint64_t now = rte_rdtsc();
  if (span.first == 0) fetch_first(lane, batch, a);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (const std::uint32_t n = i + index_ahead; n < batch.count) fetch_index(lane, batch, a, n);
    if (const std::uint32_t n = i + flow_ahead; n < batch.count) lane.prefetch_flow(a.hash[n]);
    if (const std::uint32_t n = i + stream_ahead; n < batch.count) lane.prefetch_stream(batch, n, a.hash[n], a.span[n]);
    if (const std::uint32_t n = i + history_ahead; n < batch.count) {
      lane.prefetch_history(batch, n, a.hash[n], a.span[n]);
    }
    if (!batch.is_live(i)) continue;
    KeyHits hits;
    if (a.header->generation != 0) {
      hits = {a.header->generation, a.key + std::size_t{i} * match::max_hits, a.found[i], a.updates_flow_only[i] != 0};
    }
    const packet::Reason reason = reason_of(lane.judge(batch, i, hits, a.hash[i], now));
    if (reason == packet::no_reason) [[likely]]
      continue;
    if (!batch.goes_on(i)) {  // the kernel's to forward: nobody is notified
      batch.drop(i, reason == inspect_rejected ? inspect_dropped : reason);
    } else if (!answer(batch, i, reason, out)) {
      batch.drop(i, reason);
    }
  }
  if (span.end() == batch.count) lane.judged();
}

packet::Reason Inspect::reason_of(const Judgement& judgement) {
  if (!judgement.drop) return packet::no_reason;
  if (judgement.reject) return inspect_rejected;
  switch (judgement.why) {
    case DropReason::conflict:
      return inspect_conflict;
    case DropReason::no_capacity:
      return inspect_no_capacity;
    case DropReason::budget:
      return inspect_overload;
    case DropReason::fragment:
      return inspect_fragments;
    case DropReason::outside:
      return inspect_outside;
    case DropReason::silent:
      return inspect_silent;
    case DropReason::http_limit:
      return inspect_http_limit;
    case DropReason::rules:
    case DropReason::flow_drop:
      break;
  }
  return inspect_dropped;
}

std::uint64_t Inspect::bounded_ticks(const engine::Batch& batch) const {
  return lanes_[batch.lane % lanes_.size()]->confirming_took();
}

void Inspect::stopped() {
  for (const auto& lane : lanes_) lane->finish();
  if (log_) log_->stop();
}

std::vector<engine::Metric> Inspect::metrics() const {
  std::vector<engine::Metric> all;
  for (std::size_t f = 0; f < InspectLane::metric_count; ++f) {
    all.push_back(InspectLane::metric_text(f));
    for (const auto& lane : lanes_) all.back().value += lane->metric(f);
  }
  const AlertCounters counted = log_ ? log_->counters() : AlertCounters();
  all.push_back({"inspect_alerts_written", "of the alerts, those that were given to the files", counted.alerts});
  all.push_back({"inspect_alerts_suppressed",
                 "of the alerts, those over alerts_per_second or without capacity in a queue",
                 counted.rate_limited + counted.ring_full});
  all.push_back({"inspect_lines_lost", "lines that a file did not take", counted.lost_lines});
  all.push_back({"inspect_rules", "rules in force", rule_count_.load(std::memory_order_relaxed), false});
  return all;
}

Expected<engine::Element::Change> Inspect::reload(Element& fresh) {
  auto& wanted = static_cast<Inspect&>(fresh);
  std::string fixed =
      option::fixed("[inspect]", inspect_settings(), options_, wanted.options_, "it runs: restart the gateway");
  if (!fixed.empty()) return make_error(std::move(fixed));
  reclaim();
  if (!wanted.read_) {
    if (auto ok = wanted.read(); !ok) return tl::unexpected(ok.error());
  }
  auto rules = compile(std::move(*wanted.read_));
  wanted.read_.reset();
  if (!rules) return tl::unexpected(rules.error());
  struct Next {
    std::shared_ptr<InspectionRules> rules;
    std::vector<std::unique_ptr<InspectionSearch>> searches;
    decltype(mirrors_)::Prepared copies;
  };
  auto next = std::make_shared<Next>();
  next->rules = std::move(*rules);
  for (std::size_t l = 0; l < lanes_.size(); ++l) {
    next->searches.push_back(std::make_unique<InspectionSearch>(next->rules));
  }
  auto copies = mirrors_.prepare([&](match::GpuMatcher& mirror) { return mirror.prepare(next->rules->gram_table()); });
  if (!copies) return make_error("[inspect] " + copies.error().message);
  next->copies = std::move(*copies);
  const match::RuleSet& set = next->rules->detector().rules();
  std::string text = count_text(set.rules.size(), "rule") + " inspect" + (set.rules.size() == 1 ? "s" : "");
  if (!set.refused.empty())
    text += ", " + count_text(set.refused.size(), "other") + (set.refused.size() == 1 ? " does" : " do") + " not load";
  const std::string fewer = note_of_fewer(set.rules.size(), rule_count_.load(std::memory_order_relaxed));
  return Change{std::move(text), [this, next, fewer] {
                  if (!fewer.empty()) spdlog::warn("reload: {}", fewer);
                  take(next->rules);
                  for (std::size_t l = 0; l < lanes_.size(); ++l)
                    lanes_[l]->publish_rules(std::move(next->searches[l]));
                  mirrors_.publish(std::move(next->copies), generation_of(*newest_));
                  reclaim_soon([this] { return reclaim(); });
                }};
}

// How many lanes have not left their old rules yet.
std::size_t Inspect::reclaim() {
  mirrors_.reclaim();
  std::size_t left = 0;
  for (const auto& lane : lanes_) left += lane->reclaim();
  return left;
}

}  // namespace sluice::function
