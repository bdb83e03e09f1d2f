#include "flow/http/content_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "flow/http/packed_test.h"

namespace sluice::flow::http {
namespace {

std::string gzip(std::string_view text) {
  return test::packed(text, 31);
}
std::string zlib(std::string_view text) {
  return test::packed(text, 15);
}
std::string raw(std::string_view text) {
  return test::packed(text, -15);
}

struct Text final : ContentSink {
  bool content(std::string_view bytes) override {
    all += bytes;
    return all.size() < most;
  }
  void again() override {
    all.clear();
    ++begun_again;
  }
  bool affords(std::uint64_t made) override {
    cost += made;
    return cost <= affordable;
  }
  std::string all;
  unsigned begun_again = 0;
  std::size_t most = std::string::npos;
  std::uint64_t cost = 0, affordable = ~std::uint64_t{0};
};

Codings declared(std::string_view encodings) {
  Codings codings;
  codings.add(encodings, false);
  return codings;
}

struct Decoded {
  std::string text;
  DecodeFlags flags;
};

Decoded decode(std::string_view encodings, std::string_view body, std::size_t piece, unsigned layers = 3,
               std::uint64_t limit = 0, std::uint64_t affordable = ~std::uint64_t{0}, std::uint64_t wanted = 0) {
  static BlockPool pool(4U << 20);
  ContentDecoder decoder;
  Text text;
  text.affordable = affordable;
  decoder.begin(pool, declared(encodings), layers, limit, wanted);
  if (!decoder.active()) {
    return {std::string(body), decoder.flags()};
  }
  for (std::size_t at = 0; at < body.size(); at += piece) {
    decoder.decode(pool, body.substr(at, piece), text);
  }
  decoder.finish(pool, text);
  const DecodeFlags flags = decoder.flags();
  decoder.clear(pool);
  EXPECT_EQ(pool.in_use(), 0U);
  return {text.all, flags};
}

std::string long_text() {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 4000; ++i) {
    text += "word" + std::to_string(random() % 1000) + ' ';
  }
  return text;
}

TEST(ContentDecoder, WhatIsDeclaredAndWhatIsThere) {
  const std::string text = "The quick brown fox jumps over the lazy dog, and again: the quick brown fox.";
  const std::string plain_gzip = gzip(text);
  std::string named = plain_gzip;  // with a name, a comment, an extra field and a header CRC
  named[3] = 4 + 8 + 16 + 2;
  named.insert(10, std::string("\3\0abcname\0comment\0zz", 20));
  std::string odd_flags = plain_gzip;
  odd_flags[3] = static_cast<char>(0xe1);
  std::string bad_crc = plain_gzip;
  bad_crc[bad_crc.size() - 5] ^= 1;
  struct Case {
    const char* what;
    std::string encodings, body, wanted;
    bool passed = false, broken = false, trailing = false;
  };
  const Case cases[] = {
      {"gzip", "gzip", plain_gzip, text},
      {"x-gzip, case", "X-GZip", plain_gzip, text},
      {"zlib", "deflate", zlib(text), text},
      {"raw deflate", "deflate", raw(text), text},
      {"x-deflate", "x-deflate", raw(text), text},
      {"declared deflate, is gzip", "deflate", plain_gzip, text},
      {"declared gzip, is raw deflate", "gzip", raw(text), text},
      {"declared gzip, is plain", "gzip", text, text, true},
      {"declared twice, is once", "gzip, gzip", plain_gzip, text, true},
      {"twice", "gzip, gzip", gzip(plain_gzip), text},
      {"three kinds", "deflate,gzip,deflate", zlib(gzip(raw(text))), text},
      {"identity between", "gzip, identity", plain_gzip, text},
      {"empty members of the list", ",gzip,", plain_gzip, text},
      {"not known", "foo", plain_gzip, plain_gzip},
      {"none", "identity", text, text},
      {"every optional header field", "gzip", named, text},
      {"reserved header flags", "gzip", odd_flags, text},
      {"wrong CRC", "gzip", bad_crc, text},
      {"trailer cut", "gzip", plain_gzip.substr(0, plain_gzip.size() - 3), text},
      {"no trailer", "gzip", plain_gzip.substr(0, plain_gzip.size() - 8), text},
      {"two members", "gzip", gzip("one ") + gzip("two"), "one two"},
      {"bytes behind", "gzip", plain_gzip + "junk", text, false, false, true},
      {"bytes behind zlib", "deflate", zlib(text) + "junk", text, false, false, true},
      {"empty", "gzip", "", ""},
      {"gzip of nothing", "gzip", gzip(""), ""},
  };
  for (const Case& c : cases) {
    for (const std::size_t piece : {std::size_t{100'000}, std::size_t{7}, std::size_t{1}}) {
      const Decoded decoded = decode(c.encodings, c.body, piece);
      EXPECT_EQ(decoded.text, c.wanted) << c.what << ", by " << piece;
      EXPECT_EQ(decoded.flags.passed, c.passed) << c.what;
      EXPECT_EQ(decoded.flags.broken, c.broken) << c.what;
      EXPECT_EQ(decoded.flags.trailing, c.trailing) << c.what;
    }
  }
}

// What a client shows of a body that does not end, rules see, too.
TEST(ContentDecoder, NothingWaitsForTheEnd) {
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  for (const auto& [encodings, body] :
       {std::pair{"deflate", zlib(text)}, std::pair{"deflate", raw(text)}, std::pair{"gzip", gzip(text)},
        std::pair{"deflate, deflate", raw(zlib(text))}, std::pair{"gzip, deflate", zlib(gzip(text))},
        std::pair{"deflate, gzip", gzip(raw(text))}}) {
    for (const std::size_t piece : {body.size(), std::size_t{1}}) {
      BlockPool pool(1U << 20);
      ContentDecoder decoder;
      Text shown;
      decoder.begin(pool, declared(encodings), 2, 0, 0);
      for (std::size_t at = 0; at < body.size(); at += piece) {
        decoder.decode(pool, std::string_view(body).substr(at, piece), shown);
      }
      EXPECT_EQ(shown.all, text) << encodings << " by " << piece;
      EXPECT_EQ(shown.begun_again, 0U);
      decoder.clear(pool);
    }
  }
}

TEST(ContentDecoder, BytesThatShowToBeSomethingElseAreReadAgain) {
  const std::string stored = "what the stored block holds" + std::string(156 - 27, '.');
  struct Case {
    const char* what;
    std::string body, wanted;
    unsigned again;
    bool passed;
  };
  for (const Case& c :
       {Case{"text that begins as raw deflate", "bad-bytesan rudfuxjdxkxwqnq v", "bad-bytesan rudfuxjdxkxwqnq v", 1,
             true},
        {"raw deflate that begins with a zlib header",
         std::string("\x78\x9c\0\x63\xff", 5) + stored + std::string("\1\0\0\xff\xff", 5), stored, 0, false}}) {
    for (const std::size_t piece : {c.body.size(), std::size_t{7}, std::size_t{1}}) {
      BlockPool pool(1U << 20);
      ContentDecoder decoder;
      Text shown;
      decoder.begin(pool, declared("deflate"), 1, 0, 0);
      for (std::size_t at = 0; at < c.body.size(); at += piece) {
        decoder.decode(pool, std::string_view(c.body).substr(at, piece), shown);
      }
      EXPECT_EQ(shown.all, c.wanted) << c.what << " by " << piece;
      EXPECT_EQ(shown.begun_again, c.again) << c.what;
      EXPECT_EQ(decoder.flags().passed, c.passed) << c.what;
      EXPECT_FALSE(decoder.flags().broken) << c.what;
      decoder.clear(pool);
    }
  }
}

// Bodies with a mistake in or behind what is probed, within each other.
TEST(ContentDecoder, TheResultDoesNotDependOnHowTheBytesWereCut) {
  std::mt19937 random(7);
  unsigned passed = 0, broken = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string body;
    for (unsigned length = random() % 600; body.size() < length;) body += static_cast<char>('a' + random() % 26);
    for (unsigned layers = random() % 3; layers != 0; --layers) {
      body = random() % 2 == 0 ? raw(body) : zlib(body);
      if (random() % 2 == 0) body[random() % std::min<std::size_t>(body.size(), 300)] ^= 1 << random() % 8;
    }
    const Decoded whole = decode("deflate, deflate", body, 1000);
    passed += whole.flags.passed ? 1 : 0;
    broken += whole.flags.broken ? 1 : 0;
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1 + random() % 100}, std::size_t{256}}) {
      const Decoded cut = decode("deflate, deflate", body, piece);
      ASSERT_EQ(cut.text, whole.text) << i << " by " << piece;
      ASSERT_EQ(cut.flags.passed, whole.flags.passed) << i << " by " << piece;
      ASSERT_EQ(cut.flags.broken, whole.flags.broken) << i << " by " << piece;
      ASSERT_EQ(cut.flags.trailing, whole.flags.trailing) << i << " by " << piece;
      ASSERT_EQ(cut.flags.unread, whole.flags.unread) << i << " by " << piece;
    }
  }
  EXPECT_GT(passed, 100U);
  EXPECT_GT(broken, 100U);
}

