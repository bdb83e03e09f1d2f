// The sessions of a mirror in force: which frames are copied to which port. They never change; a reload makes others.
//
// Threads: create() and destruction on the control thread, with DPDK; all else on any thread. Memory: rte_acl's tables
// of each session with rules (lookup/acl/classifier.h). Cost: a session with rules makes a key for each frame and looks
// it up; one without costs a bit operation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/counters.h"
#include "lookup/acl/acl_settings.h"
#include "lookup/acl/classifier.h"
#include "lookup/acl/set_tables.h"

namespace sluice::function {

// A bit for each session, and for each port.
using SessionBits = std::uint8_t;
using PortBits = std::uint32_t;
// An emitter holds so many copies for each frame of a burst without growing.
inline constexpr unsigned most_sessions = 7;

struct MirrorSession {
  std::string name;
  std::uint8_t tally = 0;  // where the element counts for it
  PortBits from = 0;
  bool rx = false, tx = false;
  std::uint16_t to = 0;
  std::string to_name;
  std::uint32_t most = 0;                   // bytes of a copy; 0: the whole frame
  std::vector<lookup::acl::AclRule> rules;  // one of them has to match
  bool has_rules = false;
};

struct MirrorOptions {
  std::vector<MirrorSession> sessions;
  std::vector<lookup::acl::NamedSet> sets;
  lookup::acl::TagPlan plan;  // of the rules of all sessions
};

class MirrorSessions {
 public:
  static constexpr unsigned most_at_once = 64;

  static Expected<std::unique_ptr<MirrorSessions>> create(const MirrorOptions& options);

  const std::vector<MirrorSession>& list() const { return sessions_; }
  // Before lanes have them.
  void set_tally(std::size_t session, std::uint8_t tally) { sessions_[session].tally = tally; }
  // Sessions that copy what comes in by this port, or leaves by it.
  SessionBits of_rx(std::uint16_t port) const { return of_rx_[port]; }
  SessionBits of_tx(std::uint16_t port) const { return of_tx_[port]; }
  PortBits rx_from() const { return rx_from_; }
  PortBits tx_from() const { return tx_from_; }
  PortBits to() const { return to_; }

  // Takes those sessions from each frame's bits of whose rules none matches it. most_at_once at most.
  struct Frame {
    const std::uint8_t* data;
    std::uint32_t length;
    SessionBits sessions;
  };
  void match(Frame* frames, unsigned count) const;

 private:
  std::vector<MirrorSession> sessions_;
  std::vector<std::unique_ptr<lookup::acl::Classifier>> classifiers_;  // of each session; null: it has no rules
  std::optional<lookup::acl::SetTables> sets_;                         // nothing: no rule asks for one
  std::array<SessionBits, engine::max_ports> of_rx_{}, of_tx_{};
  SessionBits with_rules_ = 0;
  PortBits rx_from_ = 0, tx_from_ = 0, to_ = 0;
};

}  // namespace sluice::function
