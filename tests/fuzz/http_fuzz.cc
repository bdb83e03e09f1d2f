// Any bytes as an HTTP connection: the parser stays inside them and its bounds, gives all memory back, and says the
// same of them whether they come in large pieces or in small ones. The corpus holds plain conversations, one file each.
//
// Input: a byte that says how the second run is cut, then parts: '<' or '>' (to the client, to the server) and two
// bytes of length before the bytes. '!' instead: a gap of that length towards the client.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flow/http/connection.h"
#include "require.h"

using namespace sluice::flow;
using namespace sluice::flow::http;

namespace {

struct Part {
  char kind;
  std::string_view bytes;
  std::size_t length;
};

// Whether a body's text depends on how its bytes were cut (content_decoder.h).
bool depends_on_cuts(const Message& message) {
  const std::string_view headers = message.headers_raw();
  const auto is_br = [](char a, char b) { return (a | 32) == 'b' && (b | 32) == 'r'; };
  return (message.decoding.broken || message.decoding.passed) &&
         std::adjacent_find(headers.begin(), headers.end(), is_br) != headers.end();
}

// Everything that a rule could see, but for when bodies came.
struct Summary final : TransactionSink {
  void transaction(Connection&, Event event, Transaction& transaction) override {
    const bool body = event == Event::request_body || event == Event::response_body;
    const Message& request = transaction.request;
    const Message& response = transaction.response;
    REQUIRE(request.body_fresh().size() <= request.body_view().size());
    REQUIRE(request.body_view().size() <= 2000 && response.body_view().size() <= 2000);
    REQUIRE(transaction.uri().size() <= transaction.uri_raw().size());
    for (std::size_t i = 0; i < response.field_count(); ++i) {
      REQUIRE(response.fields_text.view().find(response.field_value(i)) != std::string_view::npos);
    }
    if (body) {
      return;
    }
    const auto body_of = [](const Message& message) {
      return depends_on_cuts(message) ? std::string_view{} : message.body_view();
    };
    text += static_cast<char>('a' + static_cast<int>(event));
    for (const std::string_view piece :
         {request.line(), transaction.method(), transaction.uri_raw(), transaction.uri(), transaction.version(),
          transaction.host(), request.headers(), request.headers_raw(), request.cookie(true), body_of(request),
          response.line(), transaction.status(), transaction.status_message(), response.headers(),
          response.headers_raw(), response.cookie(false), body_of(response)}) {
      text += piece;
      text += '|';
    }
  }
  void stopped(Connection&, StopReason reason) override {
    REQUIRE(reason != StopReason::none);
    text += stop_reason_name(reason);
  }
  std::string text;
};

std::vector<Part> parts_of(std::string_view bytes) {
  std::vector<Part> parts;
  while (bytes.size() >= 3) {
    const std::size_t length = static_cast<unsigned char>(bytes[1]) * 256U + static_cast<unsigned char>(bytes[2]);
    const std::string_view body = bytes[0] == '!' ? std::string_view{} : bytes.substr(3, length);
    parts.push_back({bytes[0], body, length});
    bytes.remove_prefix(3 + body.size());
  }
  return parts;
}

std::string run(BlockPool& pool, const std::vector<Part>& parts, std::size_t piece) {
  Settings settings;
  settings.header_limit = 3000;
  settings.headers_limit = 10'000;
  settings.request_body_limit = settings.response_body_limit = 2000;
  settings.decoded_limit = 100'000;
  settings.response_layers = 3;
  Summary summary;
  Parser parser(settings, pool, 1, 40, summary);
  Connection* const connection = parser.open();
  for (const Part& part : parts) {
    const Direction direction = part.kind == '>' ? Direction::to_server : Direction::to_client;
    if (part.kind == '!') {
      parser.gap(*connection, direction, part.length + 1);
      continue;
    }
    for (std::size_t at = 0; at < part.bytes.size(); at += piece) {
      parser.data(*connection, direction, part.bytes.substr(at, piece));
    }
  }
  parser.close(connection);
  return summary.text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  static BlockPool pool(8U << 20);
  const std::vector<Part> parts = parts_of({reinterpret_cast<const char*>(data) + 1, size - 1});
  const std::string whole = run(pool, parts, 1U << 20);
  REQUIRE(pool.in_use() == 0);
  const std::string cut = run(pool, parts, 1 + data[0] % 64);
  REQUIRE(pool.in_use() == 0);
  REQUIRE(whole == cut);
  return 0;
}
