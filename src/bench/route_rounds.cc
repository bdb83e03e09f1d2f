#include "bench/route_rounds.h"

#include <algorithm>
#include <thread>

#include "bench/progress.h"
#include "bench/router_rig.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned rounds_of_works = 9;
constexpr double round_share = 1.0 / 6;  // of the length of an ordinary measurement
constexpr double shortest_round = 0.1;
constexpr double settle_seconds = 0.05;  // lanes have changed over, and every frame is of the new family
constexpr double warm_up_seconds = 1;

Outcome measure_loop(const Switched& switched, double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(settle_seconds));
  const std::uint64_t before = switched.loops().frames;
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  Outcome outcome;
  outcome.frames = switched.loops().frames - before;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return outcome;
}

Expected<void> measure_family(Rig& rig, Switched& switched, bool with_loop, double seconds,
                              std::array<RoundsOfWork, 3>& of) {
  for (const Work work : {Work::full, Work::zero_load, Work::mac_loop}) {
    if (work == Work::mac_loop && !with_loop) {
      continue;
    }
    switched.set(work);
    const Outcome outcome =
        work == Work::mac_loop ? measure_loop(switched, seconds) : rig.measure(settle_seconds, seconds);
    if (outcome.frames == 0 || outcome.dropped != 0) {
      return make_error(std::to_string(outcome.frames) + " frames came through and " + std::to_string(outcome.dropped) +
                        " were dropped, in a round that drops none");
    }
    RoundsOfWork& mine = of[static_cast<unsigned>(work)];
    mine.ns.push_back(outcome.seconds * 1e9 * rig.cores() / static_cast<double>(outcome.frames));
    mine.outcomes.push_back(outcome);
  }
  switched.set(Work::full);
  return {};
}

// The lanes have next to nothing to receive meanwhile, and sleep; so does a GPU's worker.
Expected<double> measure_testpmd(Rig& rig, Testpmd& testpmd) {
  rig.set_rate(rig.lanes());
  auto mpps = testpmd.sample();
  rig.set_rate(0);
  return mpps ? mpps : make_error("dpdk-testpmd " + mpps.error().message);
}

}  // namespace

Spread ratio(const RoundsOfWork& over, const RoundsOfWork& under) {
  std::vector<double> quotients;
  for (std::size_t i = 0; i < over.ns.size(); ++i) {
    quotients.push_back(over.ns[i] / under.ns[i]);
  }
  return spread_of(quotients);
}

Expected<RouteRounds> measure_rounds(const BenchOptions& options, const RouterTable& table, const std::string& device,
                                     Testpmd* testpmd) {
  const Progress progress("measuring rounds");
  RigOptions rig_options = router_rig(options, table, 4, engine::Mode::full, device);
  rig_options.engine.poll = engine::Poll::adaptive;  // so that testpmd's samples have the machine to themselves
  Switched* switched = nullptr;
  rig_options.wrap = [&switched](std::unique_ptr<engine::Element> inner) {
    auto wrapper = std::make_unique<Switched>(std::move(inner));
    switched = wrapper.get();
    return wrapper;
  };
  auto rig = Rig::make(rig_options);
  if (!rig) {
    return tl::unexpected(rig.error());
  }
  switched->use_port((*rig)->engine().port(0));
  (*rig)->measure(warm_up_seconds, 0);
  RouteRounds result;
  for (unsigned round = 0; round < rounds_of_works; ++round) {
    for (const int family : {4, 6}) {
      if (auto chosen = (*rig)->replay().set_family(family); !chosen) {
        return tl::unexpected(chosen.error());
      }
      if (auto measured =
              measure_family(**rig, *switched, device == "cpu", std::max(shortest_round, options.seconds * round_share),
                             result.of[family == 6]);
          !measured) {
        return tl::unexpected(measured.error());
      }
    }
    if (testpmd != nullptr && round % 2 == 0) {
      const auto mpps = measure_testpmd(**rig, *testpmd);
      if (!mpps) {
        return tl::unexpected(mpps.error());
      }
      result.testpmd.push_back(*mpps);
    }
  }
  if (auto finished = (*rig)->finish(); !finished) {
    return tl::unexpected(finished.error());
  }
  result.loops = switched->loops();
  result.deadline = rig_options.engine.deadline;
  result.cores = std::to_string((*rig)->lanes()) + " lanes on " + std::to_string((*rig)->cores()) + " cores";
  if (result.loops.wrong != 0 || (device == "cpu" && result.loops.touched <= result.loops.refreshed)) {
    return make_error("the MAC loop left frames as they were: " + std::to_string(result.loops.wrong) + " untouched, " +
                      std::to_string(result.loops.refreshed) + " written anew, " +
                      std::to_string(result.loops.touched) + " touched");
  }
  return result;
}

}  // namespace sluice::cli::bench
