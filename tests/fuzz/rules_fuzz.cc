// Any bytes as a file of rules, with those that are commented out: rules and refusals, or one line that names the file.
// What loads keeps the promises of its headers.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "match/rules/fast_pattern.h"
#include "match/rules/pcre.h"
#include "match/rules/rule_set.h"
#include "require.h"

using namespace sluice;
using namespace sluice::match;

namespace {

void check_addresses(const AddressSet& set) {
  REQUIRE(!set.empty());
  const AddressRange* before = nullptr;
  for (const AddressRange& range : set.ranges()) {
    REQUIRE(range.first.family == range.last.family && range.first <= range.last);
    REQUIRE(before == nullptr || before->last < range.first);
    REQUIRE(set.contains(range.first) && set.contains(range.last));
    before = &range;
  }
  REQUIRE(set.complement().complement() == set);
}

void check_ports(const PortSet& set) {
  REQUIRE(!set.empty());
  for (std::size_t i = 0; i < set.ranges().size(); ++i) {
    REQUIRE(set.ranges()[i].first <= set.ranges()[i].last);
    REQUIRE(i == 0 || set.ranges()[i].first > set.ranges()[i - 1].last + 1);
  }
}

void check_operand(const Operand& operand, const Rule& rule) {
  REQUIRE(operand.variable >= -1 && operand.variable < static_cast<int>(rule.variables.size()));
}

void check_content(const Content& content, const Rule& rule) {
  const auto size = static_cast<std::int64_t>(content.bytes.size());
  REQUIRE(size >= 1 && size <= 65535);
  check_operand(content.place.start, rule);
  check_operand(content.place.length, rule);
  REQUIRE(!content.place.has_end || content.place.length.variable >= 0 || content.place.length.value >= size);
  REQUIRE(content.fast_offset + content.fast_length <= size);
}

void check_rule(const Rule& rule, const RuleSet& set) {
  REQUIRE(rule.sid != 0 && rule.priority != 0);
  REQUIRE(rule.file < set.files.size() && rule.line > 0);
  for (const Endpoint* const end : {&rule.source, &rule.destination}) {
    check_addresses(end->addresses);
    check_ports(end->ports);
  }
  for (const NumberCheck& number : rule.numbers) REQUIRE(number.first <= number.last);
  for (const Check& check : rule.checks) {
    if (const auto* content = std::get_if<Content>(&check)) check_content(*content, rule);
    if (const auto* pcre = std::get_if<Pcre>(&check)) REQUIRE(compile(*pcre));
    if (const auto* test = std::get_if<ByteTest>(&check)) check_operand(test->value, rule);
    if (const auto* at = std::get_if<IsDataAt>(&check)) check_operand(at->count, rule);
  }
  const auto best = best_pattern(rule);
  REQUIRE(!best || (!best->bytes.empty() && best->check < rule.checks.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadOptions options;
  options.commented_out = true;
  // Includes lie in a folder that is not there.
  const std::string name = "/nonexistent/fuzz.rules";
  const auto set = read_rules_text(text, name, options);
  if (!set) {
    REQUIRE(set.error().message.starts_with(name + ":"));
    REQUIRE(set.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const Rule& rule : set->rules) check_rule(rule, *set);
  for (const Refusal& refusal : set->refused) {
    REQUIRE(!refusal.reason.empty() && !refusal.message.empty());
    REQUIRE(refusal.message.find('\n') == std::string::npos);
  }
  return 0;
}
