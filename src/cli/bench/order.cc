// sluice bench order: what keeping order costs and how well it works, on one and the same sequence of batch
// completions.
//
// Batches of 32 frames are sent to a device that takes a random time for each, so that they come back out of order (the
// setting of Zheng et al., "BLOP: Batch-Level Order Preserving for GPU-Accelerated Packet Processing", SIGCOMM 2017
// posters: batches of 32 frames, a buffer of 4 batches or 128 frames). Each scheme gets the completions in the same
// order, and its cycles are those of the forwarder from a completed batch to the array of frames to transmit. A frame
// is out of order when one with a higher number left before it.
#define ALLOW_EXPERIMENTAL_API  // for rte_reorder_seqn
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_reorder.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/rig.h"
#include "engine/batch_ring.h"
#include "port/frame_pool.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned batch_frames = 32;
constexpr unsigned in_flight = 64;  // batches on the device at most, and what a lane's ring holds
constexpr unsigned total_batches = 20'000;
constexpr unsigned rounds = 5;  // the fastest counts: the rest is the machine's noise

// Completions: the numbers of batches in the order in which the device is done with them. Batch k starts at k and takes
// `jitter` times a random part of a unit; no batch starts before the one in_flight places earlier is done.
std::vector<std::uint32_t> completions(double jitter, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, jitter);
  std::vector<double> done(total_batches);
  double start = 0;
  for (std::uint32_t k = 0; k < total_batches; ++k) {
    start = std::max(start + 1, k >= in_flight ? done[k - in_flight] : 0.0);
    done[k] = start + part(random);
    if (k >= in_flight) {
      done[k] = std::max(done[k], done[k - in_flight]);
    }
  }
  std::vector<std::uint32_t> order(total_batches);
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return done[a] < done[b]; });
  return order;
}

// Where frames leave: their numbers, in order.
struct Output {
  std::vector<std::uint32_t> numbers;
  Output() { numbers.reserve(static_cast<std::size_t>(total_batches) * batch_frames); }
  void send(const rte_mbuf* frame) { numbers.push_back(frame->hash.fdir.hi); }
  double out_of_order() const {
    std::uint32_t highest = 0;
    std::uint64_t late = 0;
    for (const std::uint32_t number : numbers) {
      late += number < highest;
      highest = std::max(highest, number);
    }
    return static_cast<double>(late) / static_cast<double>(numbers.size());
  }
};

using Batches = std::vector<rte_mbuf*>;  // a window of in_flight * 2 batches, reused

class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual const char* name() const = 0;
  virtual void reset() {}
  // A batch goes to the device: what tagging it costs.
  virtual void tag(std::uint32_t /*batch*/, rte_mbuf** /*frames*/) {}
  // A batch came back.
  virtual void complete(std::uint32_t batch, rte_mbuf** frames, Output& out) = 0;
  virtual void finish(Output& /*out*/) {}
};

void send_all(rte_mbuf** frames, Output& out) {
  for (unsigned i = 0; i < batch_frames; ++i) {
    out.send(frames[i]);
  }
}

class Nothing : public Scheme {
 public:
  const char* name() const override { return "nothing"; }
  void complete(std::uint32_t, rte_mbuf** frames, Output& out) override { send_all(frames, out); }
};

// The engine's own: a batch is done, and the oldest ones that are done leave.
class Tickets : public Scheme {
 public:
  const char* name() const override { return "Sluice's tickets"; }
  void reset() override {
    memory_.clear();
    auto ring =
        engine::BatchRing::create({0, in_flight * 2, batch_frames, 0}, [this](std::size_t bytes) -> Expected<void*> {
          memory_.emplace_back(new std::byte[bytes + 64]());
          return memory_.back().get();
        });
    ring_ = std::move(*ring);
    frames_.assign(in_flight * 2, nullptr);
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    ring_->open();
    ring_->seal(engine::BatchState::in_flight);
    frames_[batch % frames_.size()] = frames;
  }
  void complete(std::uint32_t batch, rte_mbuf**, Output& out) override {
    ring_->all()[batch % frames_.size()]->state.store(engine::BatchState::done, std::memory_order_release);
    for (engine::Batch* oldest = ring_->oldest();
         oldest != nullptr && oldest->state.load(std::memory_order_acquire) == engine::BatchState::done;
         oldest = ring_->oldest()) {
      send_all(frames_[oldest->ticket % frames_.size()], out);
      ring_->release();
    }
  }

