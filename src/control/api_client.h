// The other end of the API, for ctl and top: one request at a time, an answer or a sentence.
//
// Reads go by TCP, unless a socket is given: then all go there. Changes go over the unix socket of the gateway of this
// network namespace (default_socket_path()), or the one that the gateway itself names. Before each request the gateway
// is asked something that needs nobody (GET /api/v1/socket), so that one that stands still is reported within some
// seconds from one that is busy with a long answer.
//
// Thread-safety: any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "control/listen.h"

namespace sluice::control {

class ApiClient {
 public:
  // `socket`: a path, for everything; empty: as above.
  explicit ApiClient(ListenAddress address, std::string socket = {})
      : address_(std::move(address)), socket_(std::move(socket)) {}
  // The body of the answer. Errors: no gateway there (says where it was expected), one that does not answer, a server
  // that is none by its Server header, or what the gateway itself answered.
  Expected<std::string> get(const std::string& path) const;
  // Waits for as long as the gateway shows that it runs. Over a socket that a gateway has named `body` goes only to a
  // process of root's, a system user's or this user's own: there may be keys in it.
  Expected<std::string> post(const std::string& path, const std::string& body = {}) const;
  // The answer to a change piece by piece, as it comes, until its end or `take` answers false. What is at the other end
  // must send something every some seconds.
  Expected<void> stream(const std::string& path, const std::string& body,
                        const std::function<bool(std::string_view)>& take) const;

 private:
  // Where a change goes, which runs.
  Expected<std::string> changes_go_to() const;
  // Where changes go: a socket's path; empty: by TCP.
  Expected<std::string> find_socket() const;

  ListenAddress address_;
  std::string socket_;
};

}  // namespace sluice::control
