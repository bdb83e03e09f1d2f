// Why the element "srtp" drops a frame.
#pragma once

#include "media/srtp/status.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason srtp_auth_failed =
    packet::register_reason("srtp_auth_failed", "its SRTP or SRTCP tag is not right");
inline const packet::Reason srtp_replayed = packet::register_reason(
    "srtp_replayed", "its SRTP index has been used already: a repeated packet, or a source that began anew");
inline const packet::Reason srtp_too_old =
    packet::register_reason("srtp_too_old", "its SRTP index is behind the replay window");
inline const packet::Reason srtp_key_expired =
    packet::register_reason("srtp_key_expired", "its SRTP master key has reached the end of its lifetime");
inline const packet::Reason srtp_no_key =
    packet::register_reason("srtp_no_key", "its MKI names none of the SRTP stream's keys");
inline const packet::Reason srtp_no_ssrc =
    packet::register_reason("srtp_no_ssrc", "its SSRC is one more than the SRTP stream may have");
inline const packet::Reason srtp_too_many_in_flight = packet::register_reason(
    "srtp_too_many_in_flight", "more packets of its SSRC are under way than can be distinguished");
inline const packet::Reason srtp_malformed = packet::register_reason(
    "srtp_malformed", "it belongs to an SRTP stream, and its UDP, RTP or RTCP header contradicts its length");
inline const packet::Reason srtp_not_media =
    packet::register_reason("srtp_not_media", "it belongs to an SRTP stream, and is neither RTP nor RTCP");
inline const packet::Reason srtp_bad_checksum =
    packet::register_reason("srtp_bad_checksum", "it is to be protected, and its UDP checksum is wrong");
inline const packet::Reason srtp_too_big =
    packet::register_reason("srtp_too_big", "with its SRTP tag it would not fit the largest MTU or its buffer");
inline const packet::Reason srtp_not_plain = packet::register_reason(
    "srtp_not_plain",
    "it belongs to an SRTP stream, and is a fragment, has VLAN tags, IP options or extension headers, or only the "
    "kernel could forward it");
inline const packet::Reason srtp_clear_rtcp = packet::register_reason(
    "srtp_clear_rtcp", "it is RTCP in clear of an SRTP client, and [srtp.rtsp] accept_clear_rtcp is off");
inline const packet::Reason srtp_ended =
    packet::register_reason("srtp_ended", "it belongs to an SRTP stream that has ended, and would go on in clear");
inline const packet::Reason srtp_unprotected = packet::register_reason(
    "srtp_unprotected",
    "it could be media in clear, by [srtp] unprotected or as a server's of [srtp.rtsp], and belongs to no SRTP stream",
    packet::DroppedBy::purpose);
inline const packet::Reason srtp_rtsp_fragment = packet::register_reason(
    "srtp_rtsp_fragment", "a fragment of TCP from or to an RTSP server, which the proxy would not see");
inline const packet::Reason srtp_rtsp_past_proxy =
    packet::register_reason("srtp_rtsp_past_proxy",
                            "TCP of an RTSP server that would go past the proxy, in clear: the host would forward it, "
                            "or a client opens a server of the explicit mode");
inline const packet::Reason srtp_other_lane =
    packet::register_reason("srtp_other_lane", "frames of its SRTP stream have come by another lane before");
inline const packet::Reason srtp_wrong_port =
    packet::register_reason("srtp_wrong_port", "its SRTP stream comes in by another port of the gateway (ingress)");
inline const packet::Reason srtp_policed = packet::register_reason(
    "srtp_policed", "it exceeds the rate or the packet_bytes of its SRTP stream", packet::DroppedBy::purpose);

// Of what a channel says; no_reason if it is ok.
packet::Reason reason_of(srtp::Status status);

}  // namespace sluice::function
