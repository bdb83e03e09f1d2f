// Where a lane computes when it may choose between its core and its GPU (device = "auto", or a list with "cpu"). The
// order of a lane's frames holds whatever it does, because batches leave in the order of their tickets.
//
// A core that keeps up is the better one: its frames wait for no time point. So a lane begins there, and stays as long
// as its queue runs empty at least once in a window. When it does not, in eight of them in a row, the lane is
// saturated. What it carried then is `core_rate`, and the lane goes to the device, unless that is known to carry no
// more.
//
// With the device a lane is saturated when, in a window, it had no batch to receive into, refused frames as overdue, or
// did not once empty its queue. What it carried then, in several windows in a row, is `device_rate`.
//   * device_rate is below 95 % of core_rate: the lane goes back to its core, which it saturates there.
//   * The device is the limit, not the lane's thread: then 79 % of device_rate counts. Others take what the lane
//   leaves.
//   * Not saturated, and its load is below 80 % of core_rate for some windows: it goes back, and the core keeps up.
// The lanes that go back because the device is slower do so one after the other (ChoiceTurns). Each of them makes the
// device's share of the others larger. So some lanes may stay with the device, and others not.
//
// What is known gets old: frames cost more or less than when it was measured.
//   * On the core, saturated, the lane tries the device again after `retry`, which doubles each time that it was
//     slower, up to `longest_retry`.
//   * On the device, two small batches in a while (`probe_due()`) are computed on the core. The second one says what a
//     frame costs there now, rather too much. If the core can do more than was known by it, the lane goes back as
//     above.
//   * Measured on a thread that is stalled, or cold, core_rate is too low. So a lane tries its core, too, `try_core`
//     after it has left it, if its load is below 125 % of what the core is known to do.
//   * A lane that comes back and is saturated within a second is careful for `retry`. One that came to try, and is so
//     within `retry`, is careful for `try_core`. Each time it is for twice as long: the lane believes no probes, tries
//     nothing, and comes back below 60 %.
//
// A window in which the machine did not run the thread (stall.h) and the one behind it say nothing, unless there has
// been no other one for long: then it is how the machine is. Nor does one in which nothing came and the queue was not
// looked at, as while the core has no free batch.
//
// Thread-safety: the collector's thread; probed_later() the forwarder's; view() any. Cost: an addition for a receive, a
// comparison and at times some divisions for one that brought frames. Source: "opportunistic
// offloading" is PacketShader's word (Han, Jang, Park, Moon 2010, section 7) for the aim; the method is ours.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/counters.h"
#include "engine/inline_pace.h"

