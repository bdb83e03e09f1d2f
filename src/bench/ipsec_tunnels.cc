#include "bench/ipsec_tunnels.h"

#include <algorithm>
#include <random>
#include <utility>

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;
using ipsec::Protocol;

constexpr IpsecAlgorithm algorithms[] = {
    {"aes128-sha1", "aes128-sha1", Protocol::esp, true},
    {"aes128ctr-sha1", "aes128ctr-sha1", Protocol::esp, true},
    {"aes256-sha256", "aes256-sha256", Protocol::esp, true},
    {"aes128gcm16", "aes128gcm16", Protocol::esp, true},
    {"aes256gcm16", "aes256gcm16", Protocol::esp, true},
    {"null-sha256", "null-sha256", Protocol::esp, true},
    {"ah-sha1", "sha1", Protocol::ah, true},
    {"chacha20poly1305", "chacha20poly1305", Protocol::esp, false},
};

packet::IpAddress address(std::uint32_t host_order) {
  return packet::IpAddress::v4(host_order);
}

}  // namespace

std::span<const IpsecAlgorithm> ipsec_algorithms() {
  return algorithms;
}

Expected<IpsecTunnels> IpsecTunnels::make(std::string_view name, std::uint32_t count) {
  std::vector<const IpsecAlgorithm*> chosen;
  std::vector<ipsec::Proposal> proposals;
  std::string there = std::string(mixed_algorithms) + ", " + std::string(mixed_esp);
  for (const IpsecAlgorithm& one : algorithms) {
    there += std::string(", ") + one.name;
    const bool is_mixed = name == mixed_algorithms || (name == mixed_esp && one.protocol == Protocol::esp);
    if (name != one.name && !(is_mixed && one.on_gpus)) continue;
    auto proposal = ipsec::parse_proposal(one.proposal, one.protocol);
    if (!proposal) return tl::unexpected(proposal.error());
    chosen.push_back(&one);
    proposals.push_back(*proposal);
  }
  if (chosen.empty()) return make_error("there is no algorithm '" + std::string(name) + "': there are " + there);
  if (count == 0 || count > most_tunnels) {
    return make_error(std::to_string(count) + " SAs: from 1 to " + std::to_string(most_tunnels) + " are possible");
  }
  return IpsecTunnels(std::move(chosen), std::move(proposals), count);
}

ipsec::SaSettings IpsecTunnels::sa(Direction direction, std::uint32_t tunnel, std::uint32_t generation) const {
  const ipsec::Proposal& proposal = proposals_[tunnel % proposals_.size()];
  std::mt19937 random(tunnel + 1 + generation * most_tunnels);  // no secret
  std::uint8_t bytes[128];
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const std::size_t cipher_key = proposal.key_length + std::size_t{proposal.salt_length};
  ipsec::SaSettings sa;
  const bool out = direction == Direction::out;
  sa.id = {.destination = address(out ? far_end(tunnel) : gateway),
           .spi = spi(tunnel, generation),
           .protocol = algorithm(tunnel).protocol};
  sa.source = address(out ? gateway : far_end(tunnel));
  sa.direction = direction;
  sa.reqid = tunnel + 1;
  sa.name = (out ? "out " : "in ") + std::to_string(tunnel);
  sa.transform = ipsec::make_transform(proposal, std::span(bytes).first(cipher_key),
                                       std::span(bytes).subspan(64, proposal.auth_key_length))
                     .value();
  sa.replay_window = 0;
  return sa;
}

ipsec::Policy IpsecTunnels::policy(Direction direction, std::uint32_t tunnel) const {
  const bool out = direction == Direction::out;
  ipsec::Policy policy{.direction = direction, .selector = {}};
  policy.selector.source = packet::IpPrefix::of(address(inside), 8);
  policy.selector.destination = packet::IpPrefix::host(address(far_host(tunnel)));
  if (!out) std::swap(policy.selector.source, policy.selector.destination);
  policy.priority = 1000;
  policy.templates = {{.protocol = algorithm(tunnel).protocol,
                       .mode = ipsec::Mode::tunnel,
                       .source = address(out ? gateway : far_end(tunnel)),
                       .destination = address(out ? far_end(tunnel) : gateway),
                       .reqid = tunnel + 1}};
  policy.name = (out ? "out " : "in ") + std::to_string(tunnel);
  return policy;
}

function::IpsecOptions IpsecTunnels::options() const {
  function::IpsecOptions options;
  options.max_sas = options.max_policies = 2 * count_;
  for (std::uint32_t tunnel = 0; tunnel < count_; ++tunnel) {
    for (const Direction direction : {Direction::out, Direction::in}) {
      options.sas.push_back(sa(direction, tunnel));
      options.policies.push_back(policy(direction, tunnel));
    }
  }
  return options;
}

}  // namespace sluice::cli::bench
