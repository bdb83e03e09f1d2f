// sluice bench order: what keeping order costs and how well it works, four ways, with equal capacity, over a sweep of
// it and of the device's jitter (order_model.h, order_schemes.h). The setting is that of the BLOP poster: batches of 32
// frames from a device that takes a random time for each.
#include <rte_cycles.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/order_model.h"
#include "bench/progress.h"
#include "bench/rig.h"
#include "port/frame_pool.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned capacities[] = {8, 64, 512};
constexpr double jitters[] = {2, 8, 32};
constexpr unsigned rounds = 5;
constexpr double goal_ticks = 10;  // a frame; the poster's own figure for BLOP is 46 (order_schemes.h)
enum Which { no_care, tickets, blop, reorder, schemes };

struct Measured {
  OrderRun run;
  Spread ticks;             // a frame, of a core
  double steady = 0;        // the same without jitter
  double steady_units = 1;  // units a batch without jitter
  double kept() const { return steady_units / run.units_a_batch; }
  double mpps(double of_ticks) const { return static_cast<double>(rte_get_tsc_hz()) / of_ticks / 1e6; }
};
using Row = std::array<Measured, schemes>;

Expected<Measured> measure(OrderScheme& scheme, const OrderCase& one, std::vector<rte_mbuf*>& frames) {
  Measured measured;
  auto run = run_model(scheme, one, frames);
  if (!run) {
    return tl::unexpected(run.error());
  }
  measured.run = std::move(*run);
  const auto ticks = measure_ticks(scheme, one, measured.run, frames, rounds);
  if (!ticks) {
    return tl::unexpected(ticks.error());
  }
  measured.ticks = *ticks;
  return measured;
}

// The same capacity with and without jitter, one after the other.
Expected<Measured> measure_both(OrderScheme& scheme, const OrderCase& one, std::vector<rte_mbuf*>& frames) {
  OrderCase steady = one;
  steady.jitter = 0;
  const auto without = measure(scheme, steady, frames);
  auto with = without ? measure(scheme, one, frames) : without;
  if (with) {
    with->steady = without->ticks.median;
    with->steady_units = without->run.units_a_batch;
  }
  return with;
}

void print(const OrderCase& one, const char* name, const Measured& m, double added) {
  std::printf(
      "RESULT order jitter %2.0f capacity %3u %-11s out of order %6.2f %% | device keeps %5.1f %% of its throughput | "
      "core "
      "%6.1f Mpps, %6.1f without jitter (%.0f %%) | %+6.1f ticks a frame (%.1f; %.1f to %.1f) | %lu times gave up\n",
      one.jitter, one.capacity, name, 100 * m.run.out_of_order, 100 * m.kept(), m.mpps(m.ticks.median),
      m.mpps(m.steady), 100 * m.steady / m.ticks.median, added, m.ticks.median, m.ticks.low, m.ticks.high,
      m.run.gave_up);
}

Expected<void> append(const BenchOptions& options, const OrderCase& one, const char* name, const Measured& m,
                      double added) {
  if (options.csv.empty()) {
    return {};
  }
  return append_line(
      options.csv, order_csv_header(),
      fmt::format("{},{:.0f},{},{:.4f},{:.4f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{:.2f},{},{}", name, one.jitter,
                  one.capacity, m.run.out_of_order, m.kept(), m.mpps(m.ticks.median), m.mpps(m.steady), m.ticks.median,
                  m.ticks.low, m.ticks.high, added, m.run.frames, m.run.gave_up));
}

// Where another way is as good as tickets or better, in words.
void compare(const OrderCase& one, const Row& row) {
  const Measured& ours = row[tickets];
  for (const auto& [which, name] : {std::pair{blop, "BLOP"}, std::pair{reorder, "rte_reorder"}}) {
    const Measured& other = row[which];
    const bool in_order = other.run.out_of_order == 0;
    const double saved = ours.ticks.median - other.ticks.median;
    const bool faster = other.kept() > ours.kept() * 1.001;
    if (!faster && !(in_order && saved > 0)) {
      continue;
    }
    std::string text = in_order ? "keeps all order, too" : "lets frames overtake";
    if (saved > 0) {
      text += fmt::format(", for {:.1f} ticks a frame less than tickets{}", saved,
                          other.ticks.high >= ours.ticks.low ? " (within the spread of the rounds)" : "");
    }
    if (faster) {
      text += fmt::format(", and the device keeps {:.0f} % of its throughput where tickets leave {:.0f} %",
                          100 * other.kept(), 100 * ours.kept());
    }
    std::printf("  jitter %.0f capacity %u: %s %s\n", one.jitter, one.capacity, name, text.c_str());
  }
}

