#include "match/rules/buffer.h"

#include <algorithm>
#include <array>

namespace sluice::match {
namespace {

using B = Buffer;

constexpr auto names = std::to_array<BufferName>({
    {"pkt_data", B::payload, true},
    {"file_data", B::file_data, true},
    {"file.data", B::file_data, true},
    {"base64_data", B::base64_data, true},
    {"http_uri", B::http_uri, false},
    {"http.uri", B::http_uri, true},
    {"http_raw_uri", B::http_raw_uri, false},
    {"http.uri.raw", B::http_raw_uri, true},
    {"http_method", B::http_method, false},
    {"http.method", B::http_method, true},
    {"http_header", B::http_header, false},
    {"http.header", B::http_header, true},
    {"http_raw_header", B::http_raw_header, false},
    {"http.header.raw", B::http_raw_header, true},
    {"http_cookie", B::http_cookie, false},
    {"http.cookie", B::http_cookie, true},
    {"http_client_body", B::http_request_body, false},
    {"http.request_body", B::http_request_body, true},
    {"http_server_body", B::http_response_body, false},
    {"http.response_body", B::http_response_body, true},
    {"http_stat_code", B::http_stat_code, false},
    {"http.stat_code", B::http_stat_code, true},
    {"http_stat_msg", B::http_stat_msg, false},
    {"http.stat_msg", B::http_stat_msg, true},
    {"http_user_agent", B::http_user_agent, false},
    {"http.user_agent", B::http_user_agent, true},
    {"http_host", B::http_host, false},
    {"http.host", B::http_host, true},
    {"http_raw_host", B::http_raw_host, false},
    {"http.host.raw", B::http_raw_host, true},
    {"http_referer", B::http_referer, true},
    {"http.referer", B::http_referer, true},
    {"http_accept", B::http_accept, true},
    {"http.accept", B::http_accept, true},
    {"http_accept_enc", B::http_accept_enc, true},
    {"http.accept_enc", B::http_accept_enc, true},
    {"http_accept_lang", B::http_accept_lang, true},
    {"http.accept_lang", B::http_accept_lang, true},
    {"http_connection", B::http_connection, true},
    {"http.connection", B::http_connection, true},
    {"http_content_type", B::http_content_type, true},
    {"http.content_type", B::http_content_type, true},
    {"http_content_len", B::http_content_len, true},
    {"http.content_len", B::http_content_len, true},
    {"http.location", B::http_location, true},
    {"http.server", B::http_server, true},
    {"http_protocol", B::http_protocol, true},
    {"http.protocol", B::http_protocol, true},
    {"http_request_line", B::http_request_line, true},
    {"http.request_line", B::http_request_line, true},
    {"http_response_line", B::http_response_line, true},
    {"http.response_line", B::http_response_line, true},
    {"http_start", B::http_start, true},
    {"http.start", B::http_start, true},
    {"http_header_names", B::http_header_names, true},
    {"http.header_names", B::http_header_names, true},
    {"ipv4.hdr", B::ipv4_header, true},
    {"ipv6.hdr", B::ipv6_header, true},
    {"tcp.hdr", B::tcp_header, true},
    {"udp.hdr", B::udp_header, true},
    {"icmpv4.hdr", B::icmpv4_header, true},
    {"icmpv6.hdr", B::icmpv6_header, true},
});

}  // namespace

std::span<const BufferName> buffer_names() {
  return names;
}

const BufferName* find_buffer(std::string_view name) {
  const auto* const at = std::find_if(names.begin(), names.end(), [&](const BufferName& b) { return b.name == name; });
  return at == names.end() ? nullptr : at;
}

std::string_view name_of(Buffer buffer) {
  return std::find_if(names.begin(), names.end(), [&](const BufferName& b) { return b.buffer == buffer; })->name;
}

}  // namespace sluice::match
