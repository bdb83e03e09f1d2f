// The databases of IPsec (RFC 4301 section 4.4): security policies, security associations, and what happens to them.
// One object for those that change them (database.h), for the lanes that look into them (view.h) and for the thread
// that watches them.
//
// Lanes: pin() gives a view for a batch, whose entries live until unpin(). They wait for nobody, and nobody waits for
// them: what was removed ends when no lane can have found it any more (base/published.h, one place for each reader).
//
// Watcher: tick() each 100 ms or so. It moves the lanes' clock, finds SAs whose lifetime is over, asks for the SAs that
// lanes lack, and ends what was removed. Events are said by its thread, which holds no lock then: they may change the
// databases, but not call tick() or set_events().
//
// Expiry: soft and hard limits in packets and bytes are lifetime.h's; an SA without ESN is dying in the last sixteenth
// of its numbers, and dead behind the last (RFC 4303 section 3.3.3). Limits in seconds are looked at by tick();
// `use_seconds` count from the second of the first packet. A dead SA stays until it is removed. A policy's SA is the
// newest one that is valid, else the newest that is dying (ways.h).
//
// Thread-safety: as said; Database's methods any thread. Cost and memory: docs/ipsec-databases.md.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/published.h"
#include "crypto/key_table.h"
#include "ipsec/database.h"
#include "ipsec/path_mtus.h"
#include "ipsec/tables.h"
#include "ipsec/view.h"

namespace sluice::ipsec {

struct DatabasesSettings {
  // Of SAs in both directions, and of policies in each, with those that are removed and under way: some more than are
  // wanted, since a rekey has both SAs for a while.
  std::size_t sas = 1U << 17, policies = 1U << 17;
  std::size_t lanes = 1;    // that count
  std::size_t readers = 1;  // that pin: for each lane all batches that it can have under way
};

class Databases final : public Database {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds spi_kept{165};

  // `keys` outlives it. `now`: of the first tick() or before. Throws std::bad_alloc.
  Databases(crypto::KeyTable& keys, const DatabasesSettings& settings, Time now = std::chrono::steady_clock::now());
  ~Databases() override;

  // The lanes' side. The view of a reader holds until its next pin() or unpin().
  const View* pin(std::size_t reader) const { return current_.pin(reader); }
  // One that another reader holds.
  void pin(std::size_t reader, const View* view) const { current_.pin(reader, view); }
  void unpin(std::size_t reader) const { current_.unpin(reader); }

  // The watcher's. Times never go back.
  void tick(Time now);

  Expected<void> add(const SaSettings& sa) override;
  Expected<void> update(const SaSettings& sa) override;
  bool remove(const SaId& id) override;
  // The SA of this id becomes another one, with numbers, window and counters of its own. Lanes find the one or the
  // other at any moment. An Error: as of add(), or there is none; then nothing has changed.
  Expected<void> replace(const SaSettings& sa);
  Expected<std::uint32_t> reserve_spi(const packet::IpAddress& source, const packet::IpAddress& destination,
                                      Protocol protocol, std::uint32_t reqid, std::uint32_t least,
                                      std::uint32_t most) override;
  std::optional<SaStatus> sa(const SaId& id) const override;
  std::vector<SaStatus> sas(std::size_t most) const override;
  std::size_t sa_count() const override;
  void flush_sas(std::optional<Protocol> protocol) override;

  Expected<void> add(const Policy& policy, bool replaces) override;
  bool remove_policy(Direction direction, const Selector& selector) override;
  std::optional<Policy> policy(Direction direction, const Selector& selector) const override;
  // Inbound ones first, and of a direction as lanes look at them.
  std::vector<Policy> policies(std::size_t most) const override;
  std::size_t policy_count() const override;
  void flush_policies() override;
  // What lanes have counted for it.
  std::optional<Count> counts(Direction direction, const Selector& selector) const;

  void set_events(Events* events) override;

