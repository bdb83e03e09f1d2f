#include "function/srtp/streams.h"

#include <rte_cycles.h>

#include <algorithm>
#include <utility>

#include "function/srtp/address_settings.h"
#include "function/srtp/stream_rows.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {
namespace {

// Of the capacity, a client's guards: at least a few, that its media may have ended at once.
constexpr std::size_t shares = 16, least_share = 8;

// That wait for the log, or are answered.
constexpr std::size_t most_warnings = 16;

void warn(std::vector<std::string>& warnings, std::string sentence) {
  if (warnings.size() > most_warnings) return;
  warnings.push_back(warnings.size() == most_warnings
                         ? "more SRTP streams have come back to a key, or share one: srtp_keys_again and "
                           "srtp_keys_shared count all"
                         : std::move(sentence));
}

// What comes in clear, and would go on so. What comes protected is no secret, and nobody needs to be kept from it.
bool wants_guard(const MediaStreamSettings& settings) {
  return settings.keyless == Keyless::no && settings.direction == srtp::Direction::protect;
}

bool has_ended(const MediaStream& stream) {
  return stream.settings().keyless == Keyless::ended;
}

}  // namespace

Streams::Streams(crypto::KeyTable& keys, Current& current, std::size_t capacity, std::uint32_t largest_frame,
                 const engine::PortTable& ports, const RtspOptions* rtsp, SpentKeys spent)
    : keys_(keys),
      current_(current),
      ports_(ports),
      rtsp_(rtsp),
      capacity_(capacity),
      largest_frame_(largest_frame),
      slots_(std::make_shared<MediaStreamSlots>(capacity)),
      guards_(std::max(capacity / shares, least_share)),
      spent_(std::move(spent)) {
  publish();
}

// From here on what is taken out belongs to a table of its own.
void Streams::publish() {
  auto table = std::make_shared<MediaStreamTable>(slots_, leaving_);
  MediaStreamTable::Retired& retired = table->retired();
  current_.publish(std::move(table));
  retired_ = &retired;
}

void Streams::tidy(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  look_at_guards(now);
  if (!retired_->empty()) publish();
  current_.reclaim_in_order();
}

void Streams::await_lanes() {
  slots_made_ = false;
  if (!retired_->empty()) publish();
  reclaim_soon([this] { return current_.reclaim_in_order(); });
}

void Streams::look_at_guards(Clock::time_point now) {
  const auto noted = [this](const MediaKey& key) { return streams_.at(key)->noted(); };
  const auto time_of = [this](const MediaKey& key) {
    return streams_.at(key)->settings().carries == Carries::rtp ? guard_time : rtcp_guard_time;
  };
  for (const MediaKey& key : guards_.quiet(now, time_of, noted)) take_one(key);
  count();
}

void Streams::count() {
  guards_count_.store(guards_.size(), std::memory_order_relaxed);
  size_.store(streams_.size() - guards_.size(), std::memory_order_relaxed);
}

// There is capacity, but for guards.
void Streams::put_one(std::shared_ptr<MediaStream> stream) {
  const MediaKey key = stream->settings().key;
  if (streams_.size() >= capacity_ && guards_.size() != 0 && !streams_.contains(key)) cut_short(guards_.oldest());
  guards_.erase(key);
  std::shared_ptr<MediaStream>& place = streams_[key];
  police(*stream, place ? place->measured() : nullptr);
  if (place) retire(std::move(place));
  place = std::move(stream);
  if (!slots_->put(*place)) make_slots();
}

// What is said of their keys waits for the log, and is answered.
Streams::Warnings Streams::put_all(const std::vector<std::shared_ptr<MediaStream>>& fresh) {
  Warnings warnings;
  for (const auto& stream : fresh) {
    put_one(stream);
    look_at_keys(stream->settings(), warnings);
  }
  look_at_shared_keys(fresh, warnings);
  for (const std::string& sentence : warnings) warn(warnings_, sentence);
  return warnings;
}

