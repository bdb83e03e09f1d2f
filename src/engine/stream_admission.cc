#include "engine/stream_admission.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "base/units.h"

namespace sluice::engine {
namespace {

std::string rate_text(std::uint64_t bits) {
  const auto rate = static_cast<double>(bits);
  if (bits >= 1'000'000'000) return fmt::format("{:.4g} Gbit/s", rate / 1e9);
  if (bits >= 1'000'000) return fmt::format("{:.4g} Mbit/s", rate / 1e6);
  return fmt::format("{:.4g} kbit/s", rate / 1e3);
}

}  // namespace

// Of the admission's mutex.
class StreamAdmission::Share {
 public:
  Share(std::chrono::nanoseconds of_deadline, std::uint64_t of_rate) : deadline(of_deadline), rate(of_rate) {}
  const std::chrono::nanoseconds deadline;
  std::uint64_t rate;
  bool is_there = true;
};

const char* stream_verdict_name(StreamVerdict verdict) {
  constexpr const char* names[] = {"accepted", "rate_unknown", "too_much", "too_soon", "too_large", "not_measured"};
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
  // As beta + v <= B_I, without a sum that may wrap.
  return fits(demand.rate) ? StreamVerdict::accepted : StreamVerdict::too_much;
}

void StreamAdmission::count(const Key& key) {
  rate_ += key.second;
  ++streams_[key];
}

bool StreamAdmission::discount(const Key& key) {
  const auto found = streams_.find(key);
  if (found == streams_.end()) return false;
  if (--found->second == 0) streams_.erase(found);
  rate_ -= key.second;
  return true;
}

void StreamAdmission::take(const StreamDemand& demand) {
  count({demand.deadline.count(), demand.rate});
  ++count_;
  if (!demand.share.empty()) shares_[demand.share] = std::make_shared<Share>(demand.deadline, demand.rate);
}

void StreamAdmission::count_refusal(StreamVerdict verdict) {
  ++refused_;
  if (verdict == StreamVerdict::not_measured) ++refused_not_measured_;
}

bool StreamAdmission::give_back(const StreamDemand& demand, std::shared_ptr<Share>* share) {
  Key key{demand.deadline.count(), demand.rate};
  if (!demand.share.empty()) {
    const auto found = shares_.find(demand.share);
    if (found == shares_.end()) return false;
    key = {found->second->deadline.count(), found->second->rate};
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
  StreamAnswer answer{.demand = demand, .capacity = capacity_, .rate_before = taken()};
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

std::optional<StreamAdmission::Refused> StreamAdmission::replace(const std::vector<StreamDemand>& gone,
                                                                 const std::vector<StreamDemand>& come,
                                                                 Replaced* replaced) {
  const std::lock_guard lock(mutex_);
  std::multiset<StreamDemand> before(gone.begin(), gone.end());
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < come.size(); ++i) {
    if (const auto same = before.find(come[i]); same != before.end()) {
      before.erase(same);
    } else {
      fresh.push_back(i);
    }
  }
  Replaced change;
  for (const StreamDemand& one : before) {
    std::shared_ptr<Share> share;
    if (give_back(one, &share)) change.gone.emplace_back(one, std::move(share));
  }
  for (const std::size_t index : fresh) {
    const StreamVerdict verdict = enforced_ ? judge(come[index]) : StreamVerdict::accepted;
    if (verdict != StreamVerdict::accepted) {
      Refused refused{index, {verdict, come[index], capacity_, taken()}};
      restore(change);
      count_refusal(verdict);
      return refused;
    }
    take(come[index]);
    change.come.push_back(come[index]);
  }
  if (replaced != nullptr) {
    for (const auto& [one, share] : change.gone) change.reserved += share == nullptr ? one.rate : share->rate;
    reserved_ += change.reserved;
    *replaced = std::move(change);
  }
  return std::nullopt;
}

void StreamAdmission::settle(const Replaced& replaced) {
  const std::lock_guard lock(mutex_);
  reserved_ -= replaced.reserved;
}

void StreamAdmission::undo(const Replaced& replaced) {
  const std::lock_guard lock(mutex_);
  reserved_ -= replaced.reserved;
  restore(replaced);
}

void StreamAdmission::restore(const Replaced& replaced) {
  for (const StreamDemand& one : replaced.come) give_back(one);
  for (const auto& [one, share] : replaced.gone) {
    if (share == nullptr) {
      take(one);
      continue;
    }
    count({share->deadline.count(), share->rate});
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
  StreamAnswer answer{.demand = {}, .capacity = capacity_, .rate_before = taken()};
  answer.demand.deadline = share->deadline;
  answer.demand.rate = after > before ? after - before : 0;
  if (enforced_ && after > before) {
    if (!capacity_.measured) {
      answer.verdict = StreamVerdict::not_measured;
    } else if (!fits(answer.demand.rate)) {
      answer.verdict = StreamVerdict::too_much;
    }
  }
  if (!answer.accepted()) return answer;
  discount({share->deadline.count(), share->rate});
  share->rate = share->rate - std::min(before, share->rate) + after;
  count({share->deadline.count(), share->rate});
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
          .shortest_deadline = std::chrono::nanoseconds(streams_.empty() ? 0 : streams_.begin()->first.first),
          .streams = count_,
          .refused = refused_,
          .refused_not_measured = refused_not_measured_};
}

std::string StreamAdmission::text() const {
  const State now = state();
  return fmt::format("{} of {}, of {} that the device carries in time{}; deadlines have to be above {}",
                     counted_text(now.streams, "stream"), rate_text(now.rate), rate_text(now.capacity.rate),
                     enforced_ ? "" : ", which admits all the same", duration_text(now.capacity.bound));
}

}  // namespace sluice::engine
