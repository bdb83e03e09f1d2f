// The parts of link_frame.cc that several link types share, and 802.11's. The same contract.
#pragma once

#include <cstdint>

#include "port/link_frame.h"

namespace sluice::port::link {

// 6 bytes each, or empty: all 0 then.
struct Addresses {
  Bytes to, from;
};

// The value of two bytes, the higher first; of four, the lowest first. The caller has seen that they are there.
std::uint16_t half(Bytes bytes, std::size_t at);
std::uint32_t little_word(Bytes bytes, std::size_t at);

// An Ethernet frame of what is behind its header.
LinkFate typed(std::uint16_t ether_type, Bytes packet, const Addresses& addresses,
               const std::function<void(Bytes)>& take);
// Of what begins with IEEE 802.2 LLC, or with the SNAP behind it: an OUI and an EtherType.
LinkFate llc(Bytes packet, const Addresses& addresses, const std::function<void(Bytes)>& take);
LinkFate snap(Bytes packet, const Addresses& addresses, const std::function<void(Bytes)>& take);

// 802.11: data frames, with QoS, between access points (four addresses), in a mesh, A-MSDUs. One that is marked as
// protected and has an LLC header in clear was decrypted by who captured it, and is read.
LinkFate wireless(Bytes frame, const std::function<void(Bytes)>& take);
// The same behind a header of the receiver.
LinkFate radiotap(Bytes frame, const std::function<void(Bytes)>& take);
LinkFate prism(Bytes frame, const std::function<void(Bytes)>& take);
LinkFate avs(Bytes frame, const std::function<void(Bytes)>& take);

}  // namespace sluice::port::link
