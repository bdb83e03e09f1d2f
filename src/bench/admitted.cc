#include "bench/admitted.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "bench/rounds.h"

namespace sluice::cli::bench {
namespace {

constexpr double first_share = 0.98;  // of the saturated rate
constexpr double share_step = 0.97;
constexpr double last_share = 0.2;
constexpr double most_holds = 8;  // a machine that is noisier than the deadline never holds

void print(const std::string& label, const Outcome& outcome) {
  std::printf("%s\n", row(label, outcome).c_str());
  std::fflush(stdout);
}

// A share of no frames would be the rate 0, which is no limit at all.
Expected<Outcome> saturate(Load& load, double seconds) {
  std::vector<Outcome> outcomes{load.measure(0.5, seconds)};
  while (outcomes.size() < repetitions) outcomes.push_back(load.measure(0, seconds));
  const Outcome saturated = middle_of(outcomes);
  print("saturated", saturated);
  if (saturated.frames == 0 || saturated.bytes == 0) {
    return make_error(fmt::format(
        "no frame was forwarded in {} s at the highest rate, so there is no rate to hold: raise --seconds, or see why",
        seconds));
  }
  return saturated;
}

// Of a held rate the windows are the rounds. The figures stay those of the whole.
void with_windows(Hold& hold) {
  if (hold.windows.empty()) return;
  const Outcome middle = middle_of(hold.windows);
  hold.whole.rounds = middle.rounds;
  hold.whole.mpps_low = middle.mpps_low;
  hold.whole.mpps_high = middle.mpps_high;
}

}  // namespace

Expected<Admitted> hold_at(Load& load, double gbytes, double seconds, double hold) {
  const auto saturated = saturate(load, seconds);
  if (!saturated) {
    return tl::unexpected(saturated.error());
  }
  load.set_rate(saturated->mpps() * 1e6 * gbytes / saturated->gbytes());
  load.measure(0.5, 0);
  Hold held = load.hold(hold, false);
  with_windows(held);
  print(fmt::format("held {:.0f} s", hold), held.whole);
  return Admitted{*saturated, held.whole, std::move(held.windows)};
}

Expected<Admitted> find_admitted(Load& load, double seconds, double hold) {
  const auto saturated = saturate(load, seconds);
  if (!saturated) {
    return tl::unexpected(saturated.error());
  }
  Admitted admitted{*saturated, {}, {}};
  const double top = static_cast<double>(saturated->frames) / saturated->seconds;
  double held_seconds = 0;
  for (double share = first_share; share > last_share && held_seconds < most_holds * hold; share *= share_step) {
    load.set_rate(top * share);
    const Outcome tried = load.measure(0.3, seconds);
    print(fmt::format("offered {:.0f} %", share * 100), tried);
    if (!tried.clean()) {
      continue;
    }
    Hold tried_long = load.hold(hold, true);
    with_windows(tried_long);
    const Outcome& held = tried_long.whole;
    held_seconds += held.seconds;
    print(fmt::format("held {:.0f} s", held.seconds), held);
    if (held.clean() || held.seconds > admitted.held.seconds) {
      admitted.held = held;
      admitted.windows = std::move(tried_long.windows);
    }
    if (held.clean()) {
      break;
    }
  }
  return admitted;
}

}  // namespace sluice::cli::bench
