#include "function/inspect/payload_search.h"

#include <rte_cycles.h>

#include <algorithm>

#include "match/automaton/key_scan.h"

namespace sluice::function {
namespace {

using match::Buffer;

constexpr std::size_t least_slice = 1536;  // searched between two looks at the time

}  // namespace

bool PayloadSearch::leaves_matches(PacketContext& context) {
  const bool are_some = context.matches.known() ? !context.matches.keys().empty() : context.matches.too_many();
  if (!are_some || !env_.is_late()) return false;
  env_.leave(context);
  return true;
}

// Payloads with more keys than a device says are made for it, and the core would be busy with nothing else. A datagram
// has waited for its last fragment.
PatternsFound PayloadSearch::by_core(PacketContext& context, std::string_view bytes, std::size_t from) {
  if (context.matches.too_many()) return in_slices(context, bytes, from, context.is_datagram);
  return {in_buffer(context, Buffer::payload, bytes, from)};
}

bool PayloadSearch::may_search(PacketContext& context) {
  if (context.budget.time.allows_search()) return true;
  env_.leave(context);
  return false;
}

std::optional<std::size_t> PayloadSearch::in_buffer_in_time(PacketContext& context, Buffer buffer,
                                                            std::string_view bytes) {
  ConfirmTime& time = context.budget.time;
  if (!time.limited()) return in_buffer(context, buffer, bytes);
  if (!may_search(context)) return std::nullopt;
  const std::uint64_t began = rte_rdtsc();
  const std::size_t found = in_buffer(context, buffer, bytes);
  time.spend(rte_rdtsc() - began);
  return found;
}

std::size_t PayloadSearch::in_buffer(PacketContext& context, Buffer buffer, std::string_view bytes, std::size_t from,
                                     std::size_t before) {
  env_.counters.searched += bytes.size();
  const unsigned klass = env_.detector().classes().class_of(context.packet());
  std::vector<std::uint32_t>& found = env_.search->found;
  match::CpuMatcher::Scratch& scratch = *env_.search->matching[static_cast<std::size_t>(buffer)];
  const std::uint64_t refused = scratch.failed();
  const std::size_t count = env_.rules().matcher(buffer).match(scratch, bytes, klass, found.data() + before,
                                                               found.size() - before, from, before != 0);
  if (scratch.failed() != refused) [[unlikely]] {
    ++env_.counters.refused;
    env_.overload(context);
  }
  return count;
}

PatternsFound PayloadSearch::by_matches(PacketContext& context, std::span<const std::uint32_t> keys,
                                        std::string_view bytes, std::size_t history, bool before_by_core) {
  if (keys.empty() && history == 0) return {0, true};
  const InspectionRules& rules = env_.rules();
  std::vector<std::uint32_t>& all = env_.search->keys;
  all.assign(keys.begin(), keys.end());
  if (history != 0) {
    constexpr std::size_t reach = match::Key::max_length - 1;
    const std::size_t unknown = before_by_core ? std::min(history, rules.longest_pattern()) : 0;
    const std::size_t before = std::min(history, unknown + reach);
    const std::string_view seam = bytes.substr(history - before, before + reach);
    match::scan_keys(rules.gram_table().view(), seam, before - unknown,
                     rules.detector().classes().class_of(context.packet()), all);
  }
  std::vector<std::uint32_t>& patterns = env_.search->prefilter_matches;
  patterns.clear();
  for (const std::uint32_t key : all) {
    const auto of = rules.keys().patterns_of(key);
    patterns.insert(patterns.end(), of.begin(), of.end());
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  std::copy(patterns.begin(), patterns.end(), env_.search->found.begin());
  return {patterns.size(), true};
}

// Slices are as long as a packet, each with what a pattern may have before it. What has waited has time of its own.
PatternsFound PayloadSearch::in_slices(PacketContext& context, std::string_view bytes, std::size_t from,
                                       bool has_waited) {
  ConfirmTime& time = context.budget.time;
  if (!time.limited()) return {in_buffer(context, Buffer::payload, bytes, from)};
  const std::size_t before = env_.rules().longest_pattern(), step = std::max(least_slice, before);
  PatternsFound found;
  for (std::size_t at = from; at < bytes.size(); at += step) {
    const std::size_t begin = at - std::min(at, before);
    const std::string_view slice = bytes.substr(begin, at - begin + step);
    const bool is_free = has_waited && slice.size() <= context.budget.waited;
    const bool of_waiting = !is_free && has_waited && time.left_for_waiting() != 0;
    if (is_free) {
      context.budget.waited -= slice.size();
    } else if (!of_waiting && !may_search(context)) {
      found.all = false;
      break;
    }
    const std::uint64_t began = rte_rdtsc();
    found.count += in_buffer(context, Buffer::payload, slice, at - begin, found.count);
    const std::uint64_t took = rte_rdtsc() - began;
    if (of_waiting) {
      time.spend_on_waiting(took);
    } else if (!is_free) {
      time.spend(took);
    }
  }
  return found;
}

}  // namespace sluice::function
