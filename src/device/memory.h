// Memory of a device that goes when its object does. Gpu::allocate_device() (gpu.h) makes it.
//
// The object may outlive its Gpu. Its end waits until the device has done what it was given by then, for that may still
// use the memory: it is for the control thread. Thread-safety: as of a std::unique_ptr.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice::device {

class DeviceMemory {
 public:
  // `free`: gives the memory back, on the device of that index.
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
  // The device's address, or null. 256-byte aligned.
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
