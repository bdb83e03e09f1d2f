// The master keys of a channel, found by MKI: how many packets each may still protect, and their session keys in the
// key table (RFC 3711 sections 3.2.1, 4.3, 8.1, 9.2).
//
// With a key derivation rate the session keys of `key_periods` periods of each are kept, of all SSRCs together, and
// derived when a packet needs another's: before it is authenticated, so anybody can ask for one. Therefore the period
// of the highest authenticated index of a packet's SSRC is given up for nothing, it and the next two have a place
// whatever else comes. Of all other periods that packets ask for one is in flight at a time, once anything was found
// authentic; until then it may be all. Such a packet costs a derivation (OpenSSL, which allocates: about 3 us) and the
// lock of the key table.
//
// Thread-safety and all other cost: those of a channel (channel.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/prefetch.h"
#include "crypto/key_table.h"
#include "media/srtp/status.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {

inline constexpr std::size_t max_mki_length = 128;
inline constexpr std::size_t max_master_keys = 16;
inline constexpr unsigned key_periods = 4;

struct MasterKey {
  std::span<const std::uint8_t> key;
  std::span<const std::uint8_t> salt;
  std::span<const std::uint8_t> mki = {};  // as on the wire; empty for none; all keys of a channel have one length
  std::uint64_t lifetime = 0;              // packets; 0: the protocol's
};

class MasterKeys {
 public:
  // `table` must outlive them. `rate`: of key derivation. The error says which length or number is wrong, or what is
  // full.
  static Expected<MasterKeys> make(Suite suite, Protocol protocol, std::uint32_t rate,
                                   std::span<const MasterKey> masters, crypto::KeyTable& table);
  MasterKeys(MasterKeys&& other) noexcept;
  MasterKeys& operator=(MasterKeys&& other) noexcept;
  ~MasterKeys();

  std::uint8_t mki_length() const { return mki_length_; }
  const std::uint8_t* mki(std::uint8_t master) const { return masters_[master].mki.data(); }

  // The one with the MKI that begins there; no_key.
  Status find(const std::uint8_t* mki, std::uint8_t& master) const;
  // The one that protects: the first whose lifetime is not over; key_expired.
  Status choose(std::uint8_t& master);

  // Of a lifetime, by packets.
  bool expired(std::uint8_t master) const { return masters_[master].left == 0; }
  void count(std::uint8_t master) { --masters_[master].left; }
  void count_back(std::uint8_t master) { ++masters_[master].left; }

  // The slot in the key table of an index's session keys. `highest`: of the same SSRC, what was authenticated; to
  // protect the index itself. After ok put_back() must follow once. no_key: also, with a rate, of an index that is 2^15
  // or more ahead; too_many_in_flight.
  static constexpr std::uint64_t no_highest = ~std::uint64_t{0};
  Status take(std::uint8_t master, std::uint64_t index, std::uint64_t highest, std::uint8_t& period,
              std::uint32_t& slot);
  void put_back(std::uint8_t master, std::uint8_t period) {
    if (rate_ != 0) put_back_period(master, period);
  }
  // A packet that was put back just now is authentic, which makes its period the stream's.
  void establish(std::uint8_t master, std::uint8_t period) {
    if (rate_ != 0) establish_period(master, period);
  }

  // Of a key without a rate: take() gives no other, ever.
  std::uint32_t only_slot(std::uint8_t master) const { return masters_[master].slot; }

  void prefetch() const { sluice::prefetch(masters_.data()); }

 private:
  struct Derivation;
  struct Master {
    std::uint64_t left = 0;  // packets
    std::vector<std::uint8_t> mki;
    std::uint32_t slot = 0;                  // of its session keys, without a rate
    std::unique_ptr<Derivation> derivation;  // with one
  };

  MasterKeys(Suite suite, Protocol protocol, std::uint32_t rate, crypto::KeyTable& table);
  Expected<void> add(const MasterKey& key);
  Expected<std::unique_ptr<Derivation>> derive_first(const MasterKey& key);
  Expected<std::uint32_t> install(const MasterKey& key, std::uint64_t period);
  void release();
  Status take_period(std::uint8_t master, std::uint64_t index, std::uint64_t highest, std::uint8_t& period,
                     std::uint32_t& slot);
  void put_back_period(std::uint8_t master, std::uint8_t period);
  void establish_period(std::uint8_t master, std::uint8_t period);

  crypto::KeyTable* table_;
  std::vector<Master> masters_;
  std::uint32_t rate_;
  Suite suite_;
  Protocol protocol_;
  std::uint8_t mki_length_ = 0;
  std::uint8_t current_ = 0;  // the one that protects
};

inline Status MasterKeys::choose(std::uint8_t& master) {
  while (masters_[current_].left == 0) {
    if (current_ + 1U == masters_.size()) {
      return Status::key_expired;
    }
    ++current_;
  }
  master = current_;
  return Status::ok;
}

inline Status MasterKeys::take(std::uint8_t master, std::uint64_t index, std::uint64_t highest, std::uint8_t& period,
                               std::uint32_t& slot) {
  period = 0;
  if (rate_ != 0) {
    return take_period(master, index, highest, period, slot);
  }
  slot = masters_[master].slot;
  return Status::ok;
}

}  // namespace sluice::srtp
