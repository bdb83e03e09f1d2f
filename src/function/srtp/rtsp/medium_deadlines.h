// What media of RTSP are promised where streams are admitted: by [srtp.rtsp] and [[srtp.rtsp.server]], each with
// `deadline` for all of its media and `audio_deadline`, `video_deadline` and `application_deadline` for those of a
// kind. The most particular one that is given holds: the server's for the kind, the server's, that for the kind, that
// for all, and else the engine's (docs/configuration.md).
//
// Thread-safety: reading is the control thread's; of() any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace sluice::function::rtsp {

// Of one section. 0: it says nothing of these.
struct DeadlineKeys {
  struct Key {
    const char* name;       // in the file
    std::string_view kind;  // of m=; empty: any
  };
  static constexpr std::array<Key, 4> keys = {{{"deadline", ""},
                                               {"audio_deadline", "audio"},
                                               {"video_deadline", "video"},
                                               {"application_deadline", "application"}}};
  std::array<std::chrono::nanoseconds, keys.size()> values{};

  // 0: neither for this kind nor for all.
  std::chrono::nanoseconds of(std::string_view kind) const;
  bool operator==(const DeadlineKeys&) const = default;
};

struct MediumDeadlines {
  std::chrono::nanoseconds engine{0};  // where none is given
  DeadlineKeys all;
  std::vector<DeadlineKeys> servers;  // as function::RtspOptions::upstream

  // `kind`: "video", as the description's m= has it. `server`: of the explicit mode, the one that the connection is
  // for; a transparent one's are those of `all`.
  std::chrono::nanoseconds of(std::string_view kind, std::optional<std::size_t> server) const;
  bool operator==(const MediumDeadlines&) const = default;
};

// `rtsp`: [srtp.rtsp], of which nobody has called finish() yet. Mistakes go to its diagnostics.
MediumDeadlines read_medium_deadlines(Settings& rtsp);

// Whether all that are given are above the bound of the running configuration, as each [[srtp.stream]]'s has to be: no
// medium could be admitted with one that is not. Those are mistakes at their keys.
bool check_medium_deadlines(Settings& rtsp, std::chrono::nanoseconds bound);

}  // namespace sluice::function::rtsp
