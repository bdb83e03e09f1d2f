#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/machine.h"
#include "device/cuda_check.h"
#include "device/gpu.h"
#include "device/launch.h"

namespace sluice::device {
namespace {

// What every stream of a GPU shares: whether the device still answers. Written by any thread, read on the packet path.
class Health {
 public:
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  // The first reason stays.
  void lose(std::string why) {
    const std::lock_guard lock(mutex_);
    if (lost()) return;
    why_ = std::move(why);
    lost_.store(true, std::memory_order_release);
  }
  void recover() {
    const std::lock_guard lock(mutex_);
    why_.clear();
    lost_.store(false, std::memory_order_release);
  }
  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  tl::unexpected<Error> error() const { return make_error("GPU lost: " + why()); }

 private:
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string why_;
};

class CudaStream final : public GpuStream {
 public:
  CudaStream(Health& health, int device) : health_(health), device_(device) {}
  ~CudaStream() override { close(); }

  // Forgets its marks.
  void close() {
    for (cudaEvent_t& event : events_) {
      if (event != nullptr) cudaEventDestroy(event);
      event = nullptr;
    }
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
    stream_ = nullptr;
    marked_ = taken_ = 0;
  }
  Expected<void> open() {
    SLUICE_CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) SLUICE_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return {};
  }

  void* raw() const override {
    cudaSetDevice(device_);  // its error, if any, is also the next call's
    return stream_;
  }
  unsigned pending_marks() const override { return marked_ - taken_; }

  Expected<void> mark() override {
    if (health_.lost()) return health_.error();
    if (pending_marks() == max_marks)
      return make_error("a GPU stream has capacity for 64 pending marks, all are in use");
    if (auto ok = SLUICE_CUDA_CHECK(cudaEventRecord(events_[marked_ % max_marks], stream_)); !ok) {
      health_.lose(ok.error().message);
      return ok;
    }
    ++marked_;
    return {};
  }

  MarkState poll() override {
    if (pending_marks() == 0) return MarkState::done;
    // Also when the GPU is lost: as long as it answers that it still works, it may still write to the batch's frames.
    const cudaError_t state = cudaEventQuery(events_[taken_ % max_marks]);
    if (state == cudaErrorNotReady) return MarkState::pending;
    ++taken_;
    if (state != cudaSuccess)
      health_.lose(cuda_check(state, "work on a GPU stream", __FILE__, __LINE__).error().message);
    return health_.lost() ? MarkState::failed : MarkState::done;
  }

 private:
  Health& health_;
  int device_;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, max_marks> events_{};  // a ring: mark number m uses events_[m % max_marks]
  unsigned marked_ = 0;
  unsigned taken_ = 0;
};

// Of this process's GPUs, by index: those whose work may never end.
constexpr std::size_t most_gpus = 64;
std::array<std::atomic<Gone>, most_gpus> gone{};

std::atomic<Gone>& gone_of(int index) {
  return gone[static_cast<std::size_t>(index) % most_gpus];
}

// Kernels may still use it.
void free_device(void* memory, int device) {
  if (gone_of(device).load() != Gone::answers) return;
  cudaSetDevice(device);
  cudaDeviceSynchronize();
  cudaFree(memory);
}

class CudaGpu final : public Gpu {
 public:
  explicit CudaGpu(GpuInfo info) : info_(std::move(info)) {}
  ~CudaGpu() override {
    if (!CudaGpu::has_ended()) {
      for (auto& stream : streams_) [[maybe_unused]] CudaStream* const stays = stream.release();
      return;
    }
    release();
    streams_.clear();
  }

  Expected<void> open(unsigned streams) {
    SLUICE_CUDA_TRY(cudaSetDevice(info_.index));
    for (unsigned i = 0; i < streams; ++i) {
      auto stream = std::make_unique<CudaStream>(health_, info_.index);
      if (auto ok = stream->open(); !ok) return ok;
      streams_.push_back(std::move(stream));
    }
    return {};
  }

  const GpuInfo& info() const override { return info_; }
  unsigned stream_count() const override { return static_cast<unsigned>(streams_.size()); }
  GpuStream& stream(unsigned i) override { return *streams_[i]; }

