// What an Inspection is looking at, what that may still use, and when its batch is late: what a frame begins with anew,
// and what gives way while something of another packet or flow is inspected (inspection_as_if.h).
//
// Thread-safety: none, of one lane.
#pragma once

#include <x86intrin.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flow/flow.h"
#include "function/inspect/confirm_time.h"
#include "function/inspect/judgement.h"
#include "match/automaton/match_batch.h"
#include "match/confirm/packet_facts.h"

namespace sluice::function {

// The keys that a device has found in a frame's payload (match/automaton/match_batch.h).
struct KeyHits {
  std::uint64_t generation = 0;  // of the rules that they are of; of others than the Inspection's they are of no use
  const std::uint32_t* key = nullptr;
  std::uint32_t count = 0;  // above match::max_hits: not all are told, which is of no use either
  // FrameBrief::quiet of the frame, by the same rules.
  bool quiet = false;
};

// KeyHits as an Inspection may use them.
struct DeviceHits {
  KeyHits keys;
  bool known = false;     // they are all that there are, by the rules in force
  bool too_many = false;  // the device has found more keys than it tells, or has not seen the payload whole

  void take(const KeyHits& hits, std::uint64_t generation) {
    const bool looked = hits.generation == generation;
    keys = hits;
    known = looked && hits.count <= match::max_hits;
    too_many = looked && !known;
  }
};

struct Subject {
  std::string_view frame;  // empty: of none
  match::PacketFacts packet;
  flow::Direction direction = flow::Direction::to_server;
  DeviceHits hits;
  Judgement judgement;
  bool passed = false;  // a rule of `pass` has held
};

// What the frame, or another flow that it makes tell something, may still use.
struct InspectionShare {
  // Headers, and what a frame brings of a body, twice.
  static constexpr std::size_t least_allowance = 8192;

  ConfirmTime time;            // the batch's, of which it has its part
  std::uint64_t decoding = 0;  // ticks of the time that decoding has taken
  std::size_t allowance = 0;   // bytes of HTTP that are searched without being counted as time
  std::size_t waited = 0;      // likewise, of what waited in a stream
  std::uint32_t candidates = 0;

  // But for the time.
  void begin(std::uint32_t budget) {
    candidates = budget;
    allowance = least_allowance;
    waited = 0;
    decoding = 0;
  }
};

// When a batch is late: from a tick on, but time in which the thread did not run does not count. That is what takes
// longer than `away` ticks, and a tenth of them for each frame, since it last looked, besides confirming.
class Lateness {
 public:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void never_late() { until_ = never; }
  // `now`: when it is taken to have looked; `frames` and `spent`: as is_late() is told them. `away` 0: it always runs.
  void set(std::uint64_t until, std::uint64_t now, std::uint64_t away, std::uint64_t frames, std::uint64_t spent) {
    until_ = until;
    away_ = away;
    looked(now, frames, spent);
  }
  // Frames and ticks of confirming until now.
  bool is_late(std::uint64_t frames, std::uint64_t spent) {
    return until_ != never && is_late_at(__rdtsc(), frames, spent);
  }
  bool is_late_at(std::uint64_t now, std::uint64_t frames, std::uint64_t spent) {
    const std::uint64_t since = now - looked_, confirmed = spent - spent_;
    const bool was_away = away_ != 0 && since > away_ + (frames - frames_) * (away_ / 10) + confirmed;
    if (was_away && until_ != 0) until_ += since - confirmed;
    looked(now, frames, spent);
    return now >= until_;
  }

 private:
  void looked(std::uint64_t now, std::uint64_t frames, std::uint64_t spent) {
    looked_ = now;
    frames_ = frames;
    spent_ = spent;
  }

  std::uint64_t until_ = never, away_ = 0;
  std::uint64_t looked_ = 0, frames_ = 0, spent_ = 0;  // when it looked last
};

// Who of a batch may release all that waits in streams, though there is no time for it: one frame, and one other flow.
struct WholeReleases {
  bool allowed = true;
  std::uint64_t first_frame = 0;                 // by its number; 0: none yet
  const flow::Flow* first_other_flow = nullptr;  // null: none yet
  std::uint64_t frame = 0;                       // that may release what it does, having been asked for ahead
  std::uint64_t beyond = 0;                      // ticks, by those

  void begin(bool are_allowed) {
    *this = {};
    allowed = are_allowed;
  }
};

}  // namespace sluice::function
