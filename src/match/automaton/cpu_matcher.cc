#include "match/automaton/cpu_matcher.h"

#include <hs/hs.h>

#include <algorithm>
#include <bit>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace sluice::match {
namespace {

// As a regular expression that matches these bytes and no others.
std::string expression(std::string_view bytes) {
  static constexpr char digit[] = "0123456789abcdef";
  std::string out;
  out.reserve(4 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    out += "\\x";
    out += digit[byte / 16];
    out += digit[byte % 16];
  }
  return out;
}

struct Found {
  const ClassMask* classes;
  unsigned klass;
  std::uint32_t* found;
  std::size_t capacity;
  std::size_t count;
  std::size_t from;
  std::uint32_t* found_in;  // by pattern; null: it is reported once anyhow
  std::uint32_t search;
  std::vector<std::uint32_t>* before;  // null: it is reported again
};

int record(unsigned id, unsigned long long /*from*/, unsigned long long to, unsigned /*flags*/, void* context) {
  auto& all = *static_cast<Found*>(context);
  if ((all.classes[id] >> all.klass & 1) == 0) return 0;
  if (to <= all.from) {
    if (all.before != nullptr) all.before->push_back(id);
    return 0;
  }
  if (all.found_in != nullptr && std::exchange(all.found_in[id], all.search) == all.search) return 0;
  if (all.count < all.capacity) all.found[all.count] = id;
  ++all.count;
  return 0;
}

// Patterns by their numbers, a bit each.
using Bits = std::vector<std::uint64_t>;

std::size_t count_of(const Bits& bits) {
  std::size_t count = 0;
  for (const std::uint64_t word : bits) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

struct Group {
  ClassMask classes;
  Bits patterns;
  std::size_t least;  // patterns of a class in it

  // How many patterns both have together, if each class of both may be searched for all of them.
  std::optional<std::size_t> together(const Group& other) const {
    Bits all = patterns;
    for (std::size_t w = 0; w < all.size(); ++w) all[w] |= other.patterns[w];
    const std::size_t count = count_of(all), fewest = std::min(least, other.least);
    constexpr std::size_t few = 8;  // more are no matter
    return count <= fewest + fewest / 4 + few ? std::optional(count) : std::nullopt;
  }
};

}  // namespace

std::vector<ClassMask> class_groups(std::span<const Pattern> patterns) {
  std::vector<Group> groups;
  for (unsigned c = 0; c < max_classes; ++c) {
    Group group{ClassMask{1} << c, Bits(patterns.size() / 64 + 1), 0};
    for (std::size_t p = 0; p < patterns.size(); ++p) {
      if ((patterns[p].classes >> c & 1) != 0) group.patterns[p / 64] |= std::uint64_t{1} << p % 64;
    }
    group.least = count_of(group.patterns);
    if (group.least != 0) groups.push_back(std::move(group));
  }
  for (;;) {
    // The two that have the least more together than the larger of them.
    std::size_t first = 0, second = 0, least_more = patterns.size() + 1;
    for (std::size_t a = 0; a < groups.size(); ++a) {
      for (std::size_t b = a + 1; b < groups.size(); ++b) {
        const auto both = groups[a].together(groups[b]);
        if (!both) continue;
        const std::size_t more = *both - std::max(count_of(groups[a].patterns), count_of(groups[b].patterns));
        if (more >= least_more) continue;
        least_more = more;
        first = a;
        second = b;
      }
    }
    if (first == second) break;
    Group &one = groups[first], &other = groups[second];
    one.classes |= other.classes;
    one.least = std::min(one.least, other.least);
    for (std::size_t w = 0; w < one.patterns.size(); ++w) one.patterns[w] |= other.patterns[w];
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
  }
  std::vector<ClassMask> masks;
  for (const Group& group : groups) masks.push_back(group.classes);
  return masks;
}

Expected<std::unique_ptr<CpuMatcher>> CpuMatcher::create(std::span<const Pattern> patterns, Mode mode) {
  auto matcher = std::unique_ptr<CpuMatcher>(new CpuMatcher);
  matcher->mode_ = mode;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    const Pattern& pattern = patterns[p];
    if (pattern.bytes.empty()) return make_error("pattern " + std::to_string(p) + " is empty");
    matcher->classes_.push_back(pattern.classes);
    if (mode == Mode::slices) matcher->needles_.emplace_back(pattern.bytes, pattern.nocase);
    for (unsigned c = 0; c < max_classes; ++c) {
      if ((pattern.classes >> c & 1) != 0) matcher->longest_[c] = std::max(matcher->longest_[c], pattern.bytes.size());
    }
  }
  for (const ClassMask classes : class_groups(patterns)) {
    matcher->databases_.push_back({nullptr, classes});
    Database& database = matcher->databases_.back();
    if (auto ok = matcher->compile(patterns, database); !ok) return tl::unexpected(ok.error());
    for (unsigned c = 0; c < max_classes; ++c) {
      if ((classes >> c & 1) != 0) matcher->of_class_[c] = database.compiled;
    }
  }
  return matcher;
}

