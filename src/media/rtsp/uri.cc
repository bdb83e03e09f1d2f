#include "media/rtsp/uri.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>

#include "media/text.h"
#include "packet/ip_address.h"

namespace sluice::media::rtsp {

namespace {

// What ends a path; "" stands for "/".
std::string_view without_slash(std::string_view rest) {
  if (!rest.empty() && rest.back() == '/') {
    rest.remove_suffix(1);
  }
  return rest;
}

std::string_view without_user(std::string_view authority) {
  const std::size_t at = authority.rfind('@');
  return at == std::string_view::npos ? authority : authority.substr(at + 1);
}

struct HostPort {
  std::string_view host, port;
};

// Of "[2001:db8::1]:554" the host is in its brackets still.
HostPort split(std::string_view authority) {
  constexpr std::string_view usual_port = "554";
  const std::size_t colon = authority.rfind(':');
  const bool inside = colon != std::string_view::npos && authority.find(']', colon) != std::string_view::npos;
  if (colon == std::string_view::npos || inside) return {authority, usual_port};
  const std::string_view port = authority.substr(colon + 1);
  return {authority.substr(0, colon), port.empty() ? usual_port : port};
}

std::optional<packet::IpAddress> literal(std::string_view host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto address = packet::IpAddress::parse(host);
  return address ? std::optional(*address) : std::nullopt;
}

bool same_host(std::string_view a, std::string_view b) {
  if (same_name(a, b)) return true;
  const auto one = literal(a), other = literal(b);
  return one && other && *one == *other;
}

}  // namespace

UriParts uri_parts(std::string_view uri) {
  const std::size_t colon = uri.find("://");
  if (colon == std::string_view::npos || uri.substr(0, colon).find('/') != std::string_view::npos) {
    return {{}, {}, uri};
  }
  const std::string_view behind = uri.substr(colon + 3);
  const std::size_t end = std::min(behind.find_first_of("/?"), behind.size());
  return {uri.substr(0, colon), behind.substr(0, end), behind.substr(end)};
}

std::string control_uri(std::string_view base, std::string_view control) {
  if (!uri_parts(control).scheme.empty()) {
    return std::string(control);
  }
  if (control.empty() || control == "*") {
    return std::string(base);
  }
  std::string uri(base);
  if (!uri.ends_with('/') && !control.starts_with('/')) {
    uri += '/';
  } else if (uri.ends_with('/') && control.starts_with('/')) {
    control.remove_prefix(1);
  }
  return uri.append(control);
}

std::string resolved_uri(std::string_view base, std::string_view reference) {
  const UriParts parts = uri_parts(base);
  if (!uri_parts(reference).scheme.empty() || reference.empty() || reference == "*") {
    return control_uri(base, reference);
  }
  const std::string_view path = parts.rest.substr(0, parts.rest.find('?'));
  const std::size_t slash = path.rfind('/');
  std::string uri(base.substr(0, base.size() - parts.rest.size()));
  if (!reference.starts_with('/')) {
    uri.append(slash == std::string_view::npos ? "/" : path.substr(0, slash + 1));
  }
  return uri.append(reference);
}

std::vector<std::string> control_uris(std::string_view base, std::string_view control) {
  std::vector<std::string> uris = {control_uri(base, control), resolved_uri(base, control)};
  if (control == "*") {
    uris.push_back(control_uri(base, "/*"));  // ffmpeg's
  }
  const bool is_relative = uri_parts(control).scheme.empty() && !control.empty() && control != "*";
  const std::size_t query = base.find('?');
  const std::string_view path = base.substr(0, query);
  if (is_relative && control.starts_with('?')) {
    uris.push_back(std::string(path).append(control));
  } else if (is_relative && query != std::string_view::npos) {
    uris.push_back(control_uri(path, control).append(base.substr(query)));
  }
  return uris;
}

bool same_resource(std::string_view a, std::string_view b) {
  return without_slash(uri_parts(a).rest) == without_slash(uri_parts(b).rest);
}

namespace {

std::string percent_decoded(std::string_view text) {
  constexpr unsigned escape = 3;  // "%2F"
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto octet = text[at] == '%' && text.size() - at >= escape
                           ? number<std::uint8_t>(text.substr(at + 1, escape - 1), UINT8_MAX, 16)
                           : std::nullopt;
    plain += octet ? static_cast<char>(*octet) : text[at];
    at += octet ? escape - 1 : 0;
  }
  return plain;
}

// What clients may make of a path before they ask for it (RFC 3986 section 6.2.2).
std::string normal(std::string_view rest) {
  const std::size_t query = rest.find('?');
  std::string path;
  for (std::string_view left = rest.substr(0, query); !left.empty();) {
    const std::string segment = percent_decoded(take_until(left, '/'));
    if (segment == "..") {
      path.resize(path.empty() ? 0 : path.rfind('/'));
    } else if (!segment.empty() && segment != ".") {
      path.append("/").append(segment);
    }
  }
  return path + (query == rest.npos ? std::string() : percent_decoded(rest.substr(query)));
}

}  // namespace