void Streams::make_slots() {
  slots_ = std::make_shared<MediaStreamSlots>(capacity_);
  for (const auto& [key, stream] : streams_) slots_->put(*stream);
  slots_made_ = true;
  publish();
}

void Streams::retire(std::shared_ptr<MediaStream> stream) {
  spent_.spend(stream->settings());
  shared_.go(stream->settings());
  retired_->streams.push_back(std::move(stream));
  leaving_->fetch_add(1, std::memory_order_relaxed);
}

void Streams::look_at_keys(const MediaStreamSettings& stream, Warnings& warnings) {
  if (!spent_.has(stream)) return;
  keys_again_.fetch_add(1, std::memory_order_relaxed);
  warn(warnings, "the SRTP stream " + stream.name +
                     " protects with a key that it has had before, and its indexes begin anew: what a source "
                     "that goes on sends is enciphered twice under one keystream, which gives both away (RFC "
                     "3711 section 9.1). Give it a new key");
}

// All that come at once are in the table: what one leaves another may take.
void Streams::look_at_shared_keys(const std::vector<std::shared_ptr<MediaStream>>& fresh, Warnings& warnings) {
  for (const auto& stream : fresh) {
    const auto other = shared_.come(stream->settings());
    if (!other) continue;
    keys_shared_.fetch_add(1, std::memory_order_relaxed);
    warn(warnings, shared_key_warning(stream->settings(), streams_.at(*other)->settings()));
  }
}

void Streams::hash_keys(MediaStreamSettings& stream) const {
  stream.key_hashes = spent_.hashes_of(stream);
  stream.master_hashes = spent_.master_hashes_of(stream);
}

void Streams::warn_of_the_files_keys(const std::vector<MediaStreamSettings>& configured) {
  const auto count = std::ranges::count_if(configured, [](const MediaStreamSettings& stream) {
    return stream.direction == srtp::Direction::protect && stream.carries != Carries::rtcp;
  });
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  warnings_.push_back((count == 1 ? "1 SRTP stream of the file protects with a key"
                                  : std::to_string(count) + " SRTP streams of the file protect with keys") +
                      " of the file, and indexes begin anew with each start: a source that "
                      "goes on over a restart under its old SSRC needs a new key, or is enciphered twice under one "
                      "keystream (RFC 3711 section 9.1)");
}

std::vector<std::string> Streams::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

void Streams::take_one(const MediaKey& key) {
  const auto at = streams_.find(key);
  slots_->take(key);
  guards_.erase(key);
  measured_.erase(key);
  retire(std::move(at->second));
  streams_.erase(at);
}

void Streams::cut_short(const MediaKey& guarded) {
  cut_short_.fetch_add(1, std::memory_order_relaxed);
  take_one(MediaKey(guarded));  // which is in what goes
}

// In place of a stream.
void Streams::guard_one(const MediaKey& key) {
  const MediaStreamSettings& of = streams_.at(key)->settings();
  const MediaKey leaves = of.leaves.value_or(key);
  MediaStreamSettings settings;
  settings.name = of.name;
  settings.key = key;
  settings.carries = of.carries;
  settings.origin = of.origin;
  settings.keyless = Keyless::ended;
  put_one(*MediaStream::make(std::move(settings), keys_));
  if (const auto too_many = guards_.add(key, leaves, Clock::now())) cut_short(*too_many);
}

void Streams::end_one(const MediaKey& key, bool guarded) {
  if (guarded && wants_guard(streams_.at(key)->settings())) {
    guard_one(key);
  } else {
    take_one(key);
  }
}

// None of them is in the table, but as a guard.
Expected<Streams::Warnings> Streams::put(const std::vector<std::shared_ptr<MediaStream>>& fresh) {
  if (streams_.size() - guards_.size() + fresh.size() > capacity_) {
    return make_error("the table of streams is full: raise [srtp] max_keys");
  }
  Warnings warnings = put_all(fresh);
  count();
  if (slots_made_) await_lanes();  // batches that were begun see the former ones: there what is new would be in clear
  return warnings;
}

