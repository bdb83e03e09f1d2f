// A GPU's search for keys (or the host SIMT shim's) on frames in host memory, against a plain search, and tests that
// any such search has to pass: instantiate GpuSearch with GpuMatcherTrial or what derives from it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "../tests/support/gpu.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/reference_test.h"

namespace sluice::match {

inline constexpr std::uint32_t most_frames = 512;
inline constexpr std::size_t capacity = 4 << 20;

struct Frame {
  std::string bytes;
  Span span;
  unsigned klass = 0;
  unsigned skew = 0;  // of its address from a line of 128 bytes
  std::string payload() const {
    return span.end > span.begin ? bytes.substr(span.begin, span.end - span.begin) : std::string();
  }
};

class GpuMatcherTrial : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = device::Gpu::open(0, 1);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
    memory_ = static_cast<char*>(gpu_->allocate_host(capacity).value());
    address_ = static_cast<std::uint64_t*>(gpu_->allocate_host(most_frames * 8).value());
    span_ = static_cast<Span*>(gpu_->allocate_host(most_frames * sizeof(Span)).value());
    klass_ = static_cast<std::uint8_t*>(gpu_->allocate_host(most_frames).value());
    found_ = static_cast<std::uint32_t*>(gpu_->allocate_host(most_frames * 4).value());
    key_ = static_cast<std::uint32_t*>(gpu_->allocate_host(most_frames * 4 * max_hits).value());
  }

  void make(const KeySet& keys, bool whole = false) {
    auto matcher = GpuMatcher::create(*gpu_, GramTable(keys), 64 * 1024, whole);
    ASSERT_TRUE(matcher) << matcher.error().message;
    matcher_ = std::move(*matcher);
    whole_ = whole;
  }
  void replace(const KeySet& keys) {
    auto prepared = matcher_->prepare(GramTable(keys));
    ASSERT_TRUE(prepared) << prepared.error().message;
    matcher_->publish(std::move(*prepared), nullptr);
  }
  void sync() {
    ASSERT_TRUE(matcher_->sync(gpu_->stream(0)));
    wait();
  }
  void wait() {
    ASSERT_TRUE(gpu_->stream(0).mark());
    while (gpu_->stream(0).poll() == device::MarkState::pending) {
    }
    ASSERT_FALSE(gpu_->lost()) << gpu_->why();
  }

  // Matches the frames with a table of these keys and compares with the plain search; how many keys were found in all.
  std::size_t check(const KeySet& keys, const std::vector<Frame>& frames) {
    make(keys, true);
    if (matcher_) match(keys, frames);
    make(keys);
    return matcher_ ? match(keys, frames) : 0;
  }
  // The same with the table that there is.
  std::size_t match(const KeySet& keys, const std::vector<Frame>& frames) {
    std::size_t at = 0;
    std::memset(memory_, 'Q', capacity);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      at = (at + 127) / 128 * 128 + frames[i].skew;
      std::memcpy(memory_ + at, frames[i].bytes.data(), frames[i].bytes.size());
      address_[i] = reinterpret_cast<std::uint64_t>(memory_ + at);
      span_[i] = frames[i].span;
      klass_[i] = static_cast<std::uint8_t>(frames[i].klass);
      at += frames[i].bytes.size();
    }
    EXPECT_LE(at, capacity);
    MatchBatch batch{address_, span_, klass_, found_, key_, static_cast<std::uint32_t>(frames.size())};
    batch.bytes = spread_;
    const std::size_t all = expect_keys(keys, frames, matcher_->match(batch, gpu_->stream(0)), [&] {
      return matcher_->every_key(batch, keys.keys().size(), gpu_->stream(0));
    });
    if (whole_) match_otherwise(keys, frames, batch);
    return all;
  }
  // Other matchers of the keys that `matcher_` has been made of, with its whole table, on the same batch.
  virtual void match_otherwise(const KeySet& /*keys*/, const std::vector<Frame>& /*frames*/, MatchBatch& /*batch*/) {}
  // Of a launch; `every_key`: of another one.
  template <typename Every>
  std::size_t expect_keys(const KeySet& keys, const std::vector<Frame>& frames, const Expected<void>& ok,
                          const Every& every_key) {
    EXPECT_TRUE(ok) << ok.error().message;
    wait();
    const auto every = every_key();
    EXPECT_TRUE(every) << every.error().message;
    if (!every) return 0;
    std::size_t all = 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::set<std::uint32_t> expected = test::keys_in(keys, frames[i].payload(), frames[i].klass);
      all += expected.size();
      EXPECT_EQ(found_[i], std::min<std::size_t>(expected.size(), max_hits + 1)) << "frame " << i;
      const std::uint32_t reported = std::min(found_[i], max_hits);
      const std::set<std::uint32_t> got(key_ + i * max_hits, key_ + i * max_hits + reported);
      EXPECT_EQ(got.size(), reported) << "frame " << i << ": a key twice";
      EXPECT_TRUE(std::includes(expected.begin(), expected.end(), got.begin(), got.end())) << "frame " << i;
      EXPECT_EQ(marked(*every, i, keys.keys().size()), expected) << "frame " << i;
    }
    return all;
  }
  // The keys of frame i, of what every_key() gave.
  static std::set<std::uint32_t> marked(const std::vector<std::uint32_t>& every, std::size_t i, std::size_t keys) {
    std::set<std::uint32_t> out;
    const std::uint32_t* const word = every.data() + i * GpuMatcher::key_words(keys);
    for (std::uint32_t k = 0; k < 32 * GpuMatcher::key_words(keys); ++k) {
      if ((word[k / 32] >> k % 32 & 1) != 0) out.insert(k);
    }
    return out;
  }

  std::uint64_t spread_ = 0;  // MatchBatch::bytes
  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<GpuMatcher> matcher_;
  bool whole_ = false;  // as the matcher was made; match_otherwise() is called then, too
  char* memory_ = nullptr;
  std::uint64_t* address_ = nullptr;
  Span* span_ = nullptr;
  std::uint8_t* klass_ = nullptr;
  std::uint32_t* found_ = nullptr;
  std::uint32_t* key_ = nullptr;
};

