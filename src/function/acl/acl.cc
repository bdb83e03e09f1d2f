#include "function/acl/acl.h"

#include <rte_cycles.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <tuple>
#include <utility>

#include "device/gpu.h"
#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "engine/options.h"
#include "engine/pipeline.h"
#include "function/acl/frame_key.h"
#include "function/acl/frame_place.h"
#include "function/fused/fused.h"

namespace sluice::function {
namespace {

using lookup::acl::Key4;
using lookup::acl::Key6;
using lookup::acl::no_match;
using lookup::acl::RuleIndex;

// Frames ahead of the one that is judged whose rules' counters are fetched, and, a cache line at a time, whose rules:
// a device has written them.
constexpr std::uint32_t counters_ahead = 8, rules_ahead = 64, rules_of_line = 64 / sizeof(RuleIndex);

// Frames of a burst that comes next, for which there is to be space in the cache.
constexpr std::uint32_t next_burst = 64;

struct alignas(64) Header {
  const RuleSet* set;  // that the rules below are of
  std::uint32_t keys4, keys6;
  std::uint64_t tagged;  // the generation of the list that the keys' tags are for; 0: none
};
// A byte for each frame of the smallest batch holds it.
constexpr std::uint32_t header_per_frame = 1;
static_assert(sizeof(Header) <= header_per_frame * engine::batch_range.least);

// GPUs, and so workers that read the tables of sets.
constexpr std::uint32_t most_devices = 16;

constexpr std::uint32_t per_frame = header_per_frame + sizeof(Key4) + sizeof(Key6) + 3 * sizeof(std::uint32_t);

// As a reader of the tables of sets, besides each lane's collector and a device's worker: what computes a lane's
// batches, and what computes those that a device has failed at (Element::compute()).
std::uint32_t computer_of(const engine::Batch& batch, std::uint32_t lanes) {
  const bool is_rescued = batch.state.load(std::memory_order_relaxed) >= engine::BatchState::failed;
  return lanes + 2 * batch.lane + (is_rescued ? 1 : 0);
}
std::size_t reader_of(const engine::Batch& batch) {
  return std::size_t{batch.lane} * engine::batches_range.most + batch.slot;
}

RuleIndex find(const lookup::acl::Classifier& classifier, const Key4& key) {
  RuleIndex rule = no_match;
  classifier.classify4(&key, &rule, 1);
  return rule;
}
RuleIndex find(const lookup::acl::Classifier& classifier, const Key6& key) {
  RuleIndex rule = no_match;
  classifier.classify6(&key, &rule, 1);
  return rule;
}

// The rule of a key whose egress is known.
template <typename Key>
RuleIndex decide(const RuleSet& set, Key key, std::uint16_t egress_tags) {
  std::uint16_t tags;
  std::memcpy(&tags, key.tags, sizeof tags);
  tags = static_cast<std::uint16_t>((tags & ~set.plan.egress_mask()) | egress_tags);
  std::memcpy(key.tags, &tags, sizeof tags);
  return find(*set.by_egress, key);
}

// Rules as they are written.
std::size_t count_of(const Acl::AclOptions& options) {
  std::size_t count = 0;
  const lookup::acl::AclRule* before = nullptr;
  for (const lookup::acl::AclRule& rule : options.rules) {
    count += before == nullptr || rule.text == lookup::acl::AclRule::no_text || rule.text != before->text ? 1 : 0;
    before = &rule;
  }
  return count;
}

// The keys of frames [first, first + count) of one family.
struct Range {
  std::uint32_t first = 0, end = 0;
  void add(std::uint32_t key) {
    first = end == 0 ? key : first;
    end = key + 1;
  }
};

}  // namespace

// A batch's area. Keys stand close together, by family, in the order of frames.
struct Acl::Area {
  Area(std::byte* area, std::uint32_t capacity)
      : header(reinterpret_cast<Header*>(area)),
        keys4(reinterpret_cast<Key4*>(area + sizeof(Header))),
        keys6(reinterpret_cast<Key6*>(keys4 + capacity)),
        rules4(reinterpret_cast<RuleIndex*>(keys6 + capacity)),
        rules6(rules4 + capacity),
        places(rules6 + capacity) {}

