// sluice bench ipsec: packets of many tunnels, sealed and opened by the chain ipsec, route in the engine, on a GPU and
// on the lanes' cores, beside the link's ceiling, SRTP and DPDK's rte_ipsec.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/ipsec_bed.h"
#include "bench/ipsec_cases.h"
#include "bench/media_bed.h"
#include "bench/rounds.h"
#include "bench/rte_ipsec_peer.h"

namespace sluice::cli::bench {
namespace {

constexpr double without_a_gpu = 10;  // GB/s, for the sizes of queues

struct Run {
  const BenchOptions& options;
  const RouterTable& table;
  double ceiling;  // GB/s both ways; 0: there is no GPU
};

void report(const Run& run, const std::string& device, ipsec::Direction direction, const IpsecTraffic& traffic,
            const IpsecBed& bed, const IpsecFigure& figure) {
  const Outcome& outcome = figure.outcome;
  const std::string label = fmt::format("{} {} {}", device, direction_text(direction), traffic_text(traffic));
  const double share = run.ceiling > 0 ? figure.moved_gbytes() / run.ceiling : 0;
  std::printf("RESULT ipsec %s: %.2f Mpps, %.1f Gbit/s in clear, %.2f GB/s protected each way%s\n", label.c_str(),
              outcome.mpps(), figure.clear_gbits(), figure.moved_gbytes(),
              share > 0 ? fmt::format(" = {:.1f} % of {:.1f}", 100 * share, run.ceiling).c_str() : "");
  std::printf(
      "  a lane's core: %.0f ns to collect a frame, %.0f of them the bench's own; %.0f to forward it; %.0f %% of "
      "its time",
      outcome.collecting_ns(), figure.source_ns, outcome.forwarding_ns(),
      100 * (outcome.collecting_us + outcome.forwarding_us) / (1e6 * outcome.seconds * bed.rig().lanes));
  if (outcome.launches != 0) {
    std::printf("; the worker's: %.1f us a launch, %.0f %% of its time; a batch on the device: %.0f us, max %.0f",
                outcome.launching_us / static_cast<double>(outcome.launches),
                100 * outcome.launching_us / (1e6 * outcome.seconds), outcome.device_p50_us, outcome.device_max_us);
  }
  std::printf("\n");
  Yardsticks yardsticks;
  yardsticks.share = share;
  yardsticks.ceiling_gbytes = run.ceiling;
  yardsticks.setting = fmt::format("{:.1f} Gbit/s in clear; {} lanes; {} batches of {}; {}; source {:.0f} ns",
                                   figure.clear_gbits(), bed.rig().lanes, bed.rig().engine.batches,
                                   bed.rig().engine.batch, cycle_text(bed.rig()), figure.source_ns);
  Outcome in_clear = outcome;  // its bytes are of frames in clear both ways, as rte_ipsec's are
  in_clear.bytes = static_cast<std::uint64_t>(figure.clear_bytes * static_cast<double>(outcome.frames));
  append_csv(run.options, "ipsec", label, in_clear, yardsticks);
}

// Beside a bed whose run has ended, with its packets.
Expected<void> run_peer(const Run& run, const IpsecBed& bed, const IpsecTraffic& traffic,
                        const std::vector<ipsec::Direction>& directions, IpsecResults& results) {
  auto peer = RteIpsecPeer::make(bed.tunnels(), bed.sealed(), bed.rig().lanes, traffic.mix);
  if (!peer) return tl::unexpected(peer.error());
  for (const ipsec::Direction direction : directions) {
    const auto outcome = (*peer)->measure(direction, run.options.seconds);
    if (!outcome) return make_error(fmt::format("{}: {}", direction_text(direction), outcome.error().message));
    const double gbits = 8 * outcome->gbytes();
    const std::string label =
        fmt::format("rte_ipsec on {} cores {} {}", (*peer)->cores(), direction_text(direction), traffic_text(traffic));
    std::printf("RESULT ipsec %s: %.2f Mpps, %.1f Gbit/s in clear\n", label.c_str(), outcome->mpps(), gbits);
    append_csv(run.options, "ipsec", label, *outcome, {.setting = fmt::format("{:.1f} Gbit/s in clear", gbits)});
    results.add(direction, traffic, {0, gbits});
  }
  return {};
}

Expected<void> run_case(const Run& run, const std::string& device, const IpsecTraffic& traffic,
                        const std::vector<ipsec::Direction>& directions, IpsecResults& results, IpsecResults* peer) {
  auto bed = IpsecBed::make(run.options, run.table, traffic, device, run.ceiling > 0 ? run.ceiling : without_a_gpu);
  if (!bed) return tl::unexpected(bed.error());
  for (const ipsec::Direction direction : directions) {
    const auto figure = (*bed)->measure(direction, run.options.seconds);
    if (!figure) return make_error(fmt::format("{}: {}", direction_text(direction), figure.error().message));
    report(run, device, direction, traffic, **bed, *figure);
    results.add(direction, traffic,
                {run.ceiling > 0 ? figure->moved_gbytes() / run.ceiling : 0, figure->clear_gbits()});
  }
  if (auto ok = (*bed)->finish(); !ok) return ok;
  std::printf("  verified: OpenSSL and the element are of one opinion on %lu frames\n", (*bed)->verified());
  if (peer == nullptr) return {};
  if (auto ok = run_peer(run, **bed, traffic, directions, *peer); !ok) {
    std::printf("  rte_ipsec: not measured: %s\n", ok.error().message.c_str());
  }
  return {};
}

// Cores have all algorithms.
bool is_for(const std::string& device, const IpsecTraffic& traffic) {
  return device == "cpu" || std::ranges::none_of(ipsec_algorithms(), [&](const IpsecAlgorithm& one) {
           return one.name == traffic.algorithm && !one.on_gpus;
         });
}

// What SRTP reaches of the ceiling in this run, saturated (`bench media`).
Expected<double> srtp_share(const Run& run, const std::string& device) {
  const auto bed = MediaBed::make(run.options, {"1370", 5, 400, 4, 5, {0.73, 0.33}}, device, run.ceiling);
  const auto outcome = bed->measure(engine::Mode::full, run.options.seconds / 3, 3);
  if (!outcome) return tl::unexpected(outcome.error());
  const double moved = moved_gbytes(bed->streams, *outcome), share = moved / run.ceiling;
  const std::string label = device + " SRTP 1370 1000 streams";
  std::printf("RESULT ipsec %s: %.2f Mpps, %.2f GB/s each way = %.1f %% of %.1f\n", label.c_str(), outcome->mpps(),
              moved, 100 * share, run.ceiling);
  append_csv(run.options, "ipsec", label, *outcome, {.share = share, .ceiling_gbytes = run.ceiling, .setting = ""});
  return share;
}

// Who is faster, row by row.
void compare(const IpsecCases& cases, const std::map<std::string, IpsecResults>& results) {
  for (const IpsecCase& one : cases.cases) {
    for (const ipsec::Direction direction : cases.directions) {
      std::string text, fastest;
      double most = 0, next = 0;
      for (const auto& [name, all] : results) {
        const IpsecResults::Result* const result = all.find(direction, one.traffic);
        if (result == nullptr) continue;
        text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", name, result->gbits);
        next = std::max(next, std::min(most, result->gbits));
        if (result->gbits > most) fastest = name;
        most = std::max(most, result->gbits);
      }
      if (next == 0) continue;
      std::printf("  %s %s: Gbit/s in clear: %s; %s is %.1f times as fast as the next\n", direction_text(direction),
                  traffic_text(one.traffic).c_str(), text.c_str(), fastest.c_str(), most / next);
    }
  }
}

}  // namespace

int bench_ipsec(const BenchOptions& options) {
  int status = 0;
  const auto fail = [&status](const std::string& why) {
    std::fprintf(stderr, "bench ipsec: %s\n", why.c_str());
    status = 1;
  };
  const auto cases = ipsec_cases(options);
  if (!cases) {
    fail(cases.error().message);
    return 2;
  }
  if (auto eal = start_bench_eal(ipsec_memory_bytes(default_lanes(options))); !eal) {
    fail(eal.error().message);
    return 1;
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) std::printf("%s\n", no_gpu_line(ceilings.error()).c_str());
  const auto table = RouterTable::make({}, {.ipv4 = 1000, .ipv6 = 100});
  if (!table) {
    fail(table.error().message);
    return 1;
  }
  const Run run{options, **table, ceilings ? ceilings->large.both : 0};
  std::vector<std::string> devices;
  if (ceilings && options.device != "cpu") devices.push_back(options.device == "auto" ? "cuda:0" : options.device);
  if (options.device == "auto" || options.device == "cpu") devices.emplace_back("cpu");
  Goals goals("ipsec", options.goals);
  std::map<std::string, IpsecResults> all;
  for (const std::string& device : devices) {
    const bool is_beside = device == "cpu" && devices.size() > 1;
    IpsecResults& results = all[device];
    double srtp = 0;
    if (device != "cpu") {
      const auto share = srtp_share(run, device);
      if (share) {
        srtp = *share;
      } else {
        fail("SRTP: " + share.error().message);
      }
    }
    for (const IpsecCase& one : cases->cases) {
      if (!is_for(device, one.traffic) || (is_beside && !one.on_cores)) continue;
      IpsecResults* const peer = one.on_cores && device == devices.back() ? &all["rte_ipsec"] : nullptr;
      if (const auto ok = run_case(run, device, one.traffic, cases->directions, results, peer); !ok) {
        fail(device + " " + traffic_text(one.traffic) + ": " + ok.error().message);
      }
    }
    if (!is_beside) results.judge(goals, srtp);
  }
  compare(*cases, all);
  return status | goals.status();
}

}  // namespace sluice::cli::bench
