#include "bench/switched.h"

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "engine/burst.h"
#include "function/fused/fusable.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint16_t loop_burst = engine::burst_size;

void add(std::atomic<std::uint64_t>& counter, std::uint64_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

struct Switched::Addresses {
  std::uint8_t destination[6];
  std::uint8_t source[6];
  // Different in each loop, and never what the element or the replay port write.
  explicit Addresses(std::uint32_t turn) {
    const std::uint8_t bytes[12] = {0x02, 0x4d, 0, 0, 0, 0, 0x06, 0x4d, 0, 0, 0, 0};
    std::memcpy(destination, bytes, sizeof destination);
    std::memcpy(source, bytes + 6, sizeof source);
    std::memcpy(destination + 2, &turn, sizeof turn);
    std::memcpy(source + 2, &turn, sizeof turn);
  }
};

void Switched::use_port(port::Port& port) {
  port_ = &port;
  queues_ = std::vector<Queue>(port.options().queues);
  for (std::size_t q = 0; q < queues_.size(); ++q) {
    queues_[q].pool = port.replay()->pool(static_cast<std::uint16_t>(q));
  }
}

void Switched::set(Work work) {
  if (work == Work::mac_loop) {
    turn_.fetch_add(1);
  }
  work_.store(work);
  while (work != Work::mac_loop && looping_.load() != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Switched::Loops Switched::loops() const {
  Loops sum;
  for (const Queue& queue : queues_) {
    sum.frames += queue.frames.load(std::memory_order_relaxed);
    sum.touched += queue.touched.load(std::memory_order_relaxed);
    sum.refreshed += queue.refreshed.load(std::memory_order_relaxed);
    sum.wrong += queue.wrong.load(std::memory_order_relaxed);
  }
  return sum;
}

void* Switched::find_trait(std::string_view name) {
  return name == function::Fusable::trait_name ? nullptr : WrappedElement::find_trait(name);
}

void Switched::classify(engine::Batch& batch, engine::Span span) {
  // Between batches, so that only this burst is out of the pool.
  if (work_.load(std::memory_order_relaxed) == Work::mac_loop && span.first == 0) [[unlikely]] {
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (queues_[q].pool == batch.mbuf[0]->pool) {
        loop(static_cast<std::uint16_t>(q));
      }
    }
  }
  WrappedElement::classify(batch, span);
}

Expected<void> Switched::launch(engine::Batch& batch, device::GpuStream& stream) {
  if (work_.load(std::memory_order_relaxed) == Work::zero_load) {
    null_result(batch);
    return {};
  }
  return WrappedElement::launch(batch, stream);
}

void Switched::compute(engine::Batch& batch, engine::Span span) {
  if (work_.load(std::memory_order_relaxed) == Work::zero_load) {
    null_result(batch);
  } else {
    WrappedElement::compute(batch, span);
  }
}

void Switched::null_result(engine::Batch& batch) {
  if (null_ != nullptr) null_->null_result(batch);
}

void Switched::loop(std::uint16_t q) {
  looping_.fetch_add(1);
  const Addresses addresses(turn_.load());
  rte_mbuf* frames[loop_burst];
  const std::uint64_t round = rte_mempool_avail_count(queues_[q].pool);
  for (std::uint64_t done = 0; done < round || work_.load(std::memory_order_relaxed) == Work::mac_loop;) {
    const std::uint16_t count = port_->rx_burst(q, frames, loop_burst);
    if (count != 0) {
      rte_prefetch0(rte_pktmbuf_mtod(frames[0], void*));
    }
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + 1 < count) {
        rte_prefetch0(rte_pktmbuf_mtod(frames[i + 1], void*));
      }
      std::memcpy(rte_pktmbuf_mtod(frames[i], void*), &addresses, sizeof addresses);
    }
    port_->tx_burst(q, frames, count);
    add(queues_[q].frames, count);
    done += count;
  }
  check(q, addresses);
  looping_.fetch_sub(1);
}

void Switched::check(std::uint16_t q, const Addresses& expected) {
  rte_mbuf* frames[loop_burst];
  for (unsigned left = rte_mempool_avail_count(queues_[q].pool); left != 0;) {
    const auto wanted = static_cast<std::uint16_t>(std::min<unsigned>(left, loop_burst));
    const std::uint16_t count = port_->rx_burst(q, frames, wanted);
    for (std::uint16_t i = 0; i < count; ++i) {
      auto* frame = rte_pktmbuf_mtod(frames[i], std::uint8_t*);
      const auto& pristine = port_->replay()->pristine(q, port::ReplayPort::frame_index(frames[i]));
      if (std::memcmp(frame, &expected, sizeof expected) == 0) {
        add(queues_[q].touched, 1);
      } else if (std::memcmp(frame, pristine.data(), sizeof expected) == 0) {
        add(queues_[q].refreshed, 1);
      } else {
        add(queues_[q].wrong, 1);
      }
      std::memcpy(frame, pristine.data(), sizeof expected.destination);
    }
    port_->tx_burst(q, frames, count);
    left -= std::min<unsigned>(left, std::max<unsigned>(count, 1));
  }
}

}  // namespace sluice::cli::bench