 private:
  std::unique_ptr<engine::BatchRing> ring_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<rte_mbuf**> frames_;
};

// As the poster describes it: every frame is tagged with its batch's id; a batch that is not the expected one waits in
// a buffer of `depth` batches; when that is full, the one that waited longest leaves although it is not its turn.
class Blop : public Scheme {
 public:
  explicit Blop(unsigned depth) : depth_(depth), name_(fmt::format("BLOP, {} batches", depth)) {}
  const char* name() const override { return name_.c_str(); }
  void reset() override {
    expected_ = 0;
    waiting_.clear();
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    for (unsigned i = 0; i < batch_frames; ++i) {
      frames[i]->hash.fdir.lo = batch;
    }
  }
  void complete(std::uint32_t, rte_mbuf** frames, Output& out) override {
    const std::uint32_t id = frames[0]->hash.fdir.lo;
    if (id == expected_) {
      send_all(frames, out);
      ++expected_;
      drain(out);
      return;
    }
    if (id < expected_) {  // given up before: late, but not lost
      send_all(frames, out);
      return;
    }
    waiting_.push_back({id, frames});
    if (waiting_.size() > depth_) {
      const Entry longest = waiting_.front();
      waiting_.erase(waiting_.begin());
      send_all(longest.frames, out);
      expected_ = std::max(expected_, longest.id + 1);
      drain(out);
    }
  }
  void finish(Output& out) override {
    for (const Entry& entry : waiting_) {
      send_all(entry.frames, out);
    }
    waiting_.clear();
  }

 private:
  struct Entry {
    std::uint32_t id;
    rte_mbuf** frames;
  };
  void drain(Output& out) {
    for (bool found = true; found;) {
      found = false;
      for (std::size_t i = 0; i < waiting_.size(); ++i) {
        if (waiting_[i].id <= expected_) {
          const Entry entry = waiting_[i];
          waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
          send_all(entry.frames, out);
          expected_ = std::max(expected_, entry.id + 1);
          found = true;
          break;
        }
      }
    }
  }
  unsigned depth_;
  std::string name_;
  std::uint32_t expected_ = 0;
  std::vector<Entry> waiting_;
};

class RteReorder : public Scheme {
 public:
  explicit RteReorder(unsigned frames) : size_(frames), name_(fmt::format("rte_reorder, {} frames", frames)) {}
  ~RteReorder() override { rte_reorder_free(buffer_); }
  const char* name() const override { return name_.c_str(); }
  void reset() override {
    rte_reorder_free(buffer_);
    buffer_ = rte_reorder_create("bench", rte_socket_id(), size_);
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    for (unsigned i = 0; i < batch_frames; ++i) {
      *rte_reorder_seqn(frames[i]) = batch * batch_frames + i;
    }
  }
  void complete(std::uint32_t, rte_mbuf** frames, Output& out) override {
    for (unsigned i = 0; i < batch_frames; ++i) {
      if (rte_reorder_insert(buffer_, frames[i]) == 0) {
        continue;
      }
      // ENOSPC: make room. ERANGE: too late for the window, or so early that the window must be given up.
      drain(out);
      if (rte_reorder_insert(buffer_, frames[i]) != 0) {
        out.send(frames[i]);
      }
    }
    drain(out);
  }
  void finish(Output& out) override {
    // What still waits for a gap, in order of insertion: push it out with numbers far ahead.
    drain(out);
  }

 private:
  void drain(Output& out) {
    rte_mbuf* ready[batch_frames];
    for (unsigned count = batch_frames; count == batch_frames;) {
      count = rte_reorder_drain(buffer_, ready, batch_frames);
      for (unsigned i = 0; i < count; ++i) {
        out.send(ready[i]);
      }
    }
  }
  unsigned size_;
  std::string name_;
  rte_reorder_buffer* buffer_ = nullptr;
};

