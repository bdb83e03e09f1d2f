#include "engine/batch_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) (void)0
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) (void)0
#endif

namespace sluice::engine {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20, least_chunk = 2 * huge_page, alignment = 64;
// Between two pieces, where the address sanitizer finds who writes past one.
constexpr std::size_t gap = alignment;

std::size_t rounded(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

BatchMemory::~BatchMemory() {
  for (const Chunk& chunk : chunks_) {
    ASAN_UNPOISON_MEMORY_REGION(chunk.base, chunk.bytes);
    munmap(chunk.base, chunk.bytes);
  }
}

Expected<void> BatchMemory::add(std::size_t least) {
  const std::size_t bytes = std::max(rounded(least, huge_page), least_chunk);
  void* const mapped = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return make_error("out of memory for batches: lower [engine] batch or batches");
  // Both ends beyond whole huge pages go back.
  auto* const first = static_cast<std::byte*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const std::size_t before = rounded(address, huge_page) - address;
  if (before != 0) munmap(first, before);
  if (before != huge_page) munmap(first + before + bytes, huge_page - before);
  std::byte* const base = first + before;
  madvise(base, bytes, MADV_HUGEPAGE);
  if (gpu_ != nullptr) {
    if (auto registered = gpu_->register_host(base, bytes); !registered) {
      munmap(base, bytes);
      return make_error("memory for batches cannot be pinned for the GPU: " + registered.error().message);
    }
  }
  ASAN_POISON_MEMORY_REGION(base, bytes);
  chunks_.push_back({base, bytes, 0});
  return {};
}

Expected<void> BatchMemory::register_again(device::Gpu& gpu) {
  if (gpu_ == nullptr) return {};
  gpu_ = &gpu;
  for (const Chunk& chunk : chunks_) {
    if (auto ok = gpu.register_host(chunk.base, chunk.bytes); !ok) return ok;
  }
  return {};
}

Expected<void*> BatchMemory::allocate(std::size_t bytes) {
  const std::size_t needed = rounded(bytes, alignment) + gap;
  if (chunks_.empty() || chunks_.back().bytes - chunks_.back().used < needed) {
    if (auto added = add(needed); !added) return tl::unexpected(added.error());
  }
  Chunk& chunk = chunks_.back();
  std::byte* const piece = chunk.base + chunk.used;
  chunk.used += needed;
  ASAN_UNPOISON_MEMORY_REGION(piece, bytes);
  return piece;
}

}  // namespace sluice::engine
