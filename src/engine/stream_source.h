// The trait of an element's type whose section describes streams that are admitted (stream_admission.h): what they ask
// for, and what a profile has to have been measured with (profile.h).
//
// Thread-safety: the control thread. The element is in the chain.
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
    Settings settings;  // for mistakes
    StreamDemand demand;
  };
  // In the order of the file. A deadline that is not given is the engine's.
  virtual std::vector<Stream> streams(SectionView& view) const = 0;
  // Names of what is done to them that decide what they cost, such as suites.
  virtual std::vector<std::string> suites(SectionView& view) const = 0;
  // What the element does to which family: "protect IPv4".
  virtual std::vector<std::string> kinds(SectionView& view) const = 0;
  // The largest frame in clear of any stream, in bytes, whatever they say of it; 0: there are none.
  virtual std::uint32_t largest_packet(SectionView& view) const = 0;
  // Streams that come while the gateway runs.
  struct Later {
    std::uint32_t largest_packet = 0;  // 0: there are none
    std::string what{};                // "those of clients' media"
  };
  virtual Later later(SectionView& /*view*/) const { return {}; }
  // Whether streams that come later could be admitted at all with this bound; what keeps them is a mistake at its key.
  virtual bool check_deadlines(SectionView& /*view*/, std::chrono::nanoseconds /*bound*/) const { return true; }

 protected:
  ~StreamSource() = default;
};

}  // namespace sluice::engine
