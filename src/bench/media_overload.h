// The paper's overload (section 4.4 of Zhang, Hu and Hua), by a running gateway: streams that together bring more than
// the device carries. With admission off all of them are late or lose frames; with it those that fit are on time, and
// the others, which were refused, bring nothing.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/goals.h"
#include "bench/media_bed.h"
#include "bench/media_report.h"
#include "engine/bound.h"
#include "engine/profile.h"
#include "engine/stream_admission.h"

namespace sluice::cli::bench {

// Of `streams` alike, one after the other, those that are accepted.
unsigned admitted_of(engine::StreamAdmission& admission, unsigned streams, const engine::StreamDemand& demand);

// What a profile says of this gateway, as it would be admitted by (control/stream_demands.h): an Error where it is of
// another one, has no cycle as short, or was measured with smaller packets. `timing` is with the usual µ, in whose
// place the profile's comes.
Expected<engine::StreamCapacity> capacity_of(const engine::Profile& profile, const engine::ProfileSubject& now,
                                             const engine::Timing& timing, std::uint32_t largest_packet);

// options.overload times the saturated rate, by options.rtp_streams streams; B_I is that of options.profile, else
// options.at of the saturated rate (by default `overload_capacity`), which is no measured limit. The share of the
// ceiling that the admitted ones had; an Error where what was offered was no overload.
inline constexpr double overload_capacity = 0.6;
Expected<double> overload(const BenchOptions& options, const HeldCase& one, MediaBed& bed,
                          const MediaReporter& reporter, Goals& goals);

}  // namespace sluice::cli::bench
