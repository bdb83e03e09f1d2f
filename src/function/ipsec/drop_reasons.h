// Why the element drops frames.
#pragma once

#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason ipsec_no_sa_in =
    packet::register_reason("ipsec_no_sa_in", "ESP or AH to this gateway with an SPI that no SA has");
inline const packet::Reason ipsec_no_sa_out =
    packet::register_reason("ipsec_no_sa_out", "a policy protects the packet, and there is no SA for that yet");
inline const packet::Reason ipsec_bad_icv =
    packet::register_reason("ipsec_bad_icv", "ESP or AH whose integrity check value is wrong");
inline const packet::Reason ipsec_replay =
    packet::register_reason("ipsec_replay", "ESP or AH that came already, or is too far behind the newest packet");
inline const packet::Reason ipsec_malformed =
    packet::register_reason("ipsec_malformed", "ESP or AH that is cut, or holds no packet that its SA could carry");
inline const packet::Reason ipsec_policy = packet::register_reason(
    "ipsec_policy", "a packet that a policy wants protected came in clear, or by an SA that is not for it");
inline const packet::Reason ipsec_discarded = packet::register_reason(
    "ipsec_discarded", "a policy says that such packets are discarded", packet::DroppedBy::purpose);
inline const packet::Reason ipsec_expired =
    packet::register_reason("ipsec_expired", "the SA has reached its hard limit, or the end of its sequence numbers");
inline const packet::Reason ipsec_too_big = packet::register_reason(
    "ipsec_too_big", "with the headers of the SA larger than the way's MTU, and not to be fragmented");
inline const packet::Reason ipsec_congested = packet::register_reason(
    "ipsec_congested", "marked as congested on the way, for an inside that would not know the mark (RFC 6040)");
inline const packet::Reason ipsec_fragment =
    packet::register_reason("ipsec_fragment", "a fragment of ESP or AH that could not be put together");
inline const packet::Reason ipsec_no_room = packet::register_reason(
    "ipsec_no_room", "the frame's buffer has no room for the headers of the SA, or for a packet that was put together");
inline const packet::Reason ipsec_unresolved =
    packet::register_reason("ipsec_unresolved", "the way to the other end of the SA is not known yet: ctl routes");
inline const packet::Reason ipsec_unprotected =
    packet::register_reason("ipsec_unprotected", "a frame that Sluice made itself, and that a policy wants protected");

}  // namespace sluice::function
