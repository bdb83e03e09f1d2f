#include "function/acl/rule_hits.h"

#include <algorithm>
#include <compare>
#include <new>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "lookup/acl/rule_text.h"

namespace sluice::function {
namespace {

using lookup::acl::AclRule;
using lookup::acl::RuleText;

// All that makes a rule the same one. Tags are another list's affair; what they stand for is in the text.
auto identity(const AclRule& rule, std::span<const RuleText> texts) {
  return std::tuple_cat(
      std::make_tuple(rule.text == AclRule::no_text || rule.tags.mask == 0 ? std::string_view()
                                                                           : std::string_view(texts[rule.text].match)),
      std::tie(rule.priority, rule.source, rule.destination, rule.source_port.first, rule.source_port.last,
               rule.destination_port.first, rule.destination_port.last, rule.protocol.value, rule.protocol.mask,
               rule.flags.value, rule.flags.mask, rule.action.kind, rule.action.mark, rule.action.rate_bits,
               rule.action.burst_bytes, rule.action.log));
}

// The places of the rules by identity, equal ones in the order of the list.
std::vector<std::uint32_t> by_identity(std::span<const AclRule> rules, std::span<const RuleText> texts) {
  std::vector<std::uint32_t> places(rules.size());
  std::iota(places.begin(), places.end(), 0U);
  std::stable_sort(places.begin(), places.end(), [&](std::uint32_t a, std::uint32_t b) {
    return identity(rules[a], texts) < identity(rules[b], texts);
  });
  return places;
}

}  // namespace

HitCounters::HitCounters(std::uint32_t writers, std::uint32_t places)
    : writers_(writers),
      places_(places),
      stride_((places * sizeof(HitCounter) + apart - 1) / apart * apart / sizeof(HitCounter)),
      first_(static_cast<HitCounter*>(std::aligned_alloc(apart, writers * stride_ * sizeof(HitCounter))), &std::free) {
  if (!first_) throw std::bad_alloc();
  std::uninitialized_value_construct_n(first_.get(), writers * stride_);
}

HitCount HitCounters::sum(std::uint32_t place) const {
  HitCount all;
  for (std::uint32_t writer = 0; writer < writers_; ++writer) all += at(writer, place).get();
  return all;
}

std::unique_ptr<RuleHits::Next> RuleHits::next(std::span<const AclRule> rules, bool deny_others,
                                               std::span<const RuleText> texts) const {
  auto next = std::make_unique<Next>();
  next->rules.assign(rules.begin(), rules.end());
  next->texts.assign(texts.begin(), texts.end());
  next->deny_others = deny_others;
  next->counters = std::make_shared<HitCounters>(writers_, static_cast<std::uint32_t>(rules.size() + 1));
  if (!counters_) return next;
  next->heir.assign(counters_->places(), gone);
  const std::vector<std::uint32_t> old_places = by_identity(rules_, texts_);
  const std::vector<std::uint32_t> new_places = by_identity(rules, texts);
  for (auto old_place = old_places.begin(), new_place = new_places.begin();
       old_place != old_places.end() && new_place != new_places.end();) {
    const auto order = identity(rules_[*old_place], texts_) <=> identity(rules[*new_place], texts);
    if (order == 0) next->heir[*old_place] = *new_place;
    if (order <= 0) ++old_place;
    if (order >= 0) ++new_place;
  }
  if (deny_others == deny_others_) next->heir.back() = static_cast<std::uint32_t>(rules.size());
  return next;
}

void RuleHits::enter(std::unique_ptr<Next> next) {
  const std::lock_guard lock(mutex_);
  std::vector<HitCount> before(next->counters->places());
  std::vector<std::uint8_t> total = totals_of_places();
  for (std::size_t place = 0; place < next->heir.size(); ++place) {
    (next->heir[place] != gone ? before[next->heir[place]] : gone_[total[place]]) += before_[place];
  }
  for (Left& left : left_) {
    for (std::uint32_t& heir : left.heir) heir = heir == gone ? gone : next->heir[heir];
  }
  if (counters_) left_.push_back({std::move(counters_), std::move(next->heir), std::move(total)});
  rules_ = std::move(next->rules);
  texts_ = std::move(next->texts);
  deny_others_ = next->deny_others;
  counters_ = std::move(next->counters);
  before_ = std::move(before);
}

void RuleHits::fold() {
  const std::lock_guard lock(mutex_);
  std::erase_if(left_, [&](const Left& left) {
    if (left.counters.use_count() != 1) return false;
    for (std::uint32_t place = 0; place < left.counters->places(); ++place) {
      const std::uint32_t heir = left.heir[place];
      (heir != gone ? before_[heir] : gone_[left.total[place]]) += left.counters->sum(place);
    }
    return true;
  });
}

std::vector<std::uint8_t> RuleHits::totals_of_places() const {
  std::vector<std::uint8_t> total;
  total.reserve(rules_.size() + 1);
  for (const AclRule& rule : rules_) total.push_back(static_cast<std::uint8_t>(rule.action.kind));
  total.push_back(std::tuple_size_v<Totals> - 1);
  return total;
}

RuleHits::Totals RuleHits::totals() const {
  const std::lock_guard lock(mutex_);
  Totals all = gone_;
  const std::vector<std::uint8_t> total = totals_of_places();
  if (counters_) {
    for (std::uint32_t place = 0; place < counters_->places(); ++place) all[total[place]] += count(place);
  }
  for (const Left& left : left_) {
    for (std::uint32_t place = 0; place < left.counters->places(); ++place) {
      all[left.total[place]] += left.counters->sum(place);
    }
  }
  return all;
}

// Without what lists that are left have counted.
HitCount RuleHits::count(std::uint32_t place) const {
  HitCount all = before_[place];
  all += counters_->sum(place);
  return all;
}

engine::CountedRule RuleHits::row_of(const AclRule& rule) const {
  engine::CountedRule row;
  row.action = lookup::acl::action_text(rule.action);
  if (rule.text == AclRule::no_text) {
    row.match = lookup::acl::match_text(rule);
    return row;
  }
  const RuleText& text = texts_[rule.text];
  row.match = text.match.empty() ? "any" : text.match;
  row.name = text.name;
  row.comment = text.comment;
  return row;
}

engine::CountedRules::Listing RuleHits::list(std::uint32_t limit) const {
  const std::lock_guard lock(mutex_);
  Listing listing;
  const auto default_place = static_cast<std::uint32_t>(rules_.size());
  const auto begins_row = [&](std::uint32_t place) {
    return place == 0 || rules_[place].text == AclRule::no_text || rules_[place].text != rules_[place - 1].text;
  };
  std::vector<std::uint32_t> row_of_place;  // of those that are shown
  for (std::uint32_t place = 0; place < default_place; ++place) {
    listing.count += begins_row(place) ? 1 : 0;
    if (listing.count > limit) continue;
    if (begins_row(place)) listing.rules.push_back(row_of(rules_[place]));
    row_of_place.push_back(static_cast<std::uint32_t>(listing.rules.size() - 1));
  }
  listing.unmatched.action = deny_others_ ? "deny" : "permit";
  const auto add = [&](std::uint32_t place, const HitCount& hits) {
    if (place >= row_of_place.size() && place != default_place) return;
    engine::CountedRule& row = place == default_place ? listing.unmatched : listing.rules[row_of_place[place]];
    row.frames += hits.frames;
    row.bytes += hits.bytes;
  };
  for (std::uint32_t place = 0; place < row_of_place.size(); ++place) add(place, count(place));
  add(default_place, count(default_place));
  for (const Left& left : left_) {
    for (std::uint32_t place = 0; place < left.counters->places(); ++place) {
      if (left.heir[place] != gone) add(left.heir[place], left.counters->sum(place));
    }
  }
  return listing;
}

}  // namespace sluice::function