struct Measured {
  double cycles = 0;  // per frame
  double out_of_order = 0;
  std::size_t sent = 0;
};

Measured measure(Scheme& scheme, const std::vector<std::uint32_t>& order, std::vector<rte_mbuf*>& frames) {
  Measured best;
  best.cycles = 1e9;
  const std::size_t window = frames.size() / batch_frames;
  for (unsigned round = 0; round < rounds; ++round) {
    scheme.reset();
    Output out;
    std::uint64_t cycles = 0;
    std::uint32_t tagged = 0;
    for (const std::uint32_t batch : order) {
      // Everything up to this batch, at least, was submitted before it came back.
      for (; tagged <= batch; ++tagged) {
        rte_mbuf** at = &frames[(tagged % window) * batch_frames];
        for (unsigned i = 0; i < batch_frames; ++i) {
          at[i]->hash.fdir.hi = tagged * batch_frames + i;
        }
        const std::uint64_t begin = rte_rdtsc_precise();
        scheme.tag(tagged, at);
        cycles += rte_rdtsc_precise() - begin;
      }
      const std::uint64_t begin = rte_rdtsc_precise();
      scheme.complete(batch, &frames[(batch % window) * batch_frames], out);
      cycles += rte_rdtsc_precise() - begin;
    }
    scheme.finish(out);
    const double per_frame = static_cast<double>(cycles) / static_cast<double>(out.numbers.size());
    best = {std::min(best.cycles, per_frame), out.out_of_order(), out.numbers.size()};
  }
  return best;
}

}  // namespace

int bench_order(const BenchOptions& options) {
  if (auto eal = start_bench_eal(1ULL << 30); !eal) {
    std::fprintf(stderr, "bench order: %s\n", eal.error().message.c_str());
    return 1;
  }
  if (const auto ceilings = print_ceilings(options, true); !ceilings) {
    std::printf("no GPU: %s (this bench needs none: completions are simulated)\n", ceilings.error().message.c_str());
  }
  std::vector<rte_mbuf*> frames(static_cast<std::size_t>(in_flight) * 4 * batch_frames);
  auto pool = port::make_frame_pool("order", static_cast<unsigned>(frames.size()), 256, SOCKET_ID_ANY);
  if (!pool || rte_pktmbuf_alloc_bulk(pool->get(), frames.data(), static_cast<unsigned>(frames.size())) != 0) {
    std::fprintf(stderr, "bench order: no memory for frames\n");
    return 1;
  }
  int status = 0;
  for (const double jitter : {2.0, 8.0, 32.0}) {
    const std::vector<std::uint32_t> order = completions(jitter, 1);
    std::printf("\nbatches of %u frames, device time up to %.0f batch gaps longer than the shortest\n", batch_frames,
                jitter);
    std::vector<std::unique_ptr<Scheme>> schemes;
    schemes.push_back(std::make_unique<Nothing>());
    schemes.push_back(std::make_unique<Tickets>());
    schemes.push_back(std::make_unique<Blop>(4));
    schemes.push_back(std::make_unique<Blop>(in_flight));
    schemes.push_back(std::make_unique<RteReorder>(128));
    schemes.push_back(std::make_unique<RteReorder>(4096));
    double base = 0;
    for (const auto& scheme : schemes) {
      const Measured measured = measure(*scheme, order, frames);
      base = base == 0 ? measured.cycles : base;
      std::printf(
          "RESULT order jitter %.0f %-26s out of order %6.2f %%, %+6.1f cycles per frame, %zu of %u frames left\n",
          jitter, scheme->name(), 100 * measured.out_of_order, measured.cycles - base, measured.sent,
          total_batches * batch_frames);
      if (scheme == schemes[1] &&
          (measured.out_of_order != 0 || measured.sent != std::size_t{total_batches} * batch_frames)) {
        status = 1;
      }
    }
  }
  rte_pktmbuf_free_bulk(frames.data(), static_cast<unsigned>(frames.size()));
  return status;
}

}  // namespace sluice::cli::bench
