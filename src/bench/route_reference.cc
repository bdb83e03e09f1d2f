#include "bench/route_reference.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sluice::cli::bench {

RouteReference::Address RouteReference::Address::of(int family, const std::uint8_t* network_order) {
  Address address;
  address.family = family;
  std::copy_n(network_order, family == 4 ? 4 : 16, address.bytes.begin());
  return address;
}

RouteReference::Address RouteReference::Address::parse(const std::string& text) {
  std::uint8_t bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) {
    return of(4, bytes);
  }
  return inet_pton(AF_INET6, text.c_str(), bytes) == 1 ? of(6, bytes) : Address{};
}

RouteReference::Prefix RouteReference::Prefix::parse(const std::string& text) {
  const std::size_t slash = text.find('/');
  Prefix prefix{Address::parse(text.substr(0, slash)), 0};
  const unsigned bits = prefix.address.family == 4 ? 32 : 128;
  prefix.length =
      slash == std::string::npos ? bits : static_cast<unsigned>(std::strtoul(text.c_str() + slash + 1, nullptr, 10));
  if (prefix.length > bits) {
    return {};
  }
  prefix.address.bytes = first_bits(prefix.address.bytes, prefix.length);
  return prefix;
}

RouteReference::Key RouteReference::first_bits(const Key& bytes, unsigned length) {
  Key key{};
  for (unsigned bit = 0; bit < length; bit += 8) {
    const unsigned left = std::min(8U, length - bit);
    key[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] & (0xff00U >> left));
  }
  return key;
}

Expected<void> RouteReference::read(const std::string& path,
                                    const std::function<void(const std::string&, const std::string&)>& line) {
  std::ifstream file(path);
  unsigned number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    std::istringstream words(text);
    std::string prefix;
    std::string gateway;
    words >> prefix >> gateway;
    const Prefix parsed = Prefix::parse(prefix);
    const Address hop = Address::parse(gateway);
    if (parsed.address.family == 0 || hop.family == 0) {
      return make_error(path + ":" + std::to_string(number) + ": not a line \"prefix gateway\"");
    }
    set(parsed, {hop.bytes[hop.family == 4 ? 3 : 15]});
    if (line) {
      line(prefix, gateway);
    }
  }
  return number != 0 ? Expected<void>{} : make_error(path + ": has no routes");
}

void RouteReference::set(const Prefix& prefix, const Gateways& gateways) {
  const std::string name(gateways.begin(), gateways.end());
  const auto [at, fresh] = set_of_.try_emplace(name, static_cast<std::uint32_t>(sets_.size()));
  if (fresh) {
    sets_.push_back(gateways);
  }
  routes_[prefix.address.family == 6][prefix.length][prefix.address.bytes] = at->second;
}

void RouteReference::remove(const Prefix& prefix) {
  routes_[prefix.address.family == 6][prefix.length].erase(prefix.address.bytes);
}

std::size_t RouteReference::size() const {
  std::size_t sum = 0;
  for (const auto& family : routes_) {
    for (const Map& map : family) {
      sum += map.size();
    }
  }
  return sum;
}

const RouteReference::Gateways* RouteReference::find(const Address& address) const {
  const auto& lengths = routes_[address.family == 6];
  for (unsigned length = 129; length-- != 0;) {
    if (lengths[length].empty()) {
      continue;
    }
    const auto found = lengths[length].find(first_bits(address.bytes, length));
    if (found != lengths[length].end()) {
      return &sets_[found->second];
    }
  }
  return nullptr;
}

const RouteReference::Gateways* RouteReference::find_slowly(const Address& address) const {
  const auto& lengths = routes_[address.family == 6];
  const Gateways* longest = nullptr;
  for (unsigned length = 0; length < lengths.size(); ++length) {
    for (const auto& [key, set] : lengths[length]) {
      bool inside = true;
      for (unsigned bit = 0; bit < length; ++bit) {
        inside = inside && ((key[bit / 8] ^ address.bytes[bit / 8]) & (0x80U >> bit % 8)) == 0;
        if (!inside) {
          break;
        }
      }
      longest = inside ? &sets_[set] : longest;
    }
  }
  return longest;
}

}  // namespace sluice::cli::bench
