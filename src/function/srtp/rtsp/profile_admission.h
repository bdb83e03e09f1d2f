// Media of RTSP against the profile, beside [srtp.rtsp] max_rate: both must have capacity. A medium counts with all
// that it is held to (medium_rate.h), and is promised the deadline of its kind and server (medium_deadlines.h). One
// whose rate nobody says is refused where streams are admitted. One with a share gives the profile back what it does
// not bring (function/srtp/measured_rate.h), but nothing of max_rate.
//
// Thread-safety: as of Admission.
#pragma once

#include <chrono>
#include <utility>

#include "engine/stream_admission.h"
#include "function/srtp/rtsp/admission.h"
#include "function/srtp/rtsp/medium_deadlines.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function::rtsp {

class ProfileAdmission final : public Admission {
 public:
  // `streams` outlives it. `largest_packet`: of media, in bytes of the frame in clear; no description says it.
  ProfileAdmission(engine::StreamAdmission& streams, const function::RtspOptions& options, MediumDeadlines deadlines,
                   std::uint32_t largest_packet)
      : streams_(streams),
        budget_(options.max_rate, options.default_rate, options.rate_margin),
        usual_(options.default_rate),
        margin_(options.rate_margin),
        deadlines_(std::move(deadlines)),
        burst_time_(options.burst_time),
        largest_packet_(largest_packet),
        tag_(static_cast<std::uint32_t>(srtp::facts(options.suite).rtp_tag_length)) {}
  bool admit(const Medium& medium) override;
  void ended(const Medium& medium) override;
  MediumRate held_to(const Medium& medium) const override;
  std::string why() const override { return why_; }
  std::uint64_t used() const override { return budget_.used(); }

 private:
  MediumRate rate_of(const Medium& medium) const {
    return medium_rate({medium.rate == 0 ? usual_ : medium.rate, medium.client_opens}, margin_);
  }
  engine::StreamDemand demand(const Medium& medium) const;

  engine::StreamAdmission& streams_;
  RateBudget budget_;
  std::uint64_t usual_;
  std::uint32_t margin_;
  MediumDeadlines deadlines_;
  std::chrono::nanoseconds burst_time_;
  std::uint32_t largest_packet_, tag_;  // of a frame in clear, and what srtp adds
  std::string why_;
};

}  // namespace sluice::function::rtsp
