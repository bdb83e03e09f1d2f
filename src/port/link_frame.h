// Frames of any link type as frames of Ethernet, which is what the rest of Sluice reads. What carries an EtherType, an
// IP packet or an Ethernet frame behind a header of its own gets an Ethernet header instead of that one; addresses that
// it does not have are 0.
//
// Sources: tcpdump.org/linktypes.html; IEEE 802.11-2020 9.2 and 9.3.2.2 (A-MSDU); radiotap.org; RFC 1042 (SNAP),
// 1661 and 1662 (PPP), 2427 (frame relay), 2516 (PPPoE), 3032 (MPLS).
//
// Thread-safety: any thread. Cost: one copy of the frame where it is none of Ethernet.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sluice::port {

using Bytes = std::span<const std::uint8_t>;

enum class LinkFate : std::uint8_t {
  read,
  no_packet,   // of the link itself: a beacon, an acknowledgement, PPP's LCP, NFLOG without the payload
  cut,         // the capture ends inside the link's header
  encrypted,   // 802.11: WEP, WPA
  in_pieces,   // a fragment of 802.11 itself, of which the others would be needed
  other_link,  // nothing is known of the link type
};
constexpr unsigned link_fates = 6;

// Whether frames of the link type are read: of LINKTYPE_ or of DLT_ of Linux, which mean the same where both are known.
bool is_read_link(std::uint32_t link);

// "127 (802.11 radiotap)"; the number alone where no name is known.
std::string link_text(std::uint32_t link);

// Hands out the Ethernet frames in a frame of the link: one, or of an A-MSDU several, or none. They are valid during
// the call. `frame` may be anything.
LinkFate to_ethernet(std::uint32_t link, Bytes frame, const std::function<void(Bytes)>& take);

}  // namespace sluice::port
