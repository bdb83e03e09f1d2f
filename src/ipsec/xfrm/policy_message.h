// Policies as XFRM's messages have them: NEWPOLICY, UPDPOLICY and what answers GETPOLICY; and what names one in
// GETPOLICY and DELPOLICY.
//
// What the gateway would not do is refused: marks, interface ids, security contexts, lifetimes of policies,
// sub-policies, compression, ICMP errors of a flow that pass with it.
//
// Thread-safety: no state.
#pragma once

#include "ipsec/selector.h"
#include "ipsec/xfrm/message.h"

namespace sluice::ipsec::xfrm {

// Linux asks `in` for what is to the host itself and `forward` for what is to others.
enum class Way : std::uint8_t { in = XFRM_POLICY_IN, out = XFRM_POLICY_OUT, forward = XFRM_POLICY_FWD };

struct PolicyRequest {
  Way way = Way::in;
  Policy policy;
  std::uint32_t index = 0;  // 0: not said
};
Result<PolicyRequest> read_policy(NetlinkBytes body);

// By its number, or, where that is 0, by its selector.
struct PolicyName {
  Way way = Way::in;
  Selector selector;
  std::uint32_t index = 0;
};
Result<PolicyName> read_policy_name(NetlinkBytes body);

// Of a policy that is kept.
struct PolicyFacts {
  std::uint32_t index = 0;
  std::uint64_t added_at = 0, last_used_at = 0;  // seconds since the epoch; 0: never
};

xfrm_userpolicy_info policy_info(const Policy& policy, Way way, const PolicyFacts& facts);
xfrm_user_tmpl template_bytes(const Template& wanted, int family);
// The body, XFRMA_POLICY_TYPE and XFRMA_TMPL.
void write_policy(Message& message, const Policy& policy, Way way, const PolicyFacts& facts);

}  // namespace sluice::ipsec::xfrm
