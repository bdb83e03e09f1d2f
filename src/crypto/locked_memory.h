// Pages for secrets: zeroed, in huge pages where the kernel has them, out of core dumps, locked as far as the limit on
// locked memory allows, and wiped at their end.
#pragma once

#include <cstddef>

#include "base/error.h"

namespace sluice::crypto {

class LockedMemory {
 public:
  static Expected<LockedMemory> make(std::size_t length);
  LockedMemory() = default;
  LockedMemory(LockedMemory&& other) noexcept;
  LockedMemory& operator=(LockedMemory&& other) noexcept;
  ~LockedMemory();

  // Aligned to a page; nullptr for an empty one.
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t length_ = 0;
};

}  // namespace sluice::crypto
