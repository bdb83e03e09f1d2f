// What a daemon is told unasked: a packet wants an SA (ACQUIRE), an SA's lifetime is over (EXPIRE), a peer behind a NAT
// has another address (MAPPING); and that policies and SAs have moved to other addresses (MIGRATE), asked and told.
//
// Thread-safety: no state.
#pragma once

#include <vector>

#include "ipsec/database.h"
#include "ipsec/xfrm/policy_message.h"
#include "ipsec/xfrm/sa_message.h"

namespace sluice::ipsec::xfrm {

// A multicast group's bit in sockaddr_nl::nl_groups.
constexpr std::uint32_t group_bit(xfrm_nlgroups group) {
  return 1U << (group - 1);
}

// A message and the groups that get it.
struct Told {
  Message message;
  std::uint32_t groups;
};

Told acquire_message(const Acquire& acquire);
Told expire_message(const SaStatus& sa, const xfrm_lifetime_cur& before, bool hard);
Told mapping_message(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port);

// One move: the SAs and templates with these old addresses, protocol, mode and reqid (0: any).
struct Move {
  packet::IpAddress old_source, old_destination, new_source, new_destination;
  Protocol protocol = Protocol::esp;
  Mode mode = Mode::tunnel;
  std::uint32_t reqid = 0;
};
struct MigrateRequest {
  PolicyName policy;
  std::vector<Move> moves;
  std::optional<UdpPorts> udp;  // XFRMA_ENCAP: of the SAs from then on
};
Result<MigrateRequest> read_migrate(NetlinkBytes body);
// As it came.
Told migrate_message(NetlinkBytes body);

}  // namespace sluice::ipsec::xfrm
