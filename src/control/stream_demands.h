// The profile against the configuration and its streams: whether it is of this gateway, and which streams fit
// (engine/stream_admission.h; docs/real-time.md).
//
// Thread-safety: none. Cost: control path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/config.h"
#include "control/snapshot.h"
#include "engine/bound.h"
#include "engine/stream_admission.h"
#include "engine/stream_source.h"

namespace sluice::control {

// The largest frame in clear of any stream that the configuration describes or lets come, in bytes, whatever it says of
// it; 0: there are none.
std::uint32_t largest_packet(Config& config);
// Streams that come while the gateway runs, those with the largest packets.
engine::StreamSource::Later later_streams(Config& config);
// What elements do to which family: "protect IPv4", in alphabetical order.
std::vector<std::string> stream_kinds(Config& config);

// What this gateway is, for comparing: its chain, lanes and the suites of both on this machine with that device ("cpu",
// or the GPU's name).
engine::ProfileSubject profile_subject(Config& config, const std::string& device);

// What the file says of each stream, in order, with its section for messages.
using StreamSection = engine::StreamSource::Stream;
std::vector<StreamSection> stream_demands(Config& config);

// The admission of streams for a gateway of that kind and timing; null: the configuration has no profile. An Error: the
// profile has no capacity for this cycle, or was measured with less than streams that come later may have, or is of
// something else and `others` is "refuse"; with "warn" that is in `notes`.
Expected<std::unique_ptr<engine::StreamAdmission>> make_admission(Config& config, const engine::ProfileSubject& now,
                                                                  const engine::Timing& timing,
                                                                  std::vector<std::string>& notes);

// Takes the demands of `streams` into the admission, in the place of those of `before`; none of it where one is
// refused: that is then a mistake at its section. Answers whether all were accepted; `replaced` is for undo().
bool admit_streams(engine::StreamAdmission& admission, const std::vector<engine::StreamDemand>& before,
                   std::vector<StreamSection>& streams, engine::StreamAdmission::Replaced* replaced = nullptr);

// Whether the deadlines of streams that come later can be kept at all. One that cannot is a mistake at its key, where
// streams are admitted.
bool check_later_deadlines(const engine::StreamAdmission& admission, Config& config);

// What `sluice ctl stats` and /metrics say of it.
void add_metrics(const engine::StreamAdmission::State& state, std::vector<MetricSnapshot>& metrics);

}  // namespace sluice::control
