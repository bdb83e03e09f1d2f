// rtsp:// URIs as far as a proxy needs them: which medium a SETUP means, and one authority in the place of another.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::media::rtsp {

// "rtsp://host:554/a/b?c": scheme "rtsp", authority "host:554", rest "/a/b?c". Of "*" or a bare path only the rest.
struct UriParts {
  std::string_view scheme;
  std::string_view authority;
  std::string_view rest;
};
UriParts uri_parts(std::string_view uri);

// What an a=control of `control` means under `base` (RFC 2326 appendix C.1.1): itself when it is absolute, the base for
// "*" and "", else behind the base's last segment as peers do it: a base without '/' at its end gets one.
std::string control_uri(std::string_view base, std::string_view control);
// What RFC 3986 section 5.2 makes of it: the base's last segment goes. Some clients do that.
std::string resolved_uri(std::string_view base, std::string_view reference);

// All that clients make of it: both of these, "base/*", the control before the base's query, and a control that is a
// query alone ("?ctype=video") behind the base's path.
std::vector<std::string> control_uris(std::string_view base, std::string_view control);

// The same resource: equal behind the authority (hosts have several names), but for one '/' at the end.
bool same_resource(std::string_view a, std::string_view b);
// The same where clients rewrite URIs: percent signs, "." and "..", and several '/' for one.
bool alike_resource(std::string_view a, std::string_view b);

// "host:554" of "rtsp://me:pw@host:554/a"; "" where there is none.
std::string_view authority_of(std::string_view uri);
// The same host and port: no port is 554, an IPv6 literal may be written in any way, names have no case.
bool same_authority(std::string_view a, std::string_view b);
// Whether `authority` is of that host, on whichever port; both as above.
bool is_of_host(std::string_view authority, std::string_view host);

// A text, in which URIs may be, for logs: "//user:password@host" becomes "//host", with a password that has a '/' or
// '?' as it is, too. Of "password=secret", by any name with "pass" or "pwd", as cameras have it in paths and queries,
// "password=***" is left.
std::string without_users(std::string_view text);

// `uri` with `to` as its authority, user information aside, which stays. With `from` only when it is that; else, and
// without an authority, as it is.
std::string to_authority(std::string_view uri, std::string_view to);
std::string with_authority(std::string_view uri, std::string_view from, std::string_view to);
// Of a URI of rtsp, rtspu or rtsps, or one of no scheme with an authority, whatever that is; blanks around it go. Any
// other is as it is.
std::string rtsp_to_authority(std::string_view uri, std::string_view to);

}  // namespace sluice::media::rtsp
