// The tunnels of `bench ipsec`: for each an SA and a policy in both directions, over IPv4, with keys of its own. All
// have one algorithm, or each another by turns ("mixed"), so that packets that draw their tunnel at random have theirs
// at random.
//
//   inside 10.0.0.0/8 -- gateway 192.0.2.1 ==== far end 11.x.y.z -- host 12.x.y.z      x.y.z: the tunnel's number
//
// Thread-safety: constant after it was made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "function/ipsec/ipsec_settings.h"
#include "ipsec/proposal.h"
#include "ipsec/security_association.h"

namespace sluice::cli::bench {

struct IpsecAlgorithm {
  const char* name;
  const char* proposal;
  ipsec::Protocol protocol;
  bool on_gpus;
};
std::span<const IpsecAlgorithm> ipsec_algorithms();
// All that GPUs have; and those of ESP.
inline constexpr std::string_view mixed_algorithms = "mixed", mixed_esp = "mixed-esp";
inline constexpr std::uint32_t most_tunnels = 1U << 20;

class IpsecTunnels {
 public:
  // An Error names the algorithms that there are. `count`: 1 to most_tunnels.
  static Expected<IpsecTunnels> make(std::string_view algorithm, std::uint32_t count);

  std::uint32_t count() const { return count_; }
  const IpsecAlgorithm& algorithm(std::uint32_t tunnel) const { return *algorithms_[tunnel % algorithms_.size()]; }
  bool is_mixed() const { return algorithms_.size() > 1; }

  // With keys, which both directions of a tunnel have. In: without an anti-replay window. Each generation, of a rekey,
  // has another SPI and other keys; options() are of the first, 0.
  ipsec::SaSettings sa(ipsec::Direction direction, std::uint32_t tunnel, std::uint32_t generation = 0) const;
  static constexpr std::uint32_t generations = 4000;
  ipsec::Policy policy(ipsec::Direction direction, std::uint32_t tunnel) const;
  // Of the element, with all of both directions.
  function::IpsecOptions options() const;

  // Host order.
  static constexpr std::uint32_t gateway = 0xc0000201, inside = 0x0a000001;
  static std::uint32_t far_end(std::uint32_t tunnel) { return 0x0b000000 | tunnel; }
  static std::uint32_t far_host(std::uint32_t tunnel) { return 0x0c000000 | tunnel; }
  static std::uint32_t spi(std::uint32_t tunnel, std::uint32_t generation = 0) {
    return 0x10000 + tunnel + generation * most_tunnels;
  }

 private:
  IpsecTunnels(std::vector<const IpsecAlgorithm*> algorithms, std::vector<ipsec::Proposal> proposals,
               std::uint32_t count)
      : algorithms_(std::move(algorithms)), proposals_(std::move(proposals)), count_(count) {}

  std::vector<const IpsecAlgorithm*> algorithms_;
  std::vector<ipsec::Proposal> proposals_;  // of these
  std::uint32_t count_;
};

}  // namespace sluice::cli::bench
