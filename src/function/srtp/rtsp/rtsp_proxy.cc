#include "function/srtp/rtsp/rtsp_proxy.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <set>

#include "base/quote.h"
#include "crypto/secret.h"
#include "function/srtp/rtsp/host_notes.h"
#include "media/rtsp/uri.h"

namespace sluice::function::rtsp {
namespace {

constexpr int events_at_once = 64;
constexpr auto tick_every = std::chrono::seconds(1);
constexpr auto farewell_in_all = std::chrono::milliseconds(500);
constexpr std::size_t most_of_a_first_request = 16384;

// What epoll names: 0 the bell; a listener: its place with this bit; else a connection's number and a side.
constexpr std::uint64_t is_listener = std::uint64_t{1} << 63;

std::uint64_t name_of(std::uint64_t connection, Side side) {
  return connection << 1 | static_cast<std::uint64_t>(side);
}

// `server` is one of `options`.
void to_server(Accepted& accepted, const function::RtspOptions& options, const function::RtspServer& server) {
  accepted.server = {server.address, server.port};
  accepted.upstream = static_cast<std::size_t>(&server - options.upstream.data());
}

}  // namespace

Expected<std::unique_ptr<RtspProxy>> RtspProxy::start(function::MediaStreams& streams,
                                                      const std::vector<std::string>& twins,
                                                      std::unique_ptr<Admission> admission) {
  if (admission == nullptr) {
    const function::RtspOptions& options = *streams.rtsp();
    admission = std::make_unique<RateBudget>(options.max_rate, options.default_rate, options.rate_margin);
  }
  std::unique_ptr<RtspProxy> proxy(new RtspProxy(streams, twins, std::move(admission)));
  if (auto opened = proxy->open(); !opened) return tl::unexpected(opened.error());
  proxy->thread_ = std::thread([raw = proxy.get()] { raw->run(); });
  return proxy;
}

RtspProxy::RtspProxy(function::MediaStreams& streams, std::vector<std::string> twins,
                     std::unique_ptr<Admission> admission)
    : streams_(streams),
      twins_(std::move(twins)),
      admission_(std::move(admission)),
      ports_(streams.rtsp()->first_media_port, streams.rtsp()->last_media_port) {}

Expected<void> RtspProxy::open() {
  const function::RtspOptions& options = *streams_.rtsp();
  const std::uint64_t files = raise_file_limit(files_for(options.max_connections));
  if (const std::string note = files_note(options, files); !note.empty()) spdlog::warn("{}", note);
  if (const std::string note = media_ports_note(options, host_limits()); !note.empty()) spdlog::warn("{}", note);
  metrics_.max_rate.store(options.max_rate, std::memory_order_relaxed);
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event bell{.events = EPOLLIN, .data = {.u64 = 0}};
  if (!epoll_ || !wake_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &bell) != 0) {
    return make_error(std::string("[srtp.rtsp] cannot wait for connections: ") + std::strerror(errno));
  }
  for (std::size_t port = 0; port < twins_.size(); ++port) {
    if (auto ok = listen(static_cast<std::uint16_t>(port)); !ok) return ok;
  }
  if (!options.servers.empty()) {
    auto delivery = LocalDelivery::install(options, twins_);
    if (!delivery) return tl::unexpected(delivery.error());
    delivery_ = std::move(*delivery);
  }
  const auto is_ipv4 = [](const packet::IpAddress& own) { return own.family == 4; };
  if (std::ranges::any_of(options.listen, is_ipv4)) own_sources_ = std::make_unique<OwnSources>(twins_);
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = is_listener | i}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listeners_[i].fd.get(), &event) != 0) {
      return make_error(std::string("[srtp.rtsp] cannot wait for connections: ") + std::strerror(errno));
    }
  }
  return {};
}

// What listens for all addresses of a family takes the host's own, too.
Expected<void> RtspProxy::listen(std::uint16_t port_of_twin) {
  const std::string& twin = twins_[port_of_twin];
  const function::RtspOptions& options = *streams_.rtsp();
  std::set<int> families;
  for (const packet::IpPrefix& servers : options.servers) families.insert(servers.address.family);
  const auto keep = [&](Expected<Fd> listener) -> Expected<void> {
    if (!listener) return tl::unexpected(listener.error());
    listeners_.push_back({std::move(*listener), port_of_twin});
    return {};
  };
  for (const std::uint16_t port : options.ports) {
    for (const int family : families) {
      if (auto ok = keep(listen_on(twin, family, port)); !ok) return ok;
    }
    for (const packet::IpAddress& own : options.listen) {
      if (families.contains(own.family)) continue;
      if (auto ok = keep(listen_on(twin, Endpoint{own, port})); !ok) return ok;
    }
  }
  return {};
}