  // Of a frame with a key.
  RuleIndex rule(std::uint32_t place) const {
    return (place & place_is_key6) != 0 ? rules6[place & ~place_is_key6] : rules4[place];
  }

  Header* header;
  Key4* keys4;
  Key6* keys6;
  RuleIndex* rules4;  // by key
  RuleIndex* rules6;
  std::uint32_t* places;  // by frame: its key (frame_place.h)
};

// Counts the frame, which has a key, and does what its rule says.
packet::Reason Acl::act(const Area& a, engine::Batch& batch, std::uint32_t i, std::uint64_t tsc) const {
  using Deed = RuleSet::Deed;
  const RuleSet& set = *a.header->set;
  const std::uint32_t key = a.places[i];
  const std::uint32_t length = batch.length[i];
  std::uint32_t place = set.place(a.rule(key));
  Deed deed = set.deeds[place];
  std::uint32_t logged = 0;
  std::uint16_t out_port = engine::no_port;
  if (deed == Deed::special) [[unlikely]] {
    if (egress_ != nullptr) out_port = egress_->egress(batch, i);
    if (set.verdicts[place].asks_egress) {
      const std::uint16_t tags = set.plan.egress_tags(out_port);
      place = set.place((key & place_is_key6) != 0 ? decide(set, a.keys6[key & ~place_is_key6], tags)
                                                   : decide(set, a.keys4[key], tags));
    }
    deed = set.deeds[place];
    if (deed == Deed::special) {
      deed = static_cast<Deed>(set.verdicts[place].kind);
      logged = set.verdicts[place].logged;
    }
  }
  set.hits->add(batch.lane, place, length);
  packet::Reason reason = packet::no_reason;
  switch (deed) {
    case Deed::permit:
    case Deed::special:
      break;
    case Deed::deny:
      reason = acl_denied;
      break;
    case Deed::reject:
      reason = acl_rejected;
      break;
    case Deed::mark:
      set_dscp(batch.data(i), length, set.verdicts[place].dscp);
      break;
    case Deed::police:
      if (!set.verdicts[place].policer->take(length, tsc)) reason = acl_policed;
      break;
  }
  if (logged != 0) [[unlikely]] {
    set.log->take(batch.lane, set.logged_rules[logged - 1], batch.data(i), length,
                  {tsc, batch.row[i].port, out_port, reason});
  }
  return reason;
}

engine::Shape Acl::shape() const {
  return {.bytes_per_frame = per_frame, .on_device = true};
}

void* Acl::find_trait(std::string_view name) {
  if (name == engine::Tables::trait_name) return static_cast<engine::Tables*>(&file_);
  if (name == engine::CountedRules::trait_name) return hits_ ? static_cast<engine::CountedRules*>(&*hits_) : nullptr;
  return engine::offer<engine::NamedSets, engine::Metrics, engine::Output, engine::DeviceCycle, engine::NullDevice,
                       Fusable>(name, this);
}

Expected<void> Acl::prepare(const engine::Plan& plan) {
  lanes_ = plan.lanes;
  if (plan.pipeline != nullptr) {
    egress_ = plan.pipeline->first<engine::Egress>();
    quote_ = plan.pipeline->changes_behind(*this) ? Quote::headers : Quote::packet;
  }
  current_.emplace(std::size_t{lanes_} * (engine::batches_range.most + 1));
  hits_.emplace(lanes_);
  auto built = build(options_, 1);
  if (!built) return tl::unexpected(built.error());
  publish(std::move(*built));
  return {};
}

Expected<Acl::Built> Acl::build(const AclOptions& options, std::uint64_t generation) const {
  Built built;
  built.hits = hits_->next(options.rules, options.deny_others, options.texts);
  auto set = RuleSet::create(options.rules, options.deny_others, generation, built.hits->counters, options.plan);
  if (!set) return make_error("[acl] " + set.error().message);
  if (auto ok = add_log(options, **set); !ok) return make_error("[acl] " + ok.error().message);
  built.sets = sets_after(options);
  if (!options.plan.uses().empty()) {
    std::vector<lookup::acl::NamedSet> sets;
    for (const SetState& state : built.sets) sets.push_back(state.set);
    // Each lane's collector, what computes its batches, and the workers.
    (*set)->sets.emplace(worker_of(most_devices));
    (*set)->sets->publish(std::make_unique<lookup::acl::SetTables>(lookup::acl::SetTables::build(sets, options.plan)));
  }
  built.set = std::move(*set);
  return built;
}

void Acl::publish(Built built) {
  newest_ = std::move(built.set);
  tags_.store(!newest_->plan.empty(), std::memory_order_relaxed);
  {
    const std::lock_guard lock(sets_mutex_);
    sets_ = std::move(built.sets);
    if (newest_->log && (logs_.empty() || newest_->log != logs_.back())) logs_.push_back(newest_->log);
  }
  hits_->enter(std::move(built.hits));
  current_->publish(newest_);
}

Expected<void> Acl::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  if (!plan.launches) return {};
  auto made = lookup::acl::GpuClassifier::create(gpu, RuleSet::without_egress(options_.rules, options_.plan), newest_);
  if (!made) return make_error("[acl] " + made.error().message);
  mirrors_.set(plan.device, std::move(*made));
  return {};
}

