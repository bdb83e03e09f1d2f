#include "media/rtsp/uri.h"

#include "media/text.h"

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

bool same_resource(std::string_view a, std::string_view b) {
  return without_slash(uri_parts(a).rest) == without_slash(uri_parts(b).rest);
}

std::string with_authority(std::string_view uri, std::string_view from, std::string_view to) {
  const UriParts parts = uri_parts(uri);
  const std::string_view host = without_user(parts.authority);
  if (parts.scheme.empty() || !same_name(host, from)) {
    return std::string(uri);
  }
  std::string changed(uri.substr(0, static_cast<std::size_t>(host.data() - uri.data())));
  return changed.append(to).append(parts.rest);
}

}  // namespace sluice::media::rtsp