  // How often the path MTU of a way has become smaller by an ICMP error. Such an error counts if it quotes a packet of
  // an outbound SA that is there, larger than what it says, and one of the last `recent` that were sent.
  std::uint64_t path_mtus_learnt() const { return path_mtus_learnt_.load(std::memory_order_relaxed); }
  static constexpr std::uint32_t recent = 1U << 20;

  // Removed, and not ended yet: lanes may be in them. For tests and metrics.
  std::size_t leaving() const;

 private:
  // An SPI that is reserved.
  struct Larval {
    packet::IpAddress source;
    std::uint32_t reqid = 0;
    Time added{}, until{};
  };
  struct Deadline {
    Time at;
    std::uint32_t index = 0;
    std::uint64_t serial = 0;
    bool operator>(const Deadline& other) const { return at > other.at; }
  };
  struct Expiry {
    SaStatus sa;
    bool hard = false;
  };
  struct Move {
    SaStatus sa;
    packet::IpAddress source;
    std::uint16_t port = 0;
  };
  struct Happened {
    std::vector<Acquire> acquires;
    std::vector<Expiry> expiries;
    std::vector<Move> moves;
  };
  using SaHandle = SlotPool<Sa>::Handle;
  using Sas = std::map<SaId, SaHandle>;

  Spd& spd(Direction direction) { return direction == Direction::out ? tables_->out : tables_->in; }
  const Spd& spd(Direction direction) const { return direction == Direction::out ? tables_->out : tables_->in; }
  LaneCounts& policy_counts(Direction direction) const {
    return direction == Direction::out ? tables_->out_counts : tables_->in_counts;
  }

  // databases_sas.cc; the caller holds the mutex, as for all that follows.
  Sa* find(const SaId& id) const;
  Expected<void> add_sa(const SaSettings& settings);
  Expected<SaHandle> make_sa(const SaSettings& settings);
  void set_changeable(Sa& sa, const SaSettings& settings);
  void put_sa(SaHandle made);
  bool take_sa(const SaId& id);
  SaStatus status(const Sa& sa) const;
  SaStatus status(const SaId& id, const Larval& larval) const;
  std::uint64_t epoch_seconds(Time time) const;
  Time time_of(std::uint32_t seconds) const { return start_ + std::chrono::seconds(seconds - 1); }
  std::optional<std::uint32_t> unused_spi(SaId id, std::uint32_t least, std::uint32_t most);

  // databases_tick.cc
  Happened look(Time now);
  void look_at(Sa& sa, std::vector<Expiry>& expiries);
  void look_at_larvals(std::vector<Expiry>& expiries);
  void look_at_moves(std::vector<Move>& moves);
  void look_at_path_mtus();
  void set_path_mtu(const PathMtus::Way& way);
  void plan(const Sa& sa);

  bool take_policy(Direction direction, const Selector& selector);
  // Brings removals and changes of policies into force for lanes that pin from now on.
  void publish();
  void reclaim();

  crypto::KeyTable& keys_;
  const Time start_;
  const std::uint64_t epoch_start_;  // seconds, at start_
  mutable std::mutex mutex_;
  const std::unique_ptr<Tables> tables_;
  Published<const View> current_;
  const View* newest_ = nullptr;
  View::Retired retired_;
  unsigned published_ = 0;  // since reclaim()

  Time now_;
  std::array<Sas, 2> sas_;     // by direction
  std::vector<Sa*> by_index_;  // null: none
  std::map<SaId, Larval> larvals_;
  std::deque<std::pair<Time, SaId>> larval_ends_;  // in order; some have become valid, or were removed
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::uint64_t last_serial_ = 0;
  std::mt19937_64 random_;

  PathMtus path_mtus_;
  std::atomic<std::uint64_t> path_mtus_learnt_{0};

  std::mutex telling_;  // held while events are said
  Events* events_ = nullptr;
};

}  // namespace sluice::ipsec