void Acl::detach(std::uint32_t device) {
  if (!mirrors_.empty()) mirrors_.set(device, nullptr);
}

void Acl::classify(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  if (span.first == 0) *a.header = {};
  std::uint32_t n4 = a.header->keys4, n6 = a.header->keys6;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    const std::uint8_t* const frame = batch.data(i);
    if (!batch.is_live(i)) [[unlikely]] {
      a.places[i] = place_not_ip;
      continue;
    }
    if (make_plain_key(frame, batch.length[i], a.keys4[n4])) [[likely]] {
      a.places[i] = n4++;
      continue;
    }
    switch (make_key(frame, batch.length[i], a.keys4[n4], a.keys6[n6])) {
      case KeyKind::ipv4:
        a.places[i] = n4++;
        break;
      case KeyKind::ipv6:
        a.places[i] = n6++ | place_is_key6;
        break;
      case KeyKind::not_ip:
        a.places[i] = place_not_ip;
        break;
      case KeyKind::malformed:
        a.places[i] = place_malformed;
        break;
    }
  }
  a.header->keys4 = n4;
  a.header->keys6 = n6;
  if (tags_.load(std::memory_order_relaxed)) {
    const auto set = current_->read(std::size_t{lanes_} * engine::batches_range.most + batch.lane);
    const bool is_same = span.first != 0 && a.header->tagged == set->generation;
    const std::uint32_t first = is_same ? span.first : 0;
    tag(a, batch, {first, span.end() - first}, *set, batch.lane);
  }
  // A device has read these places, and owns them as much as this core does.
  sluice::prefetch_for_write(a.keys4 + n4, next_burst * sizeof(Key4));
  sluice::prefetch_for_write(a.places + batch.count, next_burst * sizeof(std::uint32_t));
}

// Gives the keys of these rows their tags, for that list. A row's port is that which its frame came in by for elements:
// of what an element in front has taken out of a tunnel another one than the lane's.
void Acl::tag(const Area& a, const engine::Batch& batch, engine::Span rows, const RuleSet& set,
              std::uint32_t reader) const {
  a.header->tagged = set.generation;
  if (set.plan.empty()) return;
  const auto each = [&](const auto& tags_of) {
    const auto write = [&](auto& key, std::uint32_t row) {
      const auto tags = static_cast<std::uint16_t>(tags_of(key) | set.plan.ingress_tags(batch.row[row].port));
      std::memcpy(key.tags, &tags, sizeof tags);
    };
    for (std::uint32_t i = rows.first; i < rows.end(); ++i) {
      const std::uint32_t place = a.places[i];
      if (place >= place_malformed) continue;
      if ((place & place_is_key6) != 0) {
        write(a.keys6[place & ~place_is_key6], i);
      } else {
        write(a.keys4[place], i);
      }
    }
  };
  if (!set.sets) {
    each([](const auto&) { return std::uint16_t{0}; });
  } else {
    const auto tables = set.sets->read(reader);
    each([&](const auto& key) { return tables->tags(key); });
  }
}

