// sluice bench acl: first-match classification of headers by rte_acl on all cores, and by the GPU with keys in its own
// memory and in pinned host memory.
#include <pthread.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "bench/acl_sets.h"
#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/gpu_only.h"
#include "bench/progress.h"
#include "bench/rig.h"
#include "bench/rounds.h"
#include "bench/spread.h"
#include "device/copy.h"
#include "device/gpu.h"
#include "device/name.h"
#include "lookup/acl/classifier.h"
#include "lookup/acl/gpu_classifier.h"
#include "lookup/acl/tables.h"

namespace sluice::cli::bench {
namespace {

using namespace lookup::acl;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t batches[] = {4096, 16384, 65536, 262144, 1048576};
constexpr std::uint32_t all_keys = 1048576;
constexpr unsigned cpu_batch = 256;
constexpr double goal_ratio = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The CPU's searches, by what a reader of the figures calls them.
struct Named {
  Search search;
  const char* name;
};
constexpr Named searches[] = {
    {Search::avx2, "AVX2"}, {Search::avx512x16, "AVX-512 in 256 bits"}, {Search::avx512x32, "AVX-512 in 512 bits"}};

void print(const AclSet& set, const std::string& label, const Spread& mlps, const std::string& more) {
  std::printf("RESULT acl %-8s %-52s %9.1f Mlookups/s (%.1f to %.1f)%s\n", set.name.c_str(), label.c_str(), mlps.median,
              mlps.low, mlps.high, more.c_str());
}

void append(const BenchOptions& options, const AclSet& set, const std::string& label, const Spread& mlps, double share,
            double goal) {
  Outcome outcome;
  outcome.seconds = 1;
  outcome.frames = static_cast<std::uint64_t>(mlps.median * 1e6);
  outcome.rounds = repetitions;
  outcome.mpps_low = mlps.low;
  outcome.mpps_high = mlps.high;
  Yardsticks yardsticks;
  yardsticks.share = share;
  yardsticks.goal = goal;
  yardsticks.setting = fmt::format("{} rules", set.rules.size());
  append_csv(options, "acl", set.name + " " + label, outcome, yardsticks);
}

// Threads that classify until they are stopped, one on each core; answers what they classified in a second.
double run_cores(const Classifier& classifier, const AclSet& set, unsigned threads, double seconds) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> ready{0};
  std::atomic<std::uint64_t> sum{0};
  const std::vector<int> cores = allowed_cores();
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(static_cast<unsigned>(cores[t]), &one);
      pthread_setaffinity_np(pthread_self(), sizeof one, &one);
      const auto n = static_cast<unsigned>(std::min<std::size_t>(cpu_batch, set.keys.size()));
      std::vector<RuleIndex> out(n);
      std::size_t at = set.keys.size() / threads * t;
      std::uint64_t done = 0;
      ++ready;
      while (ready < threads) {
      }
      while (!stop.load(std::memory_order_relaxed)) {
        at = at + n <= set.keys.size() ? at : 0;
        classifier.classify4(set.keys.data() + at, out.data(), n);
        at += n;
        done += n;
      }
      sum += done;
    });
  }
  while (ready < threads) {
  }
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : all) {
    thread.join();
  }
  return static_cast<double>(sum) / seconds_since(start) / 1e6;
}

// Million lookups a second of the best search; 0 after an Error.
Expected<double> measure_cpu(const BenchOptions& options, const AclSet& set) {
  const auto start = Clock::now();
  auto classifier = Classifier::create({.name = "bench"}, set.rules);
  if (!classifier) {
    return tl::unexpected(classifier.error());
  }
  std::printf("%s: %zu rules, %zu headers; rte_acl: built in %.2f s, %.1f MB\n", set.name.c_str(), set.rules.size(),
              set.keys.size(), seconds_since(start), static_cast<double>((*classifier)->memory_bytes()) / 1e6);
  const auto cores = static_cast<unsigned>(allowed_cores().size());
  const unsigned threads = options.lanes != 0 ? options.lanes : cores;
  double best = 0;
  for (const Named& one : searches) {
    if (const auto has = (*classifier)->use(one.search); !has) {
      std::printf("%s: rte_acl %s: not on this CPU\n", set.name.c_str(), one.name);
      continue;
    }
    std::vector<RuleIndex> answers(set.keys.size());
    (*classifier)->classify4(set.keys.data(), answers.data(), static_cast<unsigned>(answers.size()));
    if (auto good = verify_acl(set, fmt::format("rte_acl ({})", one.name), answers); !good) {
      return tl::unexpected(good.error());
    }
    std::vector<double> mlps;
    for (unsigned round = 0; round <= repetitions; ++round) {  // the first one, which warms up, does not count
      const double rate = run_cores(**classifier, set, threads, options.seconds / (repetitions + 1));
      if (round > 0) mlps.push_back(rate);
    }
    const Spread spread = spread_of(mlps);
    const std::string label = fmt::format("rte_acl {} on {} cores", one.name, threads);
    print(set, label, spread, fmt::format(", {:.1f} a core", spread.median / threads));
    append(options, set, label, spread, 0, 0);
    best = std::max(best, spread.median);
  }
  return best;
}

