#include "engine/device_choice.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr unsigned saturated_windows = 8;    // on the core; behind a burst, or a stall, some are
constexpr unsigned measured_windows = 4;     // of a saturated device
constexpr unsigned settling_windows = 2;     // until the device has the lane's load, and nothing of the core's is left
constexpr unsigned light_windows = 4;        // with the device
constexpr unsigned stalled_windows = 2;      // the one with the stall, and that in which its backlog is worked off
constexpr unsigned most_silent_windows = 8;  // in a row
constexpr unsigned believed_probes = 8;      // before, the average follows the first ones
constexpr std::uint64_t few_ticks = 1024;

// Of 100, of what the core can do. Below this load a lane goes back to it:
constexpr std::uint64_t light_part = 80;
// or this one, if it was saturated there shortly after;
constexpr std::uint64_t careful_part = 60;
// and below this one it tries the core.
constexpr std::uint64_t tried_part = 125;
// Of 100, of another rate. Below it a rate is worse, or is one of other frames.
constexpr std::uint64_t slower_part = 95, other_part = 75;
// Of 100: what a share counts of a device that is the limit.
constexpr std::uint64_t share_part = 79;

}  // namespace

const char* DeviceChoice::text(Why why) {
  switch (why) {
    case Why::begins:
      return "nothing is known yet";
    case Why::light:
      return "it keeps up";
    case Why::core_faster:
      return "the GPU carried less";
    case Why::device_faster:
      return "the core carried less";
    case Why::tries_device:
      return "what it carries is being measured";
    case Why::tries_core:
      return "what it carries is being measured";
    case Why::device_down:
      return "the GPU does not take part";
  }
  return "";
}

DeviceChoice::DeviceChoice(const Limits& limits, ChoiceTurns& turns)
    : limits_(limits),
      turns_(&turns),
      window_(limits.window),
      retry_(limits.retry),
      careful_for_(limits.retry),
      try_for_(limits.try_core) {}

std::uint64_t DeviceChoice::rate(std::uint64_t frames, std::uint64_t ticks) const {
  return static_cast<std::uint64_t>(static_cast<double>(frames) * static_cast<double>(limits_.second) /
                                    static_cast<double>(std::max<std::uint64_t>(ticks, 1)));
}

void DeviceChoice::end_window(std::uint64_t now, const Thread& thread) {
  // A core that has no batch waits for what it gave the device before.
  const bool is_short = !drained_ || refused_ || (on_device_ && blocked_now_);
  const Window window{frames_, now - window_began_, is_short, blocked_now_};
  const bool first = window_began_ == 0, stalled = thread.stalled != thread_.stalled;
  if (on_device_ && frames_ != 0) {  // small bursts cost more than those of a high load would
    const std::uint64_t cost = (thread.busy - thread_.busy) * FrameCost::scale / frames_;
    lane_cost_ = lane_cost_ == 0 ? cost : std::min(cost, lane_cost_ + lane_cost_ / 64);
  }
  window_began_ = now;
  const std::uint64_t frames = std::exchange(frames_, 0);
  drained_ = refused_ = blocked_now_ = false;
  thread_ = thread;
  // Nothing came, and it was not looked whether something waits.
  const bool is_blind = frames == 0 && is_short;
  if (first || is_blind || says_nothing(stalled)) return;
  if (on_device_) {
    with_device(now, window);
  } else {
    on_core(now, window);
  }
}

bool DeviceChoice::says_nothing(bool stalled) {
  if (stalled && said_nothing_ < most_silent_windows) say_nothing_ = std::max(say_nothing_, stalled_windows);
  if (say_nothing_ == 0) {
    if (!stalled) said_nothing_ = 0;
    return false;
  }
  --say_nothing_;
  ++said_nothing_;
  return true;
}

std::uint64_t DeviceChoice::worth() const {
  return device_rate_.get() * (device_is_limit_ ? share_part : 100) / 100;
}

void DeviceChoice::on_core(std::uint64_t now, const Window& window) {
  if (!window.saturated) {
    saturated_ = 0;
    why_.store(Why::light, std::memory_order_relaxed);
    return;
  }
  // A window in which the machine did not run the thread for a while shows less than the core can do.
  const std::uint64_t carried = rate(window.frames, window.ticks);
  saturated_rate_ = saturated_ == 0 ? carried : std::max(carried, (7 * saturated_rate_ + carried) / 8);
  if (++saturated_ < saturated_windows) return;
  const std::uint64_t core = saturated_rate_;
  core_rate_.set(core);
  if (came_back_at_ != 0) {
    const std::uint64_t stayed = now - std::exchange(came_back_at_, 0);
    std::uint64_t& next = came_to_try_ ? try_for_ : careful_for_;
    if (stayed < (came_to_try_ ? limits_.retry : limits_.second)) {
      careful_until_ = now + next;
      next = std::min(2 * next, limits_.longest_retry);
    } else {
      next = came_to_try_ ? limits_.try_core : limits_.retry;
    }
  }
  why_.store(Why::core_faster, std::memory_order_relaxed);
  if (!device_up_) return;
  if (device_rate_.get() == 0) return go(true, Why::tries_device, now);
  if (worth() * slower_part > core * 100) return go(true, Why::device_faster, now);
  // Frames that cost the core another time than when the device was tried may cost the device another one, too.
  const bool is_settled = now - went_at_ >= limits_.second;
  const bool is_other =
      is_settled && (core * 100 < tried_at_rate_ * other_part || tried_at_rate_ * 100 < core * other_part);
  if ((now >= retry_at_ || is_other) &&
      turns_->take(now, limits_.device_window * (settling_windows + 2 * measured_windows))) {
    go(true, Why::tries_device, now);
  }
}