namespace sluice::engine {

// Of all lanes: only one at a time does what changes the device's load for the others.
class ChoiceTurns {
 public:
  // Whether it is the caller's turn; then nobody else has one for `ticks`.
  bool take(std::uint64_t now, std::uint64_t ticks) {
    std::uint64_t next = next_.load(std::memory_order_relaxed);
    return now >= next && next_.compare_exchange_strong(next, now + ticks, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> next_{0};
};

class DeviceChoice {
 public:
  // Why the lane is where it is.
  enum class Why : std::uint8_t {
    begins,         // on the core: nothing is known yet
    light,          // on the core, which can do what comes
    core_faster,    // on the core, saturated: the device carried less
    device_faster,  // on the device: the core carried less than what comes
    tries_device,   // on the device: what it carries is to be measured
    tries_core,     // on the core: likewise
    device_down,    // on the core: the device does not take batches
  };
  static const char* text(Why why);

  // In ticks.
  struct Limits {
    std::uint64_t window;         // on the core
    std::uint64_t device_window;  // some cycles
    std::uint64_t retry, longest_retry;
    std::uint64_t try_core;  // at first; longest_retry at the longest
    std::uint64_t probe;     // between two probes; 0: none
    std::uint64_t second;    // ticks of a second
  };
  // `turns`: shared by all lanes; has to live as long.
  DeviceChoice(const Limits& limits, ChoiceTurns& turns);

  // Of the lane's thread since it began, in ticks.
  struct Thread {
    std::uint64_t stalled;  // all of its stalls
    std::uint64_t busy;     // in rounds of the lane that moved something
  };
  // After every receive that the lane had a batch for. `frames`: that it brought and that were let in; `now`: when the
  // lane looked, not when they had come; not used without any; `thread`: says a Thread.
  template <class Ask>
  void received(std::uint32_t frames, bool took_all, std::uint64_t now, const Ask& thread) {
    drained_ |= took_all;
    if (frames == 0) return;
    frames_ += frames;
    look(now, thread);
  }
  // Frames were refused as overdue.
  void refused() { refused_ = true; }
  // There was no batch to receive into.
  template <class Ask>
  void blocked(std::uint64_t now, const Ask& thread) {
    blocked_now_ = true;
    look(now, thread);
  }
  // Windows end without frames, too.
  template <class Ask>
  void look(std::uint64_t now, const Ask& thread) {
    if (now - window_began_ >= window_) end_window(now, thread());
  }
  // Whether the device takes batches. While it does not, the lane is on its core.
  void set_device_up(bool up) {
    if (up != device_up_) [[unlikely]]
      device_changes(up);
  }
  bool on_device() const { return on_device_; }

  // Whether the next small batch is to be computed on the core all the same.
  bool probe_due(std::uint64_t now) const {
    return on_device_ && limits_.probe != 0 && (is_warm_ || now >= next_probe_);
  }
  // What it took there, in the first pass and in those behind it.
  void probed(std::uint64_t now, std::uint64_t ticks, std::uint32_t frames);
  void probed_later(std::uint64_t ticks, std::uint32_t frames) { probe_later_.took(ticks, frames); }

  struct View {
    bool on_device;
    Why why;
    std::uint64_t core_rate, device_rate;  // frames in a second when it was saturated there; 0: not known
    std::uint64_t core_cost;               // of a frame, by the last probes, in FrameCost::scale of a tick; 0: none
    std::uint64_t moves;                   // from the core to the device and back
  };
  View view() const;

 private:
  struct Window {
    std::uint64_t frames, ticks;
    bool saturated, blocked;
  };
  void end_window(std::uint64_t now, const Thread& thread);
  bool says_nothing(bool stalled);
  void on_core(std::uint64_t now, const Window& window);
  void with_device(std::uint64_t now, const Window& window);
  void device_changes(bool up);
  // device_rate, as far as it counts.
  std::uint64_t worth() const;
  void go(bool to_device, Why why, std::uint64_t now);
  std::uint64_t rate(std::uint64_t frames, std::uint64_t ticks) const;
  // What the core could carry, by what is known.
  std::uint64_t core_can(std::uint64_t now) const;

  Limits limits_;
  ChoiceTurns* turns_;
  bool on_device_ = false, device_up_ = false;
  // The window, and what the thread had done when it began.
  std::uint64_t window_ = 0, window_began_ = 0, frames_ = 0;
  Thread thread_{};
  bool drained_ = true, refused_ = false, blocked_now_ = false;
  unsigned say_nothing_ = 0, said_nothing_ = 0;  // so many windows from now on, and until now
  // Windows in a row, and what came in the saturated ones.
  unsigned saturated_ = 0, blocked_ = 0, light_ = 0;
  std::uint64_t saturated_frames_ = 0, saturated_ticks_ = 0;
  std::uint64_t saturated_rate_ = 0;  // of the core
  // When the device is tried again, how long after that, and the core's rate when it was tried last.
  std::uint64_t retry_at_ = 0, retry_ = 0, tried_at_rate_ = 0;
  // When the lane went where it is; when it came to the core on trust, 0: it did not; until when it is careful, and for
  // how long the next time, or behind a try.
  std::uint64_t went_at_ = 0, came_back_at_ = 0, careful_until_ = 0;
  std::uint64_t careful_for_ = 0, try_for_ = 0;
  bool came_to_try_ = false;
  // Probes: when the next one is, and how many there were with the device.
  std::uint64_t next_probe_ = 0;
  unsigned probes_ = 0;
  bool is_warm_ = false;          // the first one of two was just now
  std::uint64_t lane_cost_ = 0;   // of a frame with the device, in FrameCost::scale of a tick
  bool device_is_limit_ = false;  // as device_rate was measured
  Counter probe_;
  Counter core_rate_, device_rate_, moves_;
  std::atomic<Why> why_{Why::begins};
  std::atomic<bool> shown_on_device_{false};
  alignas(64) FrameCost probe_later_;  // the forwarder's
};

}  // namespace sluice::engine
