// PortIngress of each port, for lanes to read while the control plane changes it.
//
// Thread-safety: set() by one thread at a time; set_readers() before lanes run; the rest by any thread, read(i) by one
// at a time for each i. Cost: mac() and is_plain() one load; read() see base/published.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/published.h"
#include "function/route/ingress.h"

namespace sluice::function {

class IngressTable {
 public:
  struct Port {
    Ingress twin;
    bool everything = false;
    bool other_hosts = false;
    bool checks_sources = false;                          // the twin, or one of `more`, has a reverse path filter
    std::vector<std::pair<std::uint64_t, Ingress>> more;  // by link address, as packet::mac_word

    // Null: no interface has this link address.
    const Ingress* find(std::uint64_t mac_word) const;
  };
  using Ports = std::vector<Port>;

  // `macs`: the ports' own, as packet::mac_word.
  explicit IngressTable(const std::vector<std::uint64_t>& macs);
  void set_readers(std::size_t readers);
  void set(PortIndex port, const PortIngress& ingress);

  // With which the router takes and sends frames there.
  std::uint64_t mac(PortIndex port) const { return macs_[port].load(std::memory_order_relaxed); }
  // Nothing but that address matters.
  bool is_plain(PortIndex port) const { return plain_[port].load(std::memory_order_relaxed); }
  Published<const Ports>::Reading read(std::size_t reader) const { return published_->read(reader); }

 private:
  void publish();

  const std::vector<std::uint64_t> own_macs_;
  std::vector<std::atomic<std::uint64_t>> macs_;
  std::vector<std::atomic<bool>> plain_;
  Ports ports_;
  std::unique_ptr<Published<const Ports>> published_;
};

}  // namespace sluice::function
