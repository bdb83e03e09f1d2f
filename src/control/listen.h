// "127.0.0.1:9230" or "[::1]:9230": where the API listens, and where ctl and top look for it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::control {

inline constexpr std::string_view default_listen = "127.0.0.1:9230";

struct ListenAddress {
  std::string host;  // an IP address or "localhost", without brackets
  int port = 0;      // 0: any free port
  bool loopback = false;
  std::string str() const;
};

Expected<ListenAddress> parse_listen(std::string_view text);

}  // namespace sluice::control
