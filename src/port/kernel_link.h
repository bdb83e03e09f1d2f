// The link of a port on a kernel interface (net_af_packet, net_af_xdp), by the number that the interface had when the
// port opened. What the driver opened belongs to that number: an interface that is deleted, or moved to another network
// namespace, is lost to the port for good, also when another one of its name comes up later.
//
// Thread-safety: any thread. Cost of up() and enabled(): six system calls.
#pragma once

#include <atomic>
#include <string>

namespace sluice::port {

class KernelLink {
 public:
  // `interface`: empty, or not there: deleted from the beginning.
  explicit KernelLink(const std::string& interface);

  // Whether the interface is up and has a carrier.
  bool up() const;
  // Whether it is there and administratively up, with a carrier or without.
  bool enabled() const;
  // Looks, and remembers that it is gone.
  bool deleted() const;
  // That it has now: an interface may be renamed. Empty: deleted.
  std::string name() const;

 private:
  bool has_flags(short wanted) const;

  const unsigned index_;
  mutable std::atomic<bool> deleted_;
};

}  // namespace sluice::port
