// sluice bench choice: what device = "auto" carries at each load, and how late, beside cores alone and a GPU alone.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/choice_beds.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/ipsec_bed.h"
#include "bench/rounds.h"
#include "bench/router_rig.h"

namespace sluice::cli::bench {
namespace {

constexpr double loads[] = {0.01, 0.1, 0.25, 0.5, 0.75, 1};  // of the best device's saturated rate
constexpr double goal_carried = 97, goal_p99 = 1.1, goal_sum = 85;
constexpr double carries_all = 0.99;
// A lane decides in some milliseconds, and lanes that go back from a saturated device do so one after the other.
constexpr double settling = 0.3, settling_saturated = 1.5;
constexpr double step_of_ramp = 0.1;
constexpr int steps_of_ramp = 24;
constexpr unsigned rounds_of_load = 3;

struct OfDevice {
  Outcome saturated;
  std::vector<Outcome> at;  // each of `loads`
};

double rate(const Outcome& outcome) {
  return static_cast<double>(outcome.frames) / outcome.seconds;
}

std::uint64_t changes(Rig& rig) {
  std::uint64_t sum = 0;
  for (const auto& lane : rig.engine().stats().lanes) sum += lane.choice ? lane.choice->moves : 0;
  return sum;
}

std::string choice_text(Rig& rig) {
  std::map<std::string, unsigned> lanes;
  std::vector<double> core, device;  // millions of frames a second
  for (const auto& lane : rig.engine().stats().lanes) {
    if (!lane.choice) continue;
    ++lanes[fmt::format("{}: {}", lane.on_device ? "GPU" : "core", engine::DeviceChoice::text(lane.choice->why))];
    core.push_back(static_cast<double>(lane.choice->core_rate) / 1e6);
    device.push_back(static_cast<double>(lane.choice->device_rate) / 1e6);
  }
  std::string text;
  for (const auto& [why, count] : lanes) text += fmt::format("{}{} x {}", text.empty() ? "" : "; ", count, why);
  const auto span = [](const std::vector<double>& rates) {
    const auto [least, most] = std::ranges::minmax(rates);
    return fmt::format("{:.2f} to {:.2f}", least, most);
  };
  if (!core.empty()) {
    text += fmt::format("; a lane's core carried {} Mpps when saturated, its GPU {}", span(core), span(device));
  }
  return text;
}

// Of all the lanes' time, that in which they moved something.
double busy(const Outcome& outcome, unsigned lanes) {
  return 100 * (outcome.collecting_us + outcome.forwarding_us) / (outcome.seconds * 1e6 * lanes);
}

class ChoiceBench {
 public:
  ChoiceBench(const BenchOptions& options, const ChoiceChain& chain, std::string gpu, Goals& goals)
      : options_(options), chain_(chain), gpu_(std::move(gpu)), goals_(goals) {}

  Expected<void> run() {
    std::printf("\nchoice, %s, %s\n", chain_.name.c_str(), chain_.traffic.c_str());
    if (auto ok = on(gpu_, [this](Rig& rig) { saturate(gpu_, rig, settling); }); !ok) return ok;
    const auto all = [this](const std::string& device) {
      return [this, device](Rig& rig) {
        if (device == "cpu") saturate(device, rig, settling);
        best_ = std::max(rate(of_[gpu_].saturated), rate(of_["cpu"].saturated));
        each_load(device, rig);
      };
    };
    if (auto ok = on("cpu", all("cpu")); !ok) return ok;
    if (auto ok = on(gpu_, all(gpu_)); !ok) return ok;
    const auto chosen = [&](Rig& rig) {
      each_load("auto", rig);
      saturate("auto", rig, settling_saturated);
      std::printf("  auto, saturated: %s; lanes busy %.0f %%\n", choice_text(rig).c_str(),
                  busy(of_["auto"].saturated, rig.lanes()));
      ramp(rig);
    };
    if (auto ok = on("auto", chosen); !ok) return ok;
    again_.resize(std::size(loads));
    for (const std::string& device : {cpu_, gpu_}) {
      if (auto ok = on_again(device); !ok) return ok;
    }
    judge();
    return {};
  }

