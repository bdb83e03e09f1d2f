// Zeroed memory for tables that are read at random: of 2 MiB and more it asks for huge pages, with which a look costs
// no miss of the TLB.
//
// Thread-safety: none of its own. Pages that nobody has touched are not there.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace sluice::ipsec {

class HugeMemory {
 public:
  // Throws std::bad_alloc.
  explicit HugeMemory(std::size_t bytes) : bytes_(bytes < page ? page : (bytes + page - 1) / page * page + page) {
    mapped_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped_ == MAP_FAILED) throw std::bad_alloc();
    if (bytes_ > page) madvise(data(), bytes_ - page, MADV_HUGEPAGE);  // speed only
  }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  ~HugeMemory() { munmap(mapped_, bytes_); }

  // Aligned to a page, of 2 MiB and more to a huge one.
  void* data() const {
    if (bytes_ == page) return mapped_;
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(mapped_) + page - 1) / page * page);
  }

 private:
  static constexpr std::size_t page = std::size_t{2} << 20;

  const std::size_t bytes_;
  void* mapped_ = nullptr;
};

}  // namespace sluice::ipsec
