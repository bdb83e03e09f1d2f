// Whether the gateway takes one more medium. Who can say it better puts another in its place.
//
// Thread-safety: the proxy's thread alone.
#pragma once

#include <cstdint>
#include <string>

#include "function/srtp/rtsp/medium_rate.h"

namespace sluice::function::rtsp {

class Admission {
 public:
  virtual ~Admission() = default;
  // Each yes is followed by one ended() of the same medium.
  virtual bool admit(const Medium& medium) = 0;
  virtual void ended(const Medium& medium) = 0;
  // What one that was admitted is held to.
  virtual MediumRate held_to(const Medium& medium) const = 0;
  // Why the last one was not admitted, with its numbers.
  virtual std::string why() const = 0;
  // Bits a second that are taken of max_rate.
  virtual std::uint64_t used() const = 0;
};

// As many as fit into `most` bits a second; 0: all, and none is held to a rate. One without a rate counts as `usual`.
// Beyond it a medium may bring `margin` per cent, which are not counted.
class RateBudget final : public Admission {
 public:
  RateBudget(std::uint64_t most, std::uint64_t usual, std::uint32_t margin)
      : most_(most), usual_(usual), margin_(margin) {}
  bool admit(const Medium& medium) override {
    const std::uint64_t wanted = taken_for(medium.rate);
    if (most_ != 0 && wanted > most_ - used_) {
      why_ = std::to_string(wanted) + " bit/s beside the " + std::to_string(used_) +
             " that are taken exceed max_rate = " + std::to_string(most_);
      return false;
    }
    used_ += wanted;
    return true;
  }
  void ended(const Medium& medium) override { used_ -= taken_for(medium.rate); }
  MediumRate held_to(const Medium& medium) const override {
    return medium_rate({taken_for(medium.rate), medium.client_opens}, margin_);
  }
  std::string why() const override { return why_; }
  std::uint64_t used() const override { return used_; }

 private:
  std::uint64_t taken_for(std::uint64_t rate) const { return most_ == 0 ? 0 : rate == 0 ? usual_ : rate; }
  std::uint64_t most_, usual_, used_ = 0;
  std::uint32_t margin_;
  std::string why_;
};

}  // namespace sluice::function::rtsp