 private:
  template <class Measure>
  Expected<void> on(const std::string& device, const Measure& measure) {
    auto running = chain_.run(device, {});
    if (!running) return make_error(device + ": " + running.error().message);
    measure((*running)->rig());
    if (auto ok = (*running)->finish(); !ok) return make_error(device + ": " + ok.error().message);
    return {};
  }

  // The better one at each load once more: what differs between its two runs is the machine's doing.
  Expected<void> on_again(const std::string& device) {
    const auto is_better = [&](std::size_t l) { return better(l) == device; };
    bool is_ever = false;
    for (std::size_t l = 0; l < std::size(loads); ++l) is_ever |= is_better(l);
    if (!is_ever) return {};
    return on(device, [&](Rig& rig) {
      for (std::size_t l = 0; l < std::size(loads); ++l) {
        if (!is_better(l)) continue;
        rig.set_rate(loads[l] * best_);
        again_[l] = middle(rig, settling);
        say(device, fmt::format("{:.0f} % again", 100 * loads[l]), again_[l], loads[l]);
      }
    });
  }

  const std::string& better(std::size_t l) const {
    const Outcome &a = of_.at("cpu").at[l], &b = of_.at(gpu_).at[l];
    const bool both = rate(a) >= carries_all * rate(b) && rate(b) >= carries_all * rate(a);
    return (both ? a.p99_us <= b.p99_us : rate(a) > rate(b)) ? cpu_ : gpu_;
  }

  Outcome middle(Rig& rig, double warm_up) const {
    std::vector<Outcome> outcomes;
    while (outcomes.size() < rounds_of_load) {
      outcomes.push_back(rig.measure(outcomes.empty() ? warm_up : 0, options_.seconds / rounds_of_load));
    }
    return middle_of(outcomes);
  }

  void say(const std::string& device, const std::string& what, const Outcome& outcome, double share) const {
    const std::string label = fmt::format("{} {} {}", chain_.name, device, what);
    std::printf("  %s\n", row(label, outcome).c_str());
    append_csv(options_, "choice", label, outcome, {.share = share, .setting = chain_.traffic});
  }

  void saturate(const std::string& device, Rig& rig, double warm_up) {
    rig.set_rate(0);
    of_[device].saturated = middle(rig, warm_up);
    say(device, "saturated", of_[device].saturated, 0);
  }

  void each_load(const std::string& device, Rig& rig) {
    for (const double load : loads) {
      rig.set_rate(load * best_);
      of_[device].at.push_back(middle(rig, settling));
      say(device, fmt::format("{:.0f} %", 100 * load), of_[device].at.back(), load);
      if (rig.engine().chooses()) std::printf("    %s\n", choice_text(rig).c_str());
    }
  }

  // Up to more than the best device carries, and down again.
  void ramp(Rig& rig) {
    std::vector<double> shares;
    for (int step = 1; step <= steps_of_ramp; ++step) shares.push_back(0.05 * step);
    for (int step = steps_of_ramp; step >= 1; --step) shares.push_back(0.05 * step);
    rig.set_rate(shares.front() * best_);
    rig.measure(0, settling);
    const std::uint64_t before = changes(rig);
    std::string trace;
    for (const double share : shares) {
      rig.set_rate(share * best_);
      const Outcome outcome = rig.measure(0, step_of_ramp);
      const auto on_gpu = static_cast<double>(outcome.gpu_frames);
      const double gpu = 100 * on_gpu / std::max(1.0, on_gpu + static_cast<double>(outcome.cpu_frames));
      trace += fmt::format("{}{:.0f}:{:.0f}:{:.0f}", trace.empty() ? "" : " ", 100 * share, 100 * rate(outcome) / best_,
                           gpu);
      append_csv(options_, "choice", fmt::format("{} auto ramp", chain_.name), outcome,
                 {.share = share, .setting = chain_.traffic});
    }
    ramp_moves_ = static_cast<double>(changes(rig) - before) / rig.lanes();
    std::printf("  ramp, each step %.1f s, offered:carried:on the GPU in %%: %s\n", step_of_ramp, trace.c_str());
    std::printf("  %.1f changes of a lane between core and GPU\n", ramp_moves_);
  }

