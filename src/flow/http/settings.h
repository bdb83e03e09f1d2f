// Limits of the HTTP parser, and what it counts. The defaults are Suricata's where it has them.
#pragma once

#include <cstdint>

namespace sluice::flow::http {

struct Settings {
  std::uint32_t header_limit = 18'000;            // bytes of a line, libhtp's hard field limit
  std::uint32_t headers_limit = 1'000'000;        // bytes of a message's first line, headers and trailers together
  std::uint32_t request_body_limit = 100U << 10;  // bytes kept and shown, decoded; 0: 1 MiB, the largest block
  std::uint32_t response_body_limit = 100U << 10;
  unsigned response_layers = 2;  // content codings undone, at most ContentDecoder::max_layers; 0: none
  unsigned request_layers = 2;
  std::uint64_t decoded_limit = 10U << 20;  // bytes that a layer may make; 0: no limit
  // Fields of a message that are shown, at most most_fields; those that say how long the body is, and how it is coded,
  // count wherever they stand.
  unsigned max_headers = 1024;
  static constexpr unsigned most_fields = 16384;
  unsigned pipelined =
      32;  // requests of a connection that may wait for responses; then the oldest is given up, at least 2
};

// Why a connection is not parsed any further. Its bytes are no longer looked at.
enum class StopReason : std::uint8_t {
  none,
  not_http,         // neither side's first bytes are HTTP/1
  tunnel,           // CONNECT was accepted
  upgrade,          // 101 to a request with Upgrade: another protocol from here on
  http2,            // the preface of RFC 9113
  header_too_long,  // a line has more than header_limit, or all more than headers_limit
  gap,              // bytes are missing where their number matters
  no_memory,        // the pool or the store of transactions is empty
  bad_chunk,        // of a request
  evicted,          // it was the longest without bytes when another one needed the capacity
  set_aside,        // likewise, but between messages: its next bytes are parsed, in another record (Rest)
};
inline constexpr unsigned stop_reasons = 11;
const char* stop_reason_name(StopReason reason);

// Of what a connection that is HTTP brings, the bound behind which it is looked at no further: wholly, with a
// StopReason, or in this.
enum class Limit : std::uint8_t {
  none,
  header_line,  // header_limit
  headers,      // headers_limit
  fields,       // max_headers
  codings,      // request_layers, response_layers: a body in more of them
  chunk,        // none that is a number: of a request's body in chunks one cannot be read
  framing,      // none that is a number: servers read where a request ends in more than one way
  memory,       // of records and of the pool, for all connections: no_memory, evicted, or a body cut short
};
inline constexpr unsigned limits = 8;

struct Counters {
  std::uint64_t connections = 0;
  std::uint64_t transactions = 0;
  std::uint64_t stopped[stop_reasons] = {};  // connections, by StopReason; [none] stays 0
  std::uint64_t limited[limits] = {};        // connections, by the first Limit that they went beyond; [none] stays 0
  std::uint64_t unanswered = 0;              // requests given up, for `pipelined` were waiting
  std::uint64_t fields_truncated = 0;        // messages with more than max_headers
  std::uint64_t bad_chunks = 0;              // responses that are declared chunked, and are not
  std::uint64_t bodies_truncated = 0;        // at a body limit
  std::uint64_t bodies_lost = 0;             // bodies cut short, or not decoded, for want of memory
  std::uint64_t bodies_undecoded = 0;        // of more codings than are undone, or behind an error or a gap in one
  std::uint64_t bombs = 0;  // bodies with a layer that reached decoded_limit, or that cost more than the sink affords
  std::uint64_t ignored_bytes = 0;  // of connections that have stopped
};

}  // namespace sluice::flow::http
