#include "packet/frame_mix.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace sluice::packet {
namespace {

constexpr std::uint32_t whole = 10000;

}  // namespace

FrameMix::FrameMix(std::string name, std::vector<Part> parts, std::uint64_t seed)
    : name_(std::move(name)), parts_(std::move(parts)), state_(seed) {}

Expected<FrameMix> FrameMix::make(std::string_view name, std::uint64_t seed) {
  if (name == "heavy-tail") {
    return FrameMix(std::string(name), {{4018, 40, 79, 1}, {2300, 100, 999, 1}, {3682, 1000, 1459, 1}}, seed);
  }
  if (name == "imix") {
    return FrameMix(std::string(name), {{6122, 60, 60, 1}, {2347, 536, 536, 1}, {1531, 1360, 1360, 1}}, seed);
  }
  if (name == "rtp") {
    return FrameMix(std::string(name), {{whole, 242, 1370, 188}}, seed);
  }
  if (name == "uniform") {
    return FrameMix(std::string(name), {{whole, 64, 1518, 1}}, seed);
  }
  std::uint32_t size = 0;
  const auto [end, ec] = std::from_chars(name.data(), name.data() + name.size(), size);
  if (ec == std::errc() && end == name.data() + name.size() && size >= smallest_frame && size <= largest_frame) {
    return FrameMix(std::string(name), {{whole, size, size, 1}}, seed);
  }
  return make_error("'" + std::string(name) +
                    "' is not a frame mix: it must be heavy-tail, imix, rtp, uniform or a size from " +
                    std::to_string(smallest_frame) + " to " + std::to_string(largest_frame));
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t FrameMix::random() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

std::uint32_t FrameMix::next() {
  const std::uint64_t bits = random();
  auto ticket = static_cast<std::uint32_t>(((bits & 0xffffffffU) * whole) >> 32);
  auto part = parts_.begin();
  while (ticket >= part->share) {
    ticket -= part->share;
    ++part;
  }
  const std::uint64_t choices = (part->last - part->first) / part->step + 1;
  const auto choice = static_cast<std::uint32_t>(((bits >> 32) * choices) >> 32);
  return std::max(smallest_frame, part->first + choice * part->step);
}

double FrameMix::mean() const {
  double total = 0;
  for (const Part& part : parts_) {
    double sum = 0;
    unsigned choices = 0;
    for (std::uint32_t size = part.first; size <= part.last; size += part.step) {
      sum += std::max(smallest_frame, size);
      ++choices;
    }
    total += sum / choices * part.share / whole;
  }
  return total;
}

std::uint32_t FrameMix::largest() const {
  std::uint32_t size = smallest_frame;
  for (const Part& part : parts_) {
    size = std::max(size, part.last);
  }
  return size;
}

}  // namespace sluice::packet
