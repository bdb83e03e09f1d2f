// The RTSP proxy on sockets: a thread that accepts on the twins what clients send to servers, speaks to the servers
// with the clients' addresses, and puts the media that they agree on into the stage "srtp" (docs/rtsp.md).
//
// Thread-safety: start() and destruction on the control thread; figures() any thread. Lanes never wait for it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "control/rtsp/connection.h"
#include "control/rtsp/local_delivery.h"

namespace sluice::control::rtsp {

class RtspProxy {
 public:
  // `streams` outlives it and has rtsp(). Nothing is half-started. `admission` empty: RateBudget by max_rate.
  static Expected<std::unique_ptr<RtspProxy>> start(function::MediaStreams& streams,
                                                    const std::vector<std::string>& twins,
                                                    std::unique_ptr<Admission> admission = nullptr);
  // Tells servers that their clients have gone, for half a second at most.
  ~RtspProxy();

  std::vector<FigureSnapshot> figures() const { return figures_.list(); }

 private:
  struct Watched {
    Watched(const Shared& shared, Accepted accepted, Time now) : connection(shared, std::move(accepted), now) {}
    Connection connection;
    std::uint32_t asked[2] = {0, 0};  // of epoll, by side
  };

  RtspProxy(function::MediaStreams& streams, std::unique_ptr<Admission> admission);
  Expected<void> open(const std::vector<std::string>& twins);
  void run();
  void accept_all(int listener, Time now);
  void watch_listeners(bool on);
  void serve(std::uint64_t id, std::uint32_t events, Time now);
  // Calls f with the connection, and ends it when memory does not last.
  template <typename F>
  void guarded(std::uint64_t connection, const F& f);
  void watch(std::uint64_t connection);
  void tick(Time now);
  void say_farewell();

  function::MediaStreams& streams_;
  std::unique_ptr<Admission> admission_;
  Figures figures_;
  std::unique_ptr<LocalDelivery> delivery_;
  std::vector<Fd> listeners_;
  Fd epoll_, wake_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Watched>> connections_;
  std::uint64_t next_connection_ = 1;
  bool listening_ = true;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sluice::control::rtsp
