// The trait of an element's type whose cost `sluice calibrate` measures with frames of the element's own traffic.
//
// Thread-safety: none; Traffic::write() from lane threads, each for its own lane.
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
  // Makes the frame the next one of the lane. It has capacity for the largest.
  virtual void write(std::uint32_t lane, rte_mbuf* frame) = 0;
  virtual double mean_packet() const = 0;  // in bytes of frames in clear
  // What it is of, as StreamSource::kinds(), in alphabetical order.
  virtual std::vector<std::string> kinds() const = 0;
  // How the names of reasons begin under which the element drops frames of it: those cost nothing.
  virtual std::string_view reasons() const = 0;
};

class Calibration {
 public:
  static constexpr std::string_view trait_name = "calibration";
  // What traffic it is, for --help: "of an element \"srtp\" its streams".
  virtual std::string_view text() const = 0;
  // A configuration's text without what would keep frames from the device. Its lines stay where they are.
  virtual std::string without_limits(const std::string& text) const = 0;
  // What the traffic needs besides: sections, to be put behind the configuration's text, and a sentence on them.
  struct Made {
    std::string text, note;
  };
  virtual Made make_streams(SectionView& view) const = 0;
  // Of the configuration with these. `most`: bytes of a frame in clear.
  virtual Expected<std::unique_ptr<Traffic>> make_traffic(SectionView& view, unsigned most, unsigned lanes) const = 0;

 protected:
  ~Calibration() = default;
};

}  // namespace sluice::engine
