// DPDK's own IPsec on every core that this process may use, for comparison: rte_ipsec for the packets, and the driver
// crypto_aesni_mb (intel-ipsec-mb) for their cryptography, as DPDK's ipsec-secgw has them. The tunnels, their SAs and
// the packets are those of the gateway. There is no look-up of policies, SAs or routes, no port, and no IPv4 checksum
// of outer headers, which that gateway leaves to its NIC.
//
// A core has a queue of the driver and frames of its own, and draws the tunnel of each packet at random. Frames are
// made anew each time, as by the gateway's source, in the core's time. SAs are shared by all cores, so that their
// numbers are atomic.
//
// Thread-safety: one thread. Errors: the driver is not there, or has not the algorithm; what OpenSSL says of packets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "bench/ipsec_tunnels.h"
#include "bench/rig.h"
#include "bench/sealed_packets.h"

namespace sluice::cli::bench {

class RteIpsecPeer {
 public:
  // After DPDK was started. Both outlive it.
  static Expected<std::unique_ptr<RteIpsecPeer>> make(const IpsecTunnels& tunnels, const SealedPackets& sealed,
                                                      unsigned lanes, const std::string& mix);
  ~RteIpsecPeer();
  RteIpsecPeer(const RteIpsecPeer&) = delete;

  // Packets of each core are looked at first: OpenSSL opens what was sealed, and what was opened is what OpenSSL had
  // sealed. Bytes: of frames in clear. The middle of five rounds, which together take `seconds`.
  Expected<Outcome> measure(ipsec::Direction direction, double seconds);
  std::size_t cores() const;

 private:
  class Core;
  struct Parts;
  explicit RteIpsecPeer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::cli::bench
