#include "media/rtsp/proxy_text.h"

#include <algorithm>
#include <array>

#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

struct RefusalFacts {
  const char* name;
  unsigned status;
};

constexpr std::array<RefusalFacts, refusals> refusal_table = {{
    {"unreadable", 400},         {"version", 505},        {"cseq", 400},
    {"proxy_require", 551},      {"back_channel", 551},   {"method", 501},
    {"description_body", 501},   {"busy", 503},           {"transport", 400},
    {"no_offer", 455},           {"key_used", 455},       {"interleaved", 461},
    {"plain_profile", 461},      {"multicast", 461},      {"destination", 461},
    {"unusable_transport", 461}, {"key_mgmt", 400},       {"too_many_streams", 453},
    {"not_admitted", 453},       {"no_media_ports", 503}, {"ports_in_use", 503},
    {"not_opened", 503},         {"description", 502},    {"setup_answer", 502},
    {"server_unreadable", 502},  {"unanswered", 504},
}};

constexpr std::array<const char*, end_reasons> end_names = {
    "teardown",   "timeout",      "no_session", "client_closed", "client_gone", "server_gone", "setup_failed",
    "not_opened", "ports_in_use", "protocol",   "unanswered",    "overflow",    "stopped",
};

constexpr std::array<const char*, omissions> omission_names = {"medium", "description_line", "header_line"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Status {
  unsigned code;
  std::string_view text;
};

constexpr Status statuses[] = {
    {400, "Bad Request"},
    {413, "Request Entity Too Large"},
    {414, "Request-URI Too Large"},
    {431, "Request Header Fields Too Large"},
    {404, "Not Found"},
    {453, "Not Enough Bandwidth"},
    {455, "Method Not Valid in This State"},
    {461, "Unsupported Transport"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Time-out"},
    {505, "RTSP Version Not Supported"},
    {551, "Option not supported"},
};

}  // namespace

const char* refusal_name(Refusal refusal) {
  return refusal_table[static_cast<std::size_t>(refusal)].name;
}

unsigned refusal_status(Refusal refusal) {
  return refusal_table[static_cast<std::size_t>(refusal)].status;
}

const char* end_reason_name(EndReason reason) {
  return end_names[static_cast<std::size_t>(reason)];
}

const char* omission_name(Omission omission) {
  return omission_names[static_cast<std::size_t>(omission)];
}

std::string_view status_text(unsigned status) {
  for (const Status& one : statuses) {
    if (one.code == status) {
      return one.text;
    }
  }
  return "Error";
}

std::string_view session_of(std::string_view value) {
  return trim(take_until(value, ';'));
}

bool is_refused_method(std::string_view method) {
  return method == "ANNOUNCE" || method == "RECORD";
}

// The option (RFC 2326 section 12.32) with which a client asks for a medium that it sends itself.
bool wants_back_channel(const Message& request) {
  const auto joined = request.joined("Require");
  for (std::string_view options = joined ? joined->view() : std::string_view{}; !options.empty();) {
    if (same_name(trim(take_until(options, ',')), back_channel_option)) return true;
  }
  return false;
}

Message own_response(unsigned status, std::string_view cseq) {
  Message response = Message::response(status, status_text(status));
  if (!cseq.empty()) {
    response.set_header("CSeq", cseq);
  }
  return response;
}

bool holds_description(const Message& message) {
  if (message.body().empty()) {
    return false;
  }
  // Some peers pass over a byte order mark, blanks and empty lines in front, and need no v=.
  const std::string_view body = message.body();
  const std::string_view first = body.substr(std::min(body.size(), body.find_first_not_of(" \t\r\n\xEF\xBB\xBF")));
  constexpr std::string_view version = "v=0";
  if (first.starts_with(version) && (first.size() == version.size() || !is_digit(first[version.size()]))) {
    return true;
  }
  if (first.starts_with("m=")) {
    return true;
  }
  const auto joined = message.joined("Content-Type");
  for (std::string_view types = joined ? joined->view() : std::string_view{}; !types.empty();) {
    std::string_view type = take_unquoted(types, ',');
    if (same_name(trim(take_until(type, ';')), "application/sdp")) {
      return true;
    }
  }
  return false;
}

}  // namespace sluice::media::rtsp
