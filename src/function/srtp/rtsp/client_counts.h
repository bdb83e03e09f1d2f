// How many connections each client has, so that one cannot take them all. A client is an IPv4 address, or a /64 of
// IPv6, out of which a host picks its addresses.
//
// Thread-safety: the proxy's thread alone. Cost: a search in a tree of the clients that are there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "packet/ip_address.h"

namespace sluice::function::rtsp {

class ClientCounts {
  using Client = std::array<std::uint8_t, 9>;  // family, and the address' first bytes
  using Counts = std::map<Client, std::uint32_t>;

 public:
  // A connection of a client's, as long as it lives. The ClientCounts outlive it.
  class Share {
   public:
    Share(Share&& other) noexcept : counts_(std::exchange(other.counts_, nullptr)), at_(other.at_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (counts_ != nullptr && --at_->second == 0) counts_->erase(at_);
    }

   private:
    friend class ClientCounts;
    Share(Counts& counts, Counts::iterator at) : counts_(&counts), at_(at) { ++at->second; }
    Counts* counts_;
    Counts::iterator at_;
  };

  // Nothing: it has `most` already.
  std::optional<Share> take(const packet::IpAddress& address, std::uint32_t most) {
    Client client{};
    client[0] = address.family;
    for (std::size_t i = 0; i < (address.family == 6 ? 8U : 4U); ++i) client[i + 1] = address.bytes[i];
    const auto at = counts_.try_emplace(client, 0).first;
    if (at->second < most) return Share(counts_, at);
    if (at->second == 0) counts_.erase(at);
    return std::nullopt;
  }
  std::size_t clients() const { return counts_.size(); }

 private:
  Counts counts_;
};

}  // namespace sluice::function::rtsp
