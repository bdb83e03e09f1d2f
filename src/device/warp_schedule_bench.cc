// What WarpSchedule costs on one core for each item, by grouping and batch: items of ten kinds and of lengths that are
// uniform, or IMIX of PIPSEA (61.22 % of 60 B, 23.47 % of 536 B, 15.31 % of 1,360 B), or of one label.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "device/warp_schedule.h"

namespace sluice::device {
namespace {

constexpr unsigned kinds = 10, ranges = 6;

enum class Lengths { one, uniform, imix };

struct Item {
  std::uint8_t kind;
  std::uint16_t length;
};

std::vector<Item> items_of(Lengths lengths, std::size_t count) {
  std::mt19937 random(1);
  std::vector<Item> items(count, Item{0, 1408});
  for (Item& item : items) {
    if (lengths == Lengths::one) continue;
    const unsigned part = random() % 10'000;
    item.kind = static_cast<std::uint8_t>(random() % kinds);
    item.length = static_cast<std::uint16_t>(lengths == Lengths::uniform ? 64 + random() % 1455
                                             : part < 6122               ? 60
                                             : part < 8469               ? 536
                                                                         : 1360);
  }
  return items;
}

void schedule(benchmark::State& state, WarpGrouping grouping, Lengths lengths) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  const auto items = items_of(lengths, count);
  WarpTimes times(kinds, ranges, 256);
  WarpSchedule schedule({.max_items = count, .kinds = kinds, .ranges = ranges, .grouping = grouping}, times);
  std::vector<std::uint16_t> order(schedule.most_items()), labels(schedule.most_labels());
  for (auto _ : state) {
    for (const Item& item : items) schedule.add(item.kind, item.length);
    benchmark::DoNotOptimize(schedule.order(order, labels));
    benchmark::ClobberMemory();
  }
  state.counters["an item"] = benchmark::Counter(static_cast<double>(state.iterations()) * count,
                                                 benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void batches(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(256)->Arg(2048)->Arg(8192)->Arg(16384);
}
BENCHMARK_CAPTURE(schedule, none, WarpGrouping::none, Lengths::uniform)->Apply(batches);
BENCHMARK_CAPTURE(schedule, by_kind, WarpGrouping::by_kind, Lengths::uniform)->Apply(batches);
BENCHMARK_CAPTURE(schedule, by_length, WarpGrouping::by_length, Lengths::uniform)->Apply(batches);
BENCHMARK_CAPTURE(schedule, by_both, WarpGrouping::by_both, Lengths::uniform)->Apply(batches);
BENCHMARK_CAPTURE(schedule, sorted, WarpGrouping::sorted, Lengths::uniform)->Apply(batches);
BENCHMARK_CAPTURE(schedule, sorted_imix, WarpGrouping::sorted, Lengths::imix)->Apply(batches);
BENCHMARK_CAPTURE(schedule, sorted_one_label, WarpGrouping::sorted, Lengths::one)->Apply(batches);

}  // namespace
}  // namespace sluice::device