TEST(ContentDecoder, LongBodies) {
  const std::string text = long_text();
  for (const std::string& body : {gzip(text), zlib(text), raw(text)}) {
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257}, body.size()}) {
      EXPECT_EQ(decode("gzip", body, piece).text, text);
    }
  }
}

TEST(ContentDecoder, ACutBodyGivesItsBeginning) {
  const std::string text = long_text();
  const std::string body = gzip(text);
  const Decoded decoded = decode("gzip", body.substr(0, body.size() / 2), 100);
  EXPECT_TRUE(decoded.flags.broken);
  EXPECT_GT(decoded.text.size(), text.size() / 4);
  EXPECT_TRUE(text.starts_with(decoded.text));
  std::string damaged = body;
  damaged.replace(body.size() / 2, 40, std::string(40, '\xff'));
  EXPECT_TRUE(decode("gzip", damaged, 100).flags.broken);
  EXPECT_TRUE(text.starts_with(decode("gzip", damaged, 100).text.substr(0, text.size() / 4)));
}

TEST(ContentDecoder, MoreLayersThanAllowed) {
  const Decoded decoded = decode("gzip, gzip", gzip(gzip("x")), 1000, 1);
  EXPECT_TRUE(decoded.flags.too_many);
  EXPECT_EQ(decoded.text, gzip("x"));
}

