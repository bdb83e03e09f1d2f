// The gateway's API: HTTP and JSON, in threads of its own (docs/api.md has every path). Reads come by TCP on a loopback
// address or over a unix socket (api_socket.h); changes over the socket, which root and a group may open, for who makes
// them can stop the gateway.
//
// Lanes never wait for it: it reads what StatsSource gives it. Requests are bounded (8 KB of address, 4 KB of body,
// 64 KB in all, 2 s to arrive), reads are answered one at a time and meanwhile too while a reload is at work, an error
// is {"error": "a sentence"}. By TCP it refuses what a web page in the administrator's browser could send: requests
// that name another host, and changes that carry an Origin.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "control/capture_request.h"
#include "control/config.h"
#include "control/listen.h"
#include "control/snapshot.h"
#include "engine/api.h"

namespace sluice::control {

// How every answer of the API begins its Server header (RFC 9110 section 10.2.4); the version follows.
inline constexpr std::string_view server_product = "sluice/";

// Where the API's answers come from. Called from the API's threads while lanes run; must not block them. Reads come one
// at a time; reload(), reset_device() and stop() also while a read or another of them is at work.
class StatsSource {
 public:
  virtual ~StatsSource() = default;
  virtual Snapshot snapshot() = 0;
  // An Error when the chain has no routes (it is not a router).
  virtual Expected<RouteTable> routes(const RouteQuery& query) = 0;
  virtual Expected<std::vector<NeighbourRow>> neighbours() = 0;
  // What a route of an element's answers (engine/api.h); 409 where the element is not in the chain. One that
  // waits_for_reload waits for a reload at work.
  virtual engine::ApiAnswer ask(const engine::ElementType& type, const engine::ApiRoute& route,
                                const engine::ApiRequest& request) = 0;
  // Frames as they come and go, from now on (capture_request.h): the stream is read from one of the API's threads, and
  // ends there when the gateway does. An Error is a sentence.
  virtual Expected<std::unique_ptr<CaptureStream>> capture(const CaptureRequest& request) = 0;
  // config_json.h
  virtual std::string config() = 0;
  // The functions of the chain, in order, each with where it is from and what it shows of itself (engine/view.h).
  virtual std::vector<FunctionRow> functions() = 0;
  // Reads the configuration again; what can change without a restart is in force when it returns. One sentence on what
  // was done; may take seconds. An Error, with a line for each mistake of the file, leaves everything as it was.
  virtual Expected<std::string> reload() = 0;
  // Takes a lost GPU again; `device`: its name ("cuda:0"), or empty: the one that is lost. One sentence on what was
  // done; may take seconds. An Error says why it cannot be.
  virtual Expected<std::string> reset_device(std::string_view device) = 0;
  // Asks the gateway to end cleanly, and returns before it does.
  virtual void stop() = 0;
};

class Api {
 public:
  // The Error of start() when an address or the socket is in use, or cannot be had at this moment; nothing when there
  // is to be no API. Connections are refused before and after.
  static Expected<void> check_address(const ApiOptions& options);
  // Waits, for so long at most, while another program has the TCP address: a gateway that was killed keeps it until its
  // memory is given back. False: it still has it.
  static bool await_address(const ApiOptions& options, std::chrono::milliseconds patience);
  // `options` must say where: by TCP, or a socket. `source` outlives the Api. An Error when the address is in use or
  // not of this machine, or the socket cannot be made; one that nobody asked for by name ("auto") is only said in the
  // log.
  static Expected<std::unique_ptr<Api>> start(const ApiOptions& options, StatsSource& source);
  virtual ~Api() = default;
  // Where it listens by TCP: the real port when 0 was asked for. Without a host: nowhere.
  virtual const ListenAddress& address() const = 0;
  // The socket's path; empty: there is none.
  virtual const std::string& socket() const = 0;
};

}  // namespace sluice::control
