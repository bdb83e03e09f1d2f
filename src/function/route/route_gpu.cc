// The router on a GPU: the tables follow the Fib, a batch's addresses go up, ids of next hops come down.
#include "device/gpu.h"
#include "function/capsule/capsule.h"
#include "function/route/route.h"
#include "function/route/route_batch.h"

namespace sluice::function {
namespace {
// A cycle may bring so much while no lane waits for the GPU: a full table in some fifty cycles.
constexpr std::size_t first_sync_bytes = 1 << 20;
// From then on changes of so long go up together: a sync costs the worker two launches and some events, right where it
// should give batches to the GPU, and a stream of updates would make it do so in most cycles. 900,000 scattered routes
// a second fit.
constexpr auto sync_interval = std::chrono::milliseconds(1);
}  // namespace

Expected<void> Router::attach(device::Gpu& gpu, const engine::DevicePlan& plan) {
  // Tables that nothing keeps up to date would name freed next hops for ever, and so keep them from being used again.
  if (!plan.launches) {
    return {};
  }
  auto trie4 = lookup::Trie::create(4, lookup::Fib::default_groups(4, options_.max_ipv4));
  auto trie6 = lookup::Trie::create(6, lookup::Fib::default_groups(6, options_.max_ipv6));
  if (!trie4 || !trie6) {
    return tl::unexpected(!trie4 ? trie4.error() : trie6.error());
  }
  trie4_ = std::move(*trie4);
  trie6_ = std::move(*trie6);
  Expected<void> attached = fib_->attach(*trie4_);
  attached = attached ? fib_->attach(*trie6_) : attached;
  if (!attached) {
    return attached;
  }
  auto gpu_fib = lookup::GpuFib::create(gpu, *trie4_, *trie6_, first_sync_bytes);
  if (!gpu_fib) {
    return tl::unexpected(gpu_fib.error());
  }
  gpu_fib_ = std::move(*gpu_fib);
  return {};
}

bool Router::device_ready() {
  device_ready_ = device_ready_ || device_follows();
  return device_ready_;
}

Expected<void> Router::begin_cycle(device::GpuStream& stream) {
  const auto now = AdjacencyTable::Clock::now();
  if (!device_ready_ || now >= next_sync_) {
    next_sync_ = now + sync_interval;
    const std::size_t bytes = device_ready_ ? lookup::GpuFib::default_sync_bytes : first_sync_bytes;
    if (auto synced = gpu_fib_->sync(stream, bytes); !synced) {
      return synced;
    }
  }
  gpu_rest_.cycle(now, AdjacencyTable::grace, [this] { return gpu_fib_->up_to_date(); });
  return {};
}

AdjacencyTable::Clock::time_point Router::settled() const {
  const auto now = AdjacencyTable::Clock::now();
  return gpu_fib_ ? gpu_rest_.settled(now, AdjacencyTable::grace) : now - AdjacencyTable::grace;
}

Expected<void> Router::launch(engine::Batch& batch, device::GpuStream& stream) {
  const std::uint32_t n4 = batch.extra_count == batch.count ? 0 : batch.count;
  return gpu_fib_->lookup(stream, batch.argument, batch.verdict, n4, *keys6(batch), answers6(batch), batch.extra_count);
}

bool Router::join(const engine::Batch& batch, CapsuleWork& work) {
  work.route = {.view4 = gpu_fib_->view4(),
                .view6 = gpu_fib_->view6(),
                .argument = batch.argument,
                .verdict = batch.verdict,
                .is_key6 = batch.extra_count != 0 ? has_key6(batch) : nullptr,
                .keys6 = *keys6(batch),
                .answers6 = answers6(batch)};
  return true;
}

}  // namespace sluice::function
