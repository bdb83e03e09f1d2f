// One client's RTSP connection, the one to its server, and the proxy core between them: bytes in and out of two sockets
// that never block, and media that are put into the element's table and taken out of it.
//
// Ends when the core says so, or nothing has come for too long. Then its media are taken out, what waits is written,
// and both sides are notified. done() is true when both have ended, too, and else at the first tick() after `farewell`,
// whatever they have taken until then. At once, with a reset for the client, if the server cannot be reached. A client
// without media that ends its side of the connection hears the answers to what it has asked first. Thread-safety: one
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "function/media_streams.h"
#include "function/srtp/rtsp/admission.h"
#include "function/srtp/rtsp/event_log.h"
#include "function/srtp/rtsp/media_ports.h"
#include "function/srtp/rtsp/metrics.h"
#include "function/srtp/rtsp/stream_settings.h"
#include "function/srtp/rtsp/transparent_socket.h"
#include "media/rtsp/proxy.h"

namespace sluice::function::rtsp {

using Time = media::rtsp::Time;
enum class Side : std::uint8_t { client, server };

class Connection;

// The connections beside one.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // Connection::probe_for() of each.
  virtual void probe_for(const Connection& asking, const media::rtsp::PortPair& ports, Time now) = 0;
  // Whether Connection::is_in_the_way() of any.
  virtual bool in_the_way(const Connection& asking, std::span<const function::MediaKey> keys) const = 0;
};

// What all connections share.
struct Shared {
  const function::RtspOptions& options;
  const std::vector<std::string>& twins;  // of the ports
  function::MediaStreams& streams;
  Admission& admission;
  MediaPorts& ports;  // of the explicit mode
  Metrics& metrics;
  EventLogs& logs;
  Neighbours* neighbours = nullptr;  // null: there are none
};

class Connection final : private media::rtsp::Host {
 public:
  static constexpr std::chrono::seconds farewell{2};

  Connection(Shared shared, Accepted accepted, Time now);
  ~Connection() override;

  int fd(Side side) const { return end(side).fd.get(); }  // -1: there is none
  // EPOLLIN, EPOLLOUT or none.
  std::uint32_t interest(Side side) const;
  void ready(Side side, std::uint32_t events, Time now);
  void tick(Time now);
  // The gateway stops: the server gets a TEARDOWN of each session.
  void stop(Time now);
  bool done() const { return done_; }

  // A client that asks for ports that it has may have vanished and come back. Where this is another connection of the
  // same client, with a medium at one of these ports: finds out within probe_time whether that client is still there.
  // If it is not, the connection ends as with any client that has gone.
  void probe_for(const Connection& asking, const media::rtsp::PortPair& ports, Time now);
  // Whether it is another one of the same client and has a medium's stream of one of these keys.
  bool is_in_the_way(const Connection& asking, std::span<const function::MediaKey> keys) const;

 private:
  struct End {
    Fd fd;
    bool ended = false;  // it sends no more
  };
  struct Media {
    std::vector<function::MediaKey> keys;  // the last is the client's RTCP
    std::optional<MediaPorts::Pair> ports;
    media::rtsp::PortPair client_ports;
    Medium medium;
    std::uint64_t noted = 0;
  };

  Connection(Shared shared, Accepted&& accepted, Expected<Fd> server, Time now);
  media::rtsp::Admission admit(const media::rtsp::StreamRequest& request) override;
  bool take_ports(const media::rtsp::StreamRequest& request, Media& media, media::rtsp::Admission& answer);
  media::rtsp::Opening opened(const media::rtsp::Stream& stream) override;
  void closed(std::uint64_t number, media::rtsp::EndReason reason) override;
  void refused(media::rtsp::Refusal refusal, unsigned status, std::string_view why) override;
  void left_out(media::rtsp::Omission omission, std::size_t count, std::string_view why) override;

  const End& end(Side side) const { return side == Side::client ? client_ : server_; }
  End& end(Side side) { return side == Side::client ? client_ : server_; }
  media::SecretText& output(Side side) { return side == Side::client ? proxy_.to_client() : proxy_.to_server(); }
  void connected(Time now);
  void receive(Side side, Time now);
  std::uint64_t messages() const;
  void discard(Side side);
  Sides sides_of(const media::rtsp::Stream& stream) const;
  std::optional<function::MeasureSettings> measuring_of(const Medium& medium) const;
  void send(Side side);
  void side_ended(Side side, bool closed);
  bool is_beside(const Connection& asking) const;
  bool has_media_at(const media::rtsp::PortPair& ports) const;
  void look_at_probe(Time now);
  void after(Time now);
  void unreachable(const std::string& why);
  void count_rate();
  void abort();

  Shared shared_;
  const bool explicit_;
  const std::uint16_t client_port_;            // of the gateway
  const std::optional<std::size_t> upstream_;  // Accepted's
  Endpoint client_endpoint_, server_endpoint_;
  End client_, server_;
  std::map<std::uint64_t, Media> media_;  // admitted
  std::string not_admitted_;              // why the last request was not; empty: media_ports
  std::optional<Time> probed_;            // since then
  Time received_, heard_;                 // the last bytes of either side, and the last whole message
  Time deadline_;                         // of the connection to the server, later of the farewell
  bool connecting_ = true, done_ = false;
  bool client_hears_ = false;              // it sends no more, and is owed answers
  bool ending_ = false, leaving_ = false;  // the farewell's time runs; all is written, both sides are notified
  media::rtsp::Proxy proxy_;               // ends first, and reports what it closes
};

}  // namespace sluice::function::rtsp
