#include "crypto/locked_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "crypto/secret.h"

namespace sluice::crypto {

Expected<LockedMemory> LockedMemory::make(std::size_t length) {
  LockedMemory memory;
  if (length == 0) {
    return memory;
  }
  void* const data = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return make_error("no memory for " + std::to_string(length) + " bytes of keys: " + std::strerror(errno));
  }
  // Each makes it safer or faster; none is needed for it to be right.
  madvise(data, length, MADV_HUGEPAGE);
  madvise(data, length, MADV_DONTDUMP);
  mlock(data, length);
  memory.data_ = data;
  memory.length_ = length;
  return memory;
}

LockedMemory::LockedMemory(LockedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), length_(std::exchange(other.length_, 0)) {}

LockedMemory& LockedMemory::operator=(LockedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(length_, other.length_);
  return *this;
}

LockedMemory::~LockedMemory() {
  if (data_ != nullptr) {
    wipe(data_, length_);
    munmap(data_, length_);
  }
}

}  // namespace sluice::crypto
