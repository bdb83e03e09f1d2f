#include "match/automaton/cpu_matcher.h"

#include <hs/hs.h>

#include <algorithm>
#include <new>
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
  std::size_t room;
  std::size_t count;
  std::size_t from;
  std::uint32_t* found_in;  // by pattern; null: it is told once anyhow
  std::uint32_t search;
};

int record(unsigned id, unsigned long long /*from*/, unsigned long long to, unsigned /*flags*/, void* context) {
  auto& all = *static_cast<Found*>(context);
  if ((all.classes[id] >> all.klass & 1) != 0 && to > all.from) {
    if (all.found_in != nullptr && std::exchange(all.found_in[id], all.search) == all.search) return 0;
    if (all.count < all.room) all.found[all.count] = id;
    ++all.count;
  }
  return 0;
}

}  // namespace

Expected<std::unique_ptr<CpuMatcher>> CpuMatcher::create(std::span<const Pattern> patterns, bool every_end) {
  auto matcher = std::unique_ptr<CpuMatcher>(new CpuMatcher);
  matcher->every_end_ = every_end;
  std::vector<std::string> texts;
  std::vector<const char*> expressions;
  std::vector<unsigned> flags, ids;
  texts.reserve(patterns.size());
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    if (patterns[p].bytes.empty()) return make_error("pattern " + std::to_string(p) + " is empty");
    texts.push_back(expression(patterns[p].bytes));
    expressions.push_back(texts.back().c_str());
    flags.push_back((every_end ? 0u : HS_FLAG_SINGLEMATCH) | (patterns[p].nocase ? HS_FLAG_CASELESS : 0u));
    ids.push_back(static_cast<unsigned>(p));
    matcher->classes_.push_back(patterns[p].classes);
  }
  if (patterns.empty()) return matcher;
  hs_compile_error_t* mistake = nullptr;
  if (hs_compile_multi(expressions.data(), flags.data(), ids.data(), static_cast<unsigned>(expressions.size()),
                       HS_MODE_BLOCK, nullptr, &matcher->database_, &mistake) != HS_SUCCESS) {
    const std::string why = mistake == nullptr ? "out of memory" : mistake->message;
    hs_free_compile_error(mistake);
    return make_error("Hyperscan cannot compile the patterns: " + why);
  }
  return matcher;
}

CpuMatcher::~CpuMatcher() {
  hs_free_database(database_);
}

CpuMatcher::Scratch::Scratch(const CpuMatcher& matcher) {
  if (matcher.database_ != nullptr && hs_alloc_scratch(matcher.database_, &scratch_) != HS_SUCCESS) {
    throw std::bad_alloc();
  }
  if (matcher.every_end_) found_in_.resize(matcher.classes_.size());
}

CpuMatcher::Scratch::~Scratch() {
  hs_free_scratch(scratch_);
}

std::size_t CpuMatcher::match(Scratch& scratch, std::string_view payload, unsigned klass, std::uint32_t* found,
                              std::size_t room, std::size_t from, bool goes_on) const {
  if (!goes_on && ++scratch.search_ == 0) {
    std::fill(scratch.found_in_.begin(), scratch.found_in_.end(), 0);
    scratch.search_ = 1;
  }
  std::uint32_t* const found_in = every_end_ ? scratch.found_in_.data() : nullptr;
  Found all{classes_.data(), klass, found, room, 0, from, found_in, scratch.search_};
  if (database_ != nullptr && !payload.empty()) {
    const auto length = static_cast<unsigned>(payload.size());
    const hs_error_t done = hs_scan(database_, payload.data(), length, 0, scratch.scratch_, record, &all);
    if (done != HS_SUCCESS) [[unlikely]] {
      ++scratch.failed_;
    }
  }
  return all.count;
}

std::size_t CpuMatcher::database_bytes() const {
  std::size_t bytes = 0;
  if (database_ != nullptr) hs_database_size(database_, &bytes);
  return bytes;
}

}  // namespace sluice::match
