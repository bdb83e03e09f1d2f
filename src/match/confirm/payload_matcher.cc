#include "match/confirm/payload_matcher.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "match/confirm/base64.h"
#include "match/confirm/payload_search.h"
#include "match/rules/check_facts.h"

namespace sluice::match {
PayloadMatcher::Scratch::Scratch()
    : found_(pcre2_match_data_create(1, nullptr)),
      limited_(pcre2_match_context_create(nullptr)),
      larger_limit_(pcre2_match_context_create(nullptr)) {
  if (found_ == nullptr || limited_ == nullptr || larger_limit_ == nullptr) throw std::bad_alloc();
  for (const auto& [context, limit] :
       {std::pair(limited_, pcre_match_limit), std::pair(larger_limit_, larger_pcre_match_limit)}) {
    pcre2_set_match_limit(context, limit);
    pcre2_set_depth_limit(context, limit);
  }
  decoded_.reserve(base64_capacity(most_base64));
  variables_.reserve(most_variables);
}

PayloadMatcher::Scratch::~Scratch() {
  pcre2_match_data_free(found_);
  pcre2_match_context_free(limited_);
  pcre2_match_context_free(larger_limit_);
}

Expected<PayloadMatcher> PayloadMatcher::make(const Rule& rule) {
  PayloadMatcher matcher;
  matcher.variables_ = rule.variables.size();
  for (const Check& check : rule.checks) {
    Step step{check, buffer_of(check), Places::first, {}, {}};
    if (const auto* content = std::get_if<Content>(&check)) step.needle = Needle(content->bytes, content->nocase);
    if (const auto* pcre = std::get_if<Pcre>(&check)) {
      auto code = compile(*pcre);
      if (!code) return tl::unexpected(code.error());
      pcre2_jit_compile(code->get(), PCRE2_JIT_COMPLETE);  // where it cannot be, it is interpreted
      step.code = std::move(*code);
    }
    matcher.steps_.push_back(std::move(step));
  }
  // Buffers one after the other, so that what fails in one is not tried again for each place in another; numbers that
  // one buffer gives to another keep the rule's order.
  if (rule.variables.empty()) {
    std::vector<Buffer> order;
    for (const Step& step : matcher.steps_) {
      if (std::find(order.begin(), order.end(), step.buffer) == order.end()) order.push_back(step.buffer);
    }
    const auto rank = [&](const Step& step) { return std::find(order.begin(), order.end(), step.buffer); };
    std::stable_sort(matcher.steps_.begin(), matcher.steps_.end(),
                     [&](const Step& a, const Step& b) { return rank(a) < rank(b); });
  }
  std::vector<const Check*> checks;
  for (const Step& step : matcher.steps_) checks.push_back(&step.check);
  for (std::size_t i = 0; i < checks.size(); ++i) matcher.steps_[i].places = places_of(checks, i);
  return matcher;
}

bool PayloadMatcher::asks_bodies_for_contents() const {
  return std::ranges::all_of(steps_, [](const Step& step) {
    if (!http_bodies.has(step.buffer)) return true;
    const auto* const content = std::get_if<Content>(&step.check);
    return content != nullptr && !content->negated && !content->place.at_end;
  });
}

bool PayloadMatcher::ends_behind(std::string_view body, std::size_t before) const {
  return std::ranges::any_of(steps_, [&](const Step& step) {
    if (!http_bodies.has(step.buffer)) return false;
    const std::size_t begin = before - std::min(before, step.needle.size() - 1);
    return step.needle.find(body, begin, body.size()) != Needle::npos;
  });
}

PayloadVerdict PayloadMatcher::matches(const Buffers& buffers, Scratch& scratch, std::uint64_t deadline) const {
  scratch.variables_.assign(variables_, 0);
  PayloadSearch search{*this, buffers, scratch};
  search.deadline = deadline;
  const bool holds = search.from(0);
  if (holds) return PayloadVerdict::yes;
  return search.unknown || search.steps_left == 0 ? PayloadVerdict::given_up : PayloadVerdict::no;
}

}  // namespace sluice::match
