// sluice bench loss: a GPU fails under load, in each of several ways: what is lost of which chain, and for how long.
#include "bench/loss.h"

#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "bench/bench.h"
#include "bench/choice_beds.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/ipsec_bed.h"
#include "bench/loss_run.h"
#include "bench/router_rig.h"

namespace sluice::cli::bench {
namespace {

constexpr double load = 0.7;

double rate(const Outcome& outcome) {
  return static_cast<double>(outcome.frames) / outcome.seconds;
}

// Of what was offered meanwhile.
double percent_of_offered(std::uint64_t frames, const Outcome& outcome) {
  return 100 * static_cast<double>(frames) / std::max(1.0, static_cast<double>(outcome.frames + outcome.not_let_in()));
}

std::string not_let_in_text(const Outcome& outcome) {
  return fmt::format("{:.2f} % refused as overdue, {:.2f} % missed", percent_of_offered(outcome.refused, outcome),
                     percent_of_offered(outcome.offered_missed, outcome));
}

std::string times_text(const LossFigures& figures) {
  return fmt::format(
      "noticed after {:.1f} ms; a batch waited {:.1f} ms at most; a lane sent nothing for {:.0f} ms at most, and the "
      "slowest was steady again after {:.0f} ms",
      figures.noticed_ms, figures.longest_wait_ms, 1e3 * figures.regained.pause_s, 1e3 * figures.regained.after_s);
}

std::string frames_text(const LossFigures& figures) {
  return fmt::format(
      "of {} frames {} left, {} were refused as overdue, {} were device_lost, dropped otherwise: {}; cores computed {} "
      "that the GPU had, {} are kept aside; {} more found the receive queue full; {} left out of order, {} are "
      "unaccounted for",
      figures.received, figures.forwarded, figures.refused, figures.device_lost,
      figures.others == 0 ? "none" : figures.others_text, figures.rescued, figures.aside, figures.missed,
      figures.out_of_order, figures.unaccounted);
}

class LossBench {
 public:
  LossBench(const BenchOptions& options, Goals& goals) : options_(options), goals_(goals) {}

  Expected<void> run(const ChoiceChain& chain, Failure failure) {
    std::printf("\nloss, %s, %s, %s\n", chain.name.c_str(), chain.traffic.c_str(), failure_name(failure).data());
    const auto cores = measure_saturated(chain, "cpu", options_.seconds);
    if (!cores) return make_error("cpu: " + cores.error().message);
    say(chain, "cores saturated", *cores, {});
    LossPlan plan;
    plan.device = options_.device == "auto" ? "cuda:0" : options_.device;
    plan.failure = failure;
    plan.load = load;
    plan.seconds = options_.seconds;
    if (options_.admission == engine::admit_name(engine::Admit::all)) plan.admission = engine::Admit::all;
    const auto figures = measure_loss(chain, plan);
    if (!figures) return make_error(plan.device + ": " + figures.error().message);
    report(chain, failure, *figures, *cores);
    return {};
  }

 private:
  void say(const ChoiceChain& chain, const std::string& what, const Outcome& outcome, Yardsticks yardsticks) const {
    const std::string label = chain.name + " " + what;
    std::printf("  %s\n", row(label, outcome).c_str());
    yardsticks.setting = chain.traffic + (yardsticks.setting.empty() ? "" : "; ") + yardsticks.setting;
    append_csv(options_, "loss", label, outcome, yardsticks);
  }

  void report(const ChoiceChain& chain, Failure failure, const LossFigures& figures, const Outcome& cores) {
    const std::string way(failure_name(failure)), name = chain.name + " " + way;
    say(chain, way + " GPU saturated", figures.saturated, {});
    say(chain, way + " before", figures.before, {.share = load});
    say(chain, way + " after", figures.after,
        {.share = rate(figures.after) / figures.offered,
         .setting = times_text(figures) + "; " + frames_text(figures) + "; before " + not_let_in_text(figures.before) +
                    "; after " + not_let_in_text(figures.after)});
    std::printf("RESULT loss %s: %s: %s\n", name.c_str(), figures.why.c_str(), times_text(figures).c_str());
    std::printf("RESULT loss %s: %s\n", name.c_str(), frames_text(figures).c_str());
    if (!figures.why_not_back.empty()) {
      std::printf("RESULT loss %s: it cannot be taken again: %s\n", name.c_str(), figures.why_not_back.c_str());
    }
    if (figures.is_back) {
      say(chain, way + " back", figures.back, {.share = load});
      std::printf(
          "RESULT loss %s: taken again by a reset of %.0f ms; then %.2f Mpps left, %.0f %% computed by the GPU\n",
          name.c_str(), figures.reset_ms, figures.back.mpps(),
          100 * static_cast<double>(figures.back.gpu_frames) /
              std::max(1.0, static_cast<double>(figures.back.gpu_frames + figures.back.cpu_frames)));
    }
    std::printf(
        "RESULT loss %s: offered %.2f Mpps, %.0f %% of the GPU's %.2f; before %.2f Mpps left (%s); cores alone carry "
        "%.2f, and after it %.2f left (%s)\n",
        name.c_str(), figures.offered / 1e6, 100 * load, figures.saturated.mpps(), figures.before.mpps(),
        not_let_in_text(figures.before).c_str(), cores.mpps(), figures.after.mpps(),
        not_let_in_text(figures.after).c_str());
    judge_loss(goals_, name, figures);
    std::fflush(stdout);
  }

