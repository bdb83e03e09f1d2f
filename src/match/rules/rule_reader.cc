// One rule: its header, its options by the table of keywords, and what must hold for all of it together.
#include "match/rules/rule_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/quote.h"
#include "match/rules/contradictions.h"
#include "match/rules/keywords.h"
#include "match/rules/lexer.h"
#include "match/rules/rule_set.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

struct ActionWord {
  std::string_view name;
  Action action;
  Notified notified = Notified::source;
  bool silent = false;  // without an alert
};
// The first one of each action is its main one.
constexpr auto actions = std::to_array<ActionWord>({{"alert", Action::alert},
                                                    {"drop", Action::drop},
                                                    {"reject", Action::reject},
                                                    {"pass", Action::pass},
                                                    {"rejectsrc", Action::reject},
                                                    {"rejectdst", Action::reject, Notified::destination},
                                                    {"rejectboth", Action::reject, Notified::both},
                                                    {"sdrop", Action::drop, Notified::source, true}});

// Of Snort 2 and Suricata, and why a rule that begins with one does not load.
constexpr auto refused_actions = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"log", "packets are not logged without an alert: write alert"},
     {"activate", "a rule does not turn on others: write alert, and flowbits for the others"},
     {"dynamic", "a rule is not turned on by others: write alert, and flowbits"},
     {"config", "rules do not configure the engine"}});

using P = Protocol;
constexpr auto protocols = std::to_array<std::pair<std::string_view, Protocol>>(
    {{"ip", P::ip},
     {"ipv4", P::ipv4},
     {"ipv6", P::ipv6},
     {"tcp", P::tcp},
     {"tcp-pkt", P::tcp_pkt},
     {"udp", P::udp},
     {"tcp-stream", P::tcp_stream},
     {"icmp", P::icmp},
     {"icmpv4", P::icmpv4},
     {"icmpv6", P::icmpv6},
     {"sctp", P::sctp},
     {"http", P::http},
     // Other names of the same; the first one of each is its main one.
     {"ip4", P::ipv4},
     {"ip6", P::ipv6},
     {"http1", P::http}});

template <typename Names>
auto find_value(const Names& names, std::string_view name) {
  return std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.first == name; });
}

template <typename Names, typename Value>
const char* find_name(const Names& names, Value value) {
  return std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.second == value; })->first.data();
}

bool is_icmp(Protocol protocol) {
  return protocol == P::icmp || protocol == P::icmpv4 || protocol == P::icmpv6;
}

tl::unexpected<Misread> misread(std::string message, std::string reason) {
  return tl::unexpected(Misread{std::move(message), std::move(reason)});
}

// Values are taken out, so that the same mistake with other values counts as the same.
std::string without_values(std::string_view message) {
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const std::size_t end = message[i] == '\'' ? message.find('\'', i + 1) : i;
    const bool is_digit = message[i] >= '0' && message[i] <= '9';
    if (message[i] == '\'' && end != std::string_view::npos) {
      text += "'...'";
      i = end;
    } else if (!is_digit) {
      text += message[i];
    } else if (!text.ends_with('N')) {
      text += 'N';
    }
  }
  return text;
}

tl::unexpected<Misread> misread_value(std::string_view option, const std::string& wrong) {
  const std::string message = std::string(option) + ": " + wrong;
  return misread(message, without_values(message));
}

Reading<void> read_endpoint(const Variables& variables, std::string_view what, std::string_view addresses,
                            std::string_view ports, Endpoint& endpoint) {
  auto set = variables.addresses(addresses);
  if (!set) return misread_value(std::string(what) + " address", set.error().message);
  auto range = variables.ports(ports);
  if (!range) return misread_value(std::string(what) + " port", range.error().message);
  endpoint = {std::move(*set), std::move(*range), addresses.find('$') != std::string_view::npos};
  return {};
}

Reading<void> read_action(const std::string& word, Rule& rule) {
  const auto known = std::find_if(actions.begin(), actions.end(), [&](const auto& one) { return one.name == word; });
  if (known != actions.end()) {
    rule.action = known->action;
    rule.notified = known->notified;
    rule.noalert = known->silent;
    return {};
  }
  const auto refused = find_value(refused_actions, word);
  const std::string wrong =
      refused != refused_actions.end()
          ? word + ": " + std::string(refused->second)
          : in_quotes(word) + " is none of alert, drop, sdrop, reject, rejectsrc, rejectdst, rejectboth and pass";
  return misread("action: " + wrong, "action: " + wrong);
}

Reading<void> read_header(const RuleText& text, const Variables& variables, Rule& rule) {
  const auto& [action_word, protocol_word, source, source_port, direction, destination, destination_port] = text.header;
  if (auto ok = read_action(lower_case(action_word), rule); !ok) return ok;
  const auto protocol = find_value(protocols, lower_case(protocol_word));
  if (protocol == protocols.end()) {
    const std::string wrong = "protocol: " + in_quotes(protocol_word) + " is not recognised";
    return misread(wrong, wrong);
  }
  rule.protocol = protocol->second;
  if (direction != "->" && direction != "<>") {
    return misread_value("direction", in_quotes(direction) + " is neither -> nor <>");
  }
  rule.both_ways = direction == "<>";
  auto ok = read_endpoint(variables, "source", source, source_port, rule.source);
  if (ok) ok = read_endpoint(variables, "destination", destination, destination_port, rule.destination);
  if (ok && is_icmp(rule.protocol) && !(rule.source.ports.is_any() && rule.destination.ports.is_any())) {
    return misread_value("port", "ICMP has none: write any");
  }
  return ok;
}

