// The TAP twin of a port: the interface through which the host's kernel sees what the fast path does not handle (ARP,
// ND, ICMP, routing protocols) and sends its own frames out of the port.
//
// open() creates the interface (or takes over a persistent TAP of that name), gives it the port's MAC address and MTU
// and brings it up. Addresses are the administrator's. All offloads are off, so every frame read from it is complete:
// checksums filled in, no larger than the MTU. An interface that open() created disappears when the twin is destroyed,
// unless it is to stay: then it is there, with its addresses and without a carrier, until somebody deletes it.
//
// Errors: one sentence each for a missing privilege, a missing /dev/net/tun, a name that is taken, an MTU or name the
// kernel refuses. Thread-safety: one reader and one writer at a time, each in its own thread. Cost: one system call per
// frame.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::port {

class TapTwin {
 public:
  // `stays`: the interface is made persistent.
  static Expected<TapTwin> open(const std::string& name, const packet::MacAddress& mac, unsigned mtu,
                                bool stays = false);

  // The Error of open() for a name that another program's TAP has, or an interface that is no TAP, as far
  // as the kernel says. Opens nothing.
  static Expected<void> check_name(const std::string& name);

  TapTwin(TapTwin&& other) noexcept;
  TapTwin& operator=(TapTwin&& other) noexcept;
  ~TapTwin();

  const std::string& name() const { return name_; }
  // The name that the interface has now, for others may rename it; empty: it is in another network namespace; nothing:
  // it was deleted. Any thread. Cost: some system calls.
  std::optional<std::string> interface() const;
  // Whether it is here and administratively up. Any thread; as interface().
  bool enabled() const;
  // Readable when the kernel has a frame for the port. Non-blocking; for poll() and epoll.
  int fd() const { return fd_; }

  // Hands the kernel one frame (from the Ethernet header, without FCS) as if it had been received on the twin. False:
  // the kernel did not take it (the twin is down, its queue is full, or the frame is shorter than an Ethernet header).
  Expected<bool> write(std::span<const std::byte> frame);

  // Takes one frame that the kernel sends. 0: none is waiting. A frame longer than `buffer` is cut, so give MTU + 18
  // bytes.
  Expected<std::size_t> read(std::span<std::byte> buffer);

  // The interface's MTU now, which others may change; 0: it is not here. set_mtu(): false when the kernel refuses.
  // Any thread; as interface().
  unsigned mtu() const;
  bool set_mtu(unsigned mtu) const;

  // Shows the link state of the port on the twin, so that routing protocols notice a pulled cable.
  Expected<void> set_carrier(bool up);

 private:
  TapTwin(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  Expected<void> configure(const packet::MacAddress& mac, unsigned mtu);
  Error failure(const std::string& what) const;

  std::string name_;
  int fd_ = -1;
};

}  // namespace sluice::port
