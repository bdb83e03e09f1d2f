// Device memory that its object frees. Gpu::allocate_device() (gpu.h) makes it.
//
// The object may outlive its Gpu. Its destructor waits for all work that the device has been given, because that may
// still use the memory. So destroy it on the control thread. Thread-safety: as std::unique_ptr.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice::device {

class DeviceMemory {
 public:
  // `free`: frees the memory, on the device with that index.
  using Free = void (*)(void* memory, int device);

  DeviceMemory() = default;
  DeviceMemory(void* memory, std::size_t bytes, int device, Free free)
      : memory_(memory), bytes_(bytes), device_(device), free_(free) {}
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    DeviceMemory(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ != nullptr) free_(memory_, device_);
  }

  explicit operator bool() const { return memory_ != nullptr; }
  // The address on the device, 256-byte aligned; or null.
  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(free_, other.free_);
  }

  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  int device_ = 0;
  Free free_ = nullptr;
};

}  // namespace sluice::device
