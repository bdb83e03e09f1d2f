#include "bench/commands.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/router_rig.h"
#include "cli/completion.h"
#include "cli/signals.h"
#include "engine/element.h"
#include "media/srtp/suite.h"

namespace sluice::cli {
namespace {

struct Bench {
  const char* name;
  const char* text;
  int (*run)(const bench::BenchOptions& options);
  // What it uses, beside the options that all benches have; others it does not know.
  bool measures_gpu = false;                        // is refused without one
  bool has_seconds = true;                          // --seconds
  bool has_hold = false;                            // --hold
  bool has_gateway = true;                          // frames through an engine
  bool has_queue = false;                           // --ring, --settings
  bool has_table = false;                           // --table
  bool has_share = false;                           // --at
  bool has_updates = false;                         // --updates, --pace
  bool has_batches = false;                         // --mix, --batch, --streams, without a gateway
  bool has_media = false;                           // --rtp-streams, --suite, --direction, --overload, --no-checksums
  bool has_patterns = false;                        // --patterns
  bool has_techniques = false;                      // --technique
  bool has_rules = false;                           // --rules, --trace
  bool has_detection = false;                       // --rules, of detection, --acl and --only
  bool has_parts = false;                           // --only, batches or engine
  bool has_chains = false;                          // --only, of chains
  bool has_ways = false;                            // --ways
  bool has_tunnels = false;                         // --only, out or in, --algorithms, --sizes, --sas; no --mix
  bool on_one_thread = false;                       // its chain's: no --forwarders
  double seconds = 2;                               // of each measurement, unless --seconds says another
  std::string (*csv_header)() = bench::csv_header;  // null: --csv writes a file of its own
};

constexpr Bench benches[] = {
    {.name = "link",
     .text = "The ceilings of the link between host memory and the GPU",
     .run = bench::bench_link,
     .measures_gpu = true,
     .has_gateway = false},
    {.name = "echo",
     .text = "Every byte to the GPU and back, at a deadline",
     .run = bench::bench_echo,
     .measures_gpu = true,
     .has_hold = true,
     .has_queue = true,
     .has_share = true},
    {.name = "touch",
     .text = "Every byte read by the GPU, a verdict back, at a deadline",
     .run = bench::bench_touch,
     .measures_gpu = true,
     .has_hold = true,
     .has_queue = true,
     .has_share = true},
    {.name = "route",
     .text = "The router at 64 B with a full table, on each device, beside a MAC-rewriting loop and dpdk-testpmd",
     .run = bench::bench_route,
     .has_table = true},
    {.name = "idle", .text = "The router's latency at low load", .run = bench::bench_idle, .has_table = true},
    {.name = "soak",
     .text = "The router under full load while its table churns, for --hold seconds: no loss, no growth",
     .run = bench::bench_soak,
     .has_seconds = false,
     .has_hold = true,
     .has_table = true,
     .csv_header = nullptr},
    {.name = "churn",
     .text = "Route updates applied to a running router: latency with and without them, at one load",
     .run = bench::bench_churn,
     .has_table = true,
     .has_share = true,
     .has_updates = true},
    {.name = "match",
     .text = "Patterns in payloads, on the GPU over the link, beside Hyperscan on all cores, and the literature's "
             "techniques",
     .run = bench::bench_match,
     .measures_gpu = true,
     .has_gateway = false,
     .has_batches = true,
     .has_patterns = true,
     .has_techniques = true},
    {.name = "srtp",
     .text = "RTP sealed and opened on the GPU, both ways over the link, beside intel-ipsec-mb on all cores",
     .run = bench::bench_srtp,
     .measures_gpu = true,
     .has_gateway = false,
     .has_batches = true},
    {.name = "media",
     .text = "RTP of many streams through the chain srtp, bridge at a deadline, on each device",
     .run = bench::bench_media,
     .has_hold = true,
     .has_share = true,
     .has_media = true,
     .on_one_thread = true},
    {.name = "choice",
     .text = "device = \"auto\" at each load, beside cores alone and a GPU alone, for each chain",
     .run = bench::bench_choice,
     .measures_gpu = true,
     .has_table = true,
     .has_chains = true,
     .seconds = 0.6},
    {.name = "loss",
     .text = "A GPU that fails under 70 % load, for each chain: what is lost, and how long frames wait",
     .run = bench::bench_loss,
     .measures_gpu = true,
     .has_table = true,
     .has_chains = true,
     .has_ways = true},
    {.name = "changes",
     .text = "Reloads, rule swaps and rekeys of each chain under 90 % load: what is lost, and what comes late",
     .run = bench::bench_changes,
     .has_table = true,
     .has_share = true,
     .has_chains = true,
     .on_one_thread = true},
    {.name = "figures",
     .text = "The tables and figures of the paper on GPUs and real time (Zhang, Hu and Hua 2015), on this machine",
     .run = bench::bench_figures,
     .measures_gpu = true,
     .has_gateway = false,
     .has_parts = true,
     .seconds = 0.1,
     .csv_header = bench::figures_csv_header},
    {.name = "order",
     .text = "Keeping order under jitter with equal capacity: tickets, rte_reorder, BLOP, no care",
     .run = bench::bench_order,
     .has_seconds = false,
     .has_gateway = false,
     .csv_header = bench::order_csv_header},
    {.name = "acl",
     .text = "First-match classification by 10,000 rules: rte_acl on all cores, and the GPU beside it",
     .run = bench::bench_acl,
     .has_gateway = false,
     .has_rules = true},
    {.name = "fused",
     .text = "acl, route and inspection of a batch on the GPU: a kernel each, and one for all",
     .run = bench::bench_fused,
     .measures_gpu = true,
     .has_gateway = false,
     .has_batches = true,
     .has_patterns = true,
     .has_rules = true},
    {.name = "inspect",
     .text = "Classify, look up and inspect every byte: the whole chain and its parts, beside the link's ceiling",
     .run = bench::bench_inspect,
     .has_table = true,
     .has_patterns = true,
     .has_detection = true,
     .on_one_thread = true},
    {.name = "ipsec",
     .text = "Packets of many tunnels sealed and opened by the chain ipsec, route, beside rte_ipsec on all cores",
     .run = bench::bench_ipsec,
     .has_tunnels = true,
     .on_one_thread = true,
     .seconds = 0.6},
};

const std::vector<std::string> mixes = {"64", "1408", "1500", "heavy-tail", "imix", "rtp"};

std::vector<std::string> suite_names() {
  std::vector<std::string> names;
  for (const srtp::SuiteFacts& suite : srtp::suites) names.emplace_back(suite.name);
  return names;
}

// The keys of the function's section.
std::vector<std::string> settings_of(const char* function) {
  std::vector<std::string> keys;
  const engine::ElementType* const type = engine::find_element(function);
  for (const OptionSection& section : type != nullptr && type->options ? type->options() : std::vector<OptionSection>())
    for (const OptionFacts& option : section.options) keys.push_back(option.key + " = ");
  return keys;
}

void add_gateway_options(CLI::App& command, const Bench& one, bench::BenchOptions& options) {
  if (!one.has_tunnels) {
    complete_with(command.add_option("--mix", options.mix,
                                     "frame sizes: a number, heavy-tail, imix, rtp; default: the bench's own"),
                  mixes);
  }
  command.add_option("--deadline-ms", options.deadline_ms, "deadline; default: the bench's own");
  command.add_option("--cycle-us", options.cycle_us, "scheduling cycle; default: the longest that the deadline allows");
  command.add_option("--overlap", options.overlap, "cycles that a batch may spend on the device, 1 to 8");
  command
      .add_option("--stagger", options.stagger,
                  "whether lanes' time points are spread over the cycle, not all at once; auto: as the chain wants it")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "on", "off"}));
  if (!one.on_one_thread) {
    command.add_option(
        "--forwarders", options.forwarders,
        "threads with a core each that forward what the lanes have collected; 0: lanes do it themselves");
  }
  command.add_option("--batch", options.batch, "frames per batch, 64 to 65536");
  command.add_option("--batches", options.batches, "batches per lane, 2 to 32");
  command.add_option("--streams", options.streams, "CUDA streams, 1 to 32");
  command.add_option("--frames", options.frames, "frames per lane");
  command
      .add_option("--admission", options.admission,
                  "all frames, or those that can leave before their deadline; auto: the bench's own")
      ->check(CLI::IsMember({"auto", "deadline", "all"}))
      ->capture_default_str();
  command.add_flag("--realtime", options.realtime, "lanes and worker run above every ordinary thread (SCHED_FIFO)");
}

