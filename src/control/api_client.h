// The other end of the API, for ctl and top: one request at a time, an answer or a sentence.
#pragma once

#include <string>

#include "base/error.h"
#include "control/listen.h"

namespace sluice::control {

class ApiClient {
 public:
  explicit ApiClient(ListenAddress address) : address_(std::move(address)) {}
  // The body of the answer. Errors: no gateway there (says where it was expected), a server that is none by its Server
  // header, or what the gateway itself answered.
  Expected<std::string> get(const std::string& path) const;
  Expected<std::string> post(const std::string& path, const std::string& body = {}) const;

 private:
  ListenAddress address_;
};

}  // namespace sluice::control
