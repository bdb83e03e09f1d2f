// The kernel's next-hop objects (`ip nexthop`), which FRR uses for all its routes: an id names a hop, a blackhole or a
// group of other ids.
//
// Thread-safety: none (the control thread). Cost: resolve() is a hash lookup once an id has been resolved; any change
// of an object makes all of them resolve again.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "control/netlink/decoder.h"
#include "control/netlink/hop_table.h"

namespace sluice::control::netlink {

class NexthopTable {
 public:
  explicit NexthopTable(HopTable& hops) : hops_(hops) {}

  struct Target {
    bool blackhole = false;
    HopSetId hops = no_hops;
  };
  // Nothing: there is no such object (or it is of a kind that routes cannot use).
  std::optional<Target> resolve(std::uint32_t id);

  // An object that is removed under its routes stays until the next dump: the kernel takes those routes away silently,
  // and the dump shows which.
  void apply(const NexthopMessage& message);

  // A route that names the object comes and goes.
  void retain(std::uint32_t id);
  void release(std::uint32_t id);
  bool in_use(std::uint32_t id) const { return users_.contains(id); }

  // A full dump lies between begin_dump() and end_dump(), which forgets every object that it did not name.
  void begin_dump() { ++generation_; }
  void end_dump();

  // True when an id that was resolved before may now mean something else.
  bool changed() const { return changed_; }
  // Call before resolving again whatever was resolved before.
  void settled() { changed_ = asked_for_unknown_ = false; }
  void mark(std::vector<bool>& hop_sets) const;
  std::size_t size() const { return objects_.size(); }

 private:
  struct Object {
    bool blackhole = false;
    bool fdb = false;
    Hop hop;
    std::vector<NexthopMessage::Member> group;
    std::uint32_t generation = 0;
    bool is_resolved = false;
    Target target;
  };
  bool affects_routes(std::uint32_t id) const;
  void forget_targets();
  std::vector<Hop> hops_of(const Object& object);

  HopTable& hops_;
  std::unordered_map<std::uint32_t, Object> objects_;
  std::unordered_map<std::uint32_t, std::uint32_t> users_;  // routes by id, known or not
  std::uint32_t generation_ = 0;
  bool changed_ = false;
  bool asked_for_unknown_ = false;
};

}  // namespace sluice::control::netlink
