// httplib's server with bounds on a whole request: so many bytes of it are taken, and for so long. By itself httplib
// bounds the length of an address and of a body whose length is said, and how long it waits for the next byte; headers
// without end, or byte by byte, it would go on to keep.
//
// What goes beyond is taken for the end of the connection: headers that are cut so are answered with 400, an address is
// not answered. A connection carries one request, so that stop() waits for an idle client no longer than for a request.
// An answer may take as long as its reader takes some of it within that time. Of the ends of a connection handlers see
// who is at the other end of a unix socket (request.remote_addr: "uid 0, process 7"), and nothing of others.
//
// Thread-safety: as of httplib::Server (0.11 to 0.18, whose SSLServer does the like).
#pragma once

#include <httplib.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace sluice::control {

class BoundedServer final : public httplib::Server {
 public:
  BoundedServer(std::size_t most_bytes, std::chrono::milliseconds time) : most_bytes_(most_bytes), time_(time) {}
  // In place of httplib's bind_to_port(): a socket that listens, which the server closes. Before listen_after_bind().
  void listen_on(socket_t listening) { svr_sock_ = listening; }

 private:
  bool process_and_close_socket(socket_t socket) override;
  // The two shapes that process_request() has had: 0.18 wants to know who is at the ends, 0.11 asks `stream`.
  using Setup = std::function<void(httplib::Request&)>;
  using AsksStream = bool (httplib::Server::*)(httplib::Stream&, bool, bool&, const Setup&);
  using TakesEnds = bool (httplib::Server::*)(httplib::Stream&, const std::string&, int, const std::string&, int, bool,
                                              bool&, const Setup&);
  bool process(AsksStream request, httplib::Stream& stream);
  bool process(TakesEnds request, httplib::Stream& stream);

  const std::size_t most_bytes_;
  const std::chrono::milliseconds time_;
};

}  // namespace sluice::control
