// Options about the flow that a packet belongs to, and about how often a rule alerts.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "base/quote.h"
#include "match/rules/draft.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

template <typename Value, std::size_t Count>
std::optional<Value> find_named(const std::array<Named<Value>, Count>& names, std::string_view name) {
  for (const auto& one : names) {
    if (one.name == name) return one.value;
  }
  return std::nullopt;
}

using D = FlowDirection;
using S = FlowState;
using F = FlowData;
constexpr auto directions = std::to_array<Named<D>>({{"to_server", D::to_server},
                                                     {"from_client", D::to_server},
                                                     {"to_client", D::to_client},
                                                     {"from_server", D::to_client}});
constexpr auto states = std::to_array<Named<S>>(
    {{"established", S::established}, {"not_established", S::not_established}, {"stateless", S::stateless}});
constexpr auto kinds = std::to_array<Named<F>>({{"only_stream", F::only_stream},
                                                {"no_stream", F::no_stream},
                                                {"only_frag", F::only_frag},
                                                {"no_frag", F::no_frag}});

// Sets what nothing has set before. False: something has.
template <typename Value>
bool set_once(Value& target, std::optional<Value> value) {
  const bool is_new = target == Value{};
  target = *value;
  return is_new;
}

constexpr auto operations = std::to_array<Named<Flowbits::Operation>>({{"set", Flowbits::Operation::set},
                                                                       {"unset", Flowbits::Operation::unset},
                                                                       {"toggle", Flowbits::Operation::toggle},
                                                                       {"isset", Flowbits::Operation::isset},
                                                                       {"isnotset", Flowbits::Operation::isnotset}});

bool is_condition(Flowbits::Operation operation) {
  return operation == Flowbits::Operation::isset || operation == Flowbits::Operation::isnotset;
}

std::string read_names(std::string_view text, Flowbits& bits) {
  const bool has_or = text.find('|') != std::string_view::npos;
  if (has_or && text.find('&') != std::string_view::npos) return in_quotes(text) + " mixes | and &";
  if (has_or && !is_condition(bits.operation)) return in_quotes(text) + ": | is for isset and isnotset only";
  bits.any = has_or;
  for (const std::string_view name : split(text, has_or ? '|' : '&')) {
    if (name.empty() || name.find_first_of(" \t\"") != std::string_view::npos) {
      return in_quotes(text) + " is no name of a flowbit";
    }
    bits.names.emplace_back(name);
  }
  return {};
}

constexpr auto tracks = std::to_array<Named<Track>>({{"by_src", Track::by_src},
                                                     {"by_dst", Track::by_dst},
                                                     {"by_rule", Track::by_rule},
                                                     {"by_both", Track::by_both},
                                                     {"by_flow", Track::by_flow}});
constexpr auto types = std::to_array<Named<Threshold::Type>>(
    {{"limit", Threshold::Type::limit}, {"threshold", Threshold::Type::threshold}, {"both", Threshold::Type::both}});
constexpr auto uniques = std::to_array<Named<DetectionFilter::Unique>>(
    {{"src_port", DetectionFilter::Unique::src_port}, {"dst_port", DetectionFilter::Unique::dst_port}});

// "track by_src, count 3, seconds 60", and words of one of the two options only.
struct Rate {
  std::optional<Track> track;
  std::optional<std::uint32_t> count;
  std::optional<std::uint32_t> seconds;
  std::optional<Threshold::Type> type;
  std::optional<DetectionFilter::Unique> unique;
};

std::string read_rate_word(std::string_view text, Rate& rate) {
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view name = text.substr(0, end);
  const std::string_view argument = trimmed(text.substr(end));
  std::string unknown = in_quotes(text) + " is not understood";
  if (name == "track") {
    rate.track = find_named(tracks, argument);
    return rate.track ? "" : unknown;
  }
  if (name == "type") {
    rate.type = find_named(types, argument);
    return rate.type ? "" : unknown;
  }
  if (name == "unique_on") {
    rate.unique = find_named(uniques, argument);
    return rate.unique ? "" : unknown;
  }
  if (name != "count" && name != "seconds") return unknown;
  const auto number = number_of(argument);
  constexpr std::int64_t max = std::numeric_limits<std::uint32_t>::max();
  if (!number || *number < 1 || *number > max) return std::string(name) + ": " + no_number(argument, 1, max);
  (name == "count" ? rate.count : rate.seconds) = static_cast<std::uint32_t>(*number);
  return {};
}

