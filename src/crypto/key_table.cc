#include "crypto/key_table.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/ipsec_mb.h"
#include "crypto/locked_memory.h"
#include "crypto/secret.h"

namespace sluice::crypto {

namespace {

// Slots that have changed since a follower took them.
struct Changes {
  std::vector<std::uint32_t> slots;
  std::vector<std::uint8_t> noted;      // by slot
  std::vector<std::uint64_t> taken_by;  // by slot: the last call that took it
  std::uint64_t calls = 0;              // of take_changes()
  std::atomic<bool> any{false};
  const Side* side;  // null: nobody's

  Changes(std::uint32_t capacity, const Side& of) : noted(capacity), taken_by(capacity), side(&of) {
    slots.reserve(capacity);
  }
  void note(std::uint32_t slot) {
    if (side != nullptr && noted[slot] == 0) {
      noted[slot] = 1;
      slots.push_back(slot);
      any.store(true, std::memory_order_release);
    }
  }
};

}  // namespace

struct KeyTable::Tables {
  Manager manager;
  std::uint32_t capacity = 0;
  bool gcm = false;
  LockedMemory key_memory;
  LockedMemory gcm_memory;
  std::vector<std::uint32_t> free;  // the last is taken next
  std::mutex changing;              // held while `free` or a slot changes, or one is copied for a follower
  std::deque<Changes> followers;
  std::atomic<std::uint64_t> installs{0};

