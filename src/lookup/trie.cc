#include "lookup/trie.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lookup/change_log.h"

namespace sluice::lookup {

namespace {

constexpr unsigned __int128 all_bits = ~static_cast<unsigned __int128>(0);

unsigned __int128 key_of(const packet::IpAddress& address) {
  unsigned __int128 key = 0;
  for (const std::uint8_t byte : address.bytes) {
    key = key << 8 | byte;
  }
  return key;
}

unsigned __int128 last_of(const packet::IpPrefix& prefix) {
  return prefix.length == 128 ? key_of(prefix.address) : key_of(prefix.address) | all_bits >> prefix.length;
}

// The slot of an address' first 24 bits.
std::uint32_t root_slot(const packet::IpAddress& address) {
  return static_cast<std::uint32_t>(address.bytes[0]) << 16 | static_cast<std::uint32_t>(address.bytes[1]) << 8 |
         address.bytes[2];
}

bool is_child(std::uint32_t entry) {
  return (entry & Trie::child_flag) != 0;
}

}  // namespace

Expected<std::unique_ptr<Trie>> Trie::create(int family, std::uint32_t blocks) {
  if (blocks > max_blocks) {
    return make_error("a GPU route table has at most " + std::to_string(max_blocks) + " blocks, not " +
                      std::to_string(blocks));
  }
  const std::size_t bytes = (root_slots + static_cast<std::size_t>(blocks) * 256) * sizeof(std::uint32_t);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return make_error("no memory for the GPU's IPv" + std::to_string(family) + " route table (" +
                      std::to_string(bytes >> 20) + " MiB): " + std::strerror(errno));
  }
  return std::unique_ptr<Trie>(new Trie(family, blocks, static_cast<std::uint32_t*>(memory)));
}

Trie::Trie(int family, std::uint32_t blocks, std::uint32_t* slots)
    : family_(family),
      block_limit_(blocks),
      slot_count_(root_slots + static_cast<std::size_t>(blocks) * 256),
      slots_(slots),
      holders_(blocks) {
  free_.reserve(blocks);
}

Trie::~Trie() {
  munmap(slots_, memory_bytes());
}

std::uint32_t Trie::missing_blocks(const packet::IpPrefix& prefix) const {
  std::uint32_t slot = root_slot(prefix.address);
  for (unsigned depth = 24; depth < prefix.length; depth += 8) {
    if (!is_child(slots_[slot])) {
      return (prefix.length - depth + 7) / 8;
    }
    slot = (slots_[slot] << 8) + prefix.address.bytes[depth / 8];
  }
  return 0;
}

Expected<void> Trie::reserve(const packet::IpPrefix& prefix) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t missing = missing_blocks(prefix);
  if (missing > available()) {
    for (ChangeLog* log : logs_) {
      log->give_up_if_abandoned();
    }
  }
  if (missing > available()) {
    return make_error("the GPU's IPv" + std::to_string(family_) +
                      " route table has no capacity for another prefix longer than "
                      "/24: " +
                      prefix.str() + " does not fit beside " + std::to_string(used_) +
                      " blocks; raise [route] max_ipv" + std::to_string(family_));
  }
  return {};
}

void Trie::update(const Rib& rib, const packet::IpPrefix& prefix) {
  const std::lock_guard lock(mutex_);
  const auto own = rib.find(prefix);
  const auto value = static_cast<NextHopId>(own ? *own : rib.cover(prefix).value_or(no_route)) & max_next_hop_id;
  if (!own && collapse(rib, prefix, value)) {
    return;
  }
  // The addresses that no longer prefix claims. Where a gap begins or ends inside a slot, a longer prefix does too, so
  // that slot has a block; where none does, the slot has none and is written whole.
  Key next = key_of(prefix.address);
  const Key last = last_of(prefix);
  bool at_end = false;
  rib.for_each_below(prefix, [&](const packet::IpPrefix& below) {
    const Key first = key_of(below.address);
    if (next < first) {
      fill(0, 24, next, first - 1, value);
    }
    next = last_of(below) + 1;
    at_end = last_of(below) == last;
  });
  if (!at_end) {
    fill(0, 24, next, last, value);
  }
}

