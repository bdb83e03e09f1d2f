#include "bench/order_schemes.h"

#include <algorithm>

#include "engine/batch_ring.h"

namespace sluice::cli::bench {
namespace {

class NoCare : public OrderScheme {
 public:
  const char* name() const override { return "no care"; }
  Expected<void> reset(unsigned /*capacity*/) override { return {}; }
  void tag(std::uint32_t /*batch*/, rte_mbuf** /*frames*/) override {}
  void complete(std::uint32_t /*batch*/, rte_mbuf** frames, OrderOutput& out) override { out.send_batch(frames); }
};

class Tickets : public OrderScheme {
 public:
  const char* name() const override { return "tickets"; }
  Expected<void> reset(unsigned capacity) override {
    memory_.clear();
    auto ring =
        engine::BatchRing::create({0, capacity, order_batch_frames}, [this](std::size_t bytes) -> Expected<void*> {
          memory_.push_back(std::make_unique<std::byte[]>(bytes + 64));
          return memory_.back().get();
        });
    if (!ring) {
      return tl::unexpected(ring.error());
    }
    ring_ = std::move(*ring);
    frames_.assign(capacity, nullptr);
    return {};
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    ring_->open();
    ring_->seal(engine::BatchState::in_flight);
    frames_[batch % frames_.size()] = frames;
  }
  void complete(std::uint32_t batch, rte_mbuf** /*frames*/, OrderOutput& out) override {
    ring_->all()[batch % frames_.size()]->state.store(engine::BatchState::done, std::memory_order_release);
    for (engine::Batch* oldest = ring_->oldest();
         oldest != nullptr && oldest->state.load(std::memory_order_acquire) == engine::BatchState::done;
         oldest = ring_->oldest()) {
      out.send_batch(frames_[oldest->ticket % frames_.size()]);
      ring_->release();
    }
  }

 private:
  std::unique_ptr<engine::BatchRing> ring_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<rte_mbuf**> frames_;
};

class Blop : public OrderScheme {
 public:
  const char* name() const override { return "BLOP"; }
  Expected<void> reset(unsigned capacity) override {
    waiting_.assign(capacity, nullptr);
    count_ = 0;
    expected_ = 0;
    return {};
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    for (unsigned i = 0; i < order_batch_frames; ++i) {
      frames[i]->hash.fdir.lo = batch;
    }
  }
  void complete(std::uint32_t /*batch*/, rte_mbuf** frames, OrderOutput& out) override {
    const std::uint32_t id = frames[0]->hash.fdir.lo;
    if (id > expected_) {
      at(id) = frames;
      ++count_;
      return;
    }
    out.send_batch(frames);
    if (id == expected_) {  // and not one that was given up
      ++expected_;
      drain(out);
    }
  }
  bool give_up(OrderOutput& out) override {
    if (count_ == 0) {
      return false;
    }
    while (at(expected_) == nullptr) {
      ++expected_;
    }
    drain(out);
    return true;
  }

 private:
  // No two batches that wait have the same place: those from the expected one on are at most as many as there is
  // capacity.
  rte_mbuf**& at(std::uint32_t id) { return waiting_[id % waiting_.size()]; }
  void drain(OrderOutput& out) {
    for (; count_ != 0 && at(expected_) != nullptr; ++expected_, --count_) {
      out.send_batch(at(expected_));
      at(expected_) = nullptr;
    }
  }
  std::vector<rte_mbuf**> waiting_;
  unsigned count_ = 0;
  std::uint32_t expected_ = 0;
};

}  // namespace

double OrderOutput::out_of_order() const {
  std::uint32_t highest = 0;
  std::uint64_t late = 0;
  for (const std::uint32_t number : numbers_) {
    late += number < highest;
    highest = std::max(highest, number);
  }
  return numbers_.empty() ? 0 : static_cast<double>(late) / static_cast<double>(numbers_.size());
}

std::unique_ptr<OrderScheme> make_no_care() {
  return std::make_unique<NoCare>();
}
std::unique_ptr<OrderScheme> make_tickets() {
  return std::make_unique<Tickets>();
}
std::unique_ptr<OrderScheme> make_blop() {
  return std::make_unique<Blop>();
}

}  // namespace sluice::cli::bench
