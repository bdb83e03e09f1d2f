#include "cli/bench/bench.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>

#include "cli/bench/csv.h"
#include "cli/bench/router_rig.h"
#include "cli/commands.h"
#include "cli/signals.h"

namespace sluice::cli {
namespace {

struct Bench {
  const char* name;
  const char* text;
  int (*run)(const bench::BenchOptions& options);
  bool measures_gpu = false;
};

constexpr Bench benches[] = {
    {"link", "The ceilings of the link between host memory and the GPU", bench::bench_link, true},
    {"echo", "Every byte to the GPU and back, at a deadline", bench::bench_echo, true},
    {"touch", "Every byte read by the GPU, a verdict back, at a deadline", bench::bench_touch, true},
    {"route", "The router at 64 B with a full table, on each device, beside a MAC-rewriting loop and dpdk-testpmd",
     bench::bench_route},
    {"idle", "The router's latency at low load", bench::bench_idle},
    {"soak", "The router under full load while its table churns, for --hold seconds: no loss, no growth",
     bench::bench_soak},
    {"churn", "Route updates applied to a running router: latency with and without them, at one load",
     bench::bench_churn},
    {"order", "Keeping order under jitter with equal room: tickets, rte_reorder, BLOP, no care", bench::bench_order},
};

void add_options(CLI::App& command, bench::BenchOptions& options) {
  command.add_option("--device", options.device, "auto, cpu or cuda:N")->capture_default_str();
  command.add_option("--lanes", options.lanes, "lanes, one core each; 0: cores less two")->capture_default_str();
  command.add_option("--seconds", options.seconds, "length of each measurement")->capture_default_str();
  command.add_option("--hold", options.hold, "length of the run that must not miss a deadline")->capture_default_str();
  command.add_option("--mix", options.mix, "frame sizes: a number, heavy-tail, imix, rtp; default: the bench's own");
  command.add_option("--deadline-ms", options.deadline_ms, "deadline; default: the bench's own");
  command.add_option("--cycle-us", options.cycle_us, "scheduling cycle; default: the longest that the deadline allows");
  command.add_option("--overlap", options.overlap, "cycles that a batch may spend on the device, 1 to 8");
  command.add_option("--batch", options.batch, "frames per batch, 64 to 65536");
  command.add_option("--batches", options.batches, "batches per lane, 2 to 32");
  command.add_option("--streams", options.streams, "CUDA streams, 1 to 32");
  command.add_option("--frames", options.frames, "frames per lane");
  command.add_option("--ring", options.ring, "echo, touch: room for frames in a lane's receive queue");
  command.add_option("--settings", options.function_settings,
                     "TOML for the function's section, e.g. 'path = \"direct\"'");
  command.add_option("--table", options.table, "route: a file of routes (lookup/route_file.h)");
  command.add_option("--at", options.at,
                     "echo, touch: hold this share of the ceiling, e.g. 0.75, instead of searching; churn: load, as a "
                     "share of the saturated rate");
  command.add_option("--updates", options.updates,
                     "churn: a file of BGP updates as bgpdump -m writes it, plain or .xz; default: made up");
  command.add_option("--pace", options.pace, "churn: own (the updates' own time), max, or updates per second")
      ->capture_default_str();
  // Not add_flag("!--no-goals"), which --help would show as --no-goals{false}.
  command.add_flag_callback(
      "--no-goals", [&options] { options.goals = false; },
      "measure only: a goal that is missed is neither said nor exit status 1");
  command
      .add_option("--admission", options.admission,
                  "all frames, or those that can leave before their deadline; auto: the bench's own")
      ->check(CLI::IsMember({"auto", "deadline", "all"}))
      ->capture_default_str();
  command.add_flag("--realtime", options.realtime, "lanes and worker run above every ordinary thread (SCHED_FIFO)");
  command.add_option(
      "--csv", options.csv,
      "append the rows to this file (order: rows of their own kind); soak: write its series to this new one");
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("bench", "Measure this machine and the gateway on it");
  command->require_subcommand(1);
  command->footer(
      "Needs no NIC: frames come from memory. Frames use hugepages when there are enough (sysctl vm.nr_hugepages).");
  for (const Bench& one : benches) {
    CLI::App* sub = command->add_subcommand(one.name, one.text);
    auto options = std::make_shared<bench::BenchOptions>();
    if (std::string_view(one.name) == "soak") {
      options->hold = 600;
    }
    add_options(*sub, *options);
    sub->callback([options, &one, &status] {
      if (const auto good = bench::check_options(*options, one.measures_gpu); !good) {
        std::fprintf(stderr, "bench %s: %s\n", one.name, good.error().message.c_str());
        status = 2;
        return;
      }
      spdlog::set_level(spdlog::level::warn);
      // Now, and not after a minute of measuring. The files of a soak and of order have columns of their own.
      if (!options->csv.empty() && std::string_view(one.name) != "soak") {
        const bool is_order = std::string_view(one.name) == "order";
        const std::string header = is_order ? bench::order_csv_header() : bench::csv_header();
        if (const auto usable = bench::check_csv(options->csv, header); !usable) {
          std::fprintf(stderr, "bench %s: %s\n", one.name, usable.error().message.c_str());
          status = 2;
          return;
        }
      }
      end_on_signals(bench::remove_router_table);
      status = one.run(*options);
    });
  }
}

}  // namespace sluice::cli
