// The keys of an element on its GPUs, for elements whose device work is jobs of crypto/job.h: which keys each GPU has
// by now, and the jobs of batches.
//
// A packet whose key is not on all GPUs yet is computed by a core: which GPU its batch goes to is not known when it is
// collected. A lost GPU does not count. When it comes back, what was collected before does not go to it (lane.h).
//
// Thread-safety: attach() and detach() on the control path, of a device whose worker does not run; begin_cycle(),
// gone() and run() of a device on its worker's thread; installs() any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "crypto/gpu_crypto.h"
#include "crypto/key_table.h"
#include "engine/element.h"

namespace sluice::function {

class DeviceCrypto {
 public:
  // The GPU of index plan.device. `packet_bytes`: the longest packet, from Job::data to the end of the tag.
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan, crypto::KeyTable& keys,
                        std::uint32_t packet_bytes);
  void detach(std::uint32_t device);
  bool is_there() const { return !devices_.empty(); }
  // What is launched from now on finds the keys, whatever its stream.
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream);
  void gone(std::uint32_t device);
  // Keys up to this number (KeyTable::installs()) are on all GPUs; without one all are.
  std::uint64_t installs() const;
  Expected<void> run(std::uint32_t device, std::span<const crypto::GpuBatch> batches, device::GpuStream& stream);

 private:
  struct OnDevice {
    crypto::KeyTable* keys;
    std::unique_ptr<crypto::GpuCrypto> crypto;
    std::atomic<std::uint64_t> installs;
  };
  std::vector<std::unique_ptr<OnDevice>> devices_;  // by DevicePlan::device
};

}  // namespace sluice::function