  void judge() {
    const OfDevice &cpu = of_["cpu"], &gpu = of_[gpu_], &chosen = of_["auto"];
    for (std::size_t l = 0; l < std::size(loads); ++l) {
      const Outcome &first = of_[better(l)].at[l], &now = chosen.at[l];
      const auto [low, high] = std::minmax(first.p99_us, again_[l].p99_us);
      const std::string at = fmt::format("{}, {:.0f} %", chain_.name, 100 * loads[l]);
      const double carried = 100 * rate(now) / rate(first), p99 = now.p99_us / high;
      const auto frames = static_cast<double>(now.gpu_frames + now.cpu_frames);
      std::printf(
          "RESULT choice %s: %s is better (%.2f Mpps, p99 %.1f to %.1f us in two runs); auto carries %.1f %% of it, "
          "%.0f "
          "%% of that on the GPU, p99 %.1f us, %.2f times the worse run's\n",
          at.c_str(), better(l).c_str(), first.mpps(), low, high, carried,
          100 * static_cast<double>(now.gpu_frames) / std::max(1.0, frames), now.p99_us, p99);
      goals_.at_least(at + ": carried, of the better one", carried, goal_carried, "%");
      goals_.at_most(at + ": p99", p99, goal_p99, "times the better one's, the worse of its two runs");
    }
    const double sum = rate(cpu.saturated) + rate(gpu.saturated);
    const double share = 100 * rate(chosen.saturated) / sum;
    std::printf("RESULT choice %s saturated: cpu %.2f, %s %.2f, auto %.2f Mpps = %.1f %% of the sum\n",
                chain_.name.c_str(), cpu.saturated.mpps(), gpu_.c_str(), gpu.saturated.mpps(), chosen.saturated.mpps(),
                share);
    goals_.at_least(chain_.name + ": saturated, of the sum", share, goal_sum, "%");
    goals_.at_most(chain_.name + ": changes of a lane on the ramp", ramp_moves_, 2, "");
    std::fflush(stdout);
  }

  const BenchOptions& options_;
  const ChoiceChain& chain_;
  const std::string cpu_ = "cpu", gpu_;
  Goals& goals_;
  std::map<std::string, OfDevice> of_;
  std::vector<Outcome> again_;  // each of `loads`, on the better one
  double best_ = 0, ramp_moves_ = 0;
};

}  // namespace

int bench_choice(const BenchOptions& options) {
  const auto fail = [](const Error& error, int status) {
    std::fprintf(stderr, "bench choice: %s\n", error.message.c_str());
    return status;
  };
  if (options.device == "cpu") return fail(make_error("--device cpu: there is nothing to choose").value(), 2);
  if (auto eal = start_bench_eal(std::max(router_memory, ipsec_memory_bytes(default_lanes(options)))); !eal) {
    return fail(eal.error(), 1);
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) return fail(ceilings.error(), 1);
  auto beds = ChoiceBeds::make(options, ceilings->large.both);
  if (!beds) return fail(beds.error(), 2);
  const std::vector<ChoiceChain> chains = (*beds)->chains();
  if (chains.empty()) return fail(make_error("--only " + options.only + ": no such chain").value(), 2);
  Goals goals("choice", options.goals);
  int status = 0;
  for (const ChoiceChain& chain : chains) {
    ChoiceBench bench(options, chain, options.device == "auto" ? "cuda:0" : options.device, goals);
    if (auto ok = bench.run(); !ok) status = fail(make_error(chain.name + ": " + ok.error().message).value(), 1);
  }
  return status | goals.status();
}

}  // namespace sluice::cli::bench
