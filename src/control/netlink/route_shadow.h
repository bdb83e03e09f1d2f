// What the kernel's route tables hold and what has been announced to the control plane: the difference is announced
// next.
//
// For each prefix the kernel may hold several routes (metrics, appended routes, the local table beside the main one).
// The one that the kernel would use wins and only that one is announced: local table first, then the lowest metric,
// then the highest preference (RFC 4191), then the order of insertion; never one that has expired. A better route is
// announced before the old one is withdrawn, so there is no moment without a route.
//
// A full dump between begin_dump() and end_dump() leaves exactly what it named, without a flush: unchanged routes are
// not announced again.
//
// Thread-safety: none (the control thread). Memory: about 120 bytes a route. Cost: about 1 us a route, plus the control
// plane.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "control/netlink/decoder.h"
#include "control/netlink/hop_table.h"
#include "control/netlink/nexthop_table.h"
#include "function/control_plane.h"

namespace sluice::control::netlink {

class RouteShadow {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RouteShadow(function::ControlPlane& plane) : plane_(plane), nexthops_(hops_) {}

  HopTable& hops() { return hops_; }
  const HopTable& hops() const { return hops_; }
  NexthopTable& nexthops() { return nexthops_; }

  // How a route joins those of its prefix that have the same metric.
  enum class Join { dumped, only, replace, append, prepend };
  // The meaning of the flags of an RTM_NEWROUTE notification.
  static Join join_of(std::uint16_t flags, int family);

  void add(const RouteMessage& message, Join join);
  void remove(const RouteMessage& message);
  // A prefix that is always the host's, whatever the kernel's tables say.
  void pin_local(const packet::IpPrefix& prefix);

  void begin_dump(int family);
  // Forgets every route of the family that was named neither by the dump nor by a notification since begin_dump().
  void end_dump(int family);
  // Announces what follows from changed ports and next-hop objects. Cost: nothing, or a pass over all routes.
  void settle();

  // When the next route expires, as far as messages have said since the last begin_dump(6): a kernel does not say when
  // one does, or is renewed. The largest value: none does.
  Clock::time_point next_expiry() const { return next_expiry_; }
  void forget_expiries() { next_expiry_ = Clock::time_point::max(); }
  // Whether routers have advertised any IPv6 route since the last dump began.
  bool has_advertised() const { return has_advertised_; }
  // What is announced from now on is counted as found by a comparison, or is not.
  void count_as_found(bool found) { counts_as_found_ = found; }
  std::uint64_t found() const { return found_; }
  const packet::IpPrefix& last_found() const { return last_found_; }

  std::size_t prefixes() const { return tables_[0].prefixes.size() + tables_[1].prefixes.size(); }
  std::size_t prefixes_announced() const { return announced_; }
  // Announces refused routes again, in turn, until `limit` of them in a row are refused still. Cost: that of announcing
  // them.
  void retry_refused(std::size_t limit);
  // Routes that are refused now.
  std::size_t refused() const { return refused_.size(); }
  // Calls that the control plane refused, and why it refused the last one. Refused routes are announced again when they
  // change, after every dump, and by retry_refused(), which does not count.
  std::size_t refusals() const { return refusals_; }
  const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Candidate {
    std::uint32_t metric = 0;
    std::uint32_t nexthop_id = 0;
    HopSetId hops = no_hops;
    std::uint32_t generation = 0;
    std::uint8_t type = 0;
    std::uint8_t protocol = 0;
    std::uint8_t tos = 0;
    std::uint8_t source_length = 0;
    bool local_table = false;
    bool expired = false;
    std::int8_t preference = 0;

    bool conditional() const { return tos != 0 || source_length != 0; }
    auto rank() const { return std::tuple(!local_table, !conditional(), metric); }
    auto order() const { return std::tuple(rank(), -preference); }
    bool same_key(const Candidate& other) const {
      return rank() == other.rank() && tos == other.tos && source_length == other.source_length;
    }
  };
  using Candidates = std::forward_list<Candidate>;
  struct Announced {
    std::uint32_t metric = 0;
    HopSetId hops = no_hops;
    function::RouteKind kind = function::RouteKind::local;
    std::uint8_t protocol = 0;
    bool elsewhere = false;
    bool operator==(const Announced&) const = default;
  };
  struct Entry {
    Candidates candidates;  // best first
    Announced announced;
    bool is_announced = false;
  };
  struct Hash {
    std::size_t operator()(const packet::IpPrefix& prefix) const noexcept;
  };
  struct Table {
    std::unordered_map<packet::IpPrefix, Entry, Hash> prefixes;
    std::uint32_t generation = 0;
  };
  static constexpr std::uint32_t pinned = UINT32_MAX;

  Table& table_of(int family) { return tables_[family == 6 ? 1 : 0]; }
  Candidate candidate_of(const RouteMessage& message);
  Candidates::iterator find_replaced(Candidates& candidates, const Candidate& wanted, Join join, int family);
  static void insert(Candidates& candidates, const Candidate& wanted, Join join);
  Candidates::iterator find_removed(Candidates& candidates, const Candidate& gone, int family);
  bool covers(HopSetId larger, HopSetId smaller) const;
  std::optional<Announced> best(const Candidates& candidates);
  std::optional<Announced> effective(const Candidate& candidate);
  // False: the control plane refused the route.
  bool announce(const packet::IpPrefix& prefix, Entry& entry, bool again = false);
  void withdraw(const packet::IpPrefix& prefix, std::uint32_t metric);
  void note(const Expected<void>& answer);
  void note_found(const packet::IpPrefix& prefix);
  void free_unused_hops();

  function::ControlPlane& plane_;
  HopTable hops_;
  NexthopTable nexthops_;
  Table tables_[2];
  std::size_t announced_ = 0;
  std::set<packet::IpPrefix> refused_;
  packet::IpPrefix last_retried_;
  std::size_t refusals_ = 0;
  std::string last_refusal_;
  std::size_t free_hops_above_ = 4096;
  Clock::time_point next_expiry_ = Clock::time_point::max();
  bool has_advertised_ = false;
  bool counts_as_found_ = false;
  std::uint64_t found_ = 0;
  packet::IpPrefix last_found_;
};

}  // namespace sluice::control::netlink
