// The policies that came by XFRM, as XFRM has them: of three directions, with numbers, one for each direction and
// selector.
//
// The Database has two directions, and asks the inbound one of every packet that comes, be it for the host itself or
// for others. So what is installed for `in` is in the Database as inbound; what is installed for `forward` is, too, as
// long as there is nothing of the same selector for `in`. Daemons install both alike (charon) or `in` alone (transport
// mode).
//
// Thread-safety: none (one thread).
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ipsec/database.h"
#include "ipsec/xfrm/policy_message.h"

namespace sluice::ipsec::xfrm {

class KeptPolicies {
 public:
  explicit KeptPolicies(Database& database) : database_(database) {}

  struct Kept {
    Policy policy;
    Way way = Way::in;
    PolicyFacts facts;
  };

  // EEXIST: there is one, and `replaces` is false; or it is one of the configuration. EINVAL: the Database refuses.
  Result<void> add(const PolicyRequest& request, bool replaces, std::uint64_t now);
  // False: there was none.
  bool remove(const PolicyName& name);
  const Kept* find(const PolicyName& name) const;
  void flush();

  std::size_t count(Way way) const;
  // In the order of (direction, selector).
  std::vector<Kept> all() const;

 private:
  using Key = std::pair<Way, Selector>;
  using Policies = std::map<Key, Kept>;
  Policies::const_iterator at(const PolicyName& name) const;
  const Kept* twin(const Key& key) const;  // of the same selector: in for forward, forward for in
  std::uint32_t next_index(Way way);

  Database& database_;
  Policies policies_;
  std::unordered_map<std::uint32_t, Key> by_index_;
  std::uint32_t generator_ = 0;
};

}  // namespace sluice::ipsec::xfrm
