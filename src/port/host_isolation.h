// Keeps the host's kernel away from an interface whose frames Sluice handles by itself (net_af_packet): the kernel sees
// every frame of it too, and without this guard would answer and forward a second time.
//
// While the guard lives, on that interface:
//   - GRO and LRO are off, so that frames arrive as they were on the wire: packet sockets read behind GRO, and what it
//     has put together fits into no frame. That is all where Sluice only listens (Use::listens): the kernel goes on
//   - an nftables netdev chain drops everything at ingress. Packet sockets read before that hook, so DPDK still gets
//     every frame. The table is owned by this process: the kernel removes it even after kill -9
//   - IPv6 is off, so that the kernel sends no neighbour or router solicitations of its own
//   - rp_filter=1, arp_ignore=8, forwarding=0: what protects a kernel without nftables (older than 5.12) as far as it
//     can; notes() says so then
// Destruction restores all of it, also when the interface has another name by then. notes() names addresses that still
// lie here: they belong on the TAP twin, and on a wire without one nowhere.
//
// Errors: no such interface, a missing privilege, or another Sluice at work on the interface. Thread-safety: one
// thread; open and destroy in the network namespace of the interface. Cost: start and stop only.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace sluice::port {

class HostIsolation {
 public:
  enum class Use { twin, wire, listens };  // forwards, with a TAP twin for the kernel or without; or does not forward
  static Expected<HostIsolation> open(const std::string& interface, Use use = Use::twin);

  HostIsolation(HostIsolation&& other) noexcept;
  HostIsolation& operator=(HostIsolation&& other) noexcept;
  ~HostIsolation();

  // True when frames are dropped before the kernel's protocols see them.
  bool drops_ingress() const { return nftables_ >= 0; }
  // What the administrator should know, one sentence each; usually none.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Saved {
    std::string family, key;  // of a file under /proc/sys/net
    std::string value;
  };
  HostIsolation(std::string interface, unsigned index) : interface_(std::move(interface)), index_(index) {}
  void set(const std::string& family, const std::string& key, const std::string& value);
  void turn_off_receive_merging();
  void restore_receive_merging();
  void note_addresses(Use use);

  std::string interface_;
  unsigned index_ = 0;  // which stays when the interface is renamed
  int nftables_ = -1;   // the socket that owns the table
  std::vector<Saved> saved_;
  bool gro_was_on_ = false;
  bool lro_was_on_ = false;
  std::vector<std::string> notes_;
};

}  // namespace sluice::port
