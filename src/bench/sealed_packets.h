// What `bench ipsec` offers inbound: packets of all tunnels, sealed beforehand by OpenSSL, a share for each lane, one
// behind another in memory.
//
// A frame whose packet was opened has to be written anew before it can come again. A NIC would do that. A core that
// copies a whole packet takes longer than the element. So each packet comes `rounds` times. A short one is copied. Of a
// long one only the ends are written anew. Between them stays what opening has left there, which is as random as any
// ciphertext. OpenSSL has made the ICV of each round beforehand (TunnelByOpenssl::icvs_in_place).
// Short ones come as often as long ones, or the sizes would not be those of the mix.
//
// Thread-safety: constant after it was made. Memory: the packets, 40 bytes for each, and an ICV for each round.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/ipsec_tunnels.h"
#include "bench/tunnel_by_openssl.h"

namespace sluice::cli::bench {

// A frame in clear: Ethernet, IPv4, UDP without a checksum, and bytes that follow from `number`. Outbound from inside
// to the host behind the tunnel; inbound the other way. `length` without FCS, 42 at least.
std::vector<std::uint8_t> clear_frame(ipsec::Direction direction, std::uint32_t tunnel, std::uint32_t length,
                                      std::uint32_t number);

class SealedPackets {
 public:
  static constexpr unsigned rounds = 8;
  struct Sealed {
    const std::uint8_t* frame;  // with its Ethernet header
    const std::uint8_t* icvs;   // of each round; null: it always comes whole
    std::uint32_t tunnel;
    std::uint16_t length, clear_length;  // of the frame, and of that in clear
    // Bytes that are written anew are those up to `head` and from `tail` on, of which the last `icv` are the round's.
    std::uint16_t head, tail;
    std::uint8_t icv;
  };

  // `count` for each lane, with sizes of the mix in clear; each draws its tunnel at random. On every core.
  static Expected<SealedPackets> make(const IpsecTunnels& tunnels, unsigned lanes, std::uint32_t count,
                                      const std::string& mix);

  // Which packet a frame came with last, and how often it did.
  struct Came {
    std::uint32_t packet = 0, round = 0;
    bool is_there = false;
  };
  // Writes what comes next into the frame at `bytes`, whole or its ends: `left_length` are the bytes of the frame as it
  // left, which tells whether its packet was opened. `next` counts the lane's packets.
  const Sealed& write(unsigned lane, Came& came, std::uint32_t& next, std::uint32_t left_length, bool whole,
                      std::uint8_t* bytes) const;

  std::uint32_t count() const { return count_; }
  const Sealed& packet(unsigned lane, std::uint32_t index) const { return lanes_[lane].packets[index]; }
  // The frame in clear that it was made of.
  std::vector<std::uint8_t> clear(unsigned lane, std::uint32_t index) const;
  // Of a frame, sealed and in clear.
  double mean_length() const;
  double mean_clear_length() const;

 private:
  struct Lane {
    std::vector<std::uint8_t> bytes, icvs;
    std::vector<Sealed> packets;
  };
  static Expected<void> add(Lane& made, const TunnelByOpenssl& by, const ipsec::SaSettings& sa,
                            std::span<const std::uint8_t> clear, std::uint32_t tunnel, std::uint32_t number);
  static Expected<void> make_lane(const IpsecTunnels& tunnels, unsigned lane, std::uint32_t count,
                                  const std::string& mix, Lane& made);
  std::uint32_t count_ = 0;
  std::vector<Lane> lanes_;
};

}  // namespace sluice::cli::bench
