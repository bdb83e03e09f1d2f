// The rules that lanes inspect by: compiled once for all, and searched with what each lane has of its own.
//
//   auto rules = InspectionRules::make(std::move(set));        // seconds, by the thread that loads
//   InspectionSearch search(*rules);                           // one for each lane
//
// Thread-safety: InspectionRules may be read by all; an InspectionSearch is one Inspection's at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "match/automaton/cpu_matcher.h"
#include "match/automaton/gram_table.h"
#include "match/automaton/key_set.h"
#include "match/detect/alert_filter.h"
#include "match/detect/detector.h"
#include "match/detect/rate_filter.h"

namespace sluice::function {

// What all lanes share: the compiled rules and a matcher for each buffer that is searched.
class InspectionRules : public std::enable_shared_from_this<InspectionRules> {
 public:
  // Called with how many of how many patterns are compiled, none first and all at the end, and nothing within those of
  // one buffer, which Hyperscan compiles in one call; false: stop, which is an Error.
  using Progress = std::function<bool(std::size_t done, std::size_t total)>;
  // `before`: those in force until now, whose flowbits stay in flows. Seconds for 20,000 rules.
  static Expected<std::shared_ptr<InspectionRules>> make(match::RuleSet rules, const InspectionRules* before = nullptr,
                                                         const Progress& progress = {});

  // Of no other rules of this process; not 0.
  std::uint64_t generation() const { return generation_; }
  const match::Detector& detector() const { return *detector_; }
  const match::CpuMatcher& matcher(match::Buffer buffer) const { return *matchers_[static_cast<std::size_t>(buffer)]; }
  // Bytes of the longest pattern of payloads: as much of the stream before a new piece is searched with it.
  std::size_t longest_pattern() const { return longest_; }
  // What stands for the patterns of payloads on a device, and the tables that it is found by.
  const match::KeySet& keys() const { return *keys_; }
  const match::GramTable& gram_table() const { return *gram_table_; }

 private:
  std::uint64_t generation_ = 0;
  std::unique_ptr<match::Detector> detector_;
  std::array<std::unique_ptr<match::CpuMatcher>, match::buffer_count> matchers_;  // null: not searched
  std::unique_ptr<match::KeySet> keys_;
  std::unique_ptr<match::GramTable> gram_table_;
  std::size_t longest_ = 0;
};

// A lane's own side of the rules: what it searches and confirms with. Made by the thread that loads, about 1 MB, and
// what the counts of rates take (rate_filter.h); used by one Inspection at a time.
struct InspectionSearch {
  explicit InspectionSearch(std::shared_ptr<const InspectionRules> rules, const match::RateSettings& rates = {});
  ~InspectionSearch();

  std::shared_ptr<const InspectionRules> rules;
  match::Detector::Scratch detector;
  match::RateFilter rates;
  match::AlertFilter alerts;
  std::array<std::unique_ptr<match::CpuMatcher::Scratch>, match::buffer_count> matching;
  std::vector<std::uint32_t> found, prefilter_matches, matched, keys;
  std::string no_bits;  // as many as HTTP's patterns
  std::string listed;   // likewise: a bit for each of these that is among the prefilter matches
};

}  // namespace sluice::function