  const BenchOptions& options_;
  Goals& goals_;
};

int fail(const std::string& message, int status) {
  std::fprintf(stderr, "bench loss: %s\n", message.c_str());
  return status;
}

std::vector<std::string> own_words() {
  std::vector<std::string> words;
  std::ifstream line("/proc/self/cmdline");
  for (std::string word; std::getline(line, word, '\0');) words.push_back(word);
  return words;
}

// Its exit status.
int run_in_a_process(const LossCase& one) {
  const std::string name = one.chain + " " + std::string(failure_name(one.failure));
  std::vector<std::string> words = words_for(one, own_words());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(stdout);
  pid_t child = 0;
  if (const int error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
      error != 0) {
    return fail(name + ": no process of its own: " + std::strerror(error), 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return fail(fmt::format("{}: its process ended by signal {}", name, WTERMSIG(status)), 1);
}

// The chains one after the other, in this process.
int run_here(const BenchOptions& options, Failure failure) {
  if (auto eal = start_bench_eal(std::max(router_memory, ipsec_memory_bytes(default_lanes(options)))); !eal) {
    return fail(eal.error().message, 1);
  }
  const auto ceilings = print_ceilings(options, true);
  if (!ceilings) return fail(ceilings.error().message, 1);
  auto beds = ChoiceBeds::make(options, ceilings->large.both);
  if (!beds) return fail(beds.error().message, 2);
  Goals goals("loss", options.goals);
  LossBench bench(options, goals);
  int status = 0;
  for (const ChoiceChain& chain : (*beds)->chains()) {
    if (auto ok = bench.run(chain, failure); !ok) status = fail(chain.name + ": " + ok.error().message, 1);
  }
  return status | goals.status();
}

}  // namespace

std::vector<LossCase> cases_of_their_own(const std::vector<std::string>& chains, const std::vector<Failure>& failures) {
  std::vector<LossCase> cases;
  if (chains.size() * failures.size() == 1) return cases;
  for (const std::string& chain : chains) {
    for (const Failure failure : failures) {
      if (!leaves_gpu(failure)) cases.push_back({chain, failure});
    }
  }
  return cases;
}

std::vector<std::string> words_for(const LossCase& one, const std::vector<std::string>& words) {
  std::vector<std::string> own;
  for (std::size_t w = 0; w < words.size(); ++w) {
    const auto is = [&](const std::string& option) { return words[w] == option; };
    if (is("--only") || is("--ways")) {
      ++w;  // its value
    } else if (!words[w].starts_with("--only=") && !words[w].starts_with("--ways=")) {
      own.push_back(words[w]);
    }
  }
  own.insert(own.end(), {"--only", one.chain, "--ways", std::string(failure_name(one.failure))});
  return own;
}

int bench_loss(const BenchOptions& options) {
  const auto failures = parse_failures(options.ways);
  if (!failures) return fail("--ways " + failures.error().message, 2);
  const std::vector<std::string> chains = ChoiceBeds::names(options.only);
  if (chains.empty()) return fail("--only " + options.only + ": no such chain", 2);
  // Before this process has the GPU and memory for frames.
  const std::vector<LossCase> elsewhere = cases_of_their_own(chains, *failures);
  int status = 0;
  for (const LossCase& one : elsewhere) status = std::max(status, run_in_a_process(one));
  for (const Failure failure : *failures) {
    if (leaves_gpu(failure) || elsewhere.empty()) status = std::max(status, run_here(options, failure));
  }
  return status;
}

}  // namespace sluice::cli::bench