// A sticky name before this one, or the rule's end, that no check stands behind.
Reading<void> end_sticky(const Draft& draft) {
  const bool is_unused = draft.buffer != Buffer::payload && draft.sticky_checks == draft.rule.checks.size();
  return is_unused ? misread_value(name_of(draft.buffer), "nothing behind it looks at it") : Reading<void>();
}

// A name of a buffer: of the checks to come, or of the content before.
std::string use_buffer(Draft& draft, const BufferName& name) {
  if (name.sticky) {
    if (name.buffer == Buffer::base64_data && !draft.has_base64_decode) return "no base64_decode is before it";
    draft.buffer = name.buffer;
    draft.sticky_checks = draft.rule.checks.size();
    return {};
  }
  Content* const content = draft.content();
  if (content == nullptr) return "no content is before it to apply to";
  if ((draft.given & Draft::moved) != 0) return "this content is in another buffer already";
  content->buffer = name.buffer;
  draft.given |= Draft::moved;
  return {};
}

constexpr std::array<std::string_view, 12> once_only{"msg",      "sid",           "gid",       "rev",
                                                     "priority", "flow",          "threshold", "detection_filter",
                                                     "dsize",    "base64_decode", "classtype", "target"};

Reading<void> read_option(Draft& draft, const OptionText& option) {
  const std::string name = lower_case(option.name);
  if (const BufferName* const buffer = find_buffer(name)) {
    if (auto ok = buffer->sticky ? end_sticky(draft) : Reading<void>(); !ok) return ok;
    std::string wrong = option.has_value ? "it takes no value" : use_buffer(draft, *buffer);
    return wrong.empty() ? Reading<void>() : misread_value(name, wrong);
  }
  const Keyword* const keyword = find_keyword(name);
  if (keyword == nullptr || keyword->parse == nullptr) {
    const std::string_view why = keyword != nullptr ? keyword->why : family_refusal(name);
    const std::string message = in_quotes(name) + (why.empty() ? " is no option that is known" : "");
    if (why.empty()) return misread(message, message);
    return misread(name + ": " + std::string(why), name + ": " + std::string(why));
  }
  if (option.has_value && keyword->argument == Argument::none) return misread_value(name, "it takes no value");
  if (option.value.empty() && keyword->argument == Argument::required) return misread_value(name, "it has no value");
  if (std::find(once_only.begin(), once_only.end(), name) != once_only.end() && !draft.seen.insert(name).second) {
    return misread_value(name, "it is there twice");
  }
  const std::string wrong = keyword->parse(draft, option.value);
  return wrong.empty() ? Reading<void>() : misread_value(name, wrong);
}

bool has_upper_case(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

Reading<void> check_whole(const Rule& rule) {
  if (rule.sid == 0) return misread("it has no sid", "it has no sid");
  for (const Check& check : rule.checks) {
    const Content* const content = std::get_if<Content>(&check);
    if (content != nullptr && content->buffer == Buffer::http_host && has_upper_case(content->bytes)) {
      return misread_value("http_host", "it is in lower case, and the content has capitals: it could never match");
    }
  }
  Contradiction wrong = contradiction(rule);
  return wrong.message.empty() ? Reading<void>() : misread(std::move(wrong.message), std::move(wrong.reason));
}

}  // namespace

Reading<Rule> parse_rule(std::string_view text, const Variables& variables, const Classification& classification,
                         Identity& identity) {
  const auto pieces = split_rule(text);
  if (!pieces) return misread(pieces.error().message, pieces.error().message);
  Draft draft(classification);
  const auto header = read_header(*pieces, variables, draft.rule);
  // The options are read all the same: a refusal names the rule's sid.
  Reading<void> result = header;
  for (std::string_view options = pieces->options; !trimmed(options).empty();) {
    const auto option = take_option(options);
    if (!option) {
      if (result) result = misread(option.error().message, without_values(option.error().message));
      break;
    }
    const auto ok = read_option(draft, *option);
    if (result && !ok) result = ok;
  }
  identity = {draft.rule.gid, draft.rule.sid};
  if (result) result = end_sticky(draft);
  if (result) result = check_whole(draft.rule);
  if (!result) return tl::unexpected(result.error());
  return std::move(draft.rule);
}

const char* name_of(Action action) {
  return std::find_if(actions.begin(), actions.end(), [&](const auto& one) { return one.action == action; })
      ->name.data();
}

const char* name_of(Protocol protocol) {
  return find_name(protocols, protocol);
}

}  // namespace sluice::match
