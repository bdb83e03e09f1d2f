// The URI as a server's path lookup would see it: what rules look at as `http_uri` / `http.uri`.
//
// As libhtp 0.5 does it in Suricata's default (the IDS personality without lower case):
//   - scheme, user, host and port of an absolute URI are left out (Suricata's uri-include-all: no);
//   - path: %XX and %uXXXX are decoded, invalid ones stay as they are; backslashes become slashes, encoded ones too;
//     slashes in a row become one; /./ and /../ are removed (RFC 3986 section 5.2.4);
//   - query and fragment: each %XX is decoded, once, whatever it stands for; %uXXXX and invalid ones stay as they are,
//     and so do +, backslashes, slashes and dots (Suricata's query-plusspace-decode and double-decode-query: no).
// Different from libhtp: %uXXXX above U+00FF and multi-byte UTF-8 are not mapped to a best-fit character of a code
// page; full-width forms (U+FF01 to U+FF5E) become ASCII and other such %u become '?', UTF-8 stays as it is but for
// overlong two-byte forms of ASCII (C0 AF), which are decoded.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::flow::http {

// Writes at most uri.size() bytes to `out`, which has room for them; how many. `uri` and `out` may not overlap.
std::size_t normalise_uri(std::string_view uri, char* out);

// The host of an absolute URI or of an authority ("user@Host:80"): without user and port; empty if there is none.
std::string_view host_of_uri(std::string_view uri);
std::string_view host_of_authority(std::string_view authority);

}  // namespace sluice::flow::http
