#include "port/replay_request.h"

#include <string_view>

namespace sluice::port {
namespace {

constexpr std::size_t in_uri = 600, in_headers = 600;  // bytes

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/.-_=&+:;,()<>!*|").find(c) != std::string_view::npos;
}

std::string in_percent(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      text += c;
    } else {
      text += {'%', digits[byte / 16], digits[byte % 16]};
    }
  }
  return text;
}

std::string without_line_ends(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    if (c != '\r' && c != '\n' && c != '\0') text += c;
  }
  return text;
}

}  // namespace

std::string attack_request(const std::vector<std::string>& pieces, std::mt19937_64& random) {
  const auto piece = [&] { return std::string_view(pieces[random() % pieces.size()]).substr(0, 64); };
  std::string uri = "/";
  while (uri.size() < in_uri / 2) uri += in_percent(piece());
  uri += '?';
  while (uri.size() < in_uri) uri += in_percent(piece()) + '&';
  std::string headers = "Cookie: " + without_line_ends(piece()) + "\r\n";
  while (headers.size() < in_headers) headers += "X: " + without_line_ends(piece()) + "\r\n";
  return "GET " + uri + " HTTP/1.1\r\nHost: www.example\r\n" + headers + "\r\n";
}

}  // namespace sluice::port
