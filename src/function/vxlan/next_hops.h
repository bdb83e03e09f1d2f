// How the gateway reaches another host, as the kernel's routes and neighbours say: the port, and the link addresses of
// the frame. Asked by netlink, of whatever elements the chain has.
//
// Thread-safety: none, one control thread. Cost: find() some ten system calls. A neighbour that the kernel does not
// know it is asked to look for, and one that it has not heard of for long to ask, as if it had a packet for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::function {

struct NextHop {
  bool resolved = false;
  std::string why = {};    // it is not, a phrase
  std::uint16_t port = 0;  // index
  std::uint32_t mtu = 0;   // of the port's twin
  packet::MacAddress source_mac = {}, mac = {};
  bool operator==(const NextHop&) const = default;
};

class NextHops {
 public:
  // `twins`: the interface of each port, by its index; empty: it has none, or nothing may leave by it.
  static Expected<NextHops> open(std::vector<std::string> twins);
  NextHops(NextHops&& other) noexcept;
  NextHops& operator=(NextHops&& other) noexcept;
  ~NextHops();

  NextHop find(const packet::IpAddress& local, const packet::IpAddress& remote);
  // Until routes, neighbours or links change, `wake_fd` is readable, or this long.
  void wait(int wake_fd, std::chrono::milliseconds longest);

 private:
  explicit NextHops(std::vector<std::string> twins) : twins_(std::move(twins)) {}
  struct Way {
    int interface = 0;
    packet::IpAddress gateway;
    std::string why;  // there is none
  };
  // Whether an interface of this host has it.
  bool is_own(const packet::IpAddress& address);
  Way way_to(const packet::IpAddress& local, const packet::IpAddress& remote);
  // Its link address, if known.
  bool resolve(int interface, const packet::IpAddress& gateway, packet::MacAddress& mac);
  void look_for(int interface, const packet::IpAddress& gateway);

  std::vector<std::string> twins_;
  int asking_ = -1, hearing_ = -1;
  std::uint32_t sequence_ = 0;
};

}  // namespace sluice::function
