// rtsp_relay LISTEN PORT SERVER PORT: an explicit RTSP proxy on TCP sockets around media/rtsp/proxy.h, for tests with
// real peers. It carries signalling alone: the ports that it names for media are nobody's.
//
// Each event is a line of JSON on standard output, keys included, which nothing but a test may do. It runs until it is
// ended.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "media/rtsp/proxy.h"
#include "media/srtp/suite.h"

using namespace sluice;
using namespace sluice::media;

namespace {

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

struct Endpoint {
  packet::IpAddress address;
  std::uint16_t port = 0;

  std::string authority() const {
    return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ':' + std::to_string(port);
  }
  socklen_t fill(sockaddr_storage& storage) const {
    storage = {};
    if (address.family == 6) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(port);
      std::memcpy(&v6.sin6_addr, address.bytes.data(), 16);
      return sizeof v6;
    }
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), 4);
    return sizeof v4;
  }
};

packet::IpAddress address_of(const sockaddr_storage& storage) {
  return storage.ss_family == AF_INET6
             ? packet::IpAddress::from_bytes(6, &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr)
             : packet::IpAddress::from_bytes(4, &reinterpret_cast<const sockaddr_in&>(storage).sin_addr);
}

packet::IpAddress own_address(int fd, bool peer) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if ((peer ? getpeername(fd, address, &size) : getsockname(fd, address, &size)) != 0) {
    return {};
  }
  return address_of(storage);
}

int listen_on(const Endpoint& at) {
  sockaddr_storage storage;
  const socklen_t size = at.fill(storage);
  const int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0 || listen(fd, 64) != 0) {
    die("rtsp_relay: cannot listen on " + at.authority());
  }
  return fd;
}

// -1 when the server is not there.
int connect_to(const Endpoint& server) {
  sockaddr_storage storage;
  const socklen_t size = server.fill(storage);
  const int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&storage), size) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

std::string key_text(const MasterKey& key) {
  return std::string(base64_encode(key.bytes()).view());
}

std::string leg_text(const rtsp::Leg& leg) {
  char text[256];
  std::snprintf(text, sizeof text, R"({"client":"%s","client_ports":[%u,%u],"server":"%s","server_ports":[%u,%u]})",
                leg.client.str().c_str(), leg.client_ports.rtp, leg.client_ports.rtcp, leg.server.str().c_str(),
                leg.server_ports.rtp, leg.server_ports.rtcp);
  return text;
}

// Admits all, and writes down what happens.
struct Printer final : rtsp::Host {
  explicit Printer(unsigned connection) : connection_(connection) {}

  rtsp::Admission admit(const rtsp::StreamRequest& request) override {
    std::printf(R"({"event":"admit","connection":%u,"number":%lu,"kind":"%s","rate":%lu})"
                "\n",
                connection_, request.number, std::string(request.kind).c_str(), request.rate);
    static std::uint16_t next = 40'000;
    next = next >= 60'000 ? 40'000 : static_cast<std::uint16_t>(next + 4);
    rtsp::Admission admission;
    admission.towards_server = rtsp::PortPair{next, static_cast<std::uint16_t>(next + 1)};
    admission.towards_client =
        rtsp::PortPair{static_cast<std::uint16_t>(next + 2), static_cast<std::uint16_t>(next + 3)};
    return admission;
  }
  rtsp::Opening opened(const rtsp::Stream& stream) override {
    std::string ssrcs;
    for (const std::uint32_t ssrc : stream.ssrcs) {
      ssrcs += (ssrcs.empty() ? "" : ",") + std::to_string(ssrc);
    }
    const std::string from = stream.from_client ? '"' + key_text(stream.from_client->key) + '"' : "null";
    std::printf(
        R"({"event":"opened","connection":%u,"number":%lu,"kind":"%s","suite":"%s","to_client":"%s","from_client":%s,)"
        R"("plain_profile":%s,"rate":%lu,"ssrcs":[%s],"client_side":%s,"server_side":%s})"
        "\n",
        connection_, stream.number, stream.kind.c_str(), std::string(srtp::facts(stream.suite).name).c_str(),
        key_text(stream.to_client).c_str(), from.c_str(), stream.plain_profile ? "true" : "false", stream.rate,
        ssrcs.c_str(), leg_text(stream.client_side).c_str(), leg_text(stream.server_side).c_str());
    return rtsp::Opening::opened;
  }
  void closed(std::uint64_t number, rtsp::EndReason reason) override {
    std::printf(R"({"event":"closed","connection":%u,"number":%lu,"reason":"%s"})"
                "\n",
                connection_, number, rtsp::end_reason_name(reason));
  }
  void refused(rtsp::Refusal refusal, unsigned status, std::string_view) override {
    std::printf(R"({"event":"refused","connection":%u,"refusal":"%s","status":%u})"
                "\n",
                connection_, rtsp::refusal_name(refusal), status);
  }
  void left_out(rtsp::Omission omission, std::size_t count, std::string_view) override {
    std::printf(R"({"event":"left_out","connection":%u,"what":"%s","count":%zu})"
                "\n",
                connection_, rtsp::omission_name(omission), count);
  }

