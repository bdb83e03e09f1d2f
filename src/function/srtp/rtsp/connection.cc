#include "function/srtp/rtsp/connection.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/quote.h"
#include "crypto/secret.h"
#include "function/srtp/rtsp/port_towards.h"
#include "media/rtsp/uri.h"

namespace sluice::function::rtsp {
namespace {

using media::rtsp::Opening;

constexpr std::size_t read_size = 16384;

media::rtsp::Settings settings_of(const function::RtspOptions& options) {
  media::rtsp::Settings settings;
  settings.offer.suite = options.suite;
  settings.accept_plain_profile = options.accept_plain_profile;
  settings.max_streams = options.max_streams;
  settings.session_timeout = std::chrono::duration_cast<std::chrono::seconds>(options.session_timeout);
  settings.retry_after = probe_time + std::chrono::seconds(1);
  settings.answer_timeout = std::chrono::ceil<std::chrono::seconds>(options.answer_timeout);
  return settings;
}

// RTP's and RTCP's.
bool one_port(const media::rtsp::StreamRequest& request) {
  return request.client_ports.rtp == request.client_ports.rtcp;
}

// For the log, beside its name.
const char* why_ended(media::rtsp::EndReason reason) {
  using media::rtsp::EndReason;
  switch (reason) {
    case EndReason::teardown:
      return "it was torn down";
    case EndReason::timeout:
      return "nothing was heard of the client for the session's timeout";
    case EndReason::no_session:
      return "the server knows the session no more";
    case EndReason::client_closed:
      return "the client has closed its connection without a TEARDOWN";
    case EndReason::client_gone:
      return "the client's connection was lost: reset, or the client answers no more";
    case EndReason::server_gone:
      return "the server's connection has ended";
    case EndReason::setup_failed:
      return "the server has refused the SETUP, or answered what cannot be used";
    case EndReason::not_opened:
      return "the gateway could not take it";
    case EndReason::ports_in_use:
      return "another session of the client's address has its ports, until it is known whether that one's client is "
             "still there";
    case EndReason::protocol:
      return "what one side sent cannot be read";
    case EndReason::unanswered:
      return "the server has left the SETUP without an answer";
    case EndReason::overflow:
      return "too much waited for one side";
    case EndReason::stopped:
      return "the gateway has ended the connection";
  }
  return "";
}

bool is_explicit(const Accepted& accepted) {
  return !accepted.own.address.empty();
}

media::rtsp::Addresses addresses_of(const Accepted& accepted, const Expected<Fd>& server) {
  media::rtsp::Addresses addresses;
  addresses.client = accepted.client.address;
  addresses.server = accepted.server.address;
  if (!is_explicit(accepted)) return addresses;
  addresses.facing_client = accepted.own.address;
  if (server) addresses.facing_server = own_end(server->get()).address;
  addresses.client_authority = accepted.own.str();
  addresses.server_authority = accepted.server.str();
  return addresses;
}

Expected<Fd> reach_server(const Accepted& accepted) {
  return is_explicit(accepted) ? connect_to(accepted.server) : connect_from(accepted.client.address, accepted.server);
}

}  // namespace

Connection::Connection(Shared shared, Accepted accepted, Time now)
    : Connection(shared, std::move(accepted), reach_server(accepted), now) {}

// `accepted` is moved from in the body alone.
Connection::Connection(Shared shared, Accepted&& accepted, Expected<Fd> server, Time now)
    : shared_(shared),
      explicit_(is_explicit(accepted)),
      client_port_(accepted.port),
      upstream_(accepted.upstream),
      client_endpoint_(accepted.client),
      server_endpoint_(accepted.server),
      received_(now),
      heard_(now),
      deadline_(now + shared.options.connect_timeout),
      proxy_(settings_of(shared.options), addresses_of(accepted, server), *this) {
  client_.fd = std::move(accepted.fd);
  Metrics::add(shared_.metrics.connections);
  Metrics::add(shared_.metrics.accepted);
  if (server) {
    server_.fd = std::move(*server);
    return;
  }
  unreachable(server.error().message);
}

Connection::~Connection() {
  const media::rtsp::Counters& counters = proxy_.counters();
  Metrics::add(shared_.metrics.overflowed, counters.overflows);
  Metrics::add(shared_.metrics.requests, counters.requests);
  Metrics::add(shared_.metrics.interleaved_dropped, counters.interleaved_dropped);
  shared_.metrics.connections.fetch_sub(1, std::memory_order_relaxed);
}

std::uint32_t Connection::interest(Side side) const {
  const End& one = end(side);
  if (!one.fd || done_) return 0;
  if (connecting_ && side == Side::server) return EPOLLOUT;
  auto& proxy = const_cast<media::rtsp::Proxy&>(proxy_);  // its outputs have no constant form
  const bool reads = leaving_ || (side == Side::client ? proxy_.wants_client() : proxy_.wants_server());
  const bool writes = !(side == Side::client ? proxy.to_client() : proxy.to_server()).empty();
  return (reads && !one.ended ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
}

void Connection::ready(Side side, std::uint32_t events, Time now) {
  if (done_) return;
  if (connecting_ && side == Side::server) {
    connected(now);
  } else if (leaving_) {
    discard(side);
  } else if (client_hears_ && side == Side::client && (events & (EPOLLHUP | EPOLLERR)) != 0) {
    client_hears_ = false;
    side_ended(side, false);
  } else if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !end(side).ended) {
    receive(side, now);
  }
  after(now);
}

void Connection::connected(Time now) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(server_.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == EINPROGRESS) return;
  connecting_ = false;
  heard_ = now;
  if (error == 0) return;
  unreachable("cannot connect to " + server_endpoint_.str() + ": " + strerror(error));
}

