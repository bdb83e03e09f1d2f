// A lane in virtual time, for tests of the bound (bound.h, docs/real-time.md): time points, sealing, a device that
// hands batches back in any order, and a forwarder that sends them in order, on the collector's thread, one in a round,
// or on one of its own. Its rounds are those of lane.h; what they take is given, so that each premise of the bound can
// be kept or broken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/bound.h"
#include "engine/burst.h"

namespace sluice::engine {

using Ns = std::int64_t;  // of virtual time

struct LaneModel {
  Ns cycle = 0;  // I
  unsigned overlap = 1;
  Ns jobs = 0;                                     // J, of jobs besides frames
  bool own_forwarder = true;                       // on a thread of its own
  Ns round = 100;                                  // of the collector, with or without a burst
  Ns collecting = 0;                               // besides, of each frame
  std::size_t capacity = SIZE_MAX;                 // of a batch, in frames
  bool waits_for_forwarder = false;                // a time point passes while the oldest batch is forwarded, too
  bool forwards_all = false;                       // in a round, on one thread, all that is back
  std::function<Ns(std::size_t batch)> on_device;  // T_S: from sealing to handing back
  // Instead, where a batch's size decides.
  std::function<Ns(std::size_t frames, Ns sealed)> on_device_by_size;
  std::function<Ns(std::size_t batch)> forwarding;          // of a whole batch
  std::function<void(std::size_t frame, Ns latency)> left;  // notified of each, by its place among the arrivals
  // What it did.
  Ns longest = 0;  // from a frame's arrival until its batch has left
  std::size_t frames = 0, batches = 0, full = 0;

  // `arrivals` in order. The collector's round in progress at a frame's arrival and the one that receives it are its µ,
  // as the one in progress at a time point.
  void run(const std::vector<Ns>& arrivals) {
    Ns now = 0, point = cycle;
    bool due = false, is_full = false;
    std::size_t next = 0;
    while (next < arrivals.size() || !open_.empty() || !in_flight_.empty()) {
      if (!is_full || backlog_ == 0) now = forward_until(now);
      if (now >= point) {
        point += (1 + (now - point) / cycle) * cycle;
        due = !open_.empty();
      }
      if (due && !behind(now)) {
        seal(now);
        due = false;
      }
      const std::size_t before = next;
      for (; next < arrivals.size() && arrivals[next] <= now && next < before + burst_size; ++next) {
        open_.push_back(arrivals[next]);
      }
      now += round + collecting * static_cast<Ns>(next - before);
      is_full = next - before == burst_size;
      backlog_ -= std::min(backlog_, next - before);
      if (open_.size() >= capacity) {
        ++full;
        seal(now);
        due = false;
      }
      if (next == before) {
        now = std::max(now, next_event(arrivals, next, point, now));
      }
    }
  }

 private:
  struct InFlight {
    Ns sealed, back;
    std::size_t number;
    std::vector<Ns> arrived;
  };

  void seal(Ns now) {
    const Ns spent = on_device_by_size ? on_device_by_size(open_.size(), now) : on_device(batches);
    in_flight_.push_back({now, now + spent, batches, std::move(open_)});
    open_.clear();
    ++batches;
  }
  Ns most_on_device() const { return cycle * overlap + jobs * (overlap + 1); }
  // As Lane::device_is_behind().
  bool behind(Ns now) const {
    if (waits_for_forwarder && forwarder_free_ > now && now - leaving_sealed_ > most_on_device()) return true;
    return std::ranges::any_of(
        in_flight_, [&](const InFlight& batch) { return batch.back > now && now - batch.sealed > most_on_device(); });
  }
  // What has come back leaves, in order; the time at which the collector's thread goes on.
  Ns forward_until(Ns now) {
    while (!in_flight_.empty()) {
      const InFlight& oldest = in_flight_.front();
      const Ns begin = std::max(oldest.back, forwarder_free_);
      if (begin > now) break;
      forwarder_free_ = (own_forwarder ? begin : now) + forwarding(oldest.number);
      for (const Ns arrival : oldest.arrived) {
        longest = std::max(longest, forwarder_free_ - arrival);
        if (left) left(frames, forwarder_free_ - arrival);
        ++frames;
      }
      leaving_sealed_ = oldest.sealed;
      backlog_ = own_forwarder ? 0 : std::max<std::size_t>(4 * burst_size, oldest.arrived.size() / 2);
      in_flight_.pop_front();
      if (!own_forwarder) {
        now = forwarder_free_;
        if (!forwards_all) break;
      }
    }
    return now;
  }
  Ns next_event(const std::vector<Ns>& arrivals, std::size_t next, Ns point, Ns now) const {
    Ns at = point;
    if (next < arrivals.size()) at = std::min(at, arrivals[next]);
    if (!in_flight_.empty()) at = std::min(at, std::max(in_flight_.front().back, forwarder_free_));
    if (waits_for_forwarder && forwarder_free_ > now) at = std::min(at, forwarder_free_);
    return at;
  }

  std::vector<Ns> open_;
  std::deque<InFlight> in_flight_;
  Ns forwarder_free_ = 0;
  std::size_t backlog_ = 0;  // frames, of what came while the last batch was forwarded
  Ns leaving_sealed_ = 0;    // of the batch that was forwarded last
};

}  // namespace sluice::engine
