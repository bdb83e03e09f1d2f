#include "bench/order_model.h"

#include <rte_cycles.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <random>

namespace sluice::cli::bench {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

void number(rte_mbuf** frames, std::uint32_t batch) {
  for (unsigned i = 0; i < order_batch_frames; ++i) {
    frames[i]->hash.fdir.hi = batch * order_batch_frames + i;
  }
}

class Model {
 public:
  Model(OrderScheme& scheme, const OrderCase& one, std::vector<rte_mbuf*>& frames)
      : scheme_(scheme), one_(one), frames_(frames), out_(one.batches), place_of_(one.batches), random_(1) {
    for (std::uint32_t place = 0; place < one.capacity; ++place) {
      free_.push_back(place);
    }
  }

  OrderRun run() {
    while (submitted_ < one_.batches || !on_device_.empty()) {
      const double wanted = submitted_ < one_.batches ? std::max(now_, next_arrival_) : never;
      const double done = on_device_.empty() ? never : on_device_.top().first;
      if (wanted > done) {
        complete();
      } else if (!free_.empty()) {
        submit(wanted);
      } else if (scheme_.give_up(out_)) {
        now_ = wanted;
        ++run_.gave_up;
        step(OrderRun::Step::Kind::give_up, 0);
      } else {
        complete();  // the device stands still for want of capacity
      }
    }
    scheme_.finish(out_);
    run_.out_of_order = out_.out_of_order();
    run_.units_a_batch = now_ / one_.batches;
    run_.frames = out_.numbers().size();
    return std::move(run_);
  }

 private:
  rte_mbuf** frames_at(std::uint32_t place) { return &frames_[std::size_t{place} * order_batch_frames]; }

  void submit(double at) {
    now_ = at;
    next_arrival_ = now_ + 1;
    const std::uint32_t place = free_.front();
    free_.pop_front();
    place_of_[submitted_] = place;
    number(frames_at(place), submitted_);
    scheme_.tag(submitted_, frames_at(place));
    on_device_.emplace(now_ + 1 + std::uniform_real_distribution<double>(0, one_.jitter)(random_), submitted_);
    step(OrderRun::Step::Kind::submit, submitted_++);
  }
  void complete() {
    const auto [at, batch] = on_device_.top();
    on_device_.pop();
    now_ = at;
    scheme_.complete(batch, frames_at(place_of_[batch]), out_);
    step(OrderRun::Step::Kind::complete, batch);
  }
  // Takes back the places of the batches that have left.
  void step(OrderRun::Step::Kind kind, std::uint32_t batch) {
    run_.steps.push_back({kind, batch, place_of_[batch]});
    for (; (left_ + 1) * order_batch_frames <= out_.numbers().size(); ++left_) {
      free_.push_back(place_of_[out_.numbers()[left_ * order_batch_frames] / order_batch_frames]);
    }
  }

  using Completion = std::pair<double, std::uint32_t>;
  OrderScheme& scheme_;
  const OrderCase& one_;
  std::vector<rte_mbuf*>& frames_;
  OrderOutput out_;
  OrderRun run_;
  std::vector<std::uint32_t> place_of_;
  std::deque<std::uint32_t> free_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> on_device_;
  std::mt19937_64 random_;
  std::uint32_t submitted_ = 0;
  std::size_t left_ = 0;
  double now_ = 0, next_arrival_ = 0;
};

}  // namespace

Expected<OrderRun> run_model(OrderScheme& scheme, const OrderCase& one, std::vector<rte_mbuf*>& frames) {
  if (auto begun = scheme.reset(one.capacity); !begun) {
    return tl::unexpected(begun.error());
  }
  return Model(scheme, one, frames).run();
}

Expected<Spread> measure_ticks(OrderScheme& scheme, const OrderCase& one, const OrderRun& run,
                               std::vector<rte_mbuf*>& frames, unsigned rounds) {
  std::vector<double> ticks;
  for (unsigned round = 0; round < rounds; ++round) {
    if (auto begun = scheme.reset(one.capacity); !begun) {
      return tl::unexpected(begun.error());
    }
    OrderOutput out(one.batches);
    const std::uint64_t begin = rte_rdtsc_precise();
    for (const OrderRun::Step& step : run.steps) {
      rte_mbuf** const at = &frames[std::size_t{step.place} * order_batch_frames];
      switch (step.kind) {
        case OrderRun::Step::Kind::submit:
          number(at, step.batch);
          scheme.tag(step.batch, at);
          break;
        case OrderRun::Step::Kind::complete:
          scheme.complete(step.batch, at, out);
          break;
        case OrderRun::Step::Kind::give_up:
          scheme.give_up(out);
          break;
      }
    }
    scheme.finish(out);
    const std::uint64_t spent = rte_rdtsc_precise() - begin;
    ticks.push_back(static_cast<double>(spent) / (static_cast<double>(one.batches) * order_batch_frames));
  }
  return spread_of(ticks);
}

}  // namespace sluice::cli::bench