// Keys that were made for another list, just before a reload, are tagged anew.
void Acl::tag_for(const Area& a, const engine::Batch& batch, const RuleSet& set, std::uint32_t reader) const {
  if (!set.plan.empty() && a.header->tagged != set.generation) [[unlikely]]
    tag(a, batch, {0, batch.count}, set, reader);
}

Expected<void> Acl::launch(engine::Batch& batch, device::GpuStream& stream) {
  const Area a(area(batch), batch.capacity);
  take_set(a, batch);
  return mirrors_[batch.device].classify(stream, a.keys4, a.rules4, a.header->keys4, a.keys6, a.rules6,
                                         a.header->keys6);
}

// The batch is judged by the list that the device has.
const RuleSet& Acl::take_set(const Area& a, const engine::Batch& batch) {
  const auto* const set = static_cast<const RuleSet*>(mirrors_[batch.device].of());
  current_->pin(reader_of(batch), set);
  a.header->set = set;
  tag_for(a, batch, *set, static_cast<std::uint32_t>(worker_of(batch.device)));
  return *set;
}

bool Acl::join(const engine::Batch& batch, FusedWork& work) {
  if (work.classify || work.match) return false;
  const Area a(area(batch), batch.capacity);
  const RuleSet& set = take_set(a, batch);
  work.classify = {.view = mirrors_[batch.device].view(),
                   .deny_others = set.denies_others(),
                   .in_order = a.header->keys4 == batch.count,
                   .place = a.places,
                   .keys4 = a.keys4,
                   .keys6 = a.keys6,
                   .rules4 = a.rules4,
                   .rules6 = a.rules6};
  return true;
}

void Acl::compute(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  if (span.first == 0) {
    a.header->set = current_->pin(reader_of(batch));
    tag_for(a, batch, *a.header->set, computer_of(batch, lanes_));
  }
  Range four, six;
  if (span.first == 0 && span.count == batch.count) {
    four.end = a.header->keys4;
    six.end = a.header->keys6;
  } else {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (const std::uint32_t place = a.places[i]; place < place_malformed) {
        ((place & place_is_key6) != 0 ? six : four).add(place & ~place_is_key6);
      }
    }
  }
  const lookup::acl::Classifier& classifier = *a.header->set->classifier;
  if (four.end != 0) classifier.classify4(a.keys4 + four.first, a.rules4 + four.first, four.end - four.first);
  if (six.end != 0) classifier.classify6(a.keys6 + six.first, a.rules6 + six.first, six.end - six.first);
}

void Acl::null_result(engine::Batch& batch) {
  std::fill_n(Area(area(batch), batch.capacity).places, batch.count, place_not_ip);
}

void Acl::apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) {
  const Area a(area(batch), batch.capacity);
  const std::uint64_t now = rte_rdtsc();
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (i % rules_of_line == 0) sluice::prefetch(a.rules4 + i + rules_ahead);
    if (const std::uint32_t n = i + counters_ahead; n < batch.count && a.places[n] < place_malformed) {
      a.header->set->prefetch(a.rule(a.places[n]), batch.lane);
    }
    if (!batch.is_live(i)) continue;
    const std::uint32_t place = a.places[i];
    if (place >= place_malformed) {
      if (place == place_malformed) batch.drop(i, acl_malformed);
      continue;
    }
    const packet::Reason reason = act(a, batch, i, now);
    if (reason == packet::no_reason) [[likely]]
      continue;
    if (reason != acl_rejected || !batch.goes_on(i) || !notify(batch, i, out)) batch.drop(i, reason);
  }
  if (span.end() == batch.count) current_->unpin(reader_of(batch));
}

// Makes the frame the answer that its sender gets. Not of what the kernel is to forward: false, as where none may be
// sent.
bool Acl::notify(engine::Batch& batch, std::uint32_t i, engine::Emitter& out) const {
  if (!out.may_answer()) return false;
  const std::uint32_t length = notify_sender(batch.data(i), batch.length[i], engine::capacity_from(batch, i), quote_);
  if (length == 0) return false;
  engine::set_length(batch, i, length);
  batch.answer(i, acl_rejected);
  return true;
}

// The list that the GPU's tables are of from now on: those before it are used by no further launch.
Expected<void> Acl::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  return mirrors_[device].sync(stream);
}

