// The trait of an element's type whose cost `sluice calibrate` measures with traffic that the type makes.
//
// Thread-safety: none. Lane threads call Traffic::write(), each for its own lane.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/section_view.h"

struct rte_mbuf;

namespace sluice::engine {

class Traffic {
 public:
  virtual ~Traffic() = default;
  // Writes the lane's next frame into `frame`, which has capacity for the largest one.
  virtual void write(std::uint32_t lane, rte_mbuf* frame) = 0;
  virtual double mean_packet() const = 0;  // bytes of a frame in clear, on average
  // Which kinds the traffic has, as StreamSource::kinds(), in alphabetical order.
  virtual std::vector<std::string> kinds() const = 0;
  // The prefix of the reasons under which the element drops frames of this traffic. The device does no work for such
  // frames, so calibration ends with an Error if they are many.
  virtual std::string_view reasons() const = 0;
};

class Calibration {
 public:
  static constexpr std::string_view trait_name = "calibration";
  // Which traffic it is, for --help: "of an element \"srtp\" its streams".
  virtual std::string_view text() const = 0;
  // The text of a configuration without the settings that would keep frames from the device. Line numbers stay the
  // same.
  virtual std::string without_limits(const std::string& text) const = 0;
  // Sections that the traffic needs besides, to be appended to the configuration's text, and a sentence on them.
  struct Made {
    std::string text, note;
  };
  virtual Made make_streams(SectionView& view) const = 0;
  // Makes the traffic for the configuration with these sections. `most`: bytes of the largest frame in clear.
  virtual Expected<std::unique_ptr<Traffic>> make_traffic(SectionView& view, unsigned most, unsigned lanes) const = 0;

 protected:
  ~Calibration() = default;
};

}  // namespace sluice::engine