// Tables as they are by default, and with the cells of all groups in pages, which are smaller and read once more.
struct Layout {
  const char* name;
  Tables::Options tables;
};
constexpr Layout layouts[] = {{"", {}}, {" paged", {.most_flat_cells = 0}}};

// Keys and answers in one kind of memory.
struct Place {
  const char* name;
  Key4* keys;
  RuleIndex* out;
};

Expected<void> finish(device::Gpu& gpu) {
  for (unsigned s = 0; s < gpu.stream_count(); ++s) {
    while (gpu.stream(s).pending_marks() > 0) {
      if (gpu.stream(s).poll() == device::MarkState::failed) {
        return make_error("the GPU failed: " + gpu.why());
      }
    }
  }
  return {};
}

struct Ran {
  double mlps;
  std::uint64_t keys;  // looked up, from the first one on, again and again
};

// Launches of n keys one after the other, on all streams in turn, a few of each under way.
Expected<Ran> run_gpu(device::Gpu& gpu, GpuClassifier& classifier, const Place& place, std::uint32_t n,
                      double seconds) {
  constexpr unsigned under_way = 4;
  std::uint64_t done = 0;
  const auto start = Clock::now();
  for (unsigned launch = 0; seconds_since(start) < seconds; ++launch) {
    device::GpuStream& stream = gpu.stream(launch % gpu.stream_count());
    while (stream.pending_marks() >= under_way) {
      if (stream.poll() == device::MarkState::failed) {
        return make_error("the GPU failed: " + gpu.why());
      }
    }
    const std::uint32_t at = launch * n % all_keys;
    auto ok = classifier.classify(stream, place.keys + at, place.out + at, n, nullptr, nullptr, 0);
    ok = ok ? stream.mark() : ok;
    if (!ok) {
      return tl::unexpected(ok.error());
    }
    done += n;
  }
  if (auto ok = finish(gpu); !ok) {
    return tl::unexpected(ok.error());
  }
  return Ran{static_cast<double>(done) / seconds_since(start) / 1e6, done};
}

class GpuBench {
 public:
  static Expected<std::unique_ptr<GpuBench>> make(int index) {
    auto bench = std::make_unique<GpuBench>();
    auto gpu = device::Gpu::open(index, 4);
    if (!gpu) {
      return tl::unexpected(gpu.error());
    }
    bench->gpu_ = std::move(*gpu);
    for (Place& place : bench->places_) {
      constexpr std::size_t key_bytes = all_keys * sizeof(Key4), out_bytes = all_keys * sizeof(RuleIndex);
      std::byte* memory = nullptr;
      if (&place == &bench->places_[1]) {
        auto host = bench->gpu_->allocate_host(key_bytes + out_bytes);
        if (!host) return tl::unexpected(host.error());
        memory = static_cast<std::byte*>(*host);
      } else {
        if (auto ok = keep(bench->gpu_->allocate_device(key_bytes + out_bytes), bench->on_device_); !ok) {
          return tl::unexpected(ok.error());
        }
        memory = bench->on_device_.as<std::byte>();
      }
      place.keys = reinterpret_cast<Key4*>(memory);
      place.out = reinterpret_cast<RuleIndex*>(memory + key_bytes);
    }
    return bench;
  }

  // The best rate with keys in the GPU's memory, by the tables as they are by default.
  Expected<double> measure(const BenchOptions& options, const AclSet& set, double cpu_mlps) {
    double best = 0;
    for (const Layout& layout : layouts) {
      if (auto ok = load(set, layout); !ok) {
        return tl::unexpected(ok.error());
      }
      for (const Place& place : places_) {
        if (auto ok = verify(set, place); !ok) {
          return tl::unexpected(ok.error());
        }
        for (const std::uint32_t n : batches) {
          auto mlps = measure_one(options, set, layout, place, n, cpu_mlps);
          if (!mlps) {
            return mlps;
          }
          best = &place == &places_[0] && &layout == &layouts[0] ? std::max(best, *mlps) : best;
        }
      }
    }
    return best;
  }

