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

namespace sluice::control {

// The suites of [[srtp.stream]] and that of [srtp.rtsp], by name; both empty where there are none, or no such element.
std::vector<std::string> stream_suites(Config& config);
std::string rtsp_suite(Config& config);

// The largest frame of media in clear, in bytes: of RTSP's, what the largest MTU leaves for them; and of all streams,
// whatever packet_bytes they have. 0: there are none.
std::uint32_t rtsp_largest_packet(Config& config);
std::uint32_t largest_packet(Config& config);

// What the element "srtp" does to which family: "protect IPv4", in alphabetical order. Of [srtp.rtsp] the servers'
// media, by the families of `servers` and `listen`: the RTCP of clients, a twentieth at most, is not looked at.
std::vector<std::string> media_kinds(Config& config);

// What this gateway is, for comparing: its chain, lanes and the suites of both on this machine with that device ("cpu",
// or the GPU's name).
engine::ProfileSubject profile_subject(Config& config, const std::string& device);

// What [[srtp.stream]] says of each stream, in order, with its section for messages. RTCP on ports of its own takes a
// twentieth besides. A deadline that is not given is the engine's, and packet_bytes what the largest MTU leaves.
struct StreamSection {
  Settings settings;
  engine::StreamDemand demand;
};
std::vector<StreamSection> stream_demands(Config& config);

// The admission of streams for a gateway of that kind and timing; null: the configuration has no profile. An Error: the
// profile has no capacity for this cycle, or was measured with less than media of [srtp.rtsp] may have, or is of
// something else and `others` is "refuse"; with "warn" that is in `notes`.
Expected<std::unique_ptr<engine::StreamAdmission>> make_admission(Config& config, const engine::ProfileSubject& now,
                                                                  const engine::Timing& timing,
                                                                  std::vector<std::string>& notes);

// Takes the demands of `streams` into the admission, in the place of those of `before`; none of it where one is
// refused: that is then a mistake at its section. Answers whether all were accepted; `replaced` is for undo().
bool admit_streams(engine::StreamAdmission& admission, const std::vector<engine::StreamDemand>& before,
                   std::vector<StreamSection>& streams, engine::StreamAdmission::Replaced* replaced = nullptr);

// The same of the deadlines of [srtp.rtsp], whose media come later: whether each can be kept at all. One that cannot is
// a mistake at its key, where streams are admitted.
bool check_rtsp_deadlines(const engine::StreamAdmission& admission, Config& config);

// What `sluice ctl stats` and /metrics say of it.
void add_figures(const engine::StreamAdmission::State& state, std::vector<FigureSnapshot>& figures);

}  // namespace sluice::control
