#include "engine/stream_admission.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/units.h"

namespace sluice::engine {
namespace {

std::string rate_text(std::uint64_t bits) {
  const auto rate = static_cast<double>(bits);
  if (bits >= 1'000'000'000) return fmt::format("{:.4g} Gbit/s", rate / 1e9);
  if (bits >= 1'000'000) return fmt::format("{:.4g} Mbit/s", rate / 1e6);
  return fmt::format("{:.4g} kbit/s", rate / 1e3);
}

std::string size_text(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= 1'000'000) return fmt::format("{:.4g} MB", size / 1e6);
  if (bytes >= 1'000) return fmt::format("{:.4g} kB", size / 1e3);
  return fmt::format("{} bytes", bytes);
}

// What is left of a cycle's work beside these rates, in bytes.
std::uint64_t burst_capacity(const StreamCapacity& capacity, std::uint64_t rate) {
  constexpr unsigned __int128 bits_and_nanoseconds = 8 * std::uint64_t{std::nano::den};
  const std::uint64_t left = capacity.rate - std::min(capacity.rate, rate);
  return static_cast<std::uint64_t>(left * static_cast<unsigned __int128>(capacity.cycle.count()) /
                                    bits_and_nanoseconds);
}

// Those that differ in nothing else are next to each other.
std::multiset<StreamDemand>::iterator find_but_for_its_burst(std::multiset<StreamDemand>& all, StreamDemand one) {
  one.burst = 0;
  const auto at = all.lower_bound(one);
  if (at == all.end()) return at;
  one.burst = at->burst;
  return *at == one ? at : all.end();
}

}  // namespace

// Of the admission's mutex.
class StreamAdmission::Share {
 public:
  Share(std::chrono::nanoseconds of_deadline, std::uint64_t of_rate, std::uint64_t of_burst)
      : deadline(of_deadline), burst(of_burst), rate(of_rate) {}
  const std::chrono::nanoseconds deadline;
  std::uint64_t burst;  // as it was given: a measured bucket is no larger
  std::uint64_t rate;
  bool is_there = true;
};

const char* stream_verdict_name(StreamVerdict verdict) {
  constexpr const char* names[] = {"accepted",  "rate_unknown", "too_much",  "too_soon",
                                   "too_large", "not_measured", "too_bursty"};
  return names[static_cast<int>(verdict)];
}

std::string StreamAnswer::text() const {
  switch (verdict) {
    case StreamVerdict::accepted:
      return fmt::format("{} accepted, {} of {} taken", rate_text(demand.rate), rate_text(rate_before + demand.rate),
                         rate_text(capacity.rate));
    case StreamVerdict::rate_unknown:
      return "its rate is not known: give the stream a rate, or its description a b=";
    case StreamVerdict::too_much:
      return fmt::format("{} beside the {} that are taken exceed the {} that the device carries in time",
                         rate_text(demand.rate), rate_text(rate_before), rate_text(capacity.rate));
    case StreamVerdict::too_soon:
      return fmt::format("a deadline of {} is not above the bound of this configuration, {}",
                         duration_text(demand.deadline), duration_text(capacity.bound));
    case StreamVerdict::too_large:
      return fmt::format(
          "packets of {} bytes, as the MTU allows or packet_bytes says, are larger than those of {} with which the "
          "device "
          "was measured: run sluice calibrate with --packets {}, or give the stream its packet_bytes",
          demand.largest_packet, capacity.largest_packet, demand.largest_packet);
    case StreamVerdict::not_measured:
      return "the device that [profile] is of does not compute, and what the CPU carries in its place was not measured";
    case StreamVerdict::too_bursty: {
      const std::uint64_t available = burst_capacity(capacity, rate_before + demand.rate);
      return fmt::format(
          "{} that it may bring at once, beside {} of those that are there, exceed the {} for which a cycle of {} has "
          "capacity "
          "beside their rates: a burst of {} would fit; a longer cycle has more capacity",
          size_text(demand.burst), size_text(burst_before), size_text(available), duration_text(capacity.cycle),
          size_text(available - std::min(available, burst_before)));
    }
  }
  return {};
}

// min(theta, d) > bound: theta fulfils it already, unless the capacity has changed since, and then it is no reason to
// refuse this one.
StreamVerdict StreamAdmission::judge(const StreamDemand& demand) const {
  if (!capacity_.measured) return StreamVerdict::not_measured;
  if (demand.deadline <= capacity_.bound) return StreamVerdict::too_soon;
  if (capacity_.largest_packet != 0 && demand.largest_packet > capacity_.largest_packet) {
    return StreamVerdict::too_large;
  }
  if (demand.rate == 0) return StreamVerdict::rate_unknown;
  return judge_capacity(demand.rate, demand.burst);
}

// As sums, without one that may wrap.
StreamVerdict StreamAdmission::judge_capacity(std::uint64_t rate, std::uint64_t burst) const {
  if (taken() > capacity_.rate || rate > capacity_.rate - taken()) return StreamVerdict::too_much;
  if (!capacity_.counts_bursts || capacity_.cycle.count() == 0) return StreamVerdict::accepted;
  const std::uint64_t available = burst_capacity(capacity_, taken() + rate);
  const bool fits = taken_burst() <= available && burst <= available - taken_burst();
  return fits ? StreamVerdict::accepted : StreamVerdict::too_bursty;
}

void StreamAdmission::count(const Key& key) {
  rate_ += key.rate;
  bursts_ += key.burst;
  ++streams_[key];
}

bool StreamAdmission::discount(const Key& key) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return false;
  if (--found->second == 0) streams_.erase(found);
  rate_ -= key.rate;
  bursts_ -= key.burst;
  return true;
}

void StreamAdmission::take(const StreamDemand& demand) {
  count({demand.deadline.count(), demand.rate, demand.burst});
  ++count_;
  if (!demand.share.empty()) {
    shares_[demand.share] = std::make_shared<Share>(demand.deadline, demand.rate, demand.burst);
  }
}

void StreamAdmission::count_refusal(StreamVerdict verdict) {
  ++refused_;
  if (verdict == StreamVerdict::not_measured) ++refused_not_measured_;
}

bool StreamAdmission::give_back(const StreamDemand& demand, std::shared_ptr<Share>* share) {
  Key key{demand.deadline.count(), demand.rate, demand.burst};
  if (!demand.share.empty()) {
    const auto found = shares_.find(demand.share);
    if (found == shares_.end()) return false;
    key = {found->second->deadline.count(), found->second->rate, found->second->burst};
    found->second->is_there = false;
    if (share != nullptr) *share = found->second;
    shares_.erase(found);
  }
  if (!discount(key)) return false;
  --count_;
  return true;
}

StreamAnswer StreamAdmission::add(const StreamDemand& demand) {
  const std::lock_guard lock(mutex_);
  StreamAnswer answer{.demand = demand, .capacity = capacity_, .rate_before = taken(), .burst_before = taken_burst()};
  if (enforced_) answer.verdict = judge(demand);
  if (answer.accepted()) {
    take(demand);
  } else {
    count_refusal(answer.verdict);
  }
  return answer;
}

bool StreamAdmission::remove(const StreamDemand& demand) {
  const std::lock_guard lock(mutex_);
  return give_back(demand);
}

void StreamAdmission::set_burst(Share& share, std::uint64_t burst) {
  discount({share.deadline.count(), share.rate, share.burst});
  share.burst = burst;
  count({share.deadline.count(), share.rate, share.burst});
}

std::optional<StreamAdmission::Refused> StreamAdmission::replace(const std::vector<StreamDemand>& gone,
                                                                 const std::vector<StreamDemand>& come,
                                                                 Replaced* replaced) {
  const std::lock_guard lock(mutex_);
  std::multiset<StreamDemand> before(gone.begin(), gone.end());
  Replaced change;
  if (auto refused = take_all(come, before, change)) {
    restore(change);
    count_refusal(refused->answer.verdict);
    return refused;
  }
  if (replaced != nullptr) {
    for (const auto& [one, share] : change.gone) {
      change.reserved += share == nullptr ? one.rate : share->rate;
      change.reserved_burst += share == nullptr ? one.burst : share->burst;
    }
    for (const auto& [share, burst] : change.bursts) change.reserved_burst += burst - std::min(burst, share->burst);
    reserved_ += change.reserved;
    reserved_burst_ += change.reserved_burst;
    *replaced = std::move(change);
  }
  return std::nullopt;
}

std::optional<StreamAdmission::Refused> StreamAdmission::take_all(const std::vector<StreamDemand>& come,
                                                                  std::multiset<StreamDemand>& before,
                                                                  Replaced& change) {
  struct Fresh {
    std::size_t index;
    std::shared_ptr<Share> share;  // of one that is there, with another burst
  };
  std::vector<Fresh> fresh;
  for (std::size_t i = 0; i < come.size(); ++i) {
    const auto share = come[i].share.empty() ? shares_.end() : shares_.find(come[i].share);
    auto same = before.find(come[i]);
    if (same == before.end() && share != shares_.end()) same = find_but_for_its_burst(before, come[i]);
    if (same == before.end()) {
      fresh.push_back({i, nullptr});
      continue;
    }
    if (*same != come[i]) fresh.push_back({i, share->second});
    before.erase(same);
  }
  for (const StreamDemand& one : before) {
    std::shared_ptr<Share> share;
    if (give_back(one, &share)) change.gone.emplace_back(one, std::move(share));
  }
  for (const auto& [index, share] : fresh) {
    const StreamDemand& one = come[index];
    StreamVerdict verdict = StreamVerdict::accepted;
    if (enforced_ && share == nullptr) verdict = judge(one);
    if (enforced_ && share != nullptr && one.burst > share->burst)
      verdict = judge_capacity(0, one.burst - share->burst);
    if (verdict != StreamVerdict::accepted) return Refused{index, {verdict, one, capacity_, taken(), taken_burst()}};
    if (share == nullptr) {
      take(one);
      change.come.push_back(one);
    } else {
      change.bursts.emplace_back(share, share->burst);
      set_burst(*share, one.burst);
    }
  }
  return std::nullopt;
}

void StreamAdmission::settle(const Replaced& replaced) {
  const std::lock_guard lock(mutex_);
  reserved_ -= replaced.reserved;
  reserved_burst_ -= replaced.reserved_burst;
}

void StreamAdmission::undo(const Replaced& replaced) {
  const std::lock_guard lock(mutex_);
  reserved_ -= replaced.reserved;
  reserved_burst_ -= replaced.reserved_burst;
  restore(replaced);
}

void StreamAdmission::restore(const Replaced& replaced) {
  for (const StreamDemand& one : replaced.come) give_back(one);
  for (const auto& [share, burst] : replaced.bursts) set_burst(*share, burst);
  for (const auto& [one, share] : replaced.gone) {
    if (share == nullptr) {
      take(one);
      continue;
    }
    count({share->deadline.count(), share->rate, share->burst});
    ++count_;
    share->is_there = true;
    shares_[one.share] = share;
  }
}

std::shared_ptr<StreamAdmission::Share> StreamAdmission::share(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = shares_.find(name);
  return found == shares_.end() ? nullptr : found->second;
}

std::optional<StreamAnswer> StreamAdmission::change(const std::shared_ptr<Share>& share, std::uint64_t before,
                                                    std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  if (share == nullptr || !share->is_there) return std::nullopt;
  StreamAnswer answer{.demand = {}, .capacity = capacity_, .rate_before = taken(), .burst_before = taken_burst()};
  answer.demand.deadline = share->deadline;
  answer.demand.rate = after > before ? after - before : 0;
  if (enforced_ && after > before) {
    answer.verdict = capacity_.measured ? judge_capacity(answer.demand.rate, 0) : StreamVerdict::not_measured;
  }
  if (!answer.accepted()) return answer;
  discount({share->deadline.count(), share->rate, share->burst});
  share->rate = share->rate - std::min(before, share->rate) + after;
  count({share->deadline.count(), share->rate, share->burst});
  return answer;
}

void StreamAdmission::set_capacity(const StreamCapacity& capacity) {
  const std::lock_guard lock(mutex_);
  capacity_ = capacity;
}

StreamAdmission::State StreamAdmission::state() const {
  const std::lock_guard lock(mutex_);
  return {.capacity = capacity_,
          .rate = rate_,
          .shortest_deadline = std::chrono::nanoseconds(streams_.empty() ? 0 : streams_.begin()->first.deadline),
          .streams = count_,
          .bursts = bursts_,
          .burst_capacity = burst_capacity(capacity_, rate_),
          .refused = refused_,
          .refused_not_measured = refused_not_measured_};
}

std::string StreamAdmission::text() const {
  const State now = state();
  return fmt::format("{} of {}, of {} that the device carries in time{}; deadlines have to be above {}",
                     counted_text(now.streams, "stream"), rate_text(now.rate), rate_text(now.capacity.rate),
                     enforced_ ? "" : ", which admits all the same", duration_text(now.capacity.bound));
}

std::string StreamAdmission::burst_note() const {
  const State now = state();
  if (now.capacity.cycle.count() == 0 || now.bursts <= now.burst_capacity) return {};
  return fmt::format(
      "streams may bring {} at once, and a cycle of {} has capacity for {} beside their rates: where more comes "
      "together, "
      "frames of all streams may be late. Smaller bursts or a longer cycle help, and [profile] bursts = \"admit\" "
      "refuses what does not fit",
      size_text(now.bursts), duration_text(now.capacity.cycle), size_text(now.burst_capacity));
}

}  // namespace sluice::engine