  Key* keys() const { return static_cast<Key*>(key_memory.data()); }
  gcm_key_data* gcm_keys() const { return static_cast<gcm_key_data*>(gcm_memory.data()); }
  // These two of who holds `changing`.
  void put(std::uint32_t slot, const KeyMaterial& material);
  void clear(std::uint32_t slot);
  void note(std::uint32_t slot) {
    for (Changes& follower : followers) {
      follower.note(slot);
    }
  }
  void expand(std::uint32_t slot, const KeyMaterial& material) const;
};

void KeyTable::Tables::expand(std::uint32_t slot, const KeyMaterial& material) const {
  Key& key = keys()[slot];
  wipe(&key, sizeof key);
  std::copy(material.salt.begin(), material.salt.end(), key.salt_block);
  key.cipher = material.cipher;
  key.hash = material.hash;
  key.tag_length = material.tag_length;
  key.opens = material.opens && material.cipher == Cipher::aes_cbc ? 1 : 0;
  Slot where{&key, gcm ? &gcm_keys()[slot] : nullptr};
  algorithm(material.cipher, material.hash)->expand(manager.get(), material, where);
}

void KeyTable::Tables::put(std::uint32_t slot, const KeyMaterial& material) {
  expand(slot, material);
  note(slot);
}

void KeyTable::Tables::clear(std::uint32_t slot) {
  wipe(&keys()[slot], sizeof(Key));
  if (gcm) {
    wipe(&gcm_keys()[slot], sizeof(gcm_key_data));
  }
  note(slot);
}

Expected<KeyTable> KeyTable::make(std::uint32_t capacity, bool gcm) {
  auto chosen = make_manager();
  if (!chosen) {
    return tl::unexpected(chosen.error());
  }
  auto tables = std::make_unique<Tables>();
  tables->manager = std::move(chosen->manager);
  tables->capacity = capacity;
  tables->gcm = gcm;
  const std::size_t gcm_slots = gcm ? capacity : 0;
  for (const auto& [memory, length] : {std::pair{&tables->key_memory, capacity * sizeof(Key)},
                                       std::pair{&tables->gcm_memory, gcm_slots * sizeof(gcm_key_data)}}) {
    auto made = LockedMemory::make(length);
    if (!made) {
      return tl::unexpected(made.error());
    }
    *memory = std::move(*made);
  }
  tables->free.resize(capacity);
  for (std::uint32_t i = 0; i < capacity; ++i) {
    tables->free[i] = capacity - 1 - i;
  }
  return KeyTable(std::move(tables));
}

KeyTable::KeyTable(std::unique_ptr<Tables> tables) : tables_(std::move(tables)) {}
KeyTable::KeyTable(KeyTable&&) noexcept = default;
KeyTable& KeyTable::operator=(KeyTable&&) noexcept = default;
KeyTable::~KeyTable() = default;

Expected<std::uint32_t> KeyTable::install(const KeyMaterial& material) {
  if (const std::string wrong = why_no_key(material, tables_->gcm); !wrong.empty()) {
    return make_error(wrong);
  }
  const std::lock_guard lock(tables_->changing);
  if (tables_->free.empty()) {
    return make_error(std::string(table_of_keys_is_full) + ": it has capacity for " +
                      std::to_string(tables_->capacity));
  }
  const std::uint32_t slot = tables_->free.back();
  tables_->free.pop_back();
  tables_->put(slot, material);
  tables_->installs.fetch_add(1, std::memory_order_release);
  return slot;
}

Expected<void> KeyTable::replace(std::uint32_t slot, const KeyMaterial& material) {
  if (const std::string wrong = why_no_key(material, tables_->gcm); !wrong.empty()) {
    return make_error(wrong);
  }
  const std::lock_guard lock(tables_->changing);
  tables_->put(slot, material);
  return {};
}

void KeyTable::release(std::uint32_t slot) {
  const std::lock_guard lock(tables_->changing);
  tables_->clear(slot);
  tables_->free.push_back(slot);
}

unsigned KeyTable::follow(const Side& side) {
  const std::lock_guard lock(tables_->changing);
  auto& all = tables_->followers;
  const auto left = std::ranges::find(all, nullptr, &Changes::side);
  Changes& follower = left != all.end() ? *left : all.emplace_back(tables_->capacity, side);
  follower.side = &side;
  const auto number = static_cast<unsigned>(left != all.end() ? left - all.begin() : all.size() - 1);
  for (std::uint32_t slot = 0; slot < tables_->capacity; ++slot) {
    if (key(slot).cipher != Cipher::none) {
      follower.note(slot);
    }
  }
  return number;
}

void KeyTable::unfollow(unsigned follower) {
  const std::lock_guard lock(tables_->changing);
  Changes& changes = tables_->followers[follower];
  changes.side = nullptr;
  changes.slots.clear();
  std::ranges::fill(changes.noted, std::uint8_t{0});
  changes.any.store(false);
}

std::size_t KeyTable::take_changes(unsigned follower, std::span<KeyRecord> records) {
  Changes& changes = tables_->followers[follower];
  ++changes.calls;
  for (std::size_t taken = 0; taken < records.size(); ++taken) {
    const std::lock_guard lock(tables_->changing);
    // A slot that has changed again since this call took it is the next call's: a kernel applies records in any order.
    if (changes.slots.empty() || changes.taken_by[changes.slots.back()] == changes.calls) {
      return taken;
    }
    KeyRecord& record = records[taken];
    record.slot = changes.slots.back();
    changes.slots.pop_back();
    changes.taken_by[record.slot] = changes.calls;
    changes.any.store(!changes.slots.empty(), std::memory_order_release);
    changes.noted[record.slot] = 0;
    const Key& key = tables_->keys()[record.slot];
    const Algorithm* const one = algorithm(key.cipher, key.hash);
    if (one == nullptr || !changes.side->can(*one, key_length(key))) {
      const std::uint32_t slot = record.slot;
      wipe(&record, sizeof record);
      record.slot = slot;
      continue;
    }
    record.key = key;
  }
  return records.size();
}

bool KeyTable::has_changes(unsigned follower) const {
  return tables_->followers[follower].any.load(std::memory_order_acquire);
}

std::uint64_t KeyTable::installs() const {
  return tables_->installs.load(std::memory_order_acquire);
}

std::span<const Key> KeyTable::keys() const {
  return {tables_->keys(), tables_->capacity};
}
std::uint32_t KeyTable::capacity() const {
  return tables_->capacity;
}
std::uint32_t KeyTable::used() const {
  const std::lock_guard lock(tables_->changing);
  return tables_->capacity - static_cast<std::uint32_t>(tables_->free.size());
}
const void* KeyTable::cpu_gcm_key(std::uint32_t slot) const {
  return &tables_->gcm_keys()[slot];
}

}  // namespace sluice::crypto