 private:
  unsigned connection_;
};

// One client and its connection to the server.
struct Session {
  Session(unsigned number, int client_fd, int server_fd, const rtsp::Addresses& addresses)
      : client(client_fd), server(server_fd), printer(number), proxy({}, addresses, printer) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    close(client);
    close(server);
  }

  short events(bool of_client) {
    const bool reads = of_client ? proxy.wants_client() : proxy.wants_server();
    const bool writes = !(of_client ? proxy.to_client() : proxy.to_server()).empty();
    return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
  }
  void receive(bool of_client) {
    char bytes[16384];
    const ssize_t got = recv(of_client ? client : server, bytes, sizeof bytes, 0);
    const auto now = std::chrono::steady_clock::now();
    if (got > 0) {
      const std::string_view text(bytes, static_cast<std::size_t>(got));
      of_client ? proxy.from_client(text, now) : proxy.from_server(text, now);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      of_client ? client_ended(got == 0) : proxy.server_closed();
    }
  }
  void client_ended(bool closed) { closed ? proxy.client_closed() : proxy.client_gone(); }
  void send(bool to_client) {
    SecretText& out = to_client ? proxy.to_client() : proxy.to_server();
    const std::string_view text = out.view();
    if (text.empty()) {
      return;
    }
    const ssize_t sent = ::send(to_client ? client : server, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      out.consume(static_cast<std::size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      const bool closed = errno == EPIPE;
      out.clear();
      to_client ? client_ended(closed) : proxy.server_closed();
    }
  }
  bool done() { return proxy.over() && proxy.to_client().empty() && proxy.to_server().empty(); }

  int client;
  int server;
  Printer printer;
  rtsp::Proxy proxy;
};

void serve(Session& session, short client_events, short server_events) {
  for (const bool of_client : {true, false}) {
    if (((of_client ? client_events : server_events) & (POLLIN | POLLHUP | POLLERR)) != 0) {
      session.receive(of_client);
    }
  }
  session.send(true);
  session.send(false);
  session.proxy.tick(std::chrono::steady_clock::now());
}

std::unique_ptr<Session> accept_one(int listener, const Endpoint& listen, const Endpoint& server) {
  static unsigned count = 0;
  const int client = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) {
    return nullptr;
  }
  const int upstream = connect_to(server);
  if (upstream < 0) {
    close(client);
    return nullptr;
  }
  rtsp::Addresses addresses;
  addresses.client = own_address(client, true);
  addresses.server = server.address;
  addresses.facing_client = own_address(client, false);
  addresses.facing_server = own_address(upstream, false);
  addresses.client_authority = listen.authority();
  addresses.server_authority = server.authority();
  return std::make_unique<Session>(++count, client, upstream, addresses);
}

Endpoint endpoint(const char* address, const char* port) {
  const auto parsed = packet::IpAddress::parse(address);
  if (!parsed) {
    std::fprintf(stderr, "rtsp_relay: %s\n", parsed.error().message.c_str());
    std::exit(2);
  }
  return {*parsed, static_cast<std::uint16_t>(std::atoi(port))};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: rtsp_relay LISTEN PORT SERVER PORT\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Endpoint listen = endpoint(argv[1], argv[2]);
  const Endpoint server = endpoint(argv[3], argv[4]);
  const int listener = listen_on(listen);
  std::printf(R"({"event":"listening"})"
              "\n");
  std::list<std::unique_ptr<Session>> sessions;
  while (true) {
    std::vector<pollfd> fds = {{listener, POLLIN, 0}};
    for (const auto& session : sessions) {
      fds.push_back({session->client, session->events(true), 0});
      fds.push_back({session->server, session->events(false), 0});
    }
    poll(fds.data(), fds.size(), 500);
    std::size_t at = 1;
    for (const auto& session : sessions) {
      serve(*session, fds[at].revents, fds[at + 1].revents);
      at += 2;
    }
    sessions.remove_if([](const auto& session) { return session->done(); });
    if (fds[0].revents != 0) {
      if (auto session = accept_one(listener, listen, server)) {
        sessions.push_back(std::move(session));
      }
    }
  }
}
