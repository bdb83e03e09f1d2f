#include "match/automaton/key_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "match/automaton/reference_test.h"

namespace sluice::match {
namespace {

std::string text_of(const Key& key) {
  return {key.bytes.begin(), key.bytes.begin() + key.length};
}

TEST(KeySet, AKeyIsAFoldedPieceOfItsPatternOfAtMostEightBytes) {
  std::mt19937 random(1);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 500; ++i) {
    std::string bytes(2 + random() % 30, ' ');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    patterns.push_back({bytes, random() % 2 == 0, 1u << random() % 32});
  }
  const KeySet keys(patterns);
  std::vector<bool> seen(patterns.size());
  for (std::uint32_t k = 0; k < keys.keys().size(); ++k) {
    const Key& key = keys.keys()[k];
    ClassMask classes = 0;
    for (const std::uint32_t p : keys.patterns_of(k)) {
      EXPECT_FALSE(seen[p]);
      seen[p] = true;
      classes |= patterns[p].classes;
      EXPECT_NE(test::folded(patterns[p].bytes).find(text_of(key)), std::string::npos);
      EXPECT_GE(key.length, std::min<std::size_t>(patterns[p].bytes.size(), Key::gram));
      EXPECT_LE(key.length, Key::max_length);
    }
    EXPECT_EQ(key.classes, classes);
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](bool s) { return s; }));
}

TEST(KeySet, PatternsThatFoldAlikeShareAKey) {
  const std::vector<Pattern> patterns = {{"CMD.exe", true, 1}, {"cmd.EXE", false, 2}};
  const KeySet keys(patterns);
  ASSERT_EQ(keys.keys().size(), 1u);
  EXPECT_EQ(keys.keys()[0].classes, 3u);
  EXPECT_THAT(keys.patterns_of(0), testing::ElementsAre(0, 1));
}

TEST(KeySet, APatternOfOneByteHasNoKey) {
  const std::vector<Pattern> patterns = {{"ab"}, {"x"}, {""}};
  const KeySet keys(patterns);
  EXPECT_EQ(keys.keys().size(), 1u);
  EXPECT_THAT(keys.without_key(), testing::ElementsAre(1, 2));
}

TEST(KeySet, TheRarestPieceStandsForAPattern) {
  const std::vector<Pattern> patterns = {{"GET /index.html HTTP/1.1\r\nHost: qzx#"}};
  const KeySet keys(patterns);
  EXPECT_THAT(text_of(keys.keys()[0]), testing::EndsWith("zx#"));
}

TEST(KeySet, AShortPatternStandsForItself) {
  for (const char* const word : {"whatisit", "private", "public", "version", "location", "user", "header"}) {
    const KeySet keys(std::vector<Pattern>{{word}});
    EXPECT_EQ(text_of(keys.keys()[0]), word);
  }
}

TEST(KeySet, PaddingStandsForNothingElse) {
  const KeySet keys(std::vector<Pattern>{{std::string(30, '\0') + "\x13\x9aQ" + std::string(30, '\0')},
                                         {"aaaaaaaaaaaaaaaa/~" + std::string(30, 'a')}});
  for (const Key& key : keys.keys()) {
    EXPECT_TRUE(text_of(key).find("\x9aq") != std::string::npos || text_of(key).find("/~") != std::string::npos);
  }
}

TEST(KeySet, PatternsThatBeginAlikeHaveKeysOfTheirOwn) {
  std::vector<Pattern> patterns;
  for (const char* const name : {"first", "second", "third", "fourth"}) {
    patterns.push_back({"/zq~/~x^/" + std::string(name) + "_of_all"});
  }
  EXPECT_EQ(KeySet(patterns).keys().size(), patterns.size());
}

// Frames of 1,000 bytes of a text that was made up for this.
std::vector<std::string> frames_of_text() {
  static constexpr const char* pieces[] = {
      "What you get from a private house is not what the public gets; the user is told where it is located. ",
      "GET /static/images/header.png?version=3 HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: Mozilla/5.0\r\n",
      "Content-Type: text/html; charset=utf-8\r\nContent-Length: 4711\r\nConnection: keep-alive\r\n\r\n",
      "<div class=\"content\"><a href=\"/index.html\">Home</a> <span id=\"user-name\">anybody</span></div>\n",
      "function process(data) { if (data.length > 0) { return window.location; } document.title = 'copy'; }\n",
      "{\"id\": 1200, \"name\": \"command\", \"password\": null, \"client\": {\"address\": \"10.0.0.1\"}}\n",
      "She passed the gate, and the program that was to start with the session had been started before. ",
  };
  std::mt19937 random(4);
  std::vector<std::string> frames(500);
  for (std::string& frame : frames) {
    while (frame.size() < 1000) frame += pieces[random() % std::size(pieces)];
  }
  return frames;
}

TEST(KeySet, OrdinaryTextHoldsFewKeysOfPatternsThatItDoesNotHold) {
  const std::vector<Pattern> patterns = {{"WHATISTHIS"},
                                         {"private-knock"},
                                         {"publichole"},
                                         {"ProcessClient.Data"},
                                         {"versions of nothing"},
                                         {"gatewaycrasher"},
                                         {"User-Agent: evilbot"},
                                         {"Content-Type: application/x-evil"},
                                         {"<script>evil("},
                                         {"GET /shell.php?cmd="},
                                         {"password=' or 1"},
                                         {"copyrights 1985-"},
                                         {"commander completed"},
                                         {"Host: evil.example"},
                                         {"window.locations.replace("}};
  const KeySet keys(patterns);
  std::size_t found = 0;
  const std::vector<std::string> frames = frames_of_text();
  for (const std::string& frame : frames) {
    const std::string text = test::folded(frame);
    for (const Key& key : keys.keys()) found += text.find(text_of(key)) != std::string::npos ? 1 : 0;
  }
  EXPECT_LT(found * 20, frames.size()) << static_cast<double>(found) / static_cast<double>(frames.size()) << " a frame";
}

}  // namespace
}  // namespace sluice::match
