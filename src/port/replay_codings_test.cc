#include "port/replay_codings.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <set>
#include <utility>

namespace sluice::port {
namespace {

// What the gzip members of `bytes` hold, `most` bytes of it, and how many of them there were.
std::string undone(std::string_view bytes, std::size_t most, unsigned& members) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  std::size_t made = 0;
  members = 0;
  while (inflate(&stream, Z_NO_FLUSH) == Z_STREAM_END) {
    ++members;
    made += std::exchange(stream.total_out, 0);
    if (stream.avail_in == 0) break;
    inflateReset(&stream);
  }
  text.resize(made + stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(CodedBodies, AreLittleAndHaveMuchWithinThem) {
  constexpr std::size_t most = std::size_t{32} << 20, much = 100'000;
  std::set<std::string> kinds;
  for (const std::string& body : coded_bodies()) {
    EXPECT_LE(body.size(), coded_body_bytes);
    unsigned outer = 0, inner = 0;
    const std::string within = undone(body, most, outer);
    EXPECT_EQ(outer, 1U);
    const std::string innermost = undone(within, most, inner);
    EXPECT_GT(std::max(within.size(), innermost.size()), much);
    EXPECT_TRUE(innermost.empty() || innermost.size() > much);
    kinds.insert(!innermost.empty()              ? "zeros"
                 : inner > 1000                  ? "members"
                 : within.substr(3, 1) == "\x08" ? "name"
                                                 : "blocks");
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"zeros", "members", "name", "blocks"}));
}

}  // namespace
}  // namespace sluice::port