  Expected<void> register_host(void* base, std::size_t bytes) override {
    if (health_.lost()) return health_.error();
    SLUICE_CUDA_TRY(cudaSetDevice(info_.index));
    SLUICE_CUDA_TRY(cudaHostRegister(base, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
    registered_.push_back(base);
    return same_address(base, "registered host memory");
  }

  Expected<void*> allocate_host(std::size_t bytes) override {
    if (health_.lost()) return health_.error();
    void* memory = nullptr;
    SLUICE_CUDA_TRY(cudaSetDevice(info_.index));
    SLUICE_CUDA_TRY(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    pinned_.push_back(memory);
    std::memset(memory, 0, bytes);
    if (auto same = same_address(memory, "pinned host memory"); !same) return tl::unexpected(same.error());
    return memory;
  }

  Expected<DeviceMemory> allocate_device(std::size_t bytes) override {
    if (health_.lost()) return health_.error();
    void* memory = nullptr;
    SLUICE_CUDA_TRY(cudaSetDevice(info_.index));
    SLUICE_CUDA_TRY(cudaMalloc(&memory, bytes));
    return DeviceMemory(memory, bytes, info_.index, free_device);
  }

  bool lost() const override { return health_.lost(); }
  std::string why() const override { return health_.why(); }
  void lose(const std::string& why, Gone how) override {
    if (how > gone_of(info_.index).load()) gone_of(info_.index).store(how);
    health_.lose(why);
  }

  bool has_ended() override {
    const Gone how = gone_of(info_.index).load();
    if (how == Gone::hangs) return false;
    const bool ended = how == Gone::answers || std::ranges::none_of(streams_, [](const auto& stream) {
                         return cudaStreamQuery(static_cast<cudaStream_t>(stream->raw())) == cudaErrorNotReady;
                       });
    if (ended) gone_of(info_.index).store(Gone::answers);
    return ended;
  }

  Expected<void> reset() override {
    if (!has_ended()) return make_error("work that it was given has not ended: only the end of this process ends it");
    release();
    SLUICE_CUDA_TRY(cudaDeviceReset());
    cudaGetLastError();  // of the old context
    if (auto ok = SLUICE_CUDA_CHECK(cudaSetDevice(info_.index)); !ok) {
      return make_error(
          "its driver gives this process no new context, as drivers do behind a fault: restart the "
          "gateway (" +
          ok.error().message + ")");
    }
    for (const auto& stream : streams_) {
      if (auto ok = stream->open(); !ok) return ok;
    }
    health_.recover();
    return {};
  }

 private:
  // All that is of the context. Errors of one that has failed are no news.
  void release() {
    cudaSetDevice(info_.index);
    cudaDeviceSynchronize();  // nothing may still read what is freed below
    for (const auto& stream : streams_) stream->close();
    for (void* memory : registered_) cudaHostUnregister(memory);
    for (void* memory : pinned_) cudaFreeHost(memory);
    registered_.clear();
    pinned_.clear();
    cudaGetLastError();
  }
  // Kernels get host pointers as they are; that needs unified addressing, which every 64-bit GPU since 2011 has.
  Expected<void> same_address(void* host, const char* what) {
    void* device = nullptr;
    SLUICE_CUDA_TRY(cudaHostGetDevicePointer(&device, host, 0));
    if (device == host) return {};
    return make_error(std::string(what) + " has another address on GPU " + std::to_string(info_.index) +
                      " than on the host: this GPU has no unified addressing and cannot be used");
  }

  GpuInfo info_;
  Health health_;
  std::vector<std::unique_ptr<CudaStream>> streams_;
  std::vector<void*> registered_, pinned_;
};

Expected<GpuInfo> describe(int index) {
  cudaDeviceProp properties;
  SLUICE_CUDA_TRY(cudaGetDeviceProperties(&properties, index));
  char pci[32];
  std::snprintf(pci, sizeof pci, "%04x:%02x:%02x.0", properties.pciDomainID, properties.pciBusID,
                properties.pciDeviceID);
  return GpuInfo{index,
                 properties.name,
                 pci,
                 properties.multiProcessorCount,
                 properties.totalGlobalMem,
                 numa_node_of_device("/sys/bus/pci/devices/" + std::string(pci))};
}

}  // namespace

Expected<std::vector<GpuInfo>> list_gpus() {
  // Read by the driver when it starts. With fewer connections than streams, streams wait for each other; a kernel that
  // is loaded at its first launch makes that batch late.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    cudaGetLastError();
    if (error == cudaErrorInsufficientDriver)
      return make_error("no GPU: the NVIDIA driver is missing, or older than this program's CUDA (" +
                        std::string(cudaGetErrorString(error)) + ")");
    return make_error("no GPU: " + std::string(cudaGetErrorString(error)));
  }
  if (count == 0) return make_error("no GPU: the NVIDIA driver runs but shows no device");
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < count; ++i) {
    auto info = describe(i);
    if (!info) return tl::unexpected(info.error());
    gpus.push_back(std::move(*info));
  }
  return gpus;
}

Expected<std::unique_ptr<Gpu>> Gpu::open(int index, unsigned streams) {
  auto gpus = list_gpus();
  if (!gpus) return tl::unexpected(gpus.error());
  if (index < 0 || static_cast<std::size_t>(index) >= gpus->size())
    return make_error("no GPU with index " + std::to_string(index) + ": this machine has " +
                      std::to_string(gpus->size()) + " (0 to " + std::to_string(gpus->size() - 1) + ")");
  if (gone_of(index).load() != Gone::answers)
    return make_error("GPU " + std::to_string(index) +
                      " still has work of this process that did not end: another process can use it once this one has "
                      "ended");
  auto gpu = std::make_unique<CudaGpu>((*gpus)[static_cast<std::size_t>(index)]);
  if (auto ok = gpu->open(streams); !ok) return tl::unexpected(ok.error());
  return gpu;
}

}  // namespace sluice::device
