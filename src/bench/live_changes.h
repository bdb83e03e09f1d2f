// What bench changes does to gateways that run, as an operator would: a reload of what their elements read, other keys
// for streams, other SAs for tunnels. What becomes of a frame is the same before and after.
//
// Thread-safety: of each, one thread that is no lane's, while lanes run. Errors: the gateway's; it goes on as before.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bench/ipsec_tunnels.h"
#include "bench/media_source.h"
#include "bench/rig.h"
#include "function/ipsec/ipsec.h"

namespace sluice::cli::bench {

// All elements of a gateway are made anew and their files are read again, as the gateway does for a SIGHUP. `versions`
// of its options take turns; the gateway runs with the last one.
class ReloadInTurns {
 public:
  explicit ReloadInTurns(std::vector<RigOptions> versions) : versions_(std::move(versions)) {}
  Expected<void> make(engine::Engine& engine);

 private:
  const std::vector<RigOptions> versions_;
  std::size_t next_ = 0;
};

// Other keys for a tenth of the streams that element srtp protects, in turn, by a reload of its section. Streams that
// are unprotected keep theirs: their sender would have to change at the same packet.
class StreamRekey {
 public:
  // `streams` outlives it, and has spare keys. An Error where streams are unprotected.
  static Expected<StreamRekey> of(const RtpStreams& streams);
  Expected<void> make(engine::Engine& engine);

  static constexpr std::uint32_t share = 10;  // one in so many, one at least

 private:
  explicit StreamRekey(const RtpStreams& streams) : streams_(&streams), settings_(streams.settings()) {}
  const RtpStreams* streams_;
  std::vector<function::MediaStreamSettings> settings_;  // in force
  std::uint32_t next_ = 0;
  std::uint64_t generation_ = 0;
};

// Other SAs for a tenth of the tunnels, in turn, as an IKE daemon makes them. Out: one with a new SPI and new keys
// comes beside the old one, packets go by the newest, and the old one is removed. In: the SA is replaced by one of its
// own SPI and keys, for the peer, which sealed its packets before the run, cannot change them.
class SaRekey {
 public:
  // `tunnels` outlives it.
  SaRekey(const IpsecTunnels& tunnels, ipsec::Direction direction)
      : tunnels_(&tunnels), direction_(direction), generations_(tunnels.count()) {}
  Expected<void> make(function::Ipsec& element);

  static constexpr std::uint32_t share = 10;

 private:
  Expected<void> rekey(ipsec::Databases& databases, std::uint32_t tunnel);
  const IpsecTunnels* tunnels_;
  ipsec::Direction direction_;
  std::vector<std::uint32_t> generations_;  // of each tunnel's outbound SA
  std::uint32_t next_ = 0;
};

}  // namespace sluice::cli::bench