void Connection::receive(Side side, Time now) {
  crypto::Secret<read_size> bytes;  // a SETUP has a key in it, and so may have all that follows
  const ssize_t got = recv(end(side).fd.get(), bytes.bytes, read_size, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    client_hears_ = got == 0 && side == Side::client && media_.empty() && proxy_.owes_client();
    if (!client_hears_) return side_ended(side, got == 0);
    client_.ended = true;
    return;
  }
  received_ = now;
  const std::uint64_t before = messages();
  const std::string_view text(reinterpret_cast<const char*>(bytes.bytes), static_cast<std::size_t>(got));
  side == Side::client ? proxy_.from_client(text, now) : proxy_.from_server(text, now);
  if (messages() != before) heard_ = now;
}

// Whole ones.
std::uint64_t Connection::messages() const {
  const media::rtsp::Counters& counters = proxy_.counters();
  return counters.requests + counters.responses + counters.server_requests;
}

void Connection::discard(Side side) {
  crypto::Secret<read_size> bytes;
  const ssize_t got = recv(end(side).fd.get(), bytes.bytes, read_size, 0);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) end(side).ended = true;
}

// `closed`: by who is there. Else it was reset, or nobody answers.
void Connection::side_ended(Side side, bool closed) {
  end(side).ended = true;
  if (side == Side::server) return proxy_.server_closed();
  closed ? proxy_.client_closed() : proxy_.client_gone();
}

void Connection::send(Side side) {
  media::SecretText& out = output(side);
  if (out.empty() || (connecting_ && side == Side::server)) return;
  const std::string_view text = out.view();
  const ssize_t sent = ::send(end(side).fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent > 0) {
    out.consume(static_cast<std::size_t>(sent));
  } else if (errno != EAGAIN && errno != EINTR) {
    const bool closed = errno == EPIPE;
    if (side == Side::client) client_hears_ = false;
    out.clear();
    side_ended(side, closed);
  }
}

// What every event leads to.
void Connection::after(Time now) {
  if (done_) return;
  send(Side::client);
  send(Side::server);
  if (client_hears_ && !proxy_.over() && !proxy_.owes_client() && proxy_.to_client().empty()) proxy_.client_closed();
  if (proxy_.over() && !leaving_) {
    if (connecting_) return abort();
    if (!std::exchange(ending_, true)) deadline_ = now + farewell;
    if (client_.ended && !client_hears_) proxy_.to_client().clear();
    if (server_.ended) proxy_.to_server().clear();
    if (proxy_.to_client().empty() && proxy_.to_server().empty()) {
      // Then the other side reads to the end: a socket that is closed with bytes unread would take back what was sent.
      shutdown(client_.fd.get(), SHUT_WR);
      shutdown(server_.fd.get(), SHUT_WR);
      leaving_ = true;
    }
  }
  if (leaving_ && client_.ended && server_.ended) done_ = true;
}

void Connection::unreachable(const std::string& why) {
  Metrics::add(shared_.metrics.server_unreachable);
  shared_.logs.servers.say(spdlog::level::warn, client_endpoint_.str() + ": " + why);
  abort();
}

