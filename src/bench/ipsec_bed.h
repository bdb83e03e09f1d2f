// Packets of many tunnels through the chain ipsec, route in the engine, on one device: what `bench ipsec` measures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "bench/bench.h"
#include "bench/ipsec_source.h"
#include "bench/ipsec_tunnels.h"
#include "bench/rig.h"
#include "bench/router_rig.h"
#include "bench/sealed_packets.h"
#include "function/ipsec/ipsec.h"

namespace sluice::cli::bench {

// Of DPDK, for frames of so many lanes, at 64 B, and what stands beside them.
constexpr std::uint64_t ipsec_memory_bytes(unsigned lanes) {
  return (2ULL << 30) + lanes * (128ULL << 20);
}

struct IpsecTraffic {
  std::string algorithm = "aes128-sha1";
  std::string mix = "1408";  // sizes in clear
  std::uint32_t tunnels = 1000;
};
std::string traffic_text(const IpsecTraffic& traffic);  // "aes128-sha1 1408 1000 SAs"

struct IpsecFigure {
  Outcome outcome;
  double moved_bytes = 0, clear_bytes = 0;  // of a frame: from ESP or AH's outer header to the ICV; of that in clear
  double source_ns = 0;                     // of a frame, of the bench's own on a lane's core
  double moved_gbytes() const { return moved_bytes * static_cast<double>(outcome.frames) / outcome.seconds / 1e9; }
  double clear_gbits() const { return 8 * clear_bytes * static_cast<double>(outcome.frames) / outcome.seconds / 1e9; }
};

class IpsecBed {
 public:
  // `ceiling`: GB/s, for the sizes of queues. The table outlives it.
  static Expected<std::unique_ptr<IpsecBed>> make(const BenchOptions& options, const RouterTable& table,
                                                  const IpsecTraffic& traffic, const std::string& device,
                                                  double ceiling, const RigChange& change = {});

  // First everything that leaves is looked at until `frames` have (ipsec_check.h), in the run that is measured then, as
  // fast as lanes poll: the middle of five rounds, which together take `seconds`. Errors: what was wrong; and, of a
  // GPU, that cores have done its work.
  Expected<IpsecFigure> measure(ipsec::Direction direction, double seconds, std::uint64_t frames = 20'000);
  // The gateway in that direction, once `frames` are verified, at no rate yet. finish() ends it.
  Expected<Rig*> begin(ipsec::Direction direction, std::uint64_t frames);
  // Ends the run. Errors: counters that do not add up, packets that were dropped, or more or fewer sequence numbers
  // than packets that were sealed.
  Expected<void> finish();

  const RigOptions& rig() const { return options_; }
  const IpsecTunnels& tunnels() const { return tunnels_; }
  function::Ipsec& element() { return *element_; }
  const SealedPackets& sealed() const { return sealed_; }
  std::uint64_t verified() const;

 private:
  IpsecBed(IpsecTunnels tunnels, SealedPackets sealed) : tunnels_(std::move(tunnels)), sealed_(std::move(sealed)) {}
  Expected<void> verify(ipsec::Direction direction, std::uint64_t frames);
  double mean_clear_length() const;  // outbound
  std::uint64_t metric(std::string_view name) const;

  IpsecTunnels tunnels_;
  SealedPackets sealed_;
  RigOptions options_;
  std::unique_ptr<Rig> running_;
  function::Ipsec* element_ = nullptr;
  IpsecSource* source_ = nullptr;
  bool is_new_ = true;
  std::uint32_t outer_bytes_ = 34;  // of a frame that leaves, in front of what moves
};

}  // namespace sluice::cli::bench
