#include "flow/http/message.h"

#include <cstring>

namespace sluice::flow::http {

Field Message::field_at(std::size_t number) const {
  Field field{};
  std::memcpy(&field, fields.view(number * sizeof field, sizeof field).data(), sizeof field);
  return field;
}

std::string_view Message::field_name(std::size_t number) const {
  const Field field = field_at(number);
  return fields_text.view(field.name_at, field.name_size);
}

std::string_view Message::field_value(std::size_t number) const {
  const Field field = field_at(number);
  return fields_text.view(field.value_at, field.value_size);
}

std::string_view Message::field(FieldName name) const {
  const std::size_t number = known[static_cast<std::size_t>(name)];
  return number == 0 ? std::string_view{} : field_value(number - 1);
}

void Message::clear(BlockPool& pool) {
  raw.clear(pool);
  fields_text.clear(pool);
  fields.clear(pool);
  known = {};
  body.clear(pool);
  line_size = headers_at = headers_size = plain_size = body_shown = 0;
  body_wire = 0;
  flags = {};
  decoding = {};
  headers_done = complete = false;
  marks.clear(pool);
}

void Transaction::clear(BlockPool& pool) {
  request.clear(pool);
  response.clear(pool);
  normal.clear(pool);
  number = 0;
  status_number = 0;
  interim = 0;
  is_head = is_connect = false;
  method_at = method_size = uri_at = uri_size = version_at = version_size = normal_size = host_size = 0;
  rversion_at = rversion_size = status_at = status_size = reason_at = reason_size = 0;
  next = nullptr;
}

}  // namespace sluice::flow::http
