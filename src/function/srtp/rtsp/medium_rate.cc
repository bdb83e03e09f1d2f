#include "function/srtp/rtsp/medium_rate.h"

#include <algorithm>
#include <limits>

namespace sluice::function::rtsp {
namespace {

using Wide = unsigned __int128;
using Rate = function::MediaStreamSettings::Rate;

constexpr Wide rtcp_part = 20;
constexpr Wide largest_burst = 1 << 30;

std::uint64_t capped(Wide bits) {
  return static_cast<std::uint64_t>(std::min<Wide>(bits, std::numeric_limits<std::uint64_t>::max()));
}

Rate bucket(Wide bits, std::chrono::nanoseconds burst_time, std::uint32_t largest_frame) {
  constexpr Wide bits_and_nanoseconds = 8 * Wide{std::nano::den};
  const Wide burst = std::min(bits * static_cast<Wide>(burst_time.count()) / bits_and_nanoseconds, largest_burst);
  return {capped(bits), std::max(static_cast<std::uint64_t>(burst), std::uint64_t{2} * largest_frame)};
}

}  // namespace

std::uint64_t MediumRate::sum() const {
  return capped(Wide{media} + (client_opens ? 3 : 2) * Wide{rtcp});
}

MediumRate medium_rate(const Medium& medium, std::uint32_t margin) {
  if (medium.rate == 0) return {};
  const Wide media = Wide{medium.rate} * (100 + margin) / 100;
  return {capped(media), capped(std::max<Wide>(media / rtcp_part, 1)), medium.client_opens};
}

// Each as if it had a bucket of its own.
std::uint64_t medium_burst(const MediumRate& rate, std::chrono::nanoseconds burst_time, std::uint32_t largest_frame) {
  if (rate.media == 0) return 0;
  return bucket(rate.media, burst_time, largest_frame).burst +
         (rate.client_opens ? 3 : 2) * bucket(rate.rtcp, burst_time, largest_frame).burst;
}

void police(std::vector<function::MediaStreamSettings>& streams, const MediumRate& rate,
            std::chrono::nanoseconds burst_time, std::uint32_t largest_frame,
            const std::optional<function::MeasureSettings>& measure) {
  if (rate.media == 0) return;
  for (function::MediaStreamSettings& one : streams) {
    const bool brings_media = &one == &streams.front();
    const Wide with_media = Wide{rate.media} + (one.carries == function::Carries::both ? rate.rtcp : 0);
    one.rate = bucket(brings_media ? with_media : rate.rtcp, burst_time, largest_frame);
    one.measure = measure;
    if (measure && !brings_media) one.measure->follows = streams.front().key;
  }
}

}  // namespace sluice::function::rtsp