 private:
  Expected<void> load(const AclSet& set, const Layout& layout) {
    const auto start = Clock::now();
    auto tables = Tables::build(set.rules, layout.tables);
    const double seconds = seconds_since(start);
    auto classifier = GpuClassifier::create(*gpu_, set.rules, {.tables = layout.tables});
    if (!tables || !classifier) {
      return tl::unexpected(!tables ? tables.error() : classifier.error());
    }
    classifier_ = std::move(*classifier);
    const Tables::Shape& shape = tables->shape4;
    std::printf(
        "%s: GPU tables%s built in %.2f s, %.1f MB: %zu by %zu address classes, %zu cells, %zu records (longest list "
        "%zu), %zu rows of %zu\n",
        set.name.c_str(), layout.name, seconds, static_cast<double>(tables->bytes()) / 1e6, shape.source_classes,
        shape.destination_classes, shape.cells, shape.records, shape.longest_list, shape.rows, shape.port_classes);
    std::vector<Key4> keys(all_keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      keys[i] = set.keys[i % set.keys.size()];
    }
    for (const Place& place : places_) {
      if (auto ok = device::copy(*gpu_, place.keys, keys.data(), keys.size() * sizeof(Key4)); !ok) {
        return ok;
      }
    }
    return {};
  }

  Expected<void> verify(const AclSet& set, const Place& place) {
    auto ok = forget(place);
    ok = ok ? classifier_->classify(gpu_->stream(0), place.keys, place.out, all_keys, nullptr, nullptr, 0) : ok;
    return ok ? check(set, place, all_keys, all_keys) : ok;
  }

  // Answers that are there from before would be right whatever a launch writes.
  Expected<void> forget(const Place& place) {
    const std::vector<RuleIndex> none(all_keys, no_match - 1);
    return device::copy(*gpu_, place.out, none.data(), none.size() * sizeof(RuleIndex));
  }

  // Those of the first `count` keys.
  Expected<void> check(const AclSet& set, const Place& place, std::uint32_t n, std::uint64_t count) {
    std::vector<RuleIndex> answers(std::min<std::uint64_t>(count, all_keys));
    auto ok = device::copy(*gpu_, answers.data(), place.out, answers.size() * sizeof(RuleIndex));
    const std::string who = fmt::format("the GPU, keys in {} memory, batches of {},", place.name, n);
    return ok ? verify_acl(set, who, answers) : ok;
  }

  Expected<double> measure_one(const BenchOptions& options, const AclSet& set, const Layout& layout, const Place& place,
                               std::uint32_t n, double cpu_mlps) {
    std::vector<double> all;
    for (unsigned round = 0; round <= repetitions; ++round) {  // the first one warms up
      if (auto ok = forget(place); !ok) {
        return tl::unexpected(ok.error());
      }
      const auto ran = run_gpu(*gpu_, *classifier_, place, n, options.seconds / (repetitions + 1));
      if (!ran) {
        return tl::unexpected(ran.error());
      }
      if (auto ok = check(set, place, n, ran->keys); !ok) {
        return tl::unexpected(ok.error());
      }
      if (round > 0) {
        all.push_back(ran->mlps);
      }
    }
    const Spread spread = spread_of(all);
    const std::string label = fmt::format("GPU{}, keys in {} memory, batches of {}", layout.name, place.name, n);
    print(set, label, spread, fmt::format(", {:.1f} times rte_acl", spread.median / cpu_mlps));
    append(options, set, fmt::format("GPU{} {} memory batch {}", layout.name, place.name, n), spread,
           spread.median / cpu_mlps, goal_ratio);
    return spread.median;
  }

  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<GpuClassifier> classifier_;
  device::DeviceMemory on_device_;  // of the first place
  Place places_[2] = {{"device", nullptr, nullptr}, {"host", nullptr, nullptr}};
};

}  // namespace

int bench_acl(const BenchOptions& options) {
  const auto fail = [](const std::string& message, int status = 1) {
    std::fprintf(stderr, "bench acl: %s\n", message.c_str());
    return status;
  };
  if (auto eal = start_bench_eal(1ULL << 30); !eal) {
    return fail(eal.error().message);
  }
  const auto ceilings = print_ceilings(options, true);
  std::unique_ptr<GpuBench> gpu;
  if (ceilings && options.device != "cpu") {
    auto made = GpuBench::make(device::gpu_index(options.device).value_or(0));
    if (!made) {
      return fail(made.error().message);
    }
    gpu = std::move(*made);
  } else {
    std::printf("%s\n", ceilings ? "--device cpu: the GPU is not measured" : no_gpu_line(ceilings.error()).c_str());
  }
  auto progress = std::make_unique<Progress>("finding first matches by trying every rule");
  const auto sets = load_acl_sets(options);
  progress.reset();
  if (!sets) {
    return fail(sets.error().message, 2);
  }
  Goals goals("acl", options.goals);
  for (const AclSet& set : *sets) {
    const Progress measuring("measuring " + set.name);
    const auto cpu = measure_cpu(options, set);
    const auto on_gpu = cpu && gpu ? gpu->measure(options, set, *cpu) : cpu;
    if (!on_gpu) {
      return fail(on_gpu.error().message);
    }
    const std::string what = set.name + ": GPU, keys in its memory, over rte_acl on all cores";
    if (gpu) {
      goals.at_least(what, *on_gpu / *cpu, goal_ratio, "times");
    } else {
      goals.without(what, "no GPU was measured");
    }
  }
  return goals.status();
}

}  // namespace sluice::cli::bench
