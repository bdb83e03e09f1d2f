// What the fields of a message's headers say about its body (RFC 9112 section 6, RFC 9110 section 8.4), gathered as
// they come, so that none is overlooked however many stand before it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::flow::http {

struct Framing {
  void field(std::string_view name, std::string_view value);

  bool chunked = false;          // Transfer-Encoding has "chunked" in it, in any of its fields
  bool has_length = false;       // there is a Content-Length; the first one counts
  bool sized = false;            // it has a number
  bool length_invalid = false;   // it is not just a number
  bool length_conflict = false;  // there are several that differ
  unsigned codings = 0;          // of all Content-Encoding and Transfer-Encoding, those that can be undone
  std::uint64_t length = 0;
};

}  // namespace sluice::flow::http
