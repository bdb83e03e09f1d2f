// What the fields of a message's headers say about its body (RFC 9112 section 6, RFC 9110 section 8.4), gathered as
// they come, so that none is overlooked however many stand before it.
#pragma once

#include <cstdint>
#include <string_view>

#include "flow/http/content_decoder.h"

namespace sluice::flow::http {

struct Framing {
  // As they came, but for what folds them.
  void field(std::string_view name, std::string_view value, bool folded);
  // A line that goes on with another field.
  void fold(std::string_view line);
  // Each line, also the first: whether CR LF ends it, or LF alone.
  void line(bool crlf) { (crlf ? crlf_lines : bare_lines) = true; }
  // Whether servers may read the end of a request with these fields in more than one way (RFC 9112 sections 5 and 6).
  bool is_unclear(std::string_view version) const {
    if (unclear || length_conflict || (has_transfer && (has_length || version != "HTTP/1.1"))) return true;
    // To servers that end a line at CR LF alone, or headers at what is no field, there is no length behind it.
    return (has_length || has_transfer) && (other_lines || (crlf_lines && bare_lines));
  }

  // Those of the content, and those of the transfer, which are undone first.
  Codings codings() const;

  bool chunked = false;       // Transfer-Encoding has "chunked" in it, in any of its fields
  bool has_transfer = false;  // there is a Transfer-Encoding
  bool unclear = false;       // it is not just "chunked", or a length not just a number, or a name not just a name
  bool other_lines = false;   // some are no fields, or have a name that is no token
  bool crlf_lines = false, bare_lines = false;
  bool has_length = false;                    // there is a Content-Length; the first one counts
  bool sized = false;                         // it has a number
  bool length_invalid = false;                // it is not just a number
  bool length_conflict = false;               // there are several that differ
  Codings content_codings, transfer_codings;  // of all fields
  std::uint64_t length = 0;
};

}  // namespace sluice::flow::http