// Those of one bench or of few.
void add_own_options(CLI::App& command, const Bench& one, bench::BenchOptions& options) {
  if (one.has_queue) {
    command.add_option("--ring", options.ring, "capacity for frames in a lane's receive queue");
    complete_with(command.add_option("--settings", options.function_settings,
                                     "TOML for the function's section, e.g. 'path = \"direct\"'"),
                  settings_of(one.name));
  }
  if (one.has_table) {
    complete_with_files(
        command.add_option("--table", options.table, "a file of routes, a prefix on each line; default: made up"));
  }
  if (one.has_media) {
    command.add_option("--rtp-streams", options.rtp_streams, "streams, of all lanes together, 1 to 1000000")
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
    complete_with(command.add_option("--suite", options.suite, "the SRTP suite, by its name in SDP"), suite_names())
        ->capture_default_str();
    command
        .add_option("--direction", options.direction,
                    "protect every frame, or both: every second one is unprotected, which was protected before")
        ->check(CLI::IsMember({"protect", "both"}))
        ->capture_default_str();
    command
        .add_option("--overload", options.overload,
                    "instead of holding: so many times the saturated rate, with admission of streams off and on, which "
                    "admits --at (0.6) of the saturated rate, or what --profile says")
        ->check(CLI::Range(1.0, 100.0));
    complete_with_files(
        command.add_option(
            "--profile", options.profile,
            "of --overload: what sluice calibrate has written of this machine, device, suite, lanes and overlap "
            "with the chain srtp, bridge: streams are admitted by it, as a gateway does"))
        ->needs("--overload");
    command.add_flag_callback(
        "--no-checksums", [&options] { options.checksums = false; }, "frames without UDP checksums");
  }
  if (one.has_patterns) {
    complete_with_files(command.add_option(
        "--patterns", options.patterns,
        "a file of patterns in hexadecimal digits, one a line, nocase behind; or how many to make up"));
  }
  if (one.has_techniques) {
    complete_with_files(
        command.add_option("--payload", options.payload,
                           "payloads: text, random, or a file of whose bytes they are pieces; default: half text, half "
                           "random, and a pattern in one of a hundred"));
    command
        .add_option("--technique", options.technique,
                    "what searches payloads on the GPU; default: each in turn, and the fastest counts")
        ->check(CLI::IsMember({"filter", "gathered-filter", "gathered-automaton"}));
  }
  if (one.has_batches) {
    complete_with(command.add_option("--mix", options.mix,
                                     "frame sizes: a number, heavy-tail, imix, rtp; default: the bench's own"),
                  mixes);
    command.add_option("--batch", options.batch, "frames per batch, 64 to 65536");
    command.add_option("--streams", options.streams, "CUDA streams, 1 to 32");
  }
  if (one.has_share) {
    command.add_option("--at", options.at,
                       one.has_updates  ? "load, as a share of the saturated rate; default: 0.5"
                       : one.has_chains ? "load, as a share of the saturated rate; default: 0.9"
                                        : "hold this share of the ceiling, e.g. 0.75, instead of searching");
  }
  if (one.has_updates) {
    complete_with_files(command.add_option(
        "--updates", options.updates, "a file of BGP updates as bgpdump -m writes it, plain or .xz; default: made up"));
    complete_with(command.add_option("--pace", options.pace, "own (the updates' own time), max, or updates per second"),
                  {"own", "max", "1000"})
        ->capture_default_str();
  }
  if (one.has_detection) {
    complete_with_files(command.add_option("--rules", options.rules,
                                           "a file of detection rules, those that are commented out, too; "
                                           "default: 3,000 that are made up"))
        ->excludes("--patterns");  // a rule for each of those
    complete_with_files(
        command.add_option("--acl", options.acl, "a file of ClassBench filters; default: 10,000 that are made up"));
    command.add_option("--only", options.only,
                       "measure only traffic with this in its name, such as 'HTTP', 'heavy-tail TCP text' or 'attack'; "
                       "several between commas");
    command.add_flag("--whole", options.whole, "of what is no attack: measure the whole chain, none of its parts");
    command.add_flag("--cpu-below-auto", options.cpu_below_auto,
                     "attacks at half of the rate: lanes compute cycles of few frames themselves, as a gateway's do");
  }
  if (one.has_parts) {
    command.add_option("--only", options.only, "batches (on the GPU by themselves) or engine; default: both")
        ->check(CLI::IsMember({"batches", "engine"}));
  }
  if (one.has_chains) {
    command.add_option(
        "--only", options.only,
        "measure only these chains, between commas: route, 'acl + route', 'acl + inspect + route', srtp, "
        "'srtp gcm', 'ipsec out', 'ipsec in'");
  }
  if (one.has_ways) {
    complete_with(command.add_option("--ways", options.ways,
                                     "how it fails, several between commas: lose (given up at once), fault (a kernel's "
                                     "bad address), endless (a kernel does not end)"),
                  {"lose", "fault", "endless", "lose,fault,endless"})
        ->capture_default_str();
  }
  if (one.has_tunnels) {
    command.add_option("--only", options.only, "out (packets are sealed) or in (opened); default: out,in");
    command.add_option("--algorithms", options.algorithms,
                       "of SAs, such as aes128-sha1, aes256gcm16, ah-sha1 or mixed; several between commas");
    command.add_option("--sizes", options.sizes,
                       "of frames in clear: numbers, imix, uniform, heavy-tail or rtp; several between commas");
    command.add_option("--sas", options.sas, "tunnels: how many; several numbers between commas");
  }
  if (one.has_rules) {
    complete_with_files(command.add_option(
        "--rules", options.rules, "a file of rules: ClassBench filters, or [[acl.rule]] (.toml); default: made up"));
    complete_with_files(
        command.add_option("--trace", options.trace, "a ClassBench trace for --rules; default: drawn from the rules"));
  }
}

