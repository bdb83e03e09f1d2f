// The URI as a server's path lookup would see it: what rules look at as `http_uri` / `http.uri`.
//
// As libhtp 0.5 does it in Suricata's default (the IDS personality without lower case):
//   - scheme, user, host and port of an absolute URI are left out (Suricata's uri-include-all: no); what begins with no
//     slash begins with a scheme, if there is a colon anywhere;
//   - path: %XX and %uXXXX are decoded, invalid ones stay as they are. Backslashes become slashes, encoded ones too.
//     Slashes in a row become one. Then UTF-8 becomes one byte a character (best_fit.h), overlong forms of ASCII too
//     (C0 AF); what is no UTF-8 becomes '?'. Last, /./ and /../ are removed (RFC 3986 section 5.2.4), with the slash
//     before them where they end the path;
//   - query and fragment: each %XX is decoded, once, whatever it stands for. Invalid ones stay as they are, and so do
//     '+', backslashes, slashes and dots (Suricata's query-plusspace-decode and double-decode-query: no). So does
//     %uXXXX in the query; in the fragment it is decoded as in the path.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::flow::http {

// Writes at most uri.size() bytes to `out`, which has capacity for them; how many. `uri` and `out` may not overlap.
std::size_t normalise_uri(std::string_view uri, char* out);

// The host of an absolute URI or of an authority ("user@Host:80"): without user and port; empty if there is none.
std::string_view host_of_uri(std::string_view uri);
std::string_view host_of_authority(std::string_view authority);

}  // namespace sluice::flow::http
