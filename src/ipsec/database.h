// The databases of IPsec as those see them that change them: the configuration, the API and an IKE daemon
// (xfrm/server.h). The packet path looks into them by sad.h and spd.h.
//
// Thread-safety: every call by any thread; calls wait for one another, and never for the packet path. A change is in
// force when the call returns. Cost: some microseconds for an SA, one for a policy; see docs/ipsec-databases.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ipsec/security_association.h"
#include "ipsec/selector.h"

namespace sluice::ipsec {

// A packet that a policy protects, and no SA for it: whoever keeps the SAs is asked for one. Said once for each policy
// and SA wanted until there is one, or it is withdrawn (after 30 s).
struct Acquire {
  Policy policy;
  Template wanted;
  FlowKey packet;
  std::uint32_t sequence = 0;  // of the acquire
};

// Called by the thread that watches the databases, not on the packet path.
class Events {
 public:
  virtual ~Events() = default;
  virtual void acquire(const Acquire& acquire) = 0;
  virtual void expired(const SaStatus& sa, bool hard) = 0;
  // Authentic packets come from another address or port than the SA says (RFC 3948 section 4, MOBIKE). The SA has not
  // changed.
  virtual void moved(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) = 0;
};

class Database {
 public:
  virtual ~Database() = default;

  // An Error: there is one of that id; the algorithm, its key's length or the window is not possible; the table is
  // full.
  virtual Expected<void> add(const SaSettings& sa) = 0;
  // The same for an id that is there: a larval one becomes valid; of a valid one lifetime, UDP ports, selector and
  // source change, and its sequence numbers, window and counters stay; the rest is not looked at. An Error: there is
  // none.
  virtual Expected<void> update(const SaSettings& sa) = 0;
  // Its packets under way are finished: it is not found any more, and ends when they have left. False: there was none.
  virtual bool remove(const SaId& id) = 0;
  // Reserves an unused SPI of [least, most] for an inbound SA; kept for 165 s, as Linux does, until update() or add().
  virtual Expected<std::uint32_t> reserve_spi(const packet::IpAddress& source, const packet::IpAddress& destination,
                                              Protocol protocol, std::uint32_t reqid, std::uint32_t least,
                                              std::uint32_t most) = 0;
  virtual std::optional<SaStatus> sa(const SaId& id) const = 0;
  // At most so many, in the order of (direction, destination, SPI).
  virtual std::vector<SaStatus> sas(std::size_t most) const = 0;
  virtual std::size_t sa_count() const = 0;
  virtual void flush_sas(std::optional<Protocol> protocol) = 0;

  // There is one policy for each direction and selector, as in XFRM. An Error: there is one, and `replaces` is false;
  // or the selector or the templates are not possible. One that is replaced leaves no moment without a policy.
  virtual Expected<void> add(const Policy& policy, bool replaces) = 0;
  virtual bool remove_policy(Direction direction, const Selector& selector) = 0;
  virtual std::optional<Policy> policy(Direction direction, const Selector& selector) const = 0;
  // At most so many, inbound ones first, and of a direction as they are looked at.
  virtual std::vector<Policy> policies(std::size_t most) const = 0;
  virtual std::size_t policy_count() const = 0;
  virtual void flush_policies() = 0;

  // Who is told; null: nobody. The caller keeps it until it has set another.
  virtual void set_events(Events* events) = 0;
};

}  // namespace sluice::ipsec
