// Says on standard error what a bench is doing while it says nothing else: after two seconds, and then every ten, one
// line each, whether or not that is a terminal; standard output has the figures alone.
//
//   const Progress progress("setting up the gateway");   ->   bench: setting up the gateway: 2 s
//   const Progress progress("holding the rate", 60);     ->   bench: holding the rate: 12 of 60 s
//
// Of nested ones the outermost speaks. Thread-safety: made and destroyed on one thread. Cost: a thread that sleeps.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::cli::bench {

class Progress {
 public:
  struct Pace {
    std::chrono::milliseconds first{2'000}, then{10'000};
  };
  // `seconds` that it will take; 0: not known.
  explicit Progress(std::string what, double seconds = 0) : Progress(std::move(what), seconds, Pace{}) {}
  Progress(std::string what, double seconds, Pace pace);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void speak(double seconds, Pace pace);

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  bool speaks_ = false;
  std::thread thread_;
};

}  // namespace sluice::cli::bench
