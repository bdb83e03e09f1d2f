#include "function/ipsec/ipsec_notes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "function/ipsec/ipsec_control.h"
#include "function/ipsec/own_addresses.h"
#include "ipsec/esp.h"
#include "ipsec/xfrm/listener.h"

namespace sluice::function {
namespace {

using ipsec::Direction;
using ipsec::Mode;
using ipsec::Policy;
using ipsec::SaSettings;
using ipsec::Template;

// Those with the same can stand for one another in a template whose ends are those of a tunnel. `reqid` 0: any.
using Way = std::tuple<Direction, ipsec::Protocol, Mode, packet::IpAddress, packet::IpAddress, std::uint32_t>;

// The template whose ends `one` has: AH around a tunnel has the tunnel's.
const Template& ends_of(const Policy& policy, const Template& one) {
  return policy.templates.front().mode == Mode::tunnel ? policy.templates.front() : one;
}

// What policies of the file ask for, and what SAs of the file there are.
class Ways {
 public:
  explicit Ways(const IpsecOptions& options) {
    for (const SaSettings& sa : options.sas) {
      if (sa.mode == Mode::transport) in_transport_.push_back(&sa);
      for (const std::uint32_t reqid : {sa.reqid, 0U}) there_.insert(way_of(sa, reqid));
    }
    for (const Policy& policy : options.policies) {
      for (const Template& one : policy.templates) {
        const Template& ends = ends_of(policy, one);
        if (ends.mode == Mode::transport) {
          of_transport_.emplace_back(&policy, &one);
        } else {
          wanted_.insert({policy.direction, one.protocol, one.mode, ends.source, ends.destination, one.reqid});
        }
      }
    }
  }

  bool has_sa(const Policy& policy, const Template& one) const {
    const Template& ends = ends_of(policy, one);
    if (ends.mode == Mode::tunnel) {
      return there_.contains({policy.direction, one.protocol, one.mode, ends.source, ends.destination, one.reqid});
    }
    return std::ranges::any_of(in_transport_, [&](const SaSettings* sa) { return fits(*sa, policy, one); });
  }
  bool is_used(const SaSettings& sa) const {
    if (wanted_.contains(way_of(sa, sa.reqid)) || wanted_.contains(way_of(sa, 0))) return true;
    if (sa.mode == Mode::tunnel) return false;
    // Inbound ones need no policy.
    return sa.direction == Direction::in ||
           std::ranges::any_of(of_transport_, [&](const auto& one) { return fits(sa, *one.first, *one.second); });
  }

 private:
  static Way way_of(const SaSettings& sa, std::uint32_t reqid) {
    return {sa.direction, sa.id.protocol, sa.mode, sa.source, sa.id.destination, reqid};
  }
  // In transport mode, where the packet's own addresses are the SA's.
  static bool fits(const SaSettings& sa, const Policy& policy, const Template& one) {
    return sa.direction == policy.direction && sa.id.protocol == one.protocol &&
           (one.reqid == 0 || one.reqid == sa.reqid) && policy.selector.source.contains(sa.source) &&
           policy.selector.destination.contains(sa.id.destination);
  }

  std::set<Way> there_, wanted_;
  std::vector<const SaSettings*> in_transport_;
  std::vector<std::pair<const Policy*, const Template*>> of_transport_;
};

// "a", "b" and 3 more
class Names {
 public:
  // `more`: behind the name.
  void add(const std::string& name, unsigned line, const std::string& more = "") {
    if (count_ == 0) line_ = line;
    if (++count_ <= most) text_ += (text_.empty() ? "\"" : ", \"") + name + "\"" + more;
  }
  unsigned line() const { return line_; }  // of the first one
  bool empty() const { return count_ == 0; }
  std::string text(const char* one, const char* several) const {
    return std::string(count_ == 1 ? one : several) + " " + text_ +
           (count_ > most ? " and " + std::to_string(count_ - most) + " more" : "");
  }
  bool is_one() const { return count_ == 1; }

 private:
  static constexpr std::size_t most = 3;
  std::size_t count_ = 0;
  unsigned line_ = 0;
  std::string text_;
};

class Notes {
 public:
  explicit Notes(const IpsecLines& lines) : lines_(lines) {}
  void add(const Names& of, const std::string& text) {
    if (!of.empty()) all_.push_back(lines_.before(of.line()) + "[ipsec] " + text);
  }
  std::vector<std::string> take() { return std::move(all_); }

 private:
  const IpsecLines& lines_;
  std::vector<std::string> all_;
};

// Of the SA or policy at `i`; without a file all lines are 0.
template <class T>
T line_at(const std::vector<T>& lines, std::size_t i) {
  return i < lines.size() ? lines[i] : T{};
}

const packet::IpAddress& own_end(const SaSettings& sa) {
  return sa.direction == Direction::in ? sa.id.destination : sa.source;
}

// What is said once of each address of this end, whichever has it first.
class Ends {
 public:
  Ends(const engine::PortTable& ports, bool at_start) : looks_(ports.size() != 0), known_(own_addresses()) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      known_.insert(ports[i].addresses.begin(), ports[i].addresses.end());
      const bool gets_others = ports[i].has_twin && !ports[i].is_virtual && ports[i].addresses.empty();
      looks_ = looks_ && !(at_start && gets_others);
    }
  }
  void add(const packet::IpAddress& end, const std::string& name, unsigned line) {
    if (looks_ && !end.empty() && known_.insert(end).second) missing_.add(name, line, " (" + end.str() + ")");
  }
  const Names& missing() const { return missing_; }