Expected<void> Streams::add(std::vector<MediaStreamSettings> streams) {
  const auto added = add_all(std::move(streams));
  return added ? Expected<void>() : tl::unexpected(added.error());
}

Expected<Streams::Warnings> Streams::add_all(std::vector<MediaStreamSettings> streams) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<MediaStream>> fresh;
  for (MediaStreamSettings& settings : streams) {
    const auto known = streams_.find(settings.key);
    const auto same = [&](const auto& other) { return other->settings().key == settings.key; };
    if ((known != streams_.end() && !has_ended(*known->second)) || std::ranges::any_of(fresh, same)) {
      return make_error("the stream " + settings.name + " is in the table already");
    }
    hash_keys(settings);
    auto made = MediaStream::make(std::move(settings), keys_);
    if (!made) return tl::unexpected(made.error());
    fresh.push_back(std::move(*made));
  }
  return put(fresh);
}

std::size_t Streams::remove(std::span<const MediaKey> keys, MediaOrigin origin, bool guarded) {
  const std::lock_guard lock(mutex_);
  std::size_t removed = 0;
  for (const MediaKey& key : keys) {
    const auto at = streams_.find(key);
    if (at == streams_.end() || at->second->settings().origin != origin || has_ended(*at->second)) continue;
    ++removed;
    if (origin == MediaOrigin::api && admission_ != nullptr) admission_->remove(demand_of(at->second->settings()));
    end_one(MediaKey(key), guarded);
  }
  count();
  return removed;
}

std::uint64_t Streams::noted(const MediaKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto at = streams_.find(key);
  return at == streams_.end() ? 0 : at->second->noted();
}

std::vector<MediaStreamRow> Streams::list(std::size_t limit, const packet::IpAddress& of, std::size_t& count) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = rte_rdtsc();
  std::vector<MediaStreamRow> rows;
  count = of.empty() ? streams_.size() : 0;
  for (auto at = streams_.begin(); at != streams_.end() && (rows.size() < limit || !of.empty()); ++at) {
    const MediaStream& stream = *at->second;
    if (!of.empty() && !has_address(stream.settings(), of)) continue;
    count += of.empty() ? 0 : 1;
    if (rows.size() < limit) rows.push_back(row_of(stream, ports_, now));
  }
  return rows;
}

void Streams::admit_by(engine::StreamAdmission& admission, std::chrono::nanoseconds deadline) {
  const std::lock_guard lock(mutex_);
  admission_ = &admission;
  deadline_ = deadline;
  for (const MediaKey& key : measured_) {
    MeasuredRate& rate = *streams_.at(key)->measured();
    rate.set_share(admission.share(rate.settings().share));
  }
}

engine::StreamDemand Streams::demand_of(const MediaStreamSettings& settings) const {
  return {.largest_packet = settings.largest_in_clear(largest_frame_),
          .deadline = settings.deadline.count() == 0 ? deadline_ : settings.deadline,
          .rate = settings.rate ? settings.rate->bits : 0,
          .share = settings.measure ? settings.measure->share : "",
          .burst = settings.rate ? settings.rate->burst : 0};
}

Expected<std::vector<MediaStreamSettings>> Streams::read(std::string_view text, const std::string& what) const {
  auto streams = read_stream_text(text, what, largest_frame_, ports_);
  if (!streams || !before_router_) return streams;
  const MediaKey& key = streams->front().key;
  const auto destination = packet::IpAddress::from_bytes(static_cast<int>(key.family), key.destination);
  if (is_of_many(destination)) return make_error(what + ": destination: " + many_before_router);
  return streams;
}