inline Frame frame_of(std::string bytes, unsigned begin, unsigned end, unsigned klass = 0, unsigned skew = 0) {
  return {std::move(bytes), {static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)}, klass, skew};
}

template <typename Trial>
class GpuSearch : public Trial {};
TYPED_TEST_SUITE_P(GpuSearch);

TYPED_TEST_P(GpuSearch, finds_a_key_wherever_it_stands) {
  const KeySet keys(std::vector<Pattern>{{"needles!"}, {"four"}, {"xyz"}, {"#%"}});
  for (const std::string pattern : {"needles!", "four", "xyz", "#%"}) {
    std::vector<Frame> frames;
    for (unsigned at = 0; at + pattern.size() <= 700; at += at < 160 || at > 480 ? 1 : 7) {
      std::string bytes(700, '.');
      bytes.replace(at, pattern.size(), pattern);
      frames.push_back(frame_of(bytes, 0, 700, 0, at % 3 == 0 ? 0 : at % 128));
    }
    ASSERT_LE(frames.size(), most_frames);
    EXPECT_EQ(this->check(keys, frames), frames.size()) << pattern;
  }
}

TYPED_TEST_P(GpuSearch, a_key_that_is_partly_outside_the_payload_is_none) {
  const KeySet keys(std::vector<Pattern>{{"needles!"}, {"four"}, {"xyz"}, {"#%"}});
  std::vector<Frame> frames;
  for (const std::string pattern : {"needles!", "four", "xyz", "#%"}) {
    for (unsigned cut = 0; cut < pattern.size(); ++cut) {
      const std::string bytes = std::string(54, 'h') + pattern + std::string(70, 'p') + pattern + std::string(9, 't');
      const auto size = static_cast<unsigned>(pattern.size());
      frames.push_back(frame_of(bytes, 54 + cut, 54 + size + 70 + size - cut, 0, cut * 5));
    }
  }
  frames.push_back(frame_of(std::string(64, 'f') + "four", 64, 64));
  frames.push_back(frame_of("four", 4, 0));
  EXPECT_EQ(this->check(keys, frames), 4u) << "the four that nothing is cut from";
}

