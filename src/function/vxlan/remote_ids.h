// Numbers of remotes, as the FDB and what lanes have of tunnels name them: one for each address, whatever its tunnels.
//
// A number rests once its address is no tunnel's any more. A lane may still learn stations behind it then, so that it
// is given to no other address before release(). Its address has it again if it comes back before that.
//
// Thread-safety: one thread at a time. Cost: name() a logarithm for each address, and a pass over all numbers where
// there are new ones.
#pragma once

#include <cstddef>
#include <map>
#include <set>

#include "function/vxlan/fdb.h"
#include "packet/ip_address.h"

namespace sluice::function {

class RemoteIds {
 public:
  static constexpr std::size_t most = no_remote;  // at once, those that rest among them

  using Addresses = std::set<packet::IpAddress>;
  // Whether name() can.
  bool has_capacity(const Addresses& used) const;
  // Gives each of these addresses its number; those of others rest. For what has_capacity() allows.
  void name(const Addresses& used);
  // Of all addresses that have one.
  const std::map<packet::IpAddress, RemoteId>& all() const { return ids_; }

  // By number.
  std::set<RemoteId> resting() const;
  // Nothing is known by the numbers that rest any more.
  void release();

 private:
  std::map<packet::IpAddress, RemoteId> ids_;
  Addresses resting_;
};

}  // namespace sluice::function
