// The RTSP proxy on sockets: a thread that accepts on the twins what clients send to servers, speaks to the servers
// with the clients' addresses, and puts the media that they agree on into the element "srtp" (docs/rtsp.md). In
// explicit mode clients open an address of the host's, and the proxy speaks to the server that they mean with its own.
//
// Thread-safety: start() and destruction on the control thread; metrics() and ailment() any thread. Lanes never wait
// for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "function/srtp/rtsp/client_counts.h"
#include "function/srtp/rtsp/connection.h"
#include "function/srtp/rtsp/local_delivery.h"
#include "function/srtp/rtsp/media_ports.h"
#include "function/srtp/rtsp/own_sources.h"
#include "function/srtp/rtsp/server_choice.h"

namespace sluice::function::rtsp {

class RtspProxy final : private Neighbours {
 public:
  // `streams` outlives it and has rtsp(). `twins`: of all ports, by index. Nothing is half-started. `admission` empty:
  // RateBudget by max_rate.
  static Expected<std::unique_ptr<RtspProxy>> start(function::MediaStreams& streams,
                                                    const std::vector<std::string>& twins,
                                                    std::unique_ptr<Admission> admission = nullptr);
  // Notifies servers that their clients have gone, for half a second at most.
  ~RtspProxy() override;

  std::vector<engine::ServiceMetric> metrics() const { return metrics_.list(); }
  // Why RTSP may not reach it (LocalDelivery); empty: it does. Any thread.
  std::string ailment() const { return delivery_ ? delivery_->ailment() : ""; }

 private:
  struct Watched {
    Watched(const Shared& shared, Accepted accepted, ClientCounts::Share of_client, Time now)
        : share(std::move(of_client)), connection(shared, std::move(accepted), now) {}
    ClientCounts::Share share;
    Connection connection;
    std::uint32_t asked[2] = {0, 0};  // of epoll, by side
  };
  // A connection whose first request must say which server is meant.
  struct Greeting {
    Accepted accepted;
    ClientCounts::Share share;
    Time since;
  };

  struct Listener {
    Fd fd;
    std::uint16_t port;  // of the gateway
  };

  RtspProxy(function::MediaStreams& streams, std::vector<std::string> twins, std::unique_ptr<Admission> admission);
  Expected<void> open();
  void run();
  Expected<void> listen(std::uint16_t port_of_twin);
  void accept_all(const Listener& listener, Time now);
  void take(Accepted accepted, ClientCounts::Share share, Time now);
  void greet(std::uint64_t id, Time now);
  void refuse(const Accepted& accepted, const FirstRequest& request);
  void connect(std::uint64_t id, Accepted accepted, ClientCounts::Share share, Time now);
  void probe_for(const Connection& asking, const media::rtsp::PortPair& ports, Time now) override;
  bool in_the_way(const Connection& asking, std::span<const function::MediaKey> keys) const override;
  void watch_listeners(bool on);
  void serve(std::uint64_t id, std::uint32_t events, Time now);
  // Calls f with the connection, and ends it when memory does not last.
  template <typename F>
  void guarded(std::uint64_t connection, const F& f);
  void watch(std::uint64_t connection);
  void tick(Time now);
  void say_farewell();

  function::MediaStreams& streams_;
  const std::vector<std::string> twins_;  // of the ports
  std::unique_ptr<Admission> admission_;
  MediaPorts ports_;  // outlives the connections
  Metrics metrics_;
  EventLogs logs_;
  ClientCounts clients_;                     // outlive the connections, too
  std::unique_ptr<LocalDelivery> delivery_;  // with `servers`
  std::unique_ptr<OwnSources> own_sources_;  // with `listen`
  std::vector<Listener> listeners_;
  Fd epoll_, wake_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Watched>> connections_;
  std::unordered_map<std::uint64_t, Greeting> greetings_;
  std::uint64_t next_connection_ = 1;
  bool listening_ = true;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice::function::rtsp