// Writes `value` for the addresses first to last below the node whose slots begin at `base` and are indexed by the
// address bits that end at `depth`.
void Trie::fill(std::uint32_t base, unsigned depth, Key first, Key last, NextHopId value) {
  const unsigned shift = 128 - depth;
  const Key inside = shift == 0 ? 0 : all_bits >> depth;
  const std::uint32_t mask = depth == 24 ? root_slots - 1 : 255;
  std::uint32_t from = static_cast<std::uint32_t>(first >> shift) & mask;
  std::uint32_t to = static_cast<std::uint32_t>(last >> shift) & mask;
  const bool cut_head = (first & inside) != 0;
  const bool cut_tail = (last & inside) != inside;
  if (from == to && (cut_head || cut_tail)) {
    fill(child(base + from), depth + 8, first, last, value);
    return;
  }
  if (cut_head) {
    fill(child(base + from), depth + 8, first, first | inside, value);
    ++from;
  }
  const std::uint32_t end = cut_tail ? to : to + 1;
  if (from < end) {
    set(base + from, end - from, value);
  }
  if (cut_tail) {
    fill(child(base + to), depth + 8, last & ~inside, last, value);
  }
}

// The first slot of the block below `slot`, which is made when there is none: it then says what the slot said.
std::uint32_t Trie::child(std::uint32_t slot) {
  if (!is_child(slots_[slot])) {
    std::uint32_t block = fresh_from_;
    if (free_.empty()) {
      ++fresh_from_;
    } else {
      block = free_.back();
      free_.pop_back();
    }
    ++used_;
    std::fill_n(slots_ + static_cast<std::size_t>(first_block + block) * 256, 256, slots_[slot]);
    for (ChangeLog* log : logs_) {
      log->born(block);
    }
    set(slot, 1, child_flag | (first_block + block));
  }
  return slots_[slot] << 8;
}

void Trie::set(std::uint32_t first, std::uint32_t count, std::uint32_t value) {
  std::uint32_t* const begin = slots_ + first;
  std::uint32_t* const end = begin + count;
  std::uint32_t* const from = std::find_if(begin, end, [&](std::uint32_t slot) { return slot != value; });
  if (from == end) {
    return;
  }
  std::fill(from, end, value);
  for (ChangeLog* log : logs_) {
    log->touch(static_cast<std::uint32_t>(from - slots_), static_cast<std::uint32_t>(end - from));
  }
}

// Takes out the blocks that were there for `prefix` alone, from the deepest upwards. True: there were some, and the
// slot that led to them says `value` now, so nothing is left to change.
bool Trie::collapse(const Rib& rib, const packet::IpPrefix& prefix, NextHopId value) {
  std::uint32_t path[13];
  unsigned depth = 24;
  unsigned levels = 0;
  for (std::uint32_t slot = root_slot(prefix.address); depth < prefix.length && is_child(slots_[slot]); depth += 8) {
    path[levels++] = slot;
    slot = (slots_[slot] << 8) + prefix.address.bytes[depth / 8];
  }
  bool taken = false;
  while (levels > 0 && !rib.has_longer(prefix.address, 16 + 8 * levels)) {
    taken = true;
    const std::uint32_t slot = path[--levels];
    const std::uint32_t block = (slots_[slot] & ~child_flag) - first_block;
    set(slot, 1, value);
    retire(block);
  }
  return taken;
}

void Trie::retire(std::uint32_t block) {
  --used_;
  holders_[block] = static_cast<std::uint8_t>(logs_.size());
  for (ChangeLog* log : logs_) {
    log->retired(block);
  }
  if (logs_.empty()) {
    free_.push_back(block);
  }
}

void Trie::release(std::uint32_t block) {
  if (--holders_[block] == 0) {
    free_.push_back(block);
  }
}

void Trie::attach(ChangeLog& log) {
  logs_.push_back(&log);
}

void Trie::detach(ChangeLog& log) {
  std::erase(logs_, &log);
}

NextHopId Trie::lookup4(std::uint32_t destination_host_order) const {
  const std::uint32_t entry = slots_[destination_host_order >> 8];
  return is_child(entry) ? slots_[(entry << 8) + (destination_host_order & 255)] : entry;
}

NextHopId Trie::lookup6(const std::uint8_t* destination) const {
  std::uint32_t entry = slots_[static_cast<std::uint32_t>(destination[0]) << 16 |
                               static_cast<std::uint32_t>(destination[1]) << 8 | destination[2]];
  for (unsigned byte = 3; is_child(entry); ++byte) {
    entry = slots_[(entry << 8) + destination[byte]];
  }
  return entry;
}

}  // namespace sluice::lookup
