// What an alert keeps of the HTTP transaction that it was found in: texts of bounded length, packed into a buffer of
// fixed size, so that a lane can hand them on without allocating. Names and contents as in Suricata's EVE
// (docs/alerts.md).
//
// Thread-safety: none; a record's. Cost: a copy of at most most_bytes, and a look through the headers for each text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flow/http/message.h"

namespace sluice::function {

struct AlertHttp {
  static constexpr std::size_t most_bytes = 1024;  // of all texts
  struct Text {
    const char* name;
    std::uint16_t most;  // bytes, if those before it have left so many
  };
  static constexpr std::array<Text, 8> texts = {{{"hostname", 128},
                                                 {"http_method", 32},
                                                 {"protocol", 16},
                                                 {"url", 512},
                                                 {"http_content_type", 64},
                                                 {"http_user_agent", 256},
                                                 {"redirect", 256},
                                                 {"http_refer", 256}}};

  bool there = false;                              // there is a transaction; all else counts only then
  std::uint8_t cut = 0;                            // bit t: texts[t] is not there whole
  std::uint16_t status = 0;                        // 0: there is no response with a number
  std::array<std::uint16_t, texts.size()> size{};  // bytes, one text behind the other
  std::uint64_t number = 0;                        // of the transaction in its connection, from 0
  std::uint64_t length = 0;                        // of the response's body so far, before it was decoded

  // Of what is known of it by now; nullptr: there is none. `text`: most_bytes for it.
  void take(const flow::http::Transaction* transaction, char* text);
};

}  // namespace sluice::function