TEST(ContentDecoder, ABombStopsAtTheLimit) {
  const std::string zeros(4U << 20, 'a');
  const Decoded decoded = decode("gzip, gzip", gzip(gzip(zeros)), 1000, 3, 100'000);
  EXPECT_TRUE(decoded.flags.bomb);
  EXPECT_GE(decoded.text.size(), 100'000U);
  EXPECT_LT(decoded.text.size(), 100'000U + 16'384);
}

// Of what nobody ever reads, too: each of these is a kilobyte or two that would take milliseconds.
TEST(ContentDecoder, TheSinkPaysForAllThatLayersMake) {
  constexpr std::uint64_t affordable = 100'000;
  const std::string begin("\x1f\x8b\x08\x08\0\0\0\0\0\x03", 10);
  std::string members, blocks("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  for (int i = 0; i < 60'000; ++i) {
    members += gzip("");
    blocks += std::string("\0\0\0\xff\xff", 5);
  }
  for (const std::string& body : {gzip(begin + std::string(1U << 20, 'a')), gzip(members), gzip(blocks), members}) {
    const Decoded decoded = decode("gzip, gzip", body, 1000, 3, 0, affordable);
    EXPECT_TRUE(decoded.flags.bomb);
    EXPECT_TRUE(decoded.text.empty());
  }
  const std::string text(60'000, 'a');
  EXPECT_EQ(decode("gzip, gzip", gzip(gzip(text)), 1000, 3, 0, affordable).text, text);
  EXPECT_FALSE(decode("gzip, gzip", gzip(gzip(text)), 1000, 3, 0, affordable).flags.bomb);
  EXPECT_TRUE(decode("deflate", raw(std::string(200'000, 'a')), 1000, 3, 0, affordable).flags.bomb)
      << "found out what it is";
}

TEST(ContentDecoder, TheSinkMayEndIt) {
  BlockPool pool(1U << 20);
  ContentDecoder decoder;
  Text text;
  text.most = 10;
  decoder.begin(pool, declared("gzip"), 1, 0, 0);
  decoder.decode(pool, gzip(std::string(1U << 20, 'a')), text);
  EXPECT_LE(text.all.size(), 16'384U);
  decoder.clear(pool);
}

TEST(ContentDecoder, WithoutMemoryTheBytesPass) {
  BlockPool pool(1);
  std::uint8_t* const rest = pool.take(BlockPool::largest);
  ContentDecoder decoder;
  decoder.begin(pool, declared("gzip"), 1, 0, 0);
  EXPECT_TRUE(decoder.flags().no_memory);
  EXPECT_FALSE(decoder.active());
  pool.give(rest);
}

}  // namespace
}  // namespace sluice::flow::http
