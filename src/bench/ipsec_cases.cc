#include "bench/ipsec_cases.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "packet/frame_mix.h"

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;

constexpr const char* usual_algorithm = "aes128-sha1";
constexpr const char* usual_size = "1408";
constexpr const char* mean_of_uniform = "791";
constexpr std::uint32_t usual_tunnels = 1000;
constexpr std::uint32_t most_frame = 1518;

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

std::vector<IpsecCase> own_cases() {
  std::vector<IpsecCase> cases;
  const auto add = [&](const char* algorithm, const char* size, std::uint32_t tunnels, bool on_cores = false) {
    cases.push_back({{algorithm, size, tunnels}, on_cores});
  };
  add(usual_algorithm, usual_size, usual_tunnels, true);
  for (const char* const size : {"64", "128", "256", "512", "1024", "1280", "1518", "uniform", mean_of_uniform}) {
    add(usual_algorithm, size, usual_tunnels);
  }
  add(usual_algorithm, "imix", usual_tunnels, true);
  for (const char* const algorithm : {"aes128ctr-sha1", "aes256-sha256", "aes256gcm16", "null-sha256", "ah-sha1"}) {
    add(algorithm, usual_size, usual_tunnels);
  }
  add("aes128gcm16", usual_size, usual_tunnels, true);
  add("chacha20poly1305", usual_size, usual_tunnels, true);
  add("mixed", usual_size, usual_tunnels);
  add("mixed-esp", usual_size, usual_tunnels, true);
  add("mixed", "uniform", usual_tunnels);
  add("mixed", "imix", usual_tunnels);
  for (const std::uint32_t tunnels : {1U, 10'000U, 100'000U}) add(usual_algorithm, usual_size, tunnels);
  return cases;
}

Expected<std::vector<std::uint32_t>> tunnel_counts(const std::string& text) {
  std::vector<std::uint32_t> counts;
  for (const std::string& part : listed(text)) {
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), count);
    if (error != std::errc() || end != part.data() + part.size() || count == 0 || count > most_tunnels) {
      return make_error("--sas " + part + ": from 1 to " + std::to_string(most_tunnels) + " are possible");
    }
    counts.push_back(count);
  }
  return counts;
}

Expected<std::vector<Direction>> directions(const std::string& only) {
  std::vector<Direction> all;
  for (const std::string& part : listed(only.empty() ? "out,in" : only)) {
    if (part != "out" && part != "in") return make_error("--only " + part + ": there are out and in");
    all.push_back(part == "out" ? Direction::out : Direction::in);
  }
  return all;
}

}  // namespace

const char* direction_text(Direction direction) {
  return direction == Direction::out ? "out" : "in";
}

Expected<IpsecCases> ipsec_cases(const BenchOptions& options) {
  auto ways = directions(options.only);
  if (!ways) return tl::unexpected(ways.error());
  if (options.algorithms.empty() && options.sizes.empty() && options.sas.empty()) return IpsecCases{own_cases(), *ways};
  const auto counts = tunnel_counts(options.sas.empty() ? std::to_string(usual_tunnels) : options.sas);
  if (!counts) return tl::unexpected(counts.error());
  IpsecCases all{{}, *ways};
  for (const std::string& algorithm : listed(options.algorithms.empty() ? usual_algorithm : options.algorithms)) {
    if (const auto there = IpsecTunnels::make(algorithm, 1); !there) {
      return make_error("--algorithms " + algorithm + ": " + there.error().message);
    }
    for (const std::string& size : listed(options.sizes.empty() ? usual_size : options.sizes)) {
      const auto mix = packet::FrameMix::make(size);
      if (!mix) return make_error("--sizes " + size + ": " + mix.error().message);
      if (mix->largest() > most_frame) {
        return make_error("--sizes " + size + ": frames of up to " + std::to_string(most_frame) +
                          " bytes are possible");
      }
      for (const std::uint32_t count : *counts) all.cases.push_back({{algorithm, size, count}, true});
    }
  }
  return all;
}

void IpsecResults::add(Direction direction, const IpsecTraffic& traffic, const Result& result) {
  results_[direction_text(direction) + (" " + traffic_text(traffic))] = result;
}

const IpsecResults::Result* IpsecResults::find(Direction direction, const IpsecTraffic& traffic) const {
  const auto found = results_.find(direction_text(direction) + (" " + traffic_text(traffic)));
  return found == results_.end() ? nullptr : &found->second;
}

void IpsecResults::judge(Goals& goals, double srtp_share) const {
  for (const Direction direction : {Direction::out, Direction::in}) {
    const std::string name = direction_text(direction);
    const auto of = [&](const char* algorithm, const char* size, std::uint32_t tunnels) {
      return find(direction, {algorithm, size, tunnels});
    };
    const auto ratio = [&](const std::string& what, const Result* one, const Result* other, double goal) {
      if (one != nullptr && other != nullptr)
        goals.at_least(name + " " + what, 100 * one->gbits / other->gbits, goal, "%");
    };
    const Result* const usual = of(usual_algorithm, usual_size, usual_tunnels);
    if (usual != nullptr && usual->share > 0 && srtp_share > 0) {
      goals.at_least(name + " aes128-sha1 1408 B of the both-ways ceiling, as SRTP", 100 * usual->share,
                     100 * srtp_share, "%");
    }
    const Result* const imix = of(usual_algorithm, "imix", usual_tunnels);
    if (imix != nullptr && imix->share > 0) {
      goals.at_least(name + " aes128-sha1 IMIX of the both-ways ceiling", 100 * imix->share, 50, "%");
    }
    ratio("mixed algorithms, of aes128-sha1", of("mixed", usual_size, usual_tunnels), usual, 90);
    ratio("random sizes, of one size of the same mean", of(usual_algorithm, "uniform", usual_tunnels),
          of(usual_algorithm, mean_of_uniform, usual_tunnels), 85);
    const Result* const alone = of(usual_algorithm, usual_size, 1);
    ratio("100000 SAs, of one", of(usual_algorithm, usual_size, 100'000), alone, 90);
    ratio("one SA, of 1000", alone, usual, 90);
  }
}

}  // namespace sluice::cli::bench