 private:
  bool looks_;
  std::set<packet::IpAddress> known_;
  Names missing_;
};

void note_ends(const IpsecOptions& options, const engine::PortTable& ports, bool at_start, Notes& notes) {
  Ends ends(ports, at_start);
  for (std::size_t i = 0; i < options.sas.size(); ++i) {
    ends.add(own_end(options.sas[i]), options.sas[i].name, line_at(options.lines.sas, i).own_end);
  }
  for (std::size_t i = 0; i < options.policies.size(); ++i) {
    const Policy& policy = options.policies[i];
    if (policy.templates.empty() || policy.templates.front().mode != Mode::tunnel) continue;
    const Template& tunnel = policy.templates.front();
    ends.add(policy.direction == Direction::in ? tunnel.destination : tunnel.source, policy.name,
             line_at(options.lines.policies, i).own_end);
  }
  const Names& missing = ends.missing();
  notes.add(missing, missing.text("the end here of", "the ends here of") +
                         (missing.is_one() ? " is an address" : " are addresses") +
                         " that no port of the file has, nor an interface of this host now: give it to a port "
                         "(address = [...]) or to its twin (ip addr add). Until then the other end's packets are for "
                         "nobody here");
}

// Padded packets that are too large for every port.
void note_padding(const IpsecOptions& options, const engine::PortTable& ports, Notes& notes) {
  std::uint32_t mtu = 0;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!ports[i].is_virtual) mtu = std::max(mtu, ports[i].mtu);
  }
  if (mtu == 0) return;
  Names stuck;
  for (std::size_t i = 0; i < options.sas.size(); ++i) {
    const SaSettings& sa = options.sas[i];
    const auto format = sa.pad_to == 0 ? tl::unexpected(Error{}) : ipsec::packet_format(sa);
    if (sa.direction != Direction::out || !format) continue;
    const std::uint32_t most = ipsec::esp_most_inner(*format, mtu, 0);
    if (sa.pad_to > most) {
      stuck.add(sa.name, line_at(options.lines.sas, i).pad_to, " (" + std::to_string(most) + " bytes at most)");
    }
  }
  notes.add(stuck, stuck.text("pad_to of the SA", "pad_to of the SAs") +
                       " is more than a packet may have that leaves by a port of this file, whose largest MTU is " +
                       std::to_string(mtu) + ": nothing is sent. Lower pad_to, or raise a port's mtu");
}

void note_ignored(const IpsecOptions& options, Notes& notes) {
  Names ignoring;
  std::string warning;
  for (std::size_t i = 0; i < options.sas.size(); ++i) {
    const IpsecLines::Sa lines = line_at(options.lines.sas, i);
    const std::string why = ignored_warning(lines.ignored);
    if (why.empty()) continue;
    ignoring.add(options.sas[i].name, lines.proposal, " (" + lines.ignored + ")");
    warning = why;
  }
  notes.add(ignoring, ignoring.text("the proposal of the SA", "the proposals of the SAs") + ": " + warning);
}

}  // namespace

std::vector<std::string> ipsec_notes(const IpsecOptions& options, const engine::PortTable& ports, bool at_start) {
  const Ways ways(options);
  const bool has_daemon = !options.ike_socket.empty();
  Names counting, lacking, unused;
  std::string warning;
  for (std::size_t i = 0; i < options.sas.size(); ++i) {
    const SaSettings& sa = options.sas[i];
    const IpsecLines::Sa lines = line_at(options.lines.sas, i);
    const std::string why = sa.direction == Direction::out ? manual_key_warning(sa.transform) : "";
    if (!why.empty()) {
      counting.add(sa.name, lines.proposal);
      warning = why;
    }
    if (!has_daemon && !ways.is_used(sa)) unused.add(sa.name, lines.section);
  }
  for (std::size_t i = 0; i < options.policies.size(); ++i) {
    const Policy& policy = options.policies[i];
    const auto is_there = [&](const Template& one) { return ways.has_sa(policy, one); };
    const bool lacks = policy.direction == Direction::out && !std::ranges::all_of(policy.templates, is_there);
    if (!has_daemon && lacks) lacking.add(policy.name, line_at(options.lines.policies, i).section);
  }
  Notes notes(options.lines);
  notes.add(counting, counting.text("the SA", "the SAs") + ": " + warning);
  notes.add(lacking, lacking.text("the policy", "the policies") + (lacking.is_one() ? " has" : " have") +
                         " no SA in the file, and there is no ike_socket: such packets are dropped as ipsec_no_sa_out "
                         "until one is added (ctl ipsec add). An SA is a policy's with the same protocol, mode, reqid "
                         "and ends");
  notes.add(unused, unused.text("the SA", "the SAs") + (unused.is_one() ? " is" : " are") +
                        " used by no policy of the file: an outbound one carries nothing then, and what comes by an "
                        "inbound tunnel is dropped as ipsec_policy");
  note_ends(options, ports, at_start, notes);
  note_padding(options, ports, notes);
  note_ignored(options, notes);
  return notes.take();
}

std::vector<std::string> ipsec_lacks(const IpsecOptions& options) {
  const std::string why = options.ike_socket.empty() ? "" : ipsec::xfrm::why_no_socket_here(options.ike_socket);
  if (why.empty()) return {};
  return {"[ipsec] ike_socket = \"" + options.ike_socket + "\": " + why};
}

}  // namespace sluice::function
