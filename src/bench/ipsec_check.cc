#include "bench/ipsec_check.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "bench/tunnel_by_openssl.h"

namespace sluice::cli::bench {
namespace {

constexpr std::size_t ethernet = 14;

// Of an IPv4 packet as a router leaves it, judged from what came; empty: right.
std::string routed(std::span<const std::uint8_t> came, std::span<const std::uint8_t> left) {
  if (left.size() < came.size()) return "is shorter than what went in";
  // Ethernet pads what is short.
  if (!std::equal(came.begin() + 12, came.end(), left.begin() + 12)) return "is not what went in";
  if (!std::equal(came.begin(), came.begin() + 8, left.begin()) || left[9] != came[9]) {
    return "has other headers than what went in";
  }
  if (left[8] + 1 != came[8]) return "has another TTL than one less";
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += std::uint32_t{left[i]} << 8 | left[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff ? "" : "has a wrong IPv4 checksum";
}

}  // namespace

std::string wrong_numbers(std::span<const std::vector<LeftNumber>> lanes) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> tunnels;
  for (const std::vector<LeftNumber>& lane : lanes) {
    std::map<std::uint32_t, std::uint32_t> last;
    for (const LeftNumber& left : lane) {
      std::uint32_t& before = last[left.tunnel];
      if (left.number <= before) {
        return fmt::format("tunnel {}: number {} left a lane behind {}", left.tunnel, left.number, before);
      }
      before = left.number;
      tunnels[left.tunnel].push_back(left.number);
    }
  }
  for (auto& [tunnel, numbers] : tunnels) {
    std::ranges::sort(numbers);
    std::uint32_t expected = 1;
    for (const std::uint32_t number : numbers) {
      if (number < expected) return fmt::format("tunnel {}: number {} left twice", tunnel, number);
      if (number > expected) return fmt::format("tunnel {}: number {} has not left", tunnel, expected);
      ++expected;
    }
  }
  return {};
}

IpsecCheck::IpsecCheck(const IpsecTunnels& tunnels, unsigned lanes) : tunnels_(tunnels), numbers_(lanes) {}

void IpsecCheck::frame(unsigned lane, ipsec::Direction direction, std::uint32_t tunnel,
                       std::span<const std::uint8_t> clear, std::span<const std::uint8_t> left) {
  const std::string why = look(lane, direction, tunnel, clear, left);
  if (!why.empty()) {
    const std::lock_guard lock(mutex_);
    if (wrong_.empty()) wrong_ = fmt::format("tunnel {} ({}): {}", tunnel, tunnels_.algorithm(tunnel).name, why);
  }
  (direction == ipsec::Direction::out ? sealed : opened).fetch_add(1, std::memory_order_relaxed);
}

std::string IpsecCheck::look(unsigned lane, ipsec::Direction direction, std::uint32_t tunnel,
                             std::span<const std::uint8_t> clear, std::span<const std::uint8_t> left) {
  clear = clear.subspan(ethernet);
  if (left.size() < ethernet + 20) return "what left is no packet";
  left = left.subspan(ethernet);
  if (direction == ipsec::Direction::in) {
    const std::string why = routed(clear, left);
    return why.empty() ? why : "what was opened " + why;
  }
  const TunnelByOpenssl by(tunnels_.sa(direction, tunnel));
  const auto opened = by.open(left);
  if (!opened) return "OpenSSL does not open what left: " + opened.error().message;
  numbers_[lane].push_back({tunnel, opened->sequence});
  if (opened->inner.size() != clear.size()) return "opened by OpenSSL, it has another length than what went in";
  const std::string why = routed(clear, opened->inner);
  return why.empty() ? why : "opened by OpenSSL, it " + why;
}

std::string IpsecCheck::wrong(bool numbers_too) const {
  const std::lock_guard lock(mutex_);
  return !wrong_.empty() || !numbers_too ? wrong_ : wrong_numbers(numbers_);
}

}  // namespace sluice::cli::bench