Expected<void> verify(const OrderCase& one, const char* name, Which which, const Measured& m) {
  const std::uint64_t all = std::uint64_t{one.batches} * order_batch_frames;
  if (m.run.frames != all) {
    return make_error(fmt::format("NOT VERIFIED: {} let {} of {} frames leave", name, m.run.frames, all));
  }
  if (which == tickets && m.run.out_of_order != 0) {
    return make_error("NOT VERIFIED: tickets let frames leave out of order");
  }
  return {};
}

struct Worst {
  double added = 0;  // by tickets to a frame
  double noise = 0;  // between the rounds of the way that does nothing
};

Expected<void> run_case(const BenchOptions& options, const OrderCase& one, std::vector<rte_mbuf*>& frames,
                        Worst& worst) {
  const Progress progress("measuring four ways to keep order");
  const std::unique_ptr<OrderScheme> all[schemes] = {make_no_care(), make_tickets(), make_blop(), make_rte_reorder()};
  Row row;
  for (unsigned which = 0; which < schemes; ++which) {
    auto measured = measure_both(*all[which], one, frames);
    if (!measured) {
      return tl::unexpected(measured.error());
    }
    row[which] = std::move(*measured);
    const double added = row[which].ticks.median - row[no_care].ticks.median;
    auto done = verify(one, all[which]->name(), static_cast<Which>(which), row[which]);
    if (done) {
      print(one, all[which]->name(), row[which], added);
      done = append(options, one, all[which]->name(), row[which], added);
    }
    if (!done) {
      return done;
    }
  }
  worst.added = std::max(worst.added, row[tickets].ticks.median - row[no_care].ticks.median);
  worst.noise = std::max(worst.noise, row[no_care].ticks.high - row[no_care].ticks.low);
  compare(one, row);
  return {};
}

}  // namespace

std::string order_csv_header() {
  return "scheme,jitter,capacity,out_of_order,device_kept,core_mpps,core_mpps_without_jitter,ticks,ticks_low,ticks_"
         "high,"
         "ticks_added,frames,gave_up";
}

int bench_order(const BenchOptions& options) {
  const auto fail = [](const std::string& message) {
    std::fprintf(stderr, "bench order: %s\n", message.c_str());
    return 1;
  };
  if (auto eal = start_bench_eal(1ULL << 30); !eal) {
    return fail(eal.error().message);
  }
  if (const auto ceilings = print_ceilings(options, true); !ceilings) {
    std::printf("%s (this bench needs none: the device is a model)\n", no_gpu_line(ceilings.error()).c_str());
  }
  std::vector<rte_mbuf*> frames(std::size_t{*std::max_element(std::begin(capacities), std::end(capacities))} *
                                order_batch_frames);
  auto pool = port::make_frame_pool("order", static_cast<unsigned>(frames.size()), 256, SOCKET_ID_ANY);
  if (!pool || rte_pktmbuf_alloc_bulk(pool->get(), frames.data(), static_cast<unsigned>(frames.size())) != 0) {
    return fail("no memory for frames");
  }
  std::printf(
      "batches of %u frames; capacity: batches on the device or waiting, the same for all; jitter: how many batch gaps "
      "a "
      "batch may take longer than another; ticks of %.2f GHz, less those of no care\n",
      order_batch_frames, static_cast<double>(rte_get_tsc_hz()) / 1e9);
  Worst worst;
  Expected<void> done;
  for (const double jitter : jitters) {
    for (const unsigned capacity : capacities) {
      OrderCase one;
      one.jitter = jitter;
      one.capacity = capacity;
      done = done ? run_case(options, one, frames, worst) : done;
    }
  }
  rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(frames.size()));
  if (!done) {
    return fail(done.error().message);
  }
  Goals goals("order", options.goals);
  const std::string what = "most that tickets add to a frame";
  if (worst.noise > goal_ticks) {
    goals.without(what, fmt::format("rounds of the way that does nothing differ by {:.1f} ticks", worst.noise));
  } else {
    goals.at_most(what, worst.added, goal_ticks, "ticks");
  }
  return goals.status();
}

}  // namespace sluice::cli::bench