RtspProxy::~RtspProxy() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void RtspProxy::run() {
  pthread_setname_np(pthread_self(), "sluice-rtsp");
  auto next_tick = std::chrono::steady_clock::now() + tick_every;
  while (!stopping_) {
    epoll_event events[events_at_once];
    const auto wait = next_tick - std::chrono::steady_clock::now();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(wait, wait.zero())).count();
    const int count = epoll_wait(epoll_.get(), events, events_at_once, static_cast<int>(ms));
    const auto now = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
      const std::uint64_t name = events[i].data.u64;
      if ((name & is_listener) != 0) {
        accept_all(listeners_[name & ~is_listener], now);
      } else if (name != 0) {
        serve(name, events[i].events, now);
      }
    }
    if (now >= next_tick) {
      next_tick = now + tick_every;
      tick(now);
    }
    metrics_.waiting.store(greetings_.size(), std::memory_order_relaxed);
  }
  say_farewell();
}

template <typename F>
void RtspProxy::guarded(std::uint64_t connection, const F& f) {
  const auto at = connections_.find(connection);
  if (at == connections_.end()) return;
  bool over = false;
  try {
    f(at->second->connection);
    over = at->second->connection.done();
  } catch (const std::exception& problem) {
    Metrics::add(metrics_.failed);
    spdlog::error("rtsp: a connection is ended: {}", problem.what());
    over = true;
  }
  if (over) {
    connections_.erase(at);
  } else {
    watch(connection);
  }
}

void RtspProxy::accept_all(const Listener& listener, Time now) {
  const function::RtspOptions& options = *streams_.rtsp();
  for (int i = 0; i < events_at_once; ++i) {
    Accepted accepted = accept_from(listener.fd.get());
    accepted.port = listener.port;
    if (!accepted.fd) {
      // Until files or memory are there again; else epoll would say so without end.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) watch_listeners(false);
      return;
    }
    if (connections_.size() + greetings_.size() >= options.max_connections) {
      Metrics::add(metrics_.too_many);
      logs_.clients.say(spdlog::level::warn, accepted.client.str() +
                                                 " is closed at once: there are max_connections = " +
                                                 std::to_string(options.max_connections));
      continue;
    }
    auto share = clients_.take(accepted.client.address, options.max_connections_per_client);
    if (!share) {
      Metrics::add(metrics_.too_many_of_client);
      logs_.clients.say(spdlog::level::warn, accepted.client.str() +
                                                 " is closed at once: it has max_connections_per_client = " +
                                                 std::to_string(options.max_connections_per_client));
      continue;
    }
    take(std::move(accepted), std::move(*share), now);
  }
}

void RtspProxy::take(Accepted accepted, ClientCounts::Share share, Time now) {
  const function::RtspOptions& options = *streams_.rtsp();
  const std::uint64_t id = next_connection_++;
  const int family = accepted.server.address.family;
  if (!options.is_explicit(accepted.server.address)) return connect(id, std::move(accepted), std::move(share), now);
  accepted.own = accepted.server;
  if (has_one_server(options, family)) {
    to_server(accepted, options, *server_for(options, family, {}));
    return connect(id, std::move(accepted), std::move(share), now);
  }
  // Notified of what comes, and not again of what has been looked at.
  epoll_event event{.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data = {.u64 = name_of(id, Side::client)}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, accepted.fd.get(), &event) != 0) {
    Metrics::add(metrics_.failed);
    return;
  }
  greetings_.emplace(id, Greeting{std::move(accepted), std::move(share), now});
}

// Its bytes stay in the socket for the connection.
void RtspProxy::greet(std::uint64_t id, Time now) {
  Greeting& greeting = greetings_.at(id);
  crypto::Secret<most_of_a_first_request> bytes;
  const ssize_t got = recv(greeting.accepted.fd.get(), bytes.bytes, most_of_a_first_request, MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const auto* const text = reinterpret_cast<const char*>(bytes.bytes);
  const auto request = got <= 0 ? FirstRequest{} : first_request({text, static_cast<std::size_t>(got)});
  if (!request && static_cast<std::size_t>(got) < most_of_a_first_request) return;
  Accepted accepted = std::move(greeting.accepted);
  ClientCounts::Share share = std::move(greeting.share);
  greetings_.erase(id);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, accepted.fd.get(), nullptr);
  if (got <= 0) return;
  const FirstRequest known = request.value_or(FirstRequest{});
  const auto* const server = server_for(*streams_.rtsp(), accepted.own.address.family, known.uri);
  if (server == nullptr) return refuse(accepted, known);
  to_server(accepted, *streams_.rtsp(), *server);
  connect(id, std::move(accepted), std::move(share), now);
}

