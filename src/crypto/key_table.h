// The expanded keys of all sessions: a table of fixed size whose slots jobs name. An array of Key that any device may
// read; where there may be AES-GCM, beside it, for the CPU alone, what intel-ipsec-mb wants.
//
// Memory: 448 B for each slot, with `gcm` 1.5 KB; allocated at once and locked (mlock) as far as the limit on locked
// memory allows, and left out of core dumps. The arrays begin at a page and stay where they are as long as the table
// lives, so they can be registered with a GPU. A released slot is wiped, as is the table at its end.
//
// Thread-safety: install(), replace(), release() and used() any threads, beside each other: they wait for one another,
// for as long as one key takes. Who drops the last of a stream's keys need hold no lock. Slots are independent: lanes
// may run jobs meanwhile under other slots. What the caller owes: a slot is installed before a job names it, and no job
// that names it is still in flight when it is released. Cost: install() 0.1 us for ChaCha20, 0.3 us for
// AES-GCM and with HMAC-SHA1, 0.7 us with HMAC-SHA256, 0.9 us with -384 and -512. Nothing here is on the path of a
// packet but key().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "crypto/key.h"

namespace sluice::crypto {

// What a key is made of. How long each may be, its Algorithm says (crypto/algorithm.h).
struct KeyMaterial {
  Cipher cipher;
  Hash hash;
  std::span<const std::uint8_t> cipher_key;
  std::span<const std::uint8_t> salt;
  std::span<const std::uint8_t> auth_key;
  std::uint8_t tag_length;
  bool opens = false;  // aes_cbc: what the slot's jobs do. Of no meaning for the others
};

struct Side;

// What the message of install() begins with where no slot is free.
inline constexpr std::string_view table_of_keys_is_full = "the table of keys is full";

class KeyTable {
 public:
  // Fails if the memory can not be had. `gcm`: whether AES-GCM keys may be installed.
  static Expected<KeyTable> make(std::uint32_t capacity, bool gcm);
  KeyTable(KeyTable&&) noexcept;
  KeyTable& operator=(KeyTable&&) noexcept;
  ~KeyTable();

  // The slot; an error if the table is full, `material` has lengths that the algorithm has not, or GCM is not provided
  // for.
  Expected<std::uint32_t> install(const KeyMaterial& material);
  // Another key in an installed slot: for key derivation rates. From one thread at a time for each slot; what install()
  // says holds.
  Expected<void> replace(std::uint32_t slot, const KeyMaterial& material);
  // Wipes the slot and frees it. `slot` is installed.
  void release(std::uint32_t slot);

  const Key& key(std::uint32_t slot) const { return keys()[slot]; }
  // For devices; wiped slots are zeros.
  std::span<const Key> keys() const;
  std::uint32_t capacity() const;
  std::uint32_t used() const;

  // For a device that keeps a copy: from follow() on, slots that change are noted for that follower, at first all that
  // are installed. take_changes() gives the next of them as they are now, and how many. A slot that has changed more
  // than once comes once in a call, so a call's records may be applied in any order. Any thread beside install(),
  // release() and replace(), which wait for it no longer than one record takes to copy. A follower is there until
  // unfollow(); the control thread calls these two. What `side` cannot do comes as a wiped slot.
  unsigned follow(const Side& side);
  // The follower's device is gone, and nobody asks for it any more: the next follow() may have its number.
  void unfollow(unsigned follower);
  std::size_t take_changes(unsigned follower, std::span<KeyRecord> records);
  // Cost: one load.
  bool has_changes(unsigned follower) const;
  // How often install() has been called with success. A follower that has no changes, asked after it, has all of these.
  std::uint64_t installs() const;

  // intel-ipsec-mb's own expanded GCM key (gcm_key_data), for Cpu.
  const void* cpu_gcm_key(std::uint32_t slot) const;

 private:
  struct Tables;
  explicit KeyTable(std::unique_ptr<Tables> tables);
  std::unique_ptr<Tables> tables_;
};

}  // namespace sluice::crypto