void Connection::count_rate() {
  shared_.metrics.rate.store(shared_.admission.used(), std::memory_order_relaxed);
}

// As the server would refuse: with a reset.
void Connection::abort() {
  const linger at_once{1, 0};
  setsockopt(client_.fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  proxy_.server_closed();
  done_ = true;
}

bool Connection::is_beside(const Connection& asking) const {
  return this != &asking && client_endpoint_.address == asking.client_endpoint_.address;
}

bool Connection::has_media_at(const media::rtsp::PortPair& ports) const {
  const auto is_one = [&ports](std::uint16_t port) { return port == ports.rtp || port == ports.rtcp; };
  return std::ranges::any_of(media_, [&](const auto& one) {
    return is_one(one.second.client_ports.rtp) || is_one(one.second.client_ports.rtcp);
  });
}

bool Connection::is_in_the_way(const Connection& asking, std::span<const function::MediaKey> keys) const {
  const auto has = [&](const auto& one) {
    return std::ranges::find_first_of(one.second.keys, keys) != one.second.keys.end();
  };
  return is_beside(asking) && std::ranges::any_of(media_, has);
}

void Connection::probe_for(const Connection& asking, const media::rtsp::PortPair& ports, Time now) {
  if (!is_beside(asking) || !has_media_at(ports) || done_ || probed_ || client_.ended) return;
  probed_ = now;
  rtsp::probe(client_.fd.get());
}

void Connection::look_at_probe(Time now) {
  if (!probed_) return;
  const Probed found = rtsp::probed(client_.fd.get(), now - *probed_);
  if (found == Probed::nothing_yet) return;
  probed_.reset();
  if (found == Probed::there) return set_usual_options(client_.fd.get());
  if (client_.ended) return;
  side_ended(Side::client, false);
  after(now);  // the server is notified before anything looks at a deadline
}

void Connection::tick(Time now) {
  if (done_) return;
  look_at_probe(now);
  if (done_) return;
  if (connecting_) {
    if (now < deadline_) return;
    return unreachable(server_endpoint_.str() + " does not answer within connect_timeout");
  }
  if (proxy_.over()) {
    done_ = done_ || now >= deadline_;
    return;
  }
  for (auto& [number, media] : media_) {
    if (media.keys.empty()) continue;
    const std::uint64_t noted = shared_.streams.noted(media.keys.back());
    if (std::exchange(media.noted, noted) != noted) proxy_.alive(number, now);
  }
  proxy_.tick(now);
  if (media_.empty() && now - heard_ > shared_.options.idle_timeout) {
    Metrics::add(shared_.metrics.idle);
    proxy_.stop();
  }
  after(now);
}

void Connection::stop(Time now) {
  if (done_ || proxy_.over()) return;
  proxy_.stop();
  after(now);
}

media::rtsp::Admission Connection::admit(const media::rtsp::StreamRequest& request) {
  media::rtsp::Admission answer;
  if (shared_.neighbours != nullptr) shared_.neighbours->probe_for(*this, request.client_ports, received_);
  Media media;
  media.client_ports = request.client_ports;
  media.medium = {request.rate, explicit_ && !one_port(request)};
  media.medium.kind = request.kind;
  media.medium.server = upstream_;
  if (shared_.options.measured && request.rate == 0) {
    media.medium.share = fmt::format("rtsp {} {}", fmt::ptr(this), request.number);
  }
  answer.admitted = shared_.admission.admit(media.medium);
  if (!answer.admitted) {
    not_admitted_ = shared_.admission.why();
    return answer;
  }
  if (explicit_ && !take_ports(request, media, answer)) {
    shared_.admission.ended(media.medium);
    not_admitted_ = "all pairs of media_ports are in use";
    return answer;
  }
  count_rate();
  media_[request.number] = std::move(media);
  return answer;
}

// The same on both sides.
bool Connection::take_ports(const media::rtsp::StreamRequest& request, Media& media, media::rtsp::Admission& answer) {
  media.ports = shared_.ports.take();
  if (!media.ports) {
    answer.admitted = answer.ports_left = false;
    if (shared_.ports.worth_reporting()) {
      spdlog::warn("rtsp: {} is refused: all {} pairs of [srtp.rtsp] media_ports are in use", client_endpoint_.str(),
                   shared_.ports.used());
    }
    return false;
  }
  answer.towards_server = answer.towards_client =
      one_port(request) ? MediaPorts::Pair{media.ports->rtp, media.ports->rtp} : *media.ports;
  return true;
}

// The client's is where its connection has come in, the server's where the host's routes lead.
Sides Connection::sides_of(const media::rtsp::Stream& stream) const {
  if (!shared_.options.check_ingress) return {};
  return {.client = client_port_, .server = port_towards(stream.server_side.server, shared_.twins)};
}

std::optional<function::MeasureSettings> Connection::measuring_of(const Medium& medium) const {
  if (medium.share.empty()) return std::nullopt;
  function::MeasureSettings measure;
  measure.time = shared_.options.measure_time;
  measure.margin = shared_.options.rate_margin;
  measure.share = medium.share;
  return measure;
}

Opening Connection::opened(const media::rtsp::Stream& stream) {
  auto streams = streams_of(stream, shared_.options.accept_clear_rtcp, sides_of(stream), shared_.options.max_ssrcs);
  Expected<void> added;
  std::vector<function::MediaKey> keys;
  if (streams) {
    const Medium& medium = media_[stream.number].medium;
    police(*streams, shared_.admission.held_to(medium), shared_.options.burst_time, shared_.streams.largest_frame(),
           measuring_of(medium));
    for (const function::MediaStreamSettings& one : *streams) keys.push_back(one.key);
    added = shared_.streams.add(std::move(*streams));
  }
  if (const Error* const why = !streams ? &streams.error() : !added ? &added.error() : nullptr) {
    // Of ports in use closed() says all that there is.
    if (shared_.neighbours != nullptr && shared_.neighbours->in_the_way(*this, keys)) return Opening::ports_in_use;
    shared_.logs.media.say(spdlog::level::warn,
                           fmt::format("{}: the {} of {} is not opened: {}", client_endpoint_.str(), stream.kind,
                                       server_endpoint_.str(), why->message));
    return Opening::refused;
  }
  media_[stream.number].keys = std::move(keys);
  Metrics::add(shared_.metrics.opened);
  Metrics::add(shared_.metrics.streams);
  shared_.logs.media.say(spdlog::level::info, fmt::format("{} plays the {} of {}", client_endpoint_.str(), stream.kind,
                                                          server_endpoint_.str()));
  return Opening::opened;
}

void Connection::closed(std::uint64_t number, media::rtsp::EndReason reason) {
  const auto at = media_.find(number);
  if (at == media_.end()) return;
  shared_.admission.ended(at->second.medium);
  count_rate();
  if (!at->second.keys.empty()) {
    shared_.streams.remove(at->second.keys, function::MediaOrigin::rtsp, true);
    shared_.metrics.streams.fetch_sub(1, std::memory_order_relaxed);
  }
  if (at->second.ports) shared_.ports.give_back(*at->second.ports);
  Metrics::add(shared_.metrics.closed[static_cast<std::size_t>(reason)]);
  shared_.logs.media.say(spdlog::level::info, fmt::format("{} {} the {} of {}: {} ({})", client_endpoint_.str(),
                                                          at->second.keys.empty() ? "does not play" : "no longer plays",
                                                          at->second.medium.kind, server_endpoint_.str(),
                                                          why_ended(reason), media::rtsp::end_reason_name(reason)));
  media_.erase(at);
}

void Connection::refused(media::rtsp::Refusal refusal, unsigned status, std::string_view why) {
  Metrics::add(shared_.metrics.refused[static_cast<std::size_t>(refusal)]);
  std::string text = fmt::format("{} to {}: the proxy answers {} {}", client_endpoint_.str(), server_endpoint_.str(),
                                 status, media::rtsp::refusal_name(refusal));
  if (!why.empty()) text += ' ' + printable(media::rtsp::without_users(why));  // a URI, perhaps with a password
  if (const std::string numbers = std::exchange(not_admitted_, {}); !numbers.empty()) text += ": " + numbers;
  shared_.logs.refusals.say(spdlog::level::info, text);
}

void Connection::left_out(media::rtsp::Omission omission, std::size_t count, std::string_view why) {
  Metrics::add(shared_.metrics.left_out[static_cast<std::size_t>(omission)], count);
  shared_.logs.omissions.say(
      spdlog::level::info,
      fmt::format("{} to {}: the proxy leaves out {} {}{}", client_endpoint_.str(), server_endpoint_.str(),
                  media::rtsp::omission_name(omission), printable(media::rtsp::without_users(why)),
                  count > 1 ? fmt::format(", and {} more", count - 1) : std::string()));
}

}  // namespace sluice::function::rtsp
