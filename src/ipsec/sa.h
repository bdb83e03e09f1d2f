// A security association as lanes see it. It has one address from add() to its end, which comes when it was removed and
// no reader can have found it any more (view.h): packets under way are finished.
//
// Three lines for each packet: what it needs to be framed; its numbers, the only line that lanes write for each packet;
// the outer header's fields. A fourth for one that was opened: whether it comes from where it should. What update()
// replaces, the outer header and the inner selector, is behind pointers.
//
// Thread-safety: lanes read all and change what says so. The control side (databases.h) writes the rest before lanes
// find it, and `state`, `outer`, `inner` and `limited` while they read.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/prefetch.h"
#include "crypto/key.h"
#include "crypto/key_table.h"
#include "ipsec/lifetime.h"
#include "ipsec/packet_format.h"
#include "ipsec/packet_key.h"
#include "ipsec/replay_window.h"
#include "ipsec/security_association.h"
#include "ipsec/sequence.h"

namespace sluice::ipsec {

// The outer header of a tunnel; of transport mode the addresses that the SA is between. Constant: another one takes its
// place.
struct Outer {
  PacketFormat format;
  std::array<std::uint8_t, 16> source{}, destination{};  // as in a frame; of IPv4 the first four bytes
  std::uint16_t source_port = 0, destination_port = 0;   // of UDP, network order; 0: no UDP encapsulation
  std::uint8_t family = 0;
  bool udp = false;
  // Of the same SA: the format follows from the rest, and from what is constant.
  bool operator==(const Outer& other) const {
    return source == other.source && destination == other.destination && source_port == other.source_port &&
           destination_port == other.destination_port && family == other.family && udp == other.udp;
  }
};

// The settings have a format (packet_format()).
Outer outer_of(const SaSettings& settings);
// Views into the SA's keys.
crypto::KeyMaterial key_material(const SaSettings& settings);

// Packets refused, by any lane.
struct Refusals {
  std::atomic<std::uint64_t> bad_icv{0}, replay{0}, policy{0}, expired{0}, malformed{0};
};

struct SaRecord;  // of the control side

struct alignas(64) Sa {
  // `installs`: KeyTable::installs() once the key is in its slot.
  Sa(const SaSettings& settings, std::uint32_t index, std::uint32_t key, std::uint64_t installs);
  ~Sa();

  // The first line: constant, but for what is atomic.
  std::uint32_t spi;    // network order, as in a packet
  std::uint32_t key;    // slot of crypto::KeyTable
  std::uint32_t index;  // of counters (lane_counts.h)
  Protocol protocol;
  Mode mode;
  Direction direction;
  crypto::Cipher cipher;
  crypto::Hash hash;
  std::uint8_t family;  // outer
  std::atomic<SaState> state{SaState::valid};
  std::atomic<bool> limited{false};          // has a lifetime in packets or bytes
  std::array<std::uint8_t, 16> destination;  // as in a frame: what an inbound SA is found by
  std::atomic<std::uint16_t> path_mtu{0};    // out: of the way to there, learnt (path_mtus.h); 0: none
  const bool on_gpus;                        // the kernels do its algorithm
  std::atomic<const Outer*> outer{nullptr};
  std::atomic<const MaskedKey*> inner{nullptr};  // of SaSettings::selector; null: any
  const std::uint64_t installs;                  // KeyTable::installs() by which its key was there

  // Numbers; lanes change them. And once a second when.
  alignas(64) [[no_unique_address]] ReplayWindow window;  // in
  std::atomic<std::uint32_t> last_used{0};                // seconds of View::seconds(); 0: never
  Sequence sequence;                                      // out

  alignas(64) const Outer first_outer;  // what `outer` shows until it is replaced
  const std::uint32_t reqid;

  // Lanes write these once, or when they refuse a packet.
  alignas(64) Refusals refused;
  std::atomic<std::uint32_t> first_used{0};  // as last_used
  std::atomic<bool> has_moved{false};        // it has been noted
  std::unique_ptr<SaRecord> record;
  LifetimeBudget budget;

  // Some time before its next packet is opened, or sealed.
  void prefetch_for_opening() const {
    prefetch(this);
    prefetch_for_write(&window);
    prefetch(&first_outer, sizeof first_outer + sizeof reqid);
  }
  void prefetch_for_sealing() const {
    prefetch(this);
    prefetch_for_write(&sequence);
    prefetch(&first_outer);
  }

  // Extended sequence numbers. Of the format this never changes.
  bool esn() const { return first_outer.format.esn; }
  // In: the number of a packet that says this lower half. Nothing: as of ReplayWindow::extend(), with ESN alone.
  // Without, numbers end with 32 bits: what is behind the window is old, and no number of the next half space.
  std::optional<std::uint64_t> number(std::uint32_t low) const { return esn() ? window.extend(low) : low; }
  bool has_inner(const PacketKey& key) const {
    const MaskedKey* const wanted = inner.load(std::memory_order_acquire);
    return wanted == nullptr || wanted->has(key);
  }
};
static_assert(offsetof(Sa, window) == 64 && offsetof(Sa, first_outer) == 128 && offsetof(Sa, refused) == 256);

}  // namespace sluice::ipsec
