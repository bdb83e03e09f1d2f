// The names of header fields that something asks for, distinguished once as a header is read, so that asking for one
// costs the same however many fields and rules there are (Message::field()).
//
// No state. Thread-safety: any thread. Cost: one pass over the name, as far as it can be one of these, and over its
// NULs.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::flow::http {

// In the order of their texts.
enum class FieldName : std::uint8_t {
  accept,
  accept_encoding,
  accept_language,
  connection,
  content_length,
  content_type,
  cookie,
  host,
  location,
  referer,
  server,
  set_cookie,
  upgrade,
  user_agent,
  other,
};
inline constexpr unsigned known_field_names = static_cast<unsigned>(FieldName::other);

// As same_name() has it: without regard to case and NULs.
FieldName field_name_of(std::string_view name);

}  // namespace sluice::flow::http