TYPED_TEST_P(GpuSearch, neither_frames_side_by_side_nor_what_lies_between_make_a_key) {
  const KeySet keys(std::vector<Pattern>{{"abcdefgh"}, {"QQQQ"}, {"dQ"}});
  std::vector<Frame> frames;
  for (unsigned i = 0; i < 64; ++i) frames.push_back(frame_of(i % 2 == 0 ? "....abcd" : "efgh....", 0, 8));
  EXPECT_EQ(this->check(keys, frames), 0u);
}

TYPED_TEST_P(GpuSearch, case_is_folded_as_ascii) {
  const KeySet keys(std::vector<Pattern>{{"CmD.ExE[", true}, {"\xc0\xe0@`", true}});
  EXPECT_EQ(this->check(keys, {frame_of("..cMd.eXe[..", 0, 12), frame_of("..cmd.exe{..", 0, 12),
                               frame_of("\xe0\xe0@`", 0, 4), frame_of("\xc0\xe0@`", 0, 4)}),
            2u);
}

TYPED_TEST_P(GpuSearch, a_key_counts_in_its_classes_only) {
  const KeySet keys(std::vector<Pattern>{{"ab", false, 1u << 3}, {"longer", false, 1u << 31 | 1}});
  std::vector<Frame> frames;
  for (unsigned klass = 0; klass < max_classes; ++klass) frames.push_back(frame_of("ab longer", 0, 9, klass));
  EXPECT_EQ(this->check(keys, frames), 3u);
}

TYPED_TEST_P(GpuSearch, more_keys_than_can_be_reported_are_counted_as_more) {
  std::vector<Pattern> patterns;
  std::string all;
  for (char c = 'a'; c < 'a' + 20; ++c) {
    patterns.push_back({std::string(4, c) + "!"});
    all += patterns.back().bytes;
  }
  const KeySet keys(patterns);
  std::vector<Frame> frames;
  for (unsigned n = 0; n <= 20; ++n) frames.push_back(frame_of(all + all, 0, n * 5));
  for (unsigned n = 0; n < 12; ++n) frames.push_back(frame_of(std::string(1400, 'a') + "!" + all, 54, 1401 + n * 5));
  this->check(keys, frames);
}

TYPED_TEST_P(GpuSearch, agrees_with_a_plain_search_on_random_frames) {
  std::mt19937 random(7);
  const auto text = [&](std::size_t size, unsigned letters) {
    std::string out(size, ' ');
    for (char& c : out) c = static_cast<char>("aBcD\0\xff/."[random() % letters]);
    return out;
  };
  for (const unsigned letters : {2u, 3u, 5u, 8u}) {
    std::vector<Pattern> patterns;
    for (int i = 0; i < 60; ++i) {
      patterns.push_back({text(2 + random() % 18, letters), random() % 2 == 0, static_cast<ClassMask>(random())});
    }
    const KeySet keys(patterns);
    std::vector<Frame> frames;
    for (int i = 0; i < 150; ++i) {
      const unsigned size = random() % 4 == 0 ? 1514 : 1 + random() % 200;
      const unsigned begin = random() % size, end = begin + random() % (size - begin + 1);
      frames.push_back(frame_of(text(size, letters), begin, end, random() % 32, random() % 128));
    }
    this->spread_ = 0;  // as for small frames
    EXPECT_GT(this->check(keys, frames), 50u) << letters;
    this->spread_ = 1 << 20;
    EXPECT_GT(this->check(keys, frames), 50u) << letters;
  }
}

REGISTER_TYPED_TEST_SUITE_P(GpuSearch, finds_a_key_wherever_it_stands, a_key_that_is_partly_outside_the_payload_is_none,
                            neither_frames_side_by_side_nor_what_lies_between_make_a_key, case_is_folded_as_ascii,
                            a_key_counts_in_its_classes_only, more_keys_than_can_be_reported_are_counted_as_more,
                            agrees_with_a_plain_search_on_random_frames);

}  // namespace sluice::match
