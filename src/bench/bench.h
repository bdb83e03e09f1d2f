// sluice bench: whole-system benches on this machine. Each prints the machine's ceilings first, verifies its output
// before it prints a rate, and reports shares and ratios. Micro-benches of the parts stand beside their sources
// (*_bench.cc).
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "device/link_probe.h"

namespace sluice::cli::bench {

struct BenchOptions {
  std::string device = "auto";
  unsigned lanes = 0;      // 0: what the machine has cores for
  double seconds = 2;      // of each measurement
  double hold = 60;        // of the run that must not miss a deadline
  std::string mix;         // frame sizes; empty: the bench's own
  double deadline_ms = 0;  // 0: the bench's own
  double cycle_us = 0;     // 0: what the deadline allows
  unsigned overlap = 0;
  std::string stagger = "auto";
  unsigned forwarders = 0;  // threads on cores of their own; 0: lanes forward on theirs
  unsigned batch = 0;
  unsigned batches = 0;
  unsigned streams = 0;
  unsigned frames = 0;            // per lane
  unsigned ring = 0;              // echo, touch: of these, those that may wait in a lane's receive queue
  std::string function_settings;  // extra TOML for the function's section
  std::string table;              // route: a file of routes; empty: made up
  std::string patterns;           // match, fused, inspect: a file of patterns; empty: made up
  std::string payload;            // match: "text", "random" or a file; empty: its own
  std::string technique;          // match: the one that searches; empty: each in turn, and the fastest counts
  std::string updates;            // churn: a file of BGP updates; empty: made up
  std::string rules;              // acl, fused, inspect: a file of rules; empty: made up
  std::string acl;                // inspect: a file of ACL rules; empty: made up
  std::string only;               // inspect: traffic with one of these in its name, between commas; empty: all
  bool whole = false;             // inspect: the whole chain alone, none of its parts
  bool cpu_below_auto = false;  // inspect: attacks at half of the rate on a gateway whose lanes compute what is little
  std::string trace;            // acl, fused: a ClassBench trace; empty: headers drawn from the rules
  std::string pace = "own";     // churn: of the updates (updates.h)
  double at = 0;                // echo, touch: hold this share of the ceiling instead of searching for the highest;
                                // churn, changes: load, as a share of the saturated rate; 0: the bench's own
  bool goals = true;            // judged: missing one is exit status 1
  std::string admission = "auto";  // which frames are let in (engine/options.h)
  bool realtime = false;           // lanes and worker run in real time (SCHED_FIFO)
  std::string csv;                 // rows are appended here
  // media
  unsigned rtp_streams = 1000;  // in all
  std::string suite = "AES_CM_128_HMAC_SHA1_80";
  std::string direction = "protect";  // or both
  bool checksums = true;              // frames have UDP checksums
  double overload = 0;                // times the saturated rate, with admission of streams off and on; 0: not
  std::string profile;                // overload: B_I is this profile's; empty: a share of the saturated rate
  std::string ways = "lose";          // loss: how the GPU fails, between commas (failing_device.h)
  // ipsec: lists between commas; all empty: the bench's own rows
  std::string algorithms, sizes, sas;
};

// The ceilings of this machine, measured now in DPDK's memory, which must have been started; printed as a side effect.
// An Error when there is no GPU.
Expected<device::LinkCeilings> print_ceilings(const BenchOptions& options, bool quick);

// Measured again, after a run: raises what was too low because a noisy moment came before it.
Expected<void> probe_again(const BenchOptions& options, device::LinkCeilings& ceilings);

// What a bench that needs no GPU prints when print_ceilings() has an Error.
std::string no_gpu_line(const Error& error);

// An Error for what no bench, or none that measures the GPU, can be run with on this machine, named by its option.
// Opens the files, reads nothing; the GPU is not asked.
Expected<void> check_options(const BenchOptions& options, bool measures_gpu);

// An Error for what is no setting of this function, or no value of one.
Expected<void> check_settings(const std::string& function, const std::string& settings);

// An Error when the machine has not the GPU that is named, or none and the bench measures it. Starts CUDA.
Expected<void> check_gpu(const std::string& device, bool measures_gpu);

// Exit status each: 0 ok, 1 a figure could not be verified or measured, or a goal was missed (goals.h), 2 bad input.
int bench_link(const BenchOptions& options);
int bench_echo(const BenchOptions& options);
int bench_touch(const BenchOptions& options);
int bench_route(const BenchOptions& options);
int bench_idle(const BenchOptions& options);
int bench_order(const BenchOptions& options);
std::string order_csv_header();
int bench_figures(const BenchOptions& options);
std::string figures_csv_header();
int bench_soak(const BenchOptions& options);
int bench_churn(const BenchOptions& options);
int bench_match(const BenchOptions& options);
int bench_srtp(const BenchOptions& options);
int bench_media(const BenchOptions& options);
int bench_fused(const BenchOptions& options);
int bench_acl(const BenchOptions& options);
int bench_inspect(const BenchOptions& options);
int bench_ipsec(const BenchOptions& options);
int bench_choice(const BenchOptions& options);
int bench_loss(const BenchOptions& options);
int bench_changes(const BenchOptions& options);

}  // namespace sluice::cli::bench
