// The router on a GPU: the tables follow the Fib, a batch's addresses go up, ids of next hops come down.
#include <algorithm>

#include "device/gpu.h"
#include "function/fused/fused.h"
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
  if (plan.device == devices_.size()) devices_.push_back(std::make_unique<OnDevice>());
  OnDevice& on = *devices_[plan.device];
  on.trie4 = std::move(*trie4);
  on.trie6 = std::move(*trie6);
  Expected<void> attached = table_->while_held([&] {
    const auto first = fib_->attach(*on.trie4);
    return first ? fib_->attach(*on.trie6) : first;
  });
  auto gpu_fib =
      attached ? lookup::GpuFib::create(gpu, *on.trie4, *on.trie6, first_sync_bytes) : tl::unexpected(attached.error());
  if (!gpu_fib) {
    detach(plan.device);
    return tl::unexpected(gpu_fib.error());
  }
  on.fib = std::move(*gpu_fib);
  return {};
}

void Router::detach(std::uint32_t device) {
  if (device >= devices_.size()) return;
  OnDevice& on = *devices_[device];
  on.fib.reset();
  on.ready = false;
  on.next_sync = {};
  // Nothing is looked up in the next hops that its tables name.
  table_->while_held([&] {
    for (auto* trie : {&on.trie4, &on.trie6}) {
      if (*trie) fib_->detach(**trie);
    }
  });
  on.trie4.reset();
  on.trie6.reset();
}

bool Router::devices_follow() const {
  return std::ranges::all_of(devices_, [](const auto& device) { return !device->fib || device->fib->up_to_date(); });
}

bool Router::device_ready(std::uint32_t device) {
  OnDevice& on = *devices_[device];
  on.ready = on.ready || on.fib->up_to_date();
  return on.ready;
}

Expected<void> Router::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  OnDevice& on = *devices_[device];
  const auto now = AdjacencyTable::Clock::now();
  if (!on.ready || now >= on.next_sync) {
    on.next_sync = now + sync_interval;
    const std::size_t bytes = on.ready ? lookup::GpuFib::default_sync_bytes : first_sync_bytes;
    if (auto synced = on.fib->sync(stream, bytes); !synced) {
      return synced;
    }
  }
  on.rest.cycle(now, AdjacencyTable::grace, [&on] { return on.fib->up_to_date(); });
  return {};
}

AdjacencyTable::Clock::time_point Router::settled() const {
  const auto now = AdjacencyTable::Clock::now();
  auto settled = now - AdjacencyTable::grace;
  for (const auto& device : devices_) settled = std::min(settled, device->rest.settled(now, AdjacencyTable::grace));
  return settled;
}

Expected<void> Router::launch(engine::Batch& batch, device::GpuStream& stream) {
  const RouteArea a = area_of(batch);
  const std::uint32_t keys6 = a.header->keys6;
  const std::uint32_t n4 = keys6 == batch.count ? 0 : batch.count;
  return devices_[batch.device]->fib->lookup(stream, a.argument, a.verdict, n4, *a.keys6, a.answers6, keys6);
}

bool Router::join(const engine::Batch& batch, FusedWork& work) {
  if (cores_look_up_) return false;
  const RouteArea a = area_of(batch);
  lookup::GpuFib& fib = *devices_[batch.device]->fib;
  work.route = {.view4 = fib.view4(),
                .view6 = fib.view6(),
                .argument = a.argument,
                .verdict = a.verdict,
                .is_key6 = a.header->keys6 != 0 ? a.has_key6 : nullptr,
                .keys6 = *a.keys6,
                .answers6 = a.answers6};
  return true;
}

}  // namespace sluice::function