Expected<StreamChange> Streams::add_text(std::string_view text, const std::string& what) {
  auto streams = read(text, what);
  if (!streams) return tl::unexpected(streams.error());
  const std::string name = streams->front().name;
  name_shares(*streams);
  std::vector<engine::StreamDemand> demands;
  for (MediaStreamSettings& stream : *streams) {
    stream.origin = MediaOrigin::api;
    demands.push_back(demand_of(stream));
  }
  if (const auto refused = admission_ != nullptr ? admission_->replace({}, demands) : std::nullopt) {
    return make_error("the stream " + name + " is not admitted: " + refused->answer.text());
  }
  auto warnings = add_all(std::move(*streams));
  if (!warnings) {
    if (admission_ != nullptr) (void)admission_->replace(demands, {});
    return tl::unexpected(warnings.error());
  }
  return StreamChange{"the stream " + name + " is in force", std::move(*warnings)};
}

// Of a stream in the table and one that is to take its place, and is not the same.
Expected<void> Streams::keeps_no_key(const MediaStream& before, const MediaStreamSettings& wanted) const {
  if (!wanted.would_begin_anew_under_its_key(before.settings())) return {};
  return make_error("the stream " + wanted.name +
                    " keeps its key, and changes in more than rate, deadline, ingress and others: its indexes would "
                    "begin anew under a key that they have been used with. Give it a new key with the change");
}

// Of the API's, in place of those of the same 5-tuples.
Expected<Streams::Exchange> Streams::prepare_exchange(std::vector<MediaStreamSettings> streams) {
  Exchange exchange;
  std::size_t more = 0;
  for (MediaStreamSettings& stream : streams) {
    stream.origin = MediaOrigin::api;
    const auto at = streams_.find(stream.key);
    const bool known = at != streams_.end() && !has_ended(*at->second);
    more += known ? 0 : 1;
    if (known && at->second->settings().origin != MediaOrigin::api) {
      return make_error("the stream " + stream.name + " is in the table already, and not by the API");
    }
    if (known && stream.measure && at->second->settings().measure) {
      stream.measure->share = at->second->settings().measure->share;
    }
    hash_keys(stream);
    exchange.come.push_back(demand_of(stream));
    if (known) exchange.gone.push_back(demand_of(at->second->settings()));
    if (known && at->second->settings().same(stream)) {
      exchange.kept.push_back({at->second, stream.limits()});
      continue;
    }
    if (auto ok = known ? keeps_no_key(*at->second, stream) : Expected<void>(); !ok) return tl::unexpected(ok.error());
    auto made = MediaStream::make(std::move(stream), keys_);
    if (!made) return tl::unexpected(made.error());
    exchange.fresh.push_back(std::move(*made));
  }
  if (streams_.size() - guards_.size() + more > capacity_) {
    return make_error("the table of streams is full: raise [srtp] max_keys");
  }
  return exchange;
}

void Streams::put_limits(const std::vector<Kept>& kept) {
  for (const Kept& one : kept) {
    if (const std::uint32_t change = one.stream->take_limits(one.limits); change != 0) {
      retired_->disowned.emplace_back(one.stream, change);
    }
    police(*one.stream, one.stream->measured());
  }
}

Expected<StreamChange> Streams::replace_text(std::string_view text, const std::string& what) {
  auto streams = read(text, what);
  if (!streams) return tl::unexpected(streams.error());
  const std::string name = streams->front().name;
  name_shares(*streams);
  const std::lock_guard lock(mutex_);
  await_lanes();  // whose keys may be needed
  auto exchange = prepare_exchange(std::move(*streams));
  if (!exchange) return tl::unexpected(exchange.error());
  const auto& [gone, come, fresh, kept] = *exchange;
  if (const auto refused = admission_ != nullptr ? admission_->replace(gone, come) : std::nullopt) {
    return make_error("the stream " + name + " is not admitted: " + refused->answer.text());
  }
  put_limits(kept);
  Warnings warnings = put_all(fresh);
  count();
  await_lanes();
  return StreamChange{"the stream " + name + " is in force" + (gone.empty() ? "" : " in place of the one before"),
                      std::move(warnings)};
}