Expected<void> CpuMatcher::compile(std::span<const Pattern> patterns, Database& database) const {
  std::vector<std::string> texts;
  std::vector<unsigned> flags, ids;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    if ((patterns[p].classes & database.classes) == 0) continue;
    texts.push_back(expression(patterns[p].bytes));
    flags.push_back((mode_ == Mode::every_end ? 0u : HS_FLAG_SINGLEMATCH) |
                    (patterns[p].nocase ? HS_FLAG_CASELESS : 0u));
    ids.push_back(static_cast<unsigned>(p));
  }
  std::vector<const char*> expressions;
  expressions.reserve(texts.size());
  for (const std::string& text : texts) expressions.push_back(text.c_str());
  hs_compile_error_t* mistake = nullptr;
  if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(expressions.size()),
                       HS_MODE_BLOCK, nullptr, &database.compiled, &mistake) != HS_SUCCESS) {
    const std::string why = mistake == nullptr ? "out of memory" : mistake->message;
    hs_free_compile_error(mistake);
    return make_error("Hyperscan cannot compile the patterns: " + why);
  }
  return {};
}

CpuMatcher::~CpuMatcher() {
  for (const Database& database : databases_) hs_free_database(database.compiled);
}

CpuMatcher::Scratch::Scratch(const CpuMatcher& matcher) {
  for (const Database& database : matcher.databases_) {
    if (hs_alloc_scratch(database.compiled, &scratch_) != HS_SUCCESS) {
      hs_free_scratch(scratch_);
      throw std::bad_alloc();
    }
  }
  if (matcher.mode_ != Mode::once) found_in_.resize(matcher.classes_.size());
  if (matcher.mode_ == Mode::slices) before_.reserve(matcher.classes_.size());
}

CpuMatcher::Scratch::~Scratch() {
  hs_free_scratch(scratch_);
}

std::size_t CpuMatcher::match(Scratch& scratch, std::string_view payload, unsigned klass, std::uint32_t* found,
                              std::size_t capacity, std::size_t from, bool goes_on) const {
  const hs_database* const database = of_class_[klass];
  if (!goes_on && ++scratch.search_ == 0) {
    std::fill(scratch.found_in_.begin(), scratch.found_in_.end(), 0);
    scratch.search_ = 1;
  }
  if (database == nullptr || payload.empty()) return 0;
  scratch.before_.clear();
  std::uint32_t* const found_in = mode_ == Mode::once ? nullptr : scratch.found_in_.data();
  Found all{classes_.data(),
            klass,
            found,
            capacity,
            0,
            from,
            found_in,
            scratch.search_,
            mode_ == Mode::slices ? &scratch.before_ : nullptr};
  const auto length = static_cast<unsigned>(payload.size());
  const hs_error_t done = hs_scan(database, payload.data(), length, 0, scratch.scratch_, record, &all);
  if (done != HS_SUCCESS) [[unlikely]] {
    ++scratch.failed_;
  }
  return scratch.before_.empty() ? all.count : look_again(scratch, payload, found, capacity, from, all.count);
}

// What Hyperscan has reported of bytes before `from` it does not report again: whether it is there behind it, too.
// These are few: what is in the last bytes of the piece before.
std::size_t CpuMatcher::look_again(Scratch& scratch, std::string_view payload, std::uint32_t* found,
                                   std::size_t capacity, std::size_t from, std::size_t count) const {
  for (const std::uint32_t id : scratch.before_) {
    if (scratch.found_in_[id] == scratch.search_) continue;  // by an earlier slice
    const Needle& needle = needles_[id];
    const std::size_t begin = from - std::min(from, needle.size() - 1);
    if (needle.find(payload, begin, payload.size()) == Needle::npos) continue;
    scratch.found_in_[id] = scratch.search_;
    if (count < capacity) found[count] = id;
    ++count;
  }
  return count;
}

std::size_t CpuMatcher::database_bytes() const {
  std::size_t bytes = 0;
  for (const Database& database : databases_) {
    std::size_t one = 0;
    hs_database_size(database.compiled, &one);
    bytes += one;
  }
  return bytes;
}

}  // namespace sluice::match
