#include "port/frame_pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memzone.h>

namespace sluice::port {
namespace {

// Behind the mempool's own header (one cache line) and the mbuf (two) one more line makes the frame start on 128 bytes.
constexpr unsigned line = 128;
constexpr unsigned private_bytes = 64;
constexpr unsigned page = 4096;
constexpr unsigned before_frame = RTE_CACHE_LINE_SIZE + sizeof(rte_mbuf) + private_bytes + RTE_PKTMBUF_HEADROOM;
static_assert(before_frame % line == 0);

std::string refusal(const std::string& name, unsigned frames, std::uint64_t bytes) {
  return "no memory for " + std::to_string(frames) + " frames of pool '" + name + "' (" + std::to_string(bytes >> 20) +
         " MB, " + rte_strerror(rte_errno) + "): raise [memory] size or lower [memory] frames";
}

}  // namespace

void PoolDeleter::operator()(rte_mempool* pool) const {
  const rte_memzone* memory = rte_memzone_lookup(pool->name);
  rte_mempool_free(pool);
  if (memory != nullptr) {
    rte_memzone_free(memory);
  }
}

Expected<FramePool> make_frame_pool(const std::string& name, unsigned frames, unsigned frame_bytes, int numa_node) {
  const unsigned capacity = (frame_bytes + line - 1) / line * line;
  const std::size_t stride = before_frame + capacity;
  const std::uint64_t bytes = static_cast<std::uint64_t>(frames) * stride;
  rte_pktmbuf_pool_private shape{};
  shape.mbuf_data_room_size = static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + capacity);
  shape.mbuf_priv_size = private_bytes;
  // Devices that see virtual addresses see the pool in one piece. Else a frame must not cross the pages of memory that
  // is only contiguous within them, and there must be some to spare.
  const bool one_piece = rte_eal_iova_mode() == RTE_IOVA_VA;
  rte_mempool* pool = rte_mempool_create_empty(
      name.c_str(), frames, static_cast<unsigned>(stride - RTE_CACHE_LINE_SIZE), 0, sizeof shape, numa_node,
      RTE_MEMPOOL_F_NO_SPREAD | (one_piece ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0));
  if (pool == nullptr) {
    return make_error(refusal(name, frames, bytes));
  }
  FramePool owner(pool);
  const rte_memzone* memory =
      rte_memzone_reserve_aligned(name.c_str(), bytes + (one_piece ? 0 : bytes / 256 + page), numa_node, 0, page);
  if (memory == nullptr) {
    return make_error(refusal(name, frames, bytes));
  }
  rte_mempool_set_ops_byname(pool, "ring_mp_mc", nullptr);
  rte_pktmbuf_pool_init(pool, &shape);
  auto* base = static_cast<char*>(memory->addr);
  const int populated =
      one_piece
          ? rte_mempool_populate_iova(pool, base, reinterpret_cast<rte_iova_t>(base), memory->len, nullptr, nullptr)
          : rte_mempool_populate_virt(pool, base, memory->len, memory->hugepage_sz, nullptr, nullptr);
  if (populated < static_cast<int>(frames)) {
    rte_errno = populated < 0 ? -populated : ENOMEM;
    return make_error(refusal(name, frames, bytes));
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return owner;
}

void for_each_area(rte_mempool* pool, const std::function<void(void*, std::size_t)>& area) {
  rte_mempool_mem_iter(
      pool,
      [](rte_mempool*, void* opaque, rte_mempool_memhdr* memory, unsigned) {
        (*static_cast<const std::function<void(void*, std::size_t)>*>(opaque))(memory->addr, memory->len);
      },
      const_cast<void*>(static_cast<const void*>(&area)));
}

}  // namespace sluice::port
