// SAs as XFRM's messages have them: NEWSA, UPDSA and what answers GETSA, ALLOCSPI and GETAE; and the identities in
// GETSA, DELSA, GETAE and NEWAE.
//
// What a message asks for and the gateway would not do is refused by read_sa(): marks, interface ids, security
// contexts, offload to a device, compression, Mobile IPv6's modes and care-of addresses, copying of the DSCP out of a
// tunnel, sequence numbers that wrap.
//
// Thread-safety: no state.
#pragma once

#include <optional>

#include "ipsec/security_association.h"
#include "ipsec/xfrm/message.h"

namespace sluice::ipsec::xfrm {

// Sequence numbers of both kinds; an SA has one of them.
struct ReplayState {
  std::uint64_t sent = 0, received = 0;
};

struct SaRequest {
  SaSettings settings;                 // `direction` and `sequence` are not said by XFRM
  std::optional<Direction> direction;  // where XFRMA_SA_DIR says it
  ReplayState replay;
  std::optional<xfrm_lifetime_cur> used;  // what is to be counted on from: XFRMA_LTIME_VAL
  std::uint32_t sequence = 0;             // of the acquire that is answered
};

// The body of NEWSA or UPDSA.
Result<SaRequest> read_sa(NetlinkBytes body);

// The body of ALLOCSPI.
struct SpiRequest {
  packet::IpAddress source, destination;
  Protocol protocol = Protocol::esp;
  Mode mode = Mode::tunnel;
  std::uint32_t reqid = 0, sequence = 0, least = 0, most = 0;
};
Result<SpiRequest> read_spi_request(NetlinkBytes body);

// EINVAL: an unknown family. EPROTONOSUPPORT: neither ESP nor AH.
Result<SaId> read_sa_id(const xfrm_usersa_id& id);

// A time and sums that an SA had counted before it came here.
xfrm_lifetime_cur plus(const SaCounters& counters, const xfrm_lifetime_cur& before);

xfrm_usersa_info sa_info(const SaSettings& settings, const SaCounters& counters, const xfrm_lifetime_cur& before);
xfrm_usersa_id sa_id(const SaId& id);

// The body and attributes that answer GETSA; the lifetime is what `settings` say.
void write_sa(Message& message, const SaSettings& settings, const SaCounters& counters,
              const xfrm_lifetime_cur& before);

// XFRMA_REPLAY_VAL or _ESN_VAL. What is below the highest number received counts as received.
void write_replay(Message& message, const SaSettings& settings, const SaCounters& counters);
// EINVAL: neither is there, or it contradicts itself.
Result<ReplayState> read_replay(const Attributes& attributes);

// Selectors of SAs and policies. EINVAL: a prefix is longer than an address. EOPNOTSUPP: of an interface or a user.
Result<Selector> read_selector(const xfrm_selector& selector, int family);
xfrm_selector selector_bytes(const Selector& selector);

}  // namespace sluice::ipsec::xfrm