Expected<StreamChange> Streams::remove_text(std::string_view text, const std::string& what) {
  const auto ends = read_stream_ends(text, what);
  if (!ends) return tl::unexpected(ends.error());
  std::vector<MediaKey> keys;
  for (const MediaStreamSettings& stream : *ends) keys.push_back(stream.key);
  if (remove(keys, MediaOrigin::api, true) == 0) {
    return make_error("no stream " + ends->front().name + " was added over the API; others leave with what added them");
  }
  const std::lock_guard lock(mutex_);
  await_lanes();
  return StreamChange{"the stream " + ends->front().name + " is gone"};
}

Expected<StreamChange> Streams::release_text(std::string_view text, const std::string& what) {
  const auto ends = read_stream_ends(text, what);
  if (!ends) return tl::unexpected(ends.error());
  const std::lock_guard lock(mutex_);
  std::size_t released = 0;
  for (const MediaStreamSettings& end : *ends) {
    const auto at = streams_.find(end.key);
    if (at == streams_.end()) continue;
    const MediaStreamSettings& settings = at->second->settings();
    const bool ended = has_ended(*at->second);
    if (settings.origin != MediaOrigin::api && !(ended && settings.origin == MediaOrigin::configuration)) continue;
    if (!ended && admission_ != nullptr) admission_->remove(demand_of(settings));
    take_one(end.key);
    ++released;
  }
  count();
  if (released == 0) {
    return make_error("no stream " + ends->front().name +
                      " was added over the API, and none of the file's that has ended is guarded");
  }
  await_lanes();
  return StreamChange{"the stream " + ends->front().name + " is released: what comes of it passes as it comes"};
}

Expected<Streams::Replacement> Streams::prepare(const std::vector<MediaStreamSettings>& configured) {
  const std::lock_guard lock(mutex_);
  await_lanes();  // whose keys may be needed
  Replacement replacement;
  replacement.configured = configured.size();
  std::unordered_set<MediaKey, MediaKeyHash> wanted;
  for (MediaStreamSettings settings : configured) {
    wanted.insert(settings.key);
    hash_keys(settings);
    const auto known = streams_.find(settings.key);
    if (known != streams_.end() && known->second->settings().same(settings)) {
      replacement.kept.push_back({known->second, settings.limits()});
      continue;
    }
    const bool other = known != streams_.end() && !has_ended(*known->second) &&
                       known->second->settings().origin != MediaOrigin::configuration;
    if (other) return make_error("the stream " + settings.name + " is in the table already, and not by this file");
    const bool stays = known != streams_.end() && !has_ended(*known->second);
    if (auto ok = stays ? keeps_no_key(*known->second, settings) : Expected<void>(); !ok) {
      return tl::unexpected(ok.error());
    }
    auto made = MediaStream::make(std::move(settings), keys_);
    if (!made) return tl::unexpected(made.error());
    replacement.fresh.push_back(std::move(*made));
  }
  for (const auto& [key, stream] : streams_) {
    const bool of_file = stream->settings().origin == MediaOrigin::configuration && !has_ended(*stream);
    if (of_file && !wanted.contains(key)) replacement.gone.push_back(key);
  }
  if (streams_.size() - guards_.size() + replacement.fresh.size() > capacity_) {
    return make_error("the table of streams is full: raise [srtp] max_keys");
  }
  return replacement;
}

// The API may have added one since prepare() looked, for which the file's takes its place.
void Streams::give_back_apis(const MediaKey& key) {
  const auto known = streams_.find(key);
  if (known == streams_.end() || has_ended(*known->second) || admission_ == nullptr) return;
  const MediaStreamSettings& settings = known->second->settings();
  if (settings.origin == MediaOrigin::api) admission_->remove(demand_of(settings));
}

void Streams::commit(const Replacement& replacement) {
  const std::lock_guard lock(mutex_);
  for (const MediaKey& key : replacement.gone) {
    if (streams_.contains(key)) end_one(key, true);
  }
  for (const auto& stream : replacement.fresh) give_back_apis(stream->settings().key);
  put_limits(replacement.kept);  // and lines of the new file, which warnings name
  (void)put_all(replacement.fresh);
  count();
  await_lanes();
}

}  // namespace sluice::function
