// The addresses from which the router speaks, by port and IP version (RFC 1812 section 4.3.2.4), for lanes to read
// while the control plane changes them.
//
// Thread-safety: set() by one thread at a time; set_lanes() before lanes run; read(lane) by the lane's thread that
// applies batches. Cost: base/published.h; read() is for frames that are answered.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/published.h"
#include "function/control_plane.h"
#include "packet/ip_address.h"

namespace sluice::function {

class SourceAddresses {
 public:
  class Table {
   public:
    explicit Table(std::size_t ports) : addresses_(ports + 1) {}
    // The port's, or else the one for ports that have none; null: there is none.
    const packet::IpAddress* of(PortIndex port, int family) const {
      for (const OfPort* const one : {&addresses_[port], &addresses_.back()}) {
        if (const packet::IpAddress& address = (*one)[family == 6]; !address.empty()) return &address;
      }
      return nullptr;
    }

   private:
    friend class SourceAddresses;
    using OfPort = std::array<packet::IpAddress, 2>;
    std::vector<OfPort> addresses_;  // the last: for ports without one
  };

  explicit SourceAddresses(std::size_t ports) : table_(ports) { set_lanes(1); }

  void set_lanes(std::size_t lanes) {
    published_ = std::make_unique<Published<const Table>>(lanes);
    publish();
  }
  // As ControlPlane::set_source().
  void set(std::optional<PortIndex> port, int family, const packet::IpAddress& address) {
    (port ? table_.addresses_.at(*port) : table_.addresses_.back())[family == 6] = address;
    publish();
  }
  Published<const Table>::Reading read(std::size_t lane) const { return published_->read(lane); }

 private:
  void publish() {
    published_->publish(std::make_shared<const Table>(table_));
    published_->reclaim();
  }

  Table table_;
  std::unique_ptr<Published<const Table>> published_;
};

}  // namespace sluice::function