bool alike_resource(std::string_view a, std::string_view b) {
  return normal(uri_parts(a).rest) == normal(uri_parts(b).rest);
}

namespace {

// "user:secret", where a host has a port.
bool may_be_user(std::string_view authority) {
  const std::size_t colon = authority.find(':');
  return !authority.starts_with('[') && colon != std::string_view::npos &&
         authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos;
}

// Whether what ends in front of a '=' is the name of a password, or is written so that it may be.
bool names_password(std::string_view before) {
  const std::size_t begin = before.find_last_of("&;/?#= \t\"");
  std::string name(before.substr(begin == before.npos ? 0 : begin + 1));
  std::ranges::transform(name, name.begin(), lower);
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  return std::ranges::any_of(std::array{"pass", "pwd", "psw", "auth", "secret", "token", "%"}, has) || name == "pw";
}

std::string without_passwords(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    const std::size_t end = equals == text.npos ? text.size() : equals + 1;
    shown += text.substr(0, end);
    text.remove_prefix(end);
    if (equals == std::string_view::npos || !names_password(std::string_view(shown).substr(0, shown.size() - 1)))
      continue;
    const std::string_view value = text.substr(0, text.find_first_of("&;/?# \t\""));
    if (!value.empty()) shown += "***";
    text.remove_prefix(value.size());
  }
  return shown;
}

}  // namespace

std::string without_users(std::string_view text) {
  constexpr std::string_view slashes = "//";
  std::string shown;
  while (!text.empty()) {
    const std::size_t found = text.find(slashes);
    const std::size_t begin = found == std::string_view::npos ? text.size() : found + slashes.size();
    shown += text.substr(0, begin);
    text.remove_prefix(begin);
    std::string_view authority = text.substr(0, text.find_first_of("/?# \t\""));
    const std::size_t at = text.substr(0, text.find_first_of(" \t\"")).rfind('@');
    if (at != std::string_view::npos && authority.find('@') == authority.npos && may_be_user(authority)) {
      authority = text.substr(0, text.find_first_of("/?# \t\"", at));
    }
    text.remove_prefix(authority.size());
    shown += without_user(authority);
  }
  return without_passwords(shown);
}

std::string_view authority_of(std::string_view uri) {
  return without_user(uri_parts(uri).authority);
}

bool same_authority(std::string_view a, std::string_view b) {
  const HostPort one = split(a), other = split(b);
  return !one.host.empty() && one.port == other.port && same_host(one.host, other.host);
}

bool is_of_host(std::string_view authority, std::string_view host) {
  return same_host(split(authority).host, host);
}

std::string to_authority(std::string_view uri, std::string_view to) {
  const UriParts parts = uri_parts(uri);
  if (parts.scheme.empty()) {
    return std::string(uri);
  }
  const std::string_view host = without_user(parts.authority);
  std::string changed(uri.substr(0, static_cast<std::size_t>(host.data() - uri.data())));
  return changed.append(to).append(parts.rest);
}

std::string with_authority(std::string_view uri, std::string_view from, std::string_view to) {
  return same_authority(authority_of(uri), from) ? to_authority(uri, to) : std::string(uri);
}

std::string rtsp_to_authority(std::string_view uri, std::string_view to) {
  const std::string_view bare = trim(uri);
  if (bare.starts_with("//")) {  // the scheme is that of where it stands
    constexpr std::string_view scheme = "rtsp:";
    return to_authority(std::string(scheme).append(bare), to).substr(scheme.size());
  }
  const std::string_view scheme = uri_parts(bare).scheme;
  const bool is_rtsp = same_name(scheme, "rtsp") || same_name(scheme, "rtspu") || same_name(scheme, "rtsps");
  return is_rtsp ? to_authority(bare, to) : std::string(uri);
}

}  // namespace sluice::media::rtsp
