// One core's thread: the rounds of its lanes in turn, and a sleep when polling is adaptive and nothing comes.
//
// A sleeping thread waits for the ports' file descriptors where their drivers have them, for its bell, and otherwise
// looks again after a time that grows with the silence, to a share of the deadline. Frames that wait for a time point,
// a device or the forwarder are never slept on for long.
#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/bell.h"
#include "engine/lane.h"
#include "engine/stall.h"

namespace sluice::engine {

class LaneThread {
 public:
  // `longest_sleep`: before it looks again at a port that cannot wake it (bound.h).
  LaneThread(int core, bool busy, Scheduling scheduling, std::chrono::nanoseconds longest_sleep)
      : core_(core), busy_(busy), scheduling_(scheduling), longest_sleep_(longest_sleep) {}
  ~LaneThread() { stop(); }

  // Before start(). A lane has one collecting and one forwarding thread; both may be this one.
  void collects(Lane* lane) { collected_.push_back(lane); }
  void forwards(Lane* lane) {
    forwarded_.push_back(lane);
    keeps_time_ = keeps_time_ || lane->parts().pipeline->keeps_time();
  }
  // Helpers compute with it; null: none do.
  void set_share(ComputeShare* share) { share_ = share; }
  Lane::Side side() { return {&stalls_, &bell_, share_}; }

  void start();
  // Asks the thread to end and waits for it; it ends at once, so drain the lanes first.
  void stop();
  void wake() { bell_.ring(); }

  int core() const { return core_; }
  const StallWatch& stalls() const { return stalls_; }

 private:
  void run();
  unsigned round();
  bool holds_frames() const;
  void sleep(std::chrono::nanoseconds& timed);
  void clear_errors();

  std::vector<Lane*> collected_, forwarded_;
  int core_;
  bool busy_;
  Scheduling scheduling_;
  std::chrono::nanoseconds longest_sleep_;
  ComputeShare* share_ = nullptr;
  Bell bell_;
  StallWatch stalls_;
  bool must_look_ = false;   // a port that cannot wake the thread
  bool keeps_time_ = false;  // an element that wants to be called while there is nothing to do
  std::vector<pollfd> descriptors_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice::engine
