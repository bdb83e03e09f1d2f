#include "function/srtp/measured_rate.h"

#include <algorithm>
#include <utility>

namespace sluice::function {
namespace {

using Wide = unsigned __int128;

std::uint64_t window_of(const StreamRate& rate, std::uint64_t tsc_hz) {
  const Wide half = Wide{rate.burst} * 8 * tsc_hz / rate.bits / 2;
  return static_cast<std::uint64_t>(std::clamp<Wide>(half, 1, tsc_hz));
}

// Of `whole` the same part as `bits` is of `of`.
std::uint64_t part(std::uint64_t whole, std::uint64_t bits, std::uint64_t of) {
  return static_cast<std::uint64_t>(Wide{whole} * bits / of);
}

}  // namespace

MeasuredRate::MeasuredRate(const StreamRate& given, const MeasureSettings& settings, std::uint64_t least_burst,
                           std::uint64_t tsc_hz, Share share)
    : given_(given),
      settings_(settings),
      least_burst_(std::min(least_burst, given.burst)),
      tsc_hz_(tsc_hz),
      share_(std::move(share)),
      bits_(given.bits) {
  if (!settings.follows) meter_.emplace(window_of(given, tsc_hz));
}

void MeasuredRate::go_on_from(const MeasuredRate& before) {
  bits_ = before.bits_;
  measured_ = before.measured_;
  refused_ = before.refused_;
}

std::uint64_t MeasuredRate::burst() const {
  return std::max(part(given_.burst, bits_, given_.bits), least_burst_);
}

std::optional<std::uint64_t> MeasuredRate::wanted() const {
  const Wide measured_ns = Wide{meter_->windows()} * meter_->window() * std::nano::den / tsc_hz_;
  if (!measured_ && measured_ns < static_cast<Wide>(settings_.time.count())) return std::nullopt;
  const Wide with_margin = Wide{meter_->rate(tsc_hz_)} * (100 + settings_.margin) / 100;
  const auto bits = static_cast<std::uint64_t>(std::clamp<Wide>(with_margin, 1, given_.bits));
  if (measured_ && bits <= bits_) return std::nullopt;
  return bits;
}

std::optional<std::uint64_t> MeasuredRate::wanted_beside(const MeasuredRate& followed) const {
  if (!followed.measured_) return std::nullopt;
  const std::uint64_t bits = std::max<std::uint64_t>(part(given_.bits, followed.bits_, followed.given_.bits), 1);
  if (measured_ && bits == bits_) return std::nullopt;
  return bits;
}

void MeasuredRate::set(std::uint64_t bits) {
  bits_ = bits;
  refused_ = 0;
  measured_ = true;
}

bool MeasuredRate::note_refused(std::uint64_t bits) {
  return std::exchange(refused_, std::max(refused_, bits)) < bits;
}

}  // namespace sluice::function
