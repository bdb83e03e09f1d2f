// A stream of the element "srtp" as TOML says it: a [[srtp.stream]] section, or what the API is given. No message shows
// a value, for there are keys among them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_facts.h"
#include "base/settings.h"
#include "engine/port_table.h"
#include "function/srtp/media_stream.h"

namespace sluice::function {

// All [[srtp.stream]] of the section [srtp], one for each 5-tuple: RTCP may have ports of its own, and then its part of
// the rate. A burst has capacity for two of the largest frames; `ports` have the names that it may have as `ingress`.
// Mistakes go to the section's diagnostics. Cost: a few microseconds for each stream, however many there are.
std::vector<MediaStreamSettings> read_streams(Settings& srtp, std::uint32_t largest_frame,
                                              const engine::PortTable& ports);

// Its keys.
OptionSection stream_section();

// Of a text that holds the keys of one section, or it as it stands in a file, [[srtp.stream]] in front; an Error has a
// line for each mistake. `what` it is called.
Expected<std::vector<MediaStreamSettings>> read_stream_text(std::string_view text, const std::string& what,
                                                            std::uint32_t largest_frame,
                                                            const engine::PortTable& ports = engine::PortTable());
// Its addresses and ports alone.
Expected<std::vector<MediaStreamSettings>> read_stream_ends(std::string_view text, const std::string& what);

// Bytes that may come at once of a stream of so many bits a second: as given, of frames two of the largest at least; 0:
// those of a tenth of a second, with as much at least.
inline constexpr std::int64_t largest_stream_burst = 1 << 30;
std::uint64_t stream_burst(std::uint64_t bits, std::uint64_t given, std::uint32_t largest_frame);

// What a [[srtp.stream]] of the file is called where streams are admitted (engine::StreamDemand::share): its 5-tuples.
// Empty: its rate is not measured.
std::string share_of(Settings& settings);

}  // namespace sluice::function
