// The trait of an element's type whose section describes streams for admission (stream_admission.h): what they demand,
// and with what a profile must have been measured (profile.h).
//
// Thread-safety: called by the control thread. The element is in the chain.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "engine/section_view.h"
#include "engine/stream_admission.h"

namespace sluice::engine {

class StreamSource {
 public:
  static constexpr std::string_view trait_name = "stream_source";
  struct Stream {
    Settings settings;  // the stream's section, to report mistakes to
    StreamDemand demand;
  };
  // The streams in the order of the file. One without a deadline has the engine's.
  virtual std::vector<Stream> streams(SectionView& view) const = 0;
  // Names of the operations that decide what the streams cost, such as cipher suites.
  virtual std::vector<std::string> suites(SectionView& view) const = 0;
  // What the element does to which address family: "protect IPv4".
  virtual std::vector<std::string> kinds(SectionView& view) const = 0;
  // The largest frame in clear of any stream, in bytes; 0: there are no streams.
  virtual std::uint32_t largest_packet(SectionView& view) const = 0;
  // Streams that come while the gateway runs.
  struct Later {
    std::uint32_t largest_packet = 0;  // 0: there are none
    std::string what{};                // "those of clients' media"
  };
  virtual Later later(SectionView& /*view*/) const { return {}; }
  // Whether streams that come later could be admitted at all with this bound. If not, reports a mistake at the key that
  // prevents it.
  virtual bool check_deadlines(SectionView& /*view*/, std::chrono::nanoseconds /*bound*/) const { return true; }

 protected:
  ~StreamSource() = default;
};

}  // namespace sluice::engine
