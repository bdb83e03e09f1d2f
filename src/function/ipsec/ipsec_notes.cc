#include "function/ipsec/ipsec_notes.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "function/ipsec/ipsec_control.h"

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
  void add(const std::string& name) {
    if (++count_ <= most) text_ += (text_.empty() ? "\"" : ", \"") + name + "\"";
  }
  bool empty() const { return count_ == 0; }
  std::string text(const char* one, const char* several) const {
    return std::string(count_ == 1 ? one : several) + " " + text_ +
           (count_ > most ? " and " + std::to_string(count_ - most) + " more" : "");
  }
  bool is_one() const { return count_ == 1; }

 private:
  static constexpr std::size_t most = 3;
  std::size_t count_ = 0;
  std::string text_;
};

}  // namespace

std::vector<std::string> ipsec_notes(const IpsecOptions& options) {
  const Ways ways(options);
  const bool has_daemon = !options.ike_socket.empty();
  Names counting, lacking, unused;
  std::string warning;
  for (const SaSettings& sa : options.sas) {
    const std::string why = sa.direction == Direction::out ? manual_key_warning(sa.transform) : "";
    if (!why.empty()) {
      counting.add(sa.name);
      warning = why;
    }
    if (!has_daemon && !ways.is_used(sa)) unused.add(sa.name);
  }
  for (const Policy& policy : options.policies) {
    const auto is_there = [&](const Template& one) { return ways.has_sa(policy, one); };
    const bool lacks = policy.direction == Direction::out && !std::ranges::all_of(policy.templates, is_there);
    if (!has_daemon && lacks) lacking.add(policy.name);
  }
  std::vector<std::string> notes;
  if (!counting.empty()) notes.push_back("[ipsec] " + counting.text("the SA", "the SAs") + ": " + warning);
  if (!lacking.empty()) {
    notes.push_back("[ipsec] " + lacking.text("the policy", "the policies") + (lacking.is_one() ? " has" : " have") +
                    " no SA in the file, and there is no ike_socket: such packets are dropped as ipsec_no_sa_out until "
                    "one is added (ctl ipsec add). An SA is a policy's with the same protocol, mode, reqid and ends");
  }
  if (!unused.empty()) {
    notes.push_back("[ipsec] " + unused.text("the SA", "the SAs") + (unused.is_one() ? " is" : " are") +
                    " used by no policy of the file: an outbound one carries nothing then, and what comes by an "
                    "inbound tunnel is dropped as ipsec_policy");
  }
  return notes;
}

}  // namespace sluice::function