void RtspProxy::refuse(const Accepted& accepted, const FirstRequest& request) {
  Metrics::add(metrics_.no_server);
  logs_.refusals.say(spdlog::level::info,
                     accepted.client.str() + ": 404: no [[srtp.rtsp.server]] takes " +
                         (request.problem.empty() ? in_quotes(media::rtsp::without_users(request.uri))
                                                  : "what it says, which cannot be read: " + request.problem));
  const std::string answer = "RTSP/1.0 404 Not Found\r\nCSeq: " + request.cseq + "\r\n\r\n";
  [[maybe_unused]] const ssize_t sent = send(accepted.fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  // A socket that is closed with bytes unread would take the answer back.
  crypto::Secret<most_of_a_first_request> bytes;
  [[maybe_unused]] const ssize_t unread = recv(accepted.fd.get(), bytes.bytes, most_of_a_first_request, 0);
}

void RtspProxy::connect(std::uint64_t id, Accepted accepted, ClientCounts::Share share, Time now) {
  try {
    connections_[id] = std::make_unique<Watched>(
        Shared{*streams_.rtsp(), twins_, streams_, *admission_, ports_, metrics_, logs_, this}, std::move(accepted),
        std::move(share), now);
    guarded(id, [](Connection&) {});
  } catch (const std::exception& problem) {
    Metrics::add(metrics_.failed);
    spdlog::error("rtsp: a connection is not taken: {}", problem.what());
    connections_.erase(id);
  }
}

void RtspProxy::probe_for(const Connection& asking, const media::rtsp::PortPair& ports, Time now) {
  for (const auto& [id, watched] : connections_) watched->connection.probe_for(asking, ports, now);
}

bool RtspProxy::in_the_way(const Connection& asking, std::span<const function::MediaKey> keys) const {
  return std::ranges::any_of(connections_,
                             [&](const auto& one) { return one.second->connection.is_in_the_way(asking, keys); });
}

void RtspProxy::watch_listeners(bool on) {
  if (listening_ == on) return;
  listening_ = on;
  if (!on) spdlog::warn("rtsp: no more files may be open (ulimit -n), so that new connections wait");
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event{.events = on ? EPOLLIN : 0U, .data = {.u64 = is_listener | i}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listeners_[i].fd.get(), &event);
  }
}

void RtspProxy::serve(std::uint64_t name, std::uint32_t events, Time now) {
  if (greetings_.contains(name >> 1)) return greet(name >> 1, now);
  guarded(name >> 1, [&](Connection& connection) { connection.ready(static_cast<Side>(name & 1), events, now); });
}

// A descriptor of which nothing is wanted is taken out: epoll reports its end whether asked or not.
void RtspProxy::watch(std::uint64_t id) {
  Watched& watched = *connections_.at(id);
  for (const Side side : {Side::client, Side::server}) {
    const std::uint32_t wanted = watched.connection.interest(side);
    std::uint32_t& asked = watched.asked[static_cast<std::size_t>(side)];
    if (wanted == asked) continue;
    epoll_event event{.events = wanted, .data = {.u64 = name_of(id, side)}};
    const int what = wanted == 0 ? EPOLL_CTL_DEL : asked == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    epoll_ctl(epoll_.get(), what, watched.connection.fd(side), &event);
    asked = wanted;
  }
}

void RtspProxy::tick(Time now) {
  std::vector<std::uint64_t> all;
  for (const auto& [id, watched] : connections_) all.push_back(id);
  for (const std::uint64_t id : all) guarded(id, [&](Connection& connection) { connection.tick(now); });
  const auto silent = [&](const auto& one) { return now - one.second.since > streams_.rtsp()->idle_timeout; };
  Metrics::add(metrics_.idle, std::erase_if(greetings_, silent));
  watch_listeners(true);
  if (delivery_ != nullptr) {
    delivery_->look();
    metrics_.rules_restored.store(delivery_->restored(), std::memory_order_relaxed);
  }
}

void RtspProxy::say_farewell() {
  listeners_.clear();
  greetings_.clear();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::uint64_t> all;
  for (const auto& [id, watched] : connections_) all.push_back(id);
  for (const std::uint64_t id : all) guarded(id, [&](Connection& connection) { connection.stop(begin); });
  for (auto now = begin; !connections_.empty() && now < begin + farewell_in_all;
       now = std::chrono::steady_clock::now()) {
    epoll_event events[events_at_once];
    const int count = epoll_wait(epoll_.get(), events, events_at_once, 50);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != 0) serve(events[i].data.u64, events[i].events, std::chrono::steady_clock::now());
    }
  }
  connections_.clear();
  streams_.tidy(std::chrono::steady_clock::now());
}

}  // namespace sluice::function::rtsp
