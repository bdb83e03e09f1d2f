// Where a rule is inspected: at a packet, or a piece of a stream, or where a part of an HTTP message is whole.
//
// Thread-safety: any thread. Cost: some ns for each check of the rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "match/rules/rule.h"

namespace sluice::match {

enum class Point : std::uint8_t {
  packet,
  request_line,
  request_headers,
  request_body,
  response_headers,
  response_body
};
inline constexpr std::size_t point_count = 6;
constexpr Point next(Point point) {
  return static_cast<Point>(static_cast<unsigned>(point) + 1);
}
constexpr bool is_of_response(Point point) {
  return point >= Point::response_headers;
}

// The buffer is of HTTP's messages.
bool is_of_http(Buffer buffer);
// Where it is whole; of one that both messages have (http_header, file_data, ...) as a rule of the direction means it:
// Point::packet where it may be of either, as for buffers that are not of HTTP.
Point point_of(Buffer buffer, FlowDirection direction);

// Where the last of the buffers that a rule's checks look at is whole.
Point point_of(const Rule& rule);
// Of a rule that looks at what both messages have, and neither at what one of them alone has nor at a direction: the
// same of the other message.
std::optional<Point> other_point_of(const Rule& rule);

}  // namespace sluice::match
