// Explicit mode: which server a client means, by the first request of its connection.
//
// Thread-safety: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "function/srtp/rtsp_options.h"

namespace sluice::function::rtsp {

// What a connection begins with.
struct FirstRequest {
  std::string uri, cseq;  // empty: it cannot be read, which is for the proxy to answer
  std::string problem;    // why it cannot be read, for a log: media::rtsp::Reader::problem_text(); else empty
};
// Nothing: there must come more.
std::optional<FirstRequest> first_request(std::string_view bytes);

// The first of this family whose name and path the URI meets; null: none.
const function::RtspServer* server_for(const function::RtspOptions& options, int family, std::string_view uri);
// Whether it is the same whatever the URI.
bool has_one_server(const function::RtspOptions& options, int family);

}  // namespace sluice::function::rtsp
