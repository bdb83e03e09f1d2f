#include "function/device_crypto.h"

#include <algorithm>
#include <utility>

#include "engine/traits.h"

namespace sluice::function {
namespace {

constexpr std::uint64_t none_waits = ~std::uint64_t{0};  // of a GPU that does not count

}  // namespace

Expected<void> DeviceCrypto::attach(device::Gpu& gpu, const engine::DevicePlan& plan, crypto::KeyTable& keys,
                                    std::uint32_t packet_bytes) {
  const std::uint64_t installs = keys.installs();
  auto made = crypto::GpuCrypto::create(
      gpu, keys,
      {.max_packets = plan.batch_capacity, .max_packet_bytes = packet_bytes, .together = engine::most_of_one_lane});
  if (!made) return tl::unexpected(made.error());
  if (plan.device == devices_.size()) devices_.emplace_back(new OnDevice{&keys, nullptr, {none_waits}});
  OnDevice& on = *devices_[plan.device];
  on.crypto = std::move(*made);
  on.installs.store(installs, std::memory_order_release);
  return {};
}

void DeviceCrypto::detach(std::uint32_t device) {
  if (device >= devices_.size()) return;
  gone(device);
  devices_[device]->crypto.reset();
}

Expected<void> DeviceCrypto::begin_cycle(std::uint32_t device, device::GpuStream& stream) {
  OnDevice& on = *devices_[device];
  const std::uint64_t installs = on.keys->installs();
  if (auto ok = on.crypto->sync(stream); !ok) return ok;
  if (on.crypto->up_to_date()) on.installs.store(installs, std::memory_order_release);
  return {};
}

void DeviceCrypto::gone(std::uint32_t device) {
  devices_[device]->installs.store(none_waits, std::memory_order_release);
}

std::uint64_t DeviceCrypto::installs() const {
  std::uint64_t least = none_waits;
  for (const auto& device : devices_) least = std::min(least, device->installs.load(std::memory_order_acquire));
  return least;
}

Expected<void> DeviceCrypto::run(std::uint32_t device, std::span<const crypto::GpuBatch> batches,
                                 device::GpuStream& stream) {
  return devices_[device]->crypto->run(batches, stream);
}

}  // namespace sluice::function
