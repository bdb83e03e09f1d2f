#include "ipsec/xfrm/server.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::size_t most_connections = 64;
// Of those that come by packets. What SAs say at the end of their lives is bounded by their number.
constexpr std::size_t most_events = 4096;
constexpr std::size_t no_bound = ~std::size_t{0};
constexpr int move_tick_ms = 50;
constexpr const char* thread_name = "sluice-xfrm";

pollfd of(int fd, short events) {
  return {fd, events, 0};
}

}  // namespace

Expected<std::unique_ptr<Server>> Server::start(Database& database, const std::string& path,
                                                Surroundings surroundings) {
  auto listener = Listener::open(path);
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<Server> server(new Server(database, std::move(*listener), std::move(surroundings)));
  if (server->wake_ < 0) return make_error(std::string("XFRM: an eventfd: ") + std::strerror(errno));
  server->thread_ = std::thread([raw = server.get()] { raw->run(); });
  return server;
}

Server::Server(Database& database, Listener listener, Surroundings surroundings)
    : listener_(std::move(listener)),
      log_(surroundings.log),
      requests_(database, std::move(surroundings)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Server::~Server() {
  ends_ = true;
  if (wake_ >= 0) eventfd_write(wake_, 1);
  if (thread_.joinable()) thread_.join();
  if (wake_ >= 0) close(wake_);
}

void Server::acquire(const Acquire& acquire) {
  push(acquire, most_events);
}
void Server::expired(const SaStatus& sa, bool hard) {
  push(Expiry{sa, hard}, no_bound);
}
void Server::moved(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) {
  push(Mapping{sa, source, port}, most_events);
}

void Server::push(Event event, std::size_t most) {
  {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= most) {
      ++lost_;
      return;
    }
    events_.push_back(std::move(event));
  }
  eventfd_write(wake_, 1);
}

Server::Counts Server::counts() const {
  return {handled_, refused_, told_, lost_, open_};
}

void Server::tell(const Told& told) {
  bool anybody = false;
  for (const auto& connection : connections_) {
    if (!connection->listens_to(told.groups)) continue;
    const bool sent = connection->send_event(told.message);
    ++(sent ? told_ : lost_);
    anybody = true;
  }
  if (!anybody) ++lost_;
}

void Server::tell_events() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(events_);
  }
  for (const Event& event : events) {
    if (const auto* const acquire = std::get_if<Acquire>(&event)) {
      tell(acquire_message(*acquire));
    } else if (const auto* const mapping = std::get_if<Mapping>(&event)) {
      tell(mapping_message(mapping->sa, mapping->source, mapping->port));
    } else {
      const auto& expiry = std::get<Expiry>(event);
      const bool somebody = std::any_of(connections_.begin(), connections_.end(),
                                        [](const auto& one) { return one->listens_to(group_bit(XFRMNLGRP_EXPIRE)); });
      tell(requests_.expired(expiry.sa, expiry.hard, somebody));
    }
  }
}

void Server::accept_one() {
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (connections_.size() >= most_connections) {
    log_("xfrm: a connection is refused: there are " + std::to_string(most_connections) + " already");
    close(fd);
    return;
  }
  connections_.push_back(std::make_unique<Connection>(fd));
}

void Server::serve(Connection& connection) {
  connection.flush();
  while (connection.wants_requests()) {
    const auto datagram = connection.receive();
    if (!datagram) break;
    if (connection.take_notice(*datagram)) continue;
    Answer answer = requests_.handle(*datagram, connection.port());
    ++handled_;
    refused_ = requests_.refused();
    const std::vector<Told> all = std::move(answer.told);
    connection.send(std::move(answer));
    for (const Told& told : all) tell(told);
  }
}

void Server::run() {
  pthread_setname_np(pthread_self(), thread_name);
  std::vector<pollfd> waits;
  while (!ends_) {
    waits = {of(wake_, POLLIN), of(listener_.fd(), POLLIN)};
    for (const auto& connection : connections_) {
      const bool full = connection->has_to_send();
      waits.push_back(of(connection->fd(), static_cast<short>(full ? POLLOUT : POLLIN)));
    }
    if (poll(waits.data(), waits.size(), requests_.has_moves() ? move_tick_ms : -1) < 0 && errno != EINTR) {
      log_(std::string("xfrm: poll: ") + std::strerror(errno));
      return;
    }
    eventfd_t count = 0;
    if (waits[0].revents != 0) eventfd_read(wake_, &count);
    for (std::size_t i = 2; i < waits.size(); ++i) {
      if (waits[i].revents != 0) serve(*connections_[i - 2]);
    }
    tell_events();
    requests_.finish_moves();
    std::erase_if(connections_, [](const auto& one) { return one->is_over(); });
    if (waits[1].revents != 0) accept_one();
    open_ = connections_.size();
  }
}

}  // namespace sluice::ipsec::xfrm
