// Bodies in Brotli, as ContentDecoder undoes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "flow/http/brotli_bodies_test.h"
#include "flow/http/brotli_stream.h"
#include "flow/http/content_decoder.h"
#include "flow/http/packed_test.h"

namespace sluice::flow::http {
namespace {

using namespace test;

std::string gzip(std::string_view text) {
  return packed(text, 31);
}

struct Text final : ContentSink {
  bool content(std::string_view bytes) override {
    all += bytes.substr(0, most - all.size());
    return all.size() < most;
  }
  void again() override { all.clear(); }
  bool affords(std::uint64_t made) override {
    if (made > affordable) return false;
    affordable -= made;
    return true;
  }
  void wasted(std::uint64_t made) override {
    unasked += made;
    affordable -= std::min(affordable, made);
  }
  std::string all;
  std::size_t most = std::string::npos;
  std::uint64_t affordable = ~std::uint64_t{0};
  std::uint64_t unasked = 0;
};

struct Decoded {
  std::string text;
  DecodeFlags flags;
  std::size_t memory = 0;  // the most at once, but for the layers themselves
};

struct Bounds {
  std::uint64_t limit = 0, wanted = 0;
  std::size_t pool = std::size_t{4} << 20;
};

Decoded decode(std::string_view encodings, std::string_view body, std::size_t piece, Bounds bounds = {}) {
  BlockPool pool(bounds.pool);
  ContentDecoder decoder;
  Text text;
  Codings codings;
  codings.add(encodings, false);
  decoder.begin(pool, codings, 3, bounds.limit, bounds.wanted);
  const std::size_t layers = pool.in_use();
  std::size_t memory = 0;
  for (std::size_t at = 0; at < body.size(); at += piece) {
    decoder.decode(pool, body.substr(at, piece), text);
    memory = std::max(memory, pool.in_use() - layers);
  }
  decoder.finish(pool, text);
  const DecodeFlags flags = decoder.flags();
  decoder.clear(pool);
  EXPECT_EQ(pool.in_use(), 0U);
  return {text.all, flags, memory};
}

TEST(BrotliBody, IsWhatTheToolMadeItOf) {
  const std::string page = list_page();
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{100'000}}) {
    for (const std::string_view body : fox_windows) EXPECT_EQ(decode("br", from_hex(body), piece).text, fox);
    const Decoded decoded = decode("br", from_hex(list_page_hex), piece);
    EXPECT_EQ(decoded.text, page);
    EXPECT_FALSE(decoded.flags.broken || decoded.flags.passed || decoded.flags.trailing || decoded.flags.bomb);
  }
}

TEST(BrotliBody, WhatIsDeclaredAndWhatIsThere) {
  const std::string text(fox), br = brotli_fox();
  struct Case {
    const char* what;
    std::string encodings, body, wanted;
    bool passed = false, broken = false, trailing = false;
  };
  for (const Case& c : {
           Case{"case", "Br", br, text},
           {"declared br, is plain", "br", text, text, true},
           {"declared br, is gzip", "br", gzip(text), gzip(text), true},
           {"declared gzip, is br", "gzip", from_hex(fox_windows[2]), from_hex(fox_windows[2]), true},
           {"gzip in br", "gzip, br", brotli_stored(gzip(text)), text},
           {"br in gzip", "br, gzip", gzip(br), text},
           {"br in br", "br, br", brotli_stored(br), text},
           {"declared twice, is once", "br, br", br, text, true},
           {"br in gzip, of which only br is there", "br, gzip", from_hex(fox_windows[2]), text, true},
           {"identity between", "br, identity", br, text},
           {"bytes behind", "br", br + "junk", text, false, false, true},
           {"an error in the first bytes", "br", "\x8b" + br.substr(1, 30), "\x8b" + br.substr(1, 30), true},
           {"cut", "br", br.substr(0, 50), text.substr(0, decode("br", br.substr(0, 50), 1).text.size()), false, true},
           {"nothing", "br", "", ""},
           {"of nothing", "br", "\x3b", ""},
           {"not known", "brotli", br, br},
       }) {
    for (const std::size_t piece : {std::size_t{100'000}, std::size_t{7}, std::size_t{1}}) {
      if (Codings codings; codings.add(c.encodings, false), codings.count == 0) continue;
      const Decoded decoded = decode(c.encodings, c.body, piece);
      EXPECT_EQ(decoded.text, c.wanted) << c.what << ", by " << piece;
      EXPECT_EQ(decoded.flags.passed, c.passed) << c.what << ", by " << piece;
      EXPECT_EQ(decoded.flags.broken, c.broken) << c.what << ", by " << piece;
      EXPECT_EQ(decoded.flags.trailing, c.trailing) << c.what << ", by " << piece;
    }
  }
}

TEST(BrotliBody, IsNoCodingOfATransfer) {
  Codings codings;
  codings.add("br, gzip", true);
  EXPECT_EQ(codings.count, 1U);
  EXPECT_EQ(codings.brotli, 0U);
}

// What a client shows of a body that does not end, rules see, too.
TEST(BrotliBody, NothingWaitsForTheEnd) {
  const std::string text(fox);
  std::string open = brotli_stored(text);
  open.pop_back();
  for (const auto& [encodings, body] :
       {std::pair{"br", open}, std::pair{"gzip, br", brotli_stored(gzip(text))}, std::pair{"br, gzip", gzip(open)}}) {
    for (const std::size_t piece : {body.size(), std::size_t{1}}) {
      BlockPool pool(1U << 20);
      ContentDecoder decoder;
      Text shown;
      Codings codings;
      codings.add(encodings, false);
      decoder.begin(pool, codings, 2, 0, 0);
      for (std::size_t at = 0; at < body.size(); at += piece) {
        decoder.decode(pool, std::string_view(body).substr(at, piece), shown);
      }
      EXPECT_EQ(shown.all, text) << encodings << " by " << piece;
      decoder.clear(pool);
    }
  }
}

TEST(BrotliBody, LongBodiesCutAnyhow) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 300'000) text += static_cast<char>(random());
  const std::string body = brotli_stored(text, 5000);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{1460}, body.size()}) {
    EXPECT_EQ(decode("br", body, piece).text, text) << piece;
    EXPECT_EQ(decode("br, br", brotli_stored(body), piece).text, text) << piece;
  }
}

TEST(BrotliBody, ACutOrCorruptBodyGivesItsBeginning) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < 20'000) text += static_cast<char>('a' + random() % 26);
  const std::string body = brotli_stored(text, 1000);
  const std::size_t at = body.size() / 2;
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, body.size()}) {
    const Decoded cut = decode("br", body.substr(0, at), piece);
    EXPECT_TRUE(cut.flags.broken);
    EXPECT_FALSE(cut.flags.unread);
    EXPECT_GT(cut.text.size(), 9000U);
    EXPECT_TRUE(text.starts_with(cut.text));
    // The header of a piece says that it has the reserved length.
    std::string corrupt = body;
    corrupt[body.find(text.substr(10'000, 20)) - 3] = 0x16;
    const Decoded wrong = decode("br", corrupt, piece);
    EXPECT_TRUE(wrong.flags.broken && wrong.flags.unread && !wrong.flags.passed);
    EXPECT_GE(wrong.text.size(), 10'000 - BrotliStream::slice);
    EXPECT_LE(wrong.text.size(), 10'000U);
    EXPECT_TRUE(text.starts_with(wrong.text));
  }
}

// Corrupt or not: but for what the last slice before an error makes.
TEST(BrotliBody, TheResultDoesNotDependOnHowTheBytesWereCut) {
  std::mt19937 random(7);
  unsigned passed = 0, broken = 0, whole = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string body = random() % 2 == 0 ? from_hex(list_page_hex) : brotli_fox();
    if (random() % 4 != 0) body[random() % body.size()] ^= static_cast<char>(1U << random() % 8);
    if (random() % 2 == 0) body = brotli_stored(std::string(400, '.')) + body;
    const Decoded one = decode("br", body, 1);
    passed += one.flags.passed ? 1 : 0;
    broken += one.flags.broken ? 1 : 0;
    whole += !one.flags.passed && !one.flags.broken ? 1 : 0;
    for (const std::size_t piece : {std::size_t{1 + random() % 100}, std::size_t{1000}}) {
      const Decoded other = decode("br", body, piece);
      ASSERT_EQ(one.flags.passed, other.flags.passed) << i << " by " << piece;
      ASSERT_EQ(one.flags.broken, other.flags.broken) << i << " by " << piece;
      if (one.flags.broken) {
        ASSERT_TRUE(one.text.starts_with(other.text)) << i << " by " << piece;
      } else {
        ASSERT_EQ(one.text, other.text) << i << " by " << piece;
      }
    }
  }
  EXPECT_GT(passed, 100U);
  EXPECT_GT(broken, 100U);
  EXPECT_GT(whole, 100U);
}

TEST(BrotliBody, ABombStopsAtTheLimit) {
  const Decoded decoded = decode("br", brotli_bomb(), 1000, {100'000, 100'000});
  EXPECT_TRUE(decoded.flags.bomb);
  EXPECT_EQ(decoded.text, std::string(100'000, 'a'));
}

// A window of 16 MiB is declared.
TEST(BrotliBody, NeedsNoLargerWindowThanItsReaderWants) {
  for (const auto& [wanted, most, memory] :
       {std::tuple{102'400U, (1U << 18) - 16, 600U << 10}, std::tuple{1U << 20, (1U << 19) - 16, 1100U << 10}}) {
    EXPECT_EQ(BrotliStream::window_block(wanted), 2 * std::size_t{most + 16});
    const Decoded decoded = decode("br", brotli_bomb(), 13, {0, wanted});
    EXPECT_EQ(decoded.text, std::string(most, 'a'));
    EXPECT_TRUE(decoded.flags.bomb);
    EXPECT_FALSE(decoded.flags.broken);
    EXPECT_LE(decoded.memory, memory);
  }
  EXPECT_LE(decode("br", from_hex(list_page_hex), 100).memory, 64U << 10) << "a short body takes little";
}

TEST(BrotliBody, OfWhatIsLongerThanItsReaderWantsTheRestTakesNoMemory) {
  BlockPool pool(1U << 20);
  ContentDecoder decoder;
  Text text;
  text.most = 1000;
  Codings codings;
  codings.add("br", false);
  decoder.begin(pool, codings, 1, 0, 1000);
  const std::size_t before = pool.in_use();
  decoder.decode(pool, brotli_bomb(), text);
  EXPECT_EQ(text.all.size(), 1000U);
  EXPECT_EQ(pool.in_use(), before);
  decoder.clear(pool);
}

// Also for what is done before anybody can be asked, and for tables of which nothing comes.
TEST(BrotliBody, TheSinkPaysForAllThatIsDone) {
  BrotliWriter maps;
  for (int i = 0; i < 100; ++i) maps.large_map();
  const std::string tables = maps.end();
  ASSERT_EQ(decode("br", tables, 64).text, std::string(100, 'a'));
  for (const std::string& body : {tables, brotli_bomb(), gzip(brotli_bomb()), brotli_stored(tables)}) {
    const char* const encodings = body.starts_with('\x1f') ? "br, gzip" : "br, br";
    BlockPool pool(4U << 20);
    Text text;
    text.affordable = 50'000;
    // Of many, one may do more than is affordable, by as much as a window.
    for (int i = 0; i < 20; ++i) {
      ContentDecoder decoder;
      Codings codings;
      codings.add(encodings, false);
      decoder.begin(pool, codings, 2, 0, 102'400);
      decoder.decode(pool, body, text);
      EXPECT_TRUE(decoder.flags().bomb || i == 0);
      decoder.clear(pool);
    }
    EXPECT_EQ(text.affordable, 0U);
    EXPECT_LE(text.unasked, (1U << 18) + (16U << 10));
  }
}

TEST(BrotliBody, WithoutMemoryNothingPassesUnsaid) {
  for (const std::size_t left : {std::size_t{4} << 10, std::size_t{16} << 10, std::size_t{64} << 10}) {
    BlockPool pool(1U << 20);
    std::vector<std::uint8_t*> taken;
    for (std::size_t size = BlockPool::largest / 2; size >= left; size /= 2) taken.push_back(pool.take(size));
    ContentDecoder decoder;
    Text text;
    Codings codings;
    codings.add("br", false);
    decoder.begin(pool, codings, 1, 0, 102'400);
    decoder.decode(pool, brotli_bomb(), text);
    EXPECT_TRUE(decoder.flags().no_memory) << left;
    decoder.clear(pool);
    for (std::uint8_t* const block : taken) pool.give(block);
    EXPECT_EQ(pool.in_use(), 0U);
  }
}

}  // namespace
}  // namespace sluice::flow::http
