// What IKE daemons speak to in place of the kernel's XFRM: a unix socket, and a thread that answers what comes there.
// The daemon is an ordinary one; preload.cc brings its netlink sockets here (docs/ipsec-ike.md).
//
//   auto server = xfrm::Server::start(database, "/run/sluice/xfrm.sock", {.is_local = ..., .log = ...});
//   database.set_events(server->get());
//   ...
//   database.set_events(nullptr);  // before the server ends
//
// Thread-safety: start() and the end by one thread; Events and counts by any. The functions of Surroundings are called
// by the server's thread. Cost: none on the packet path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/error.h"
#include "ipsec/database.h"
#include "ipsec/xfrm/connection.h"
#include "ipsec/xfrm/listener.h"
#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {

class Server final : public Events {
 public:
  // An Error: of Listener::open().
  static Expected<std::unique_ptr<Server>> start(Database& database, const std::string& path,
                                                 Surroundings surroundings);
  ~Server() override;  // SAs and policies stay
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Of the Database. They wait for nothing.
  void acquire(const Acquire& acquire) override;
  void expired(const SaStatus& sa, bool hard) override;
  void moved(const SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) override;

  struct Counts {
    std::uint64_t requests = 0;     // datagrams
    std::uint64_t refused = 0;      // requests that ask for what is not supported, or make no sense
    std::uint64_t events = 0;       // told to a daemon
    std::uint64_t events_lost = 0;  // nobody listened, or it did not read
    std::uint64_t connections = 0;  // now
  };
  Counts counts() const;

 private:
  struct Expiry {
    SaStatus sa;
    bool hard;
  };
  struct Mapping {
    SaStatus sa;
    packet::IpAddress source;
    std::uint16_t port;
  };
  using Event = std::variant<Acquire, Expiry, Mapping>;

  Server(Database& database, Listener listener, Surroundings surroundings);
  void push(Event event, std::size_t most);
  void run();
  void tell_events();
  void tell(const Told& told);
  void accept_one();
  void serve(Connection& connection);

  Listener listener_;
  const std::function<void(const std::string&)> log_;
  Requests requests_;
  std::vector<std::unique_ptr<Connection>> connections_;  // of the thread
  int wake_ = -1;                                         // an eventfd
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> handled_{0}, refused_{0}, told_{0}, lost_{0}, open_{0};
  std::mutex mutex_;  // of what follows
  std::vector<Event> events_;
  std::thread thread_;
};

}  // namespace sluice::ipsec::xfrm