void add_options(CLI::App& command, const Bench& one, bench::BenchOptions& options) {
  complete_with(command.add_option("--device", options.device, "auto, cpu or cuda:N"), {"auto", "cpu", "cuda:0"})
      ->capture_default_str();
  command.add_option("--lanes", options.lanes, "lanes, one core each; 0: cores less two")->capture_default_str();
  if (one.has_seconds) {
    command.add_option("--seconds", options.seconds, "length of each measurement")->capture_default_str();
  }
  if (one.has_hold) {
    command.add_option("--hold", options.hold, "length of the run that is judged")->capture_default_str();
  }
  if (one.has_gateway) {
    add_gateway_options(command, one, options);
  }
  add_own_options(command, one, options);
  // Not add_flag("!--no-goals"), which --help would show as --no-goals{false}.
  command.add_flag_callback(
      "--no-goals", [&options] { options.goals = false; },
      "measure only: a goal that is missed is neither said nor exit status 1");
  complete_with_files(command.add_option(
      "--csv", options.csv,
      one.csv_header == nullptr ? "write a sample for each second to this new file"
                                : "append the rows to this file (order, figures: rows of their own kind)"));
}

// Everything that can be known before DPDK or the GPU is asked for anything.
Expected<void> check(const Bench& one, const bench::BenchOptions& options) {
  if (auto good = bench::check_options(options, one.measures_gpu); !good) {
    return good;
  }
  if (one.has_queue) {
    if (auto good = bench::check_settings(one.name, options.function_settings); !good) {
      return good;
    }
  }
  // Now, and not after a minute of measuring.
  if (!options.csv.empty() && one.csv_header != nullptr) {
    if (auto good = bench::check_csv(options.csv, one.csv_header()); !good) {
      return good;
    }
  }
  return bench::check_gpu(options.device, one.measures_gpu);
}

int run(const Bench& one, const bench::BenchOptions& options) {
  if (const auto good = check(one, options); !good) {
    std::fprintf(stderr, "bench %s: %s\n", one.name, good.error().message.c_str());
    return 2;
  }
  spdlog::set_level(spdlog::level::warn);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a reader of the pipe sees each line when it is said
  end_on_signals(bench::remove_router_table);
  return one.run(options);
}

}  // namespace

void add_benches(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("bench", "Measure this machine and the gateway on it");
  command->require_subcommand(1);
  command->footer(
      "Needs no NIC: frames come from memory. Frames use hugepages when there are enough (sysctl vm.nr_hugepages).");
  for (const Bench& one : benches) {
    CLI::App* sub = command->add_subcommand(one.name, one.text);
    auto options = std::make_shared<bench::BenchOptions>();
    options->seconds = one.seconds;
    if (one.csv_header == nullptr) {
      options->hold = 600;
    }
    add_options(*sub, one, *options);
    sub->callback([options, &one, &status] { status = run(one, *options); });
  }
}

}  // namespace sluice::cli
