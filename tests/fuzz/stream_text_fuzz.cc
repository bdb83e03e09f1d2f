// Any text as what the API is given for a stream: it is read, or refused with lines that name the place and show no
// key. And what is read is one stream or RTP and RTCP, each once, with a bucket that a frame fits into.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "function/srtp/stream_settings.h"
#include "require.h"

using namespace sluice;
using namespace sluice::function;

namespace {

constexpr std::uint32_t largest_frame = 1514;
constexpr std::string_view key_mark = "inline:";
constexpr std::size_t shortest_key = 40;  // in base64

bool is_base64(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '/' || c == '=';
}

// No text that could be a key, of any behind "inline:", is in the message.
void check_no_key(std::string_view text, std::string_view message) {
  for (std::size_t at = text.find(key_mark); at != text.npos; at = text.find(key_mark, at + 1)) {
    const std::string_view rest = text.substr(at + key_mark.size());
    const auto end = std::ranges::find_if_not(rest, is_base64);
    const std::string_view key = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    REQUIRE(key.size() < shortest_key || message.find(key) == message.npos);
  }
}

void check_lines(std::string_view text, const Error& error) {
  REQUIRE(error.message.starts_with("the request"));
  check_no_key(text, error.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto streams = read_stream_text(text, "the request", largest_frame);
  if (!streams) {
    check_lines(text, streams.error());
  } else {
    REQUIRE(streams->size() == 1 || streams->size() == 2);
    REQUIRE(streams->size() == 1 || !(streams->front().key == streams->back().key));
    for (const MediaStreamSettings& one : *streams) {
      REQUIRE(!one.crypto.keys.empty() && one.keyless == Keyless::no);
      REQUIRE(!one.rate || (one.rate->bits > 0 && one.rate->burst >= 2 * largest_frame));
      REQUIRE(one.deadline.count() >= 0);
      REQUIRE(one.key.family == 4 || one.key.family == 6);
      REQUIRE((streams->size() == 1) == (one.carries == Carries::both));
    }
  }
  const auto ends = read_stream_ends(text, "the request");
  if (!ends) check_lines(text, ends.error());
  return 0;
}
