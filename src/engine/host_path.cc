#include "engine/host_path.h"

#include <poll.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "engine/burst.h"

namespace sluice::engine {
namespace {
constexpr unsigned ring_size = 1024;
constexpr unsigned host_frames = 4095;
constexpr auto longest_wait = std::chrono::milliseconds(50);
constexpr auto starved_wait = std::chrono::milliseconds(1);
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

// Of a port that is no kernel interface's: nothing.
Expected<void> HostPath::isolate(const port::Port& port, bool forwards) {
  using Use = port::HostIsolation::Use;
  const std::string interface = port.kernel_interface();
  if (interface.empty()) {
    return {};
  }
  const port::PortOptions& options = port.options();
  const Use use = !options.twin.empty() ? Use::twin : forwards ? Use::wire : Use::listens;
  auto isolation = port::HostIsolation::open(interface, use);
  if (!isolation) {
    return make_error("[[port]] '" + options.name + "': " + isolation.error().message);
  }
  for (const std::string& note : isolation->notes()) {
    notes_.push_back("port " + options.name + ": " + note);
  }
  isolations_.push_back(std::move(*isolation));
  return {};
}

Expected<std::unique_ptr<HostPath>> HostPath::create(const std::vector<std::unique_ptr<port::Port>>& ports,
                                                     unsigned frame_bytes, bool forwards) {
  std::unique_ptr<HostPath> path(new HostPath());
  path->twins_.resize(ports.size());
  path->twin_names_.resize(ports.size());
  path->host_ports_.resize(ports.size());
  path->carrier_.resize(ports.size(), true);
  path->gone_ = std::vector<std::atomic<bool>>(ports.size());
  path->starved_.resize(ports.size());
  path->counters_ = std::vector<Counters>(ports.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    path->ports_.push_back(ports[i].get());
    path->mtu_.push_back(ports[i]->options().mtu);
    HostPort& host_port = path->host_ports_[i];
    host_port.host_bell = &path->bell_;
    const port::PortOptions& options = ports[i]->options();
    // Before the twin exists, so that the kernel never answers for it on the port's own interface.
    if (auto isolated = path->isolate(*ports[i], forwards); !isolated) {
      return tl::unexpected(isolated.error());
    }
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
    auto twin = port::TapTwin::open(options.twin, ports[i]->mac(), options.mtu, options.persistent);
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
  stopped_.store(true);
}

HostLosses HostPath::losses(std::size_t port) const {
  HostLosses losses{counters_[port].to_host_lost.get(), counters_[port].from_host_lost.get()};
  if (const HostPort& rings = host_ports_[port]; stopped_.load() && rings.to_host != nullptr) {
    losses.to_host += rte_ring_count(rings.to_host);
    losses.from_host += rte_ring_count(rings.from_host);
  }
  return losses;
}

void HostPath::run() {
  pthread_setname_np(pthread_self(), "sluice-host");
  std::vector<pollfd> fds(twins_.size() + 1, {-1, POLLIN, 0});  // the last is the bell's
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
    // A twin whose frames find no capacity stays readable: it is looked at again later, not waited for.
    bool starved = false;
    for (std::size_t port = 0; port < twins_.size(); ++port) {
      fds[port].fd = twins_[port] && !gone_[port] && !starved_[port] ? twins_[port]->fd() : -1;
      starved |= starved_[port];
    }
    // A frame that was punted before the bell was armed must not wait for the time-out.
    for (std::size_t port = 0; port < twins_.size(); ++port) {
      work += twins_[port] ? to_host(port) : 0;
    }
    if (work == 0 && !stopping_.load(std::memory_order_relaxed)) {
      bell_.wait(fds, starved ? starved_wait : longest_wait);
    } else {
      bell_.disarm();
    }
  }
  for (std::size_t port = 0; port < twins_.size(); ++port) {
    while (twins_[port] && to_host(port) != 0) {
    }
  }
}

// Routing daemons, and through the mirror the router itself, see a pulled cable as the twin's lost carrier.
void HostPath::show_links() {
  for (std::size_t port = 0; port < twins_.size(); ++port) {
    if (!twins_[port] || gone_[port]) {
      continue;
    }
    const bool up = ports_[port]->link_up();
    if (up != carrier_[port] && twins_[port]->set_carrier(up)) {
      carrier_[port] = up;
    }
    show_mtu(port);
  }
}

// Somebody may lower the MTU of the interface under a port. The kernel and the router then have to know it, or frames
// that it refuses would vanish without a "too big" for their sender. A twin that has less by somebody's will keeps it.
void HostPath::show_mtu(std::size_t port) {
  const unsigned wanted = ports_[port]->options().mtu;
  const unsigned carried = ports_[port]->carried_mtu();
  const unsigned now = carried == 0 ? wanted : std::min(wanted, carried);
  if (now == mtu_[port]) return;
  const unsigned shown = twins_[port]->mtu();
  if ((shown == mtu_[port] || shown > now) && !twins_[port]->set_mtu(now)) return;
  mtu_[port] = now;
}

unsigned HostPath::to_host(std::size_t port) {
  std::array<rte_mbuf*, burst_size> frames;
  const unsigned count = rte_ring_sc_dequeue_burst(host_ports_[port].to_host, reinterpret_cast<void**>(frames.data()),
                                                   static_cast<unsigned>(frames.size()), nullptr);
  for (unsigned i = 0; i < count; ++i) {
    const auto* data = rte_pktmbuf_mtod(frames[i], const std::byte*);
    const Expected<bool> taken = gone_[port] ? false : twins_[port]->write({data, rte_pktmbuf_data_len(frames[i])});
    if (!taken) {
      give_up(port, taken.error());
    }
    if (!taken || !*taken) {
      counters_[port].to_host_lost.add(1);
    }
  }
  if (count != 0) {
    rte_pktmbuf_free_bulk(frames.data(), count);
  }
  return count;
}

unsigned HostPath::from_host(std::size_t port) {
  if (gone_[port]) {
    return 0;
  }
  unsigned count = 0;
  starved_[port] = false;
  for (; count < burst_size; ++count) {
    rte_mbuf* frame = rte_pktmbuf_alloc(pool_.get());
    if (frame == nullptr) {
      starved_[port] = true;
      break;  // the kernel keeps its frames until lanes give some back
    }
    const auto size = twins_[port]->read({rte_pktmbuf_mtod(frame, std::byte*), rte_pktmbuf_tailroom(frame)});
    if (!size || *size == 0) {
      rte_pktmbuf_free(frame);
      if (!size) {
        give_up(port, size.error());
      }
      break;
    }
    frame->data_len = static_cast<std::uint16_t>(*size);
    frame->pkt_len = static_cast<std::uint32_t>(*size);
    if (rte_ring_sp_enqueue(host_ports_[port].from_host, frame) != 0) {
      counters_[port].from_host_lost.add(1);
      rte_pktmbuf_free(frame);
    }
  }
  if (count != 0) {
    host_ports_[port].lane_bell->ring();
  }
  return count;
}

// An interface that is gone does not come back to this file descriptor, which is readable and refuses to be read for
// ever.
void HostPath::give_up(std::size_t port, const Error& why) {
  gone_[port] = true;
  spdlog::error(
      "port {}: {}: the interface was deleted. Frames for the host are lost from now on (to_host_lost) until Sluice is "
      "started again",
      ports_[port]->name(), why.message);
}

}  // namespace sluice::engine
