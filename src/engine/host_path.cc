#include "engine/host_path.h"

#include <poll.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <array>
#include <chrono>

#include "engine/burst.h"

namespace sluice::engine {
namespace {
constexpr unsigned ring_size = 1024;
constexpr unsigned host_frames = 4095;
constexpr auto longest_wait = std::chrono::milliseconds(50);
constexpr auto link_interval = std::chrono::milliseconds(100);

Expected<rte_ring*> make_ring(const std::string& name, unsigned flags) {
  rte_ring* ring = rte_ring_create(name.c_str(), ring_size, SOCKET_ID_ANY, flags);
  if (ring == nullptr) {
    return make_error("no memory for the ring '" + name + "': raise [memory] size");
  }
  return ring;
}

void free_ring(rte_ring* ring) {
  if (ring == nullptr) {
    return;
  }
  void* frame = nullptr;
  while (rte_ring_sc_dequeue(ring, &frame) == 0) {
    rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
  }
  rte_ring_free(ring);
}
}  // namespace

Expected<std::unique_ptr<HostPath>> HostPath::create(const std::vector<std::unique_ptr<port::Port>>& ports,
                                                     unsigned frame_bytes) {
  std::unique_ptr<HostPath> path(new HostPath());
  path->twins_.resize(ports.size());
  path->twin_names_.resize(ports.size());
  path->host_ports_.resize(ports.size());
  path->carrier_.resize(ports.size(), true);
  for (std::size_t i = 0; i < ports.size(); ++i) {
    path->ports_.push_back(ports[i].get());
    HostPort& host_port = path->host_ports_[i];
    host_port.host_bell = &path->bell_;
    const port::PortOptions& options = ports[i]->options();
    if (options.twin.empty()) {
      continue;
    }
    if (!path->pool_) {
      auto pool = port::make_frame_pool("frames-host", host_frames, frame_bytes, SOCKET_ID_ANY);
      if (!pool) {
        return tl::unexpected(pool.error());
      }
      path->pool_ = std::move(*pool);
    }
    // Before the twin exists, so that the kernel never answers for it on the port's own interface.
    if (const std::string interface = ports[i]->kernel_interface(); !interface.empty()) {
      auto isolation = port::HostIsolation::open(interface);
      if (!isolation) {
        return make_error("[[port]] '" + options.name + "': " + isolation.error().message);
      }
      for (const std::string& note : isolation->notes()) {
        path->notes_.push_back("port " + options.name + ": " + note);
      }
      path->isolations_.push_back(std::move(*isolation));
    }
    auto twin = port::TapTwin::open(options.twin, ports[i]->mac(), options.mtu);
    if (!twin) {
      return make_error("[[port]] '" + options.name + "': " + twin.error().message);
    }
    path->twins_[i].emplace(std::move(*twin));
    path->twin_names_[i] = options.twin;
    auto to_host = make_ring("to-host-" + options.name, RING_F_SC_DEQ);
    auto from_host = make_ring("from-host-" + options.name, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!to_host || !from_host) {
      return tl::unexpected(!to_host ? to_host.error() : from_host.error());
    }
    host_port.to_host = *to_host;
    host_port.from_host = *from_host;
  }
  return path;
}

HostPath::~HostPath() {
  stop();
  for (HostPort& host_port : host_ports_) {
    free_ring(host_port.to_host);
    free_ring(host_port.from_host);
  }
}

void HostPath::start() {
  if (pool_ && !thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
}

void HostPath::stop() {
  stopping_.store(true);
  if (thread_.joinable()) {
    bell_.ring();
    thread_.join();
  }
}

void HostPath::run() {
  pthread_setname_np(pthread_self(), "sluice-host");
  std::vector<pollfd> fds;
  for (const auto& twin : twins_) {
    fds.push_back({twin ? twin->fd() : -1, POLLIN, 0});
  }
  fds.push_back({});  // the bell's
  auto next_look = std::chrono::steady_clock::now();
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (const auto now = std::chrono::steady_clock::now(); now >= next_look) {
      next_look = now + link_interval;
      show_links();
    }
    unsigned work = 0;
    for (std::size_t port = 0; port < twins_.size(); ++port) {
      if (twins_[port]) {
        work += to_host(port) + from_host(port);
      }
    }
    if (work != 0) {
      continue;
    }
    bell_.arm();
    // A frame that was punted before the bell was armed must not wait for the time-out.
    for (std::size_t port = 0; port < twins_.size(); ++port) {
      work += twins_[port] ? to_host(port) : 0;
    }
    if (work == 0 && !stopping_.load(std::memory_order_relaxed)) {
      bell_.wait(fds, longest_wait);
    } else {
      bell_.disarm();
    }
  }
}

// Routing daemons, and through the mirror the router itself, see a pulled cable as the twin's lost carrier.
void HostPath::show_links() {
  for (std::size_t port = 0; port < twins_.size(); ++port) {
    if (!twins_[port]) {
      continue;
    }
    const bool up = ports_[port]->link_up();
    if (up != carrier_[port] && twins_[port]->set_carrier(up)) {
      carrier_[port] = up;
    }
  }
}

unsigned HostPath::to_host(std::size_t port) {
  std::array<rte_mbuf*, burst_size> frames;
  const unsigned count = rte_ring_sc_dequeue_burst(host_ports_[port].to_host, reinterpret_cast<void**>(frames.data()),
                                                   static_cast<unsigned>(frames.size()), nullptr);
  for (unsigned i = 0; i < count; ++i) {
    const auto* data = rte_pktmbuf_mtod(frames[i], const std::byte*);
    const auto taken = twins_[port]->write({data, rte_pktmbuf_data_len(frames[i])});
    (taken && *taken ? counters_.to_host_frames : counters_.to_host_failed).add(1);
  }
  if (count != 0) {
    rte_pktmbuf_free_bulk(frames.data(), count);
  }
  return count;
}

unsigned HostPath::from_host(std::size_t port) {
  unsigned count = 0;
  for (; count < burst_size; ++count) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_.get());
    if (frame == nullptr) {
      break;  // the kernel keeps its frames until lanes give some back
    }
    const auto size = twins_[port]->read({rte_pktmbuf_mtod(frame, std::byte*), rte_pktmbuf_tailroom(frame)});
    if (!size || *size == 0) {
      rte_pktmbuf_free(frame);
      break;
    }
    frame->data_len = static_cast<std::uint16_t>(*size);
    frame->pkt_len = static_cast<std::uint32_t>(*size);
    if (rte_ring_sp_enqueue(host_ports_[port].from_host, frame) != 0) {
      counters_.from_host_dropped.add(1);
      rte_pktmbuf_free(frame);
    } else {
      counters_.from_host_frames.add(1);
    }
  }
  if (count != 0) {
    host_ports_[port].lane_bell->ring();
  }
  return count;
}

}  // namespace sluice::engine
