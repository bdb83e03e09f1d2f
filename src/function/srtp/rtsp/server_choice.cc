#include "function/srtp/rtsp/server_choice.h"

#include <algorithm>

#include "media/rtsp/reader.h"
#include "media/rtsp/uri.h"

namespace sluice::function::rtsp {
namespace {

using function::RtspServer;

bool has_path(const RtspServer& server, std::string_view rest) {
  if (!rest.starts_with(server.path)) return false;
  rest.remove_prefix(server.path.size());
  return server.path.empty() || rest.empty() || rest.front() == '/' || rest.front() == '?';
}

bool has_name(const RtspServer& server, std::string_view authority) {
  return server.name.empty() || media::rtsp::is_of_host(authority, server.name);
}

bool takes_all(const RtspServer& server) {
  return server.name.empty() && server.path.empty();
}

}  // namespace

std::optional<FirstRequest> first_request(std::string_view bytes) {
  media::rtsp::Reader reader;
  reader.append(bytes);
  media::rtsp::Reader::Item item = reader.next();
  if (const auto* const message = std::get_if<media::rtsp::Message>(&item); message != nullptr) {
    if (!message->is_request()) return FirstRequest{};
    return FirstRequest{std::string(message->uri()), std::string(message->header("CSeq").value_or("")), {}};
  }
  if (reader.problem() != media::rtsp::Problem::none) return FirstRequest{{}, {}, reader.problem_text()};
  return std::holds_alternative<std::monostate>(item) ? std::nullopt : std::optional(FirstRequest{});
}

const RtspServer* server_for(const function::RtspOptions& options, int family, std::string_view uri) {
  const std::string_view authority = media::rtsp::authority_of(uri), rest = media::rtsp::uri_parts(uri).rest;
  const auto is_it = [&](const RtspServer& server) {
    return server.address.family == family && has_name(server, authority) && has_path(server, rest);
  };
  const auto found = std::ranges::find_if(options.upstream, is_it);
  return found == options.upstream.end() ? nullptr : &*found;
}

bool has_one_server(const function::RtspOptions& options, int family) {
  const auto of_family = [family](const RtspServer& server) { return server.address.family == family; };
  const auto first = std::ranges::find_if(options.upstream, of_family);
  return first != options.upstream.end() && takes_all(*first);
}

}  // namespace sluice::function::rtsp
