// rte_reorder (DPDK 22.11) as a scheme of `bench order`.
//
// Its window is one of sequence numbers: a frame that lies beyond it moves it on, and past every gap; one that lies
// more than twice the window ahead is refused (ERANGE). A buffer smaller than what is under way therefore wedges: the
// frames that were refused, and left without it, are gaps that nothing fills any more, the window stands before them,
// and from then on every frame is refused. That is what 128 frames do at a jitter of 32 batches. Here the window is as
// large as the capacity, so that no batch under way lies outside it.
//
// Two more things that 22.11 needs: the window begins at the first frame that is inserted, which need not be the first
// that was sent; and nothing but a frame beyond the window makes it pass a gap. A frame of our own does both.
#define ALLOW_EXPERIMENTAL_API  // for rte_reorder_seqn
#include <rte_reorder.h>

#include <algorithm>
#include <array>

#include "bench/order_schemes.h"

namespace sluice::cli::bench {
namespace {

class RteReorder : public OrderScheme {
 public:
  const char* name() const override { return "rte_reorder"; }

  // In memory of ours: rte_reorder_free() would free the frames that are still inside.
  Expected<void> reset(unsigned capacity) override {
    window_ = capacity * order_batch_frames;
    const std::size_t bytes = 4096 + 2 * sizeof(void*) * window_;
    memory_.assign(bytes / sizeof(Line) + 1, Line{});
    buffer_ = reinterpret_cast<rte_reorder_buffer*>(memory_.data());
    if (rte_reorder_init(buffer_, static_cast<unsigned>(bytes), "bench-order", window_) == nullptr) {
      return make_error("rte_reorder_init refuses a window of " + std::to_string(window_) + " frames");
    }
    waiting_ = 0;
    next_ = 0;
    insert_marker(0);  // the window begins here
    OrderOutput nowhere(1);
    drain(nowhere);
    return {};
  }
  void tag(std::uint32_t batch, rte_mbuf** frames) override {
    for (unsigned i = 0; i < order_batch_frames; ++i) {
      *rte_reorder_seqn(frames[i]) = 1 + batch * order_batch_frames + i;
    }
  }
  void complete(std::uint32_t /*batch*/, rte_mbuf** frames, OrderOutput& out) override {
    if (static_cast<std::int32_t>(*rte_reorder_seqn(frames[0]) - next_) < 0) {
      out.send_batch(frames);  // its gap was given up
      return;
    }
    for (unsigned i = 0; i < order_batch_frames; ++i) {
      if (rte_reorder_insert(buffer_, frames[i]) != 0) {
        out.send(frames[i]);  // never, with this window: it would show as frames out of order
        continue;
      }
      ++waiting_;
    }
    drain(out);
  }
  // One batch beyond the window makes it pass as many numbers: the gap of one batch and, with it, what waits behind it.
  bool give_up(OrderOutput& out) override {
    if (waiting_ == 0) {
      return false;
    }
    const std::uint32_t before = next_;
    insert_marker(next_ + window_ + order_batch_frames - 1);
    drain(out);
    next_ = std::max(next_, before + order_batch_frames);
    return true;
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  void insert_marker(std::uint32_t number) {
    *rte_reorder_seqn(&marker_) = number;
    rte_reorder_insert(buffer_, &marker_);
  }
  void drain(OrderOutput& out) {
    std::array<rte_mbuf*, 64> ready;
    unsigned count = 0;
    do {
      count = rte_reorder_drain(buffer_, ready.data(), static_cast<unsigned>(ready.size()));
      for (unsigned i = 0; i < count; ++i) {
        if (ready[i] == &marker_) {
          next_ = std::max(next_, 1U);
          continue;
        }
        next_ = *rte_reorder_seqn(ready[i]) + 1;
        --waiting_;
        out.send(ready[i]);
      }
    } while (count == ready.size());
  }

  std::vector<Line> memory_;
  rte_reorder_buffer* buffer_ = nullptr;
  rte_mbuf marker_{};
  std::uint32_t window_ = 0;
  std::uint32_t next_ = 0;  // the window's first number
  std::uint64_t waiting_ = 0;
};

}  // namespace

std::unique_ptr<OrderScheme> make_rte_reorder() {
  return std::make_unique<RteReorder>();
}

}  // namespace sluice::cli::bench