void DeviceChoice::with_device(std::uint64_t now, const Window& window) {
  if (window.saturated) {
    light_ = 0;
    saturated_frames_ += window.frames;
    saturated_ticks_ += window.ticks;
    blocked_ += window.blocked ? 1 : 0;
    if (++saturated_ < measured_windows) return;
    device_rate_.set(rate(saturated_frames_, saturated_ticks_));
    device_is_limit_ = blocked_ == measured_windows;
    saturated_frames_ = saturated_ticks_ = 0;
    saturated_ = blocked_ = 0;
    if (worth() * 100 >= core_can(now) * slower_part) {
      retry_ = limits_.retry;
      why_.store(Why::device_faster, std::memory_order_relaxed);
      return;
    }
    if (!turns_->take(now, limits_.device_window * (settling_windows + measured_windows))) return;
    retry_at_ = now + retry_;
    retry_ = std::min(2 * retry_, limits_.longest_retry);
    tried_at_rate_ = core_rate_.get();
    return go(false, Why::core_faster, now);
  }
  saturated_ = blocked_ = 0;
  saturated_frames_ = saturated_ticks_ = 0;
  why_.store(Why::device_faster, std::memory_order_relaxed);
  const bool is_careful = now < careful_until_;
  const std::uint64_t can = core_can(now), load = rate(window.frames, window.ticks);
  if (load * 100 < can * (is_careful ? careful_part : light_part)) {
    if (++light_ == light_windows) go(false, Why::light, now);
    return;
  }
  light_ = 0;
  if (!is_careful && now - went_at_ >= limits_.try_core && load * 100 < can * tried_part &&
      turns_->take(now, limits_.window * 2 * saturated_windows)) {
    go(false, Why::tries_core, now);
  }
}

std::uint64_t DeviceChoice::core_can(std::uint64_t now) const {
  const std::uint64_t cost = probe_.get() + probe_later_.get() + lane_cost_;
  if (probes_ < believed_probes || now < careful_until_ || cost == 0) return core_rate_.get();
  return std::max(core_rate_.get(), limits_.second * FrameCost::scale / cost);
}

void DeviceChoice::probed(std::uint64_t now, std::uint64_t ticks, std::uint32_t frames) {
  if (frames == 0) return;
  is_warm_ = !is_warm_;
  if (is_warm_) return;  // the first one of two brings what the second one finds in the cache
  const std::uint64_t had = probe_.get();
  // What interrupted one probe is not the frames' cost.
  const std::uint64_t cost = std::min(ticks * FrameCost::scale / frames, 4 * had + few_ticks * FrameCost::scale);
  probe_.set((had + cost) / 2);
  ++probes_;
  next_probe_ = now + limits_.probe;
}

void DeviceChoice::device_changes(bool up) {
  device_up_ = up;
  device_rate_.set(0);
  retry_ = limits_.retry;
  retry_at_ = 0;
  if (on_device_) go(false, Why::device_down, window_began_);
}

void DeviceChoice::go(bool to_device, Why why, std::uint64_t now) {
  on_device_ = to_device;
  shown_on_device_.store(to_device, std::memory_order_relaxed);
  why_.store(why, std::memory_order_relaxed);
  moves_.add(1);
  window_ = to_device ? limits_.device_window : limits_.window;
  window_began_ = now;
  frames_ = 0;
  drained_ = refused_ = blocked_now_ = false;
  saturated_ = blocked_ = light_ = 0;
  saturated_frames_ = saturated_ticks_ = 0;
  say_nothing_ = settling_windows;
  went_at_ = now;
  came_to_try_ = why == Why::tries_core;
  came_back_at_ = why == Why::light || came_to_try_ ? now : 0;
  lane_cost_ = 0;
  is_warm_ = false;
  probes_ = 0;
  next_probe_ = now + limits_.probe;
}

DeviceChoice::View DeviceChoice::view() const {
  return {.on_device = shown_on_device_.load(std::memory_order_relaxed),
          .why = why_.load(std::memory_order_relaxed),
          .core_rate = core_rate_.get(),
          .device_rate = device_rate_.get(),
          .core_cost = probe_.get() + probe_later_.get(),
          .moves = moves_.get()};
}

}  // namespace sluice::engine