std::string read_rate(std::string_view value, Rate& rate) {
  for (const std::string_view text : split(value, ',')) {
    std::string wrong = read_rate_word(text, rate);
    if (!wrong.empty()) return wrong;
  }
  return rate.track && rate.count && rate.seconds ? "" : "it needs track, count and seconds";
}

using Side = StreamSizeCheck::Side;
using Comparison = StreamSizeCheck::Comparison;
constexpr auto sides = std::to_array<Named<Side>>(
    {{"server", Side::server}, {"client", Side::client}, {"both", Side::both}, {"either", Side::either}});
constexpr auto comparisons = std::to_array<Named<Comparison>>({{"<", Comparison::less},
                                                               {"<=", Comparison::less_equal},
                                                               {"=", Comparison::equal},
                                                               {"!=", Comparison::not_equal},
                                                               {"!", Comparison::not_equal},
                                                               {">=", Comparison::greater_equal},
                                                               {">", Comparison::greater}});

}  // namespace

std::string read_flow(Draft& draft, std::string_view value) {
  FlowCheck& flow = draft.rule.flow;
  for (const std::string_view text : split(value, ',')) {
    const std::string word = lower_case(text);
    bool is_new = true;
    if (const auto direction = find_named(directions, word)) {
      is_new = set_once(flow.direction, direction);
    } else if (const auto state = find_named(states, word)) {
      is_new = set_once(flow.state, state);
    } else if (const auto data = find_named(kinds, word)) {
      is_new = set_once(flow.data, data);
    } else {
      return in_quotes(text) + " is no word of it";
    }
    if (!is_new) return in_quotes(text) + " contradicts or repeats a word before it";
  }
  return {};
}

std::string read_flowbits(Draft& draft, std::string_view value) {
  const auto parts = split(value, ',');
  if (parts.size() == 1 && parts[0] == "noalert") {
    draft.rule.noalert = true;
    return {};
  }
  Flowbits bits;
  const auto operation = find_named(operations, parts[0]);
  if (!operation) return in_quotes(parts[0]) + " is none of set, unset, toggle, isset, isnotset and noalert";
  bits.operation = *operation;
  // Snort's third part names a group of bits; groups matter to its setx and reset only, which are refused.
  const bool has_group = parts.size() == 3 && bits.operation == Flowbits::Operation::set;
  if (parts.size() != 2 && !has_group) return in_quotes(value) + " is not OPERATION,NAME";
  std::string wrong = read_names(parts[1], bits);
  if (wrong.empty()) draft.rule.flowbits.push_back(std::move(bits));
  return wrong;
}

std::string read_stream_size(Draft& draft, std::string_view value) {
  const auto parts = split(value, ',');
  const auto side = find_named(sides, parts[0]);
  const auto comparison = find_named(comparisons, parts.size() == 3 ? parts[1] : "");
  const auto bytes = number_of(parts.back());
  if (!side || !comparison || !bytes || *bytes < 0 || *bytes > std::numeric_limits<std::uint32_t>::max()) {
    return in_quotes(value) + " is not SIDE,COMPARISON,BYTES with a side of server, client, both, either";
  }
  draft.rule.stream_sizes.push_back({*side, *comparison, static_cast<std::uint32_t>(*bytes)});
  return {};
}

std::string read_threshold(Draft& draft, std::string_view value) {
  Rate rate;
  std::string wrong = read_rate(value, rate);
  if (!wrong.empty()) return wrong;
  if (!rate.type || rate.unique) return in_quotes(value) + " needs a type, and has no unique_on";
  if (!draft.rule.detection_filters.empty()) return "a rule has threshold or detection_filter, not both";
  draft.rule.thresholds.push_back({*rate.type, *rate.track, *rate.count, *rate.seconds});
  return {};
}

std::string read_detection_filter(Draft& draft, std::string_view value) {
  Rate rate;
  std::string wrong = read_rate(value, rate);
  if (!wrong.empty()) return wrong;
  if (rate.type) return in_quotes(value) + " has a type, which is for threshold";
  if (!draft.rule.thresholds.empty()) return "a rule has threshold or detection_filter, not both";
  draft.rule.detection_filters.push_back(
      {*rate.track, *rate.count, *rate.seconds, rate.unique.value_or(DetectionFilter::Unique::none)});
  return {};
}

}  // namespace sluice::match
