// v of a stream that nobody can know beforehand: it is given a rate at first, what it brings is measured, and then it
// holds that and a margin; more when it brings more later, but never beyond what it was given, and never less again.
// How streams do it: Streams::measure(); why: docs/real-time.md.
//
// Windows are half of what the bucket holds of the rate, a second at most. A bucket of the measured rate holds as much
// of that, so a stream that goes on as it was measured loses nothing (engine/rate_meter.h).
//
// Thread-safety: meter() lanes, beside all else; that is one thread's at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/rate_meter.h"
#include "engine/stream_admission.h"
#include "function/srtp/media_frame.h"

namespace sluice::function {

// What may come: bits of frames a second, as they come in, how many bytes at once, and of how many bytes a frame.
struct StreamRate {
  std::uint64_t bits, burst;
  std::uint32_t largest = 0;  // 0: what fits
  bool operator==(const StreamRate&) const = default;
};

struct MeasureSettings {
  std::chrono::nanoseconds time{std::chrono::seconds(10)};  // of windows with frames
  std::uint32_t margin = 25;                                // per cent beyond the fullest one
  std::string share;                                        // engine::StreamDemand's
  std::optional<MediaKey> follows;  // RTCP: it has the same part of what this stream is found to bring as of its rate

  bool measures_as(const MeasureSettings& other) const {
    return time == other.time && margin == other.margin && follows == other.follows;
  }
};

class MeasuredRate {
 public:
  using Share = std::shared_ptr<engine::StreamAdmission::Share>;
  // `least_burst`: bytes that a bucket holds at least. `share`: null: nothing is admitted.
  MeasuredRate(const StreamRate& given, const MeasureSettings& settings, std::uint64_t least_burst,
               std::uint64_t tsc_hz, Share share);
  // With other settings, or another burst, for the same rate: what `before` holds stays.
  void go_on_from(const MeasuredRate& before);

  // Null: it follows another stream.
  engine::RateMeter* meter() { return meter_ ? &*meter_ : nullptr; }
  const StreamRate& given() const { return given_; }
  const MeasureSettings& settings() const { return settings_; }
  const Share& share() const { return share_; }
  void set_share(Share share) { share_ = std::move(share); }

  // v now, and its bucket.
  std::uint64_t bits() const { return bits_; }
  std::uint64_t burst() const;
  bool is_measured() const { return measured_; }
  // v as it should be by now; empty: as it is, or not known yet.
  std::optional<std::uint64_t> wanted() const;
  std::optional<std::uint64_t> wanted_beside(const MeasuredRate& followed) const;
  void set(std::uint64_t bits);
  // Whether this is more than was refused before.
  bool note_refused(std::uint64_t bits);

 private:
  StreamRate given_;
  MeasureSettings settings_;
  std::uint64_t least_burst_, tsc_hz_;
  Share share_;
  std::optional<engine::RateMeter> meter_;
  std::uint64_t bits_, refused_ = 0;
  bool measured_ = false;
};

}  // namespace sluice::function
