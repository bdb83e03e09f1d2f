// One core's thread: polls its lanes in turn, and sleeps a little longer with every idle round when polling is
// adaptive.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "engine/lane.h"

namespace sluice::engine {

class LaneThread {
 public:
  LaneThread(std::vector<Lane*> lanes, int core, bool busy) : lanes_(std::move(lanes)), core_(core), busy_(busy) {}
  ~LaneThread() { stop(); }
  void start();
  // Asks the thread to end and waits for it; it ends at once, so drain the lanes first.
  void stop();

 private:
  void run();

  std::vector<Lane*> lanes_;
  int core_;
  bool busy_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice::engine
