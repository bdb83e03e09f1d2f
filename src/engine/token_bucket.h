// A token bucket on the time-stamp counter: a rate, and a burst that may come at once after a pause.
//
// Thread-safety: none; each lane thread has its own. Cost: a few ns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::engine {

class TokenBucket {
 public:
  // Adds a token every `ticks_per_token` ticks and holds `burst` tokens at most. It begins full.
  TokenBucket(std::uint64_t ticks_per_token, std::uint64_t burst)
      : ticks_per_token_(ticks_per_token), most_(ticks_per_token * burst), credit_(most_) {}

  // Takes a token, if there is one at the moment `now`. A moment before that of the last call counts as that one.
  bool take(std::uint64_t now) {
    if (now > last_) {
      credit_ += std::min(now - last_, most_ - credit_);
      last_ = now;
    }
    if (credit_ < ticks_per_token_) {
      return false;
    }
    credit_ -= ticks_per_token_;
    return true;
  }

 private:
  std::uint64_t ticks_per_token_;
  std::uint64_t most_;    // of the credit, in ticks
  std::uint64_t credit_;  // in ticks
  std::uint64_t last_ = 0;
};

}  // namespace sluice::engine