std::vector<std::shared_ptr<AclLog>> Acl::logs() const {
  const std::lock_guard lock(sets_mutex_);
  return logs_;
}

// A reload may still be at work.
void Acl::stopped() {
  for (const auto& log : logs()) log->stop();
}

std::string Acl::lost_output() const {
  std::string all;
  for (const auto& log : logs()) {
    if (const std::string lost = log->lost(); !lost.empty()) all += (all.empty() ? "" : "; ") + lost;
  }
  return all;
}

// Those before the newest, once no list has them any more.
void Acl::end_old_logs() {
  for (std::size_t i = 0; i + 1 < logs_.size();) {
    if (logs_[i].use_count() != 1) {
      ++i;
      continue;
    }
    logs_[i]->stop();
    const std::lock_guard lock(sets_mutex_);
    logged_before_ += logs_[i]->counters();
    logs_.erase(logs_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::size_t Acl::reclaim() {
  mirrors_.reclaim();
  const std::size_t left = current_->reclaim();
  hits_->fold();
  end_old_logs();
  return left;
}

Expected<engine::Element::Change> Acl::reload(Element& fresh) {
  const AclOptions& wanted = static_cast<const Acl&>(fresh).options_;
  reclaim();
  auto made = build(wanted, newest_->generation + 1);
  if (!made) return tl::unexpected(made.error());
  struct Next {
    Built list;
    decltype(mirrors_)::Prepared copies;
  };
  auto next = std::make_shared<Next>();
  next->list = std::move(*made);
  auto copies = mirrors_.prepare([&](lookup::acl::GpuClassifier& mirror) {
    return mirror.prepare(RuleSet::without_egress(wanted.rules, wanted.plan));
  });
  if (!copies) return make_error("[acl] " + copies.error().message);
  next->copies = std::move(*copies);
  const std::size_t count = count_of(wanted);
  return Change{
      std::to_string(count) + " ACL rule" + (count == 1 ? " is" : "s are") + " in force" + undone(next->list.sets),
      [this, next] {
        publish(std::move(next->list));
        mirrors_.publish(std::move(next->copies), newest_);
        reclaim_soon([this] { return reclaim(); });
      }};
}

std::vector<engine::Metric> Acl::metrics() const {
  struct Texts {
    engine::Metric frames, bytes;
  };
  static constexpr std::array<Texts, std::tuple_size_v<RuleHits::Totals>> texts = {{
      {{"acl_permit_frames", "frames that an ACL rule with the action permit decided"},
       {"acl_permit_bytes", "the bytes of these frames"}},
      {{"acl_deny_frames", "frames that an ACL rule with the action deny decided"},
       {"acl_deny_bytes", "the bytes of these frames"}},
      {{"acl_mark_frames", "frames that an ACL rule with the action mark decided"},
       {"acl_mark_bytes", "the bytes of these frames"}},
      {{"acl_police_frames", "frames that an ACL rule with the action police decided, with those that it dropped"},
       {"acl_police_bytes", "the bytes of these frames"}},
      {{"acl_reject_frames", "frames that an ACL rule with the action reject decided"},
       {"acl_reject_bytes", "the bytes of these frames"}},
      {{"acl_default_frames", "frames that no ACL rule matched"}, {"acl_default_bytes", "the bytes of these frames"}},
  }};
  if (!hits_) return {};
  std::vector<engine::Metric> all;
  const RuleHits::Totals totals = hits_->totals();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    all.push_back(texts[i].frames);
    all.back().value = totals[i].frames;
    all.push_back(texts[i].bytes);
    all.back().value = totals[i].bytes;
  }
  const std::lock_guard lock(sets_mutex_);
  AclLogCounters logged = logged_before_;
  for (const auto& log : logs_) logged += log->counters();
  all.push_back({"acl_log_lines", "lines about frames that ACL rules with `log` decided", logged.written});
  all.push_back(
      {"acl_log_suppressed", "such frames without a line, above the rule's log_per_second", logged.suppressed});
  all.push_back({"acl_log_lost", "such frames without a line, for their lane's ring was full", logged.ring_full});
  all.push_back({"acl_log_lost_lines", "such lines that the file could not take", logged.lost_lines});
  return all;
}

}  // namespace sluice::function
