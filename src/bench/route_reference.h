// Longest-prefix match once more, in the simplest way, for checking the router's answers: a hash map of prefixes for
// each length, filled from the text of the route file. It shares no code with lookup/, packet/ or the router, so that a
// mistake there is not repeated here.
//
// Thread-safety: find() by any number of threads while nothing changes. Cost: find() one hash look-up for each length
// that there is, from the longest on; 60 B a route.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace sluice::cli::bench {

class RouteReference {
 public:
  // In network order; IPv4 in the first four bytes, the rest 0.
  struct Address {
    int family = 0;
    std::array<std::uint8_t, 16> bytes{};
    static Address of(int family, const std::uint8_t* network_order);
    // family 0: the text is no address.
    static Address parse(const std::string& text);
  };
  struct Prefix {
    Address address;  // host bits are cleared by parse()
    unsigned length = 0;
    static Prefix parse(const std::string& text);  // "10.0.0.0/8"; family 0: the text is no prefix
  };
  // Where frames of a prefix may go: one gateway, or the members of an ECMP group, by the last byte of their addresses.
  using Gateways = std::vector<std::uint8_t>;

  // Adds every line "prefix gateway" of the file; `line` is called with each of them.
  Expected<void> read(const std::string& path,
                      const std::function<void(const std::string& prefix, const std::string& gateway)>& line = {});
  void set(const Prefix& prefix, const Gateways& gateways);
  void remove(const Prefix& prefix);
  std::size_t size() const;

  // Of the longest prefix that the address lies in; null: of none.
  const Gateways* find(const Address& address) const;
  // The same by looking at every route.
  const Gateways* find_slowly(const Address& address) const;

 private:
  using Key = std::array<std::uint8_t, 16>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()({reinterpret_cast<const char*>(key.data()), key.size()});
    }
  };
  using Map = std::unordered_map<Key, std::uint32_t, Hash>;
  static Key first_bits(const Key& bytes, unsigned length);
  std::array<std::array<Map, 129>, 2> routes_;  // [IPv4, IPv6][length]: index of `sets_`
  std::vector<Gateways> sets_;
  std::unordered_map<std::string, std::uint32_t> set_of_;
};

}  // namespace sluice::cli::bench
