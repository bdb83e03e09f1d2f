#include "udp_prefix.h"

#include <sluice/base/option.h>
#include <sluice/engine/api.h>
#include <sluice/engine/emitter.h>
#include <sluice/plugin.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

namespace udp_prefix {
namespace {

using sluice::Expected;
using sluice::Option;
using sluice::Settings;
using sluice::engine::Batch;
using sluice::engine::Element;
using sluice::engine::Span;

// Counted as any other reason for a drop. On purpose: /healthz does not call it an ailment.
const sluice::packet::Reason matched =
    sluice::packet::register_reason("udp_prefix_matched", "a UDP datagram that begins with the bytes of [udp_prefix]",
                                    sluice::packet::DroppedBy::purpose);

// Without bytes where they are none.
void read_bytes(Settings& settings, Rule& rule) {
  rule.length = 0;
  std::string digits;
  for (const char c : settings.text("bytes", "17 00 03 2a")) {
    if (c != ' ') digits += c;
  }
  bool is_hex = digits.size() % 2 == 0 && !digits.empty() && digits.size() <= 2 * sizeof(rule.bytes);
  for (std::size_t at = 0; is_hex && at < digits.size(); at += 2) {
    const char* const end = digits.data() + at + 2;
    is_hex = std::from_chars(end - 2, end, rule.bytes[at / 2], 16).ptr == end;
  }
  if (is_hex) rule.length = static_cast<std::uint8_t>(digits.size() / 2);
  if (!is_hex) settings.error("bytes", "1 to 8 bytes in hexadecimal are needed, such as \"17 00 03 2a\"");
}

std::string shown_bytes(const Rule& rule) {
  std::string text;
  char digits[4];
  for (unsigned b = 0; b < rule.length; ++b) {
    std::snprintf(digits, sizeof(digits), b == 0 ? "%02x" : " %02x", rule.bytes[b]);
    text += digits;
  }
  return sluice::option::literal(text);
}

// Each key once: from here come its reader and check, its row in `sluice functions --reference`, and what
// /api/v1/config shows.
const std::vector<Option<Rule>>& settings() {
  static const std::vector<Option<Rule>> all = {
      sluice::option::number("port", &Rule::port, {1, 65535}, "UDP destination port").reloadable(),
      Option<Rule>{"bytes", "that the payload begins with", read_bytes, shown_bytes}
          .takes("1 to 8 bytes in hexadecimal")
          .by_default("`\"17 00 03 2a\"`")
          .reloadable()};
  return all;
}

Rule read_rule(Settings& section) {
  Rule rule;
  sluice::option::read(settings(), section, rule);
  return rule;
}

// What the type has, in a chain or not: its route of the API, GET /api/v1/udp_prefix.
class Type final : public sluice::engine::Api {
 public:
  const std::vector<sluice::engine::ApiRoute>& routes() const override {
    static const std::vector<sluice::engine::ApiRoute> all = {
        {.path = "",
         .what = "prefix of UDP",
         .answer = [](Element& element, const sluice::engine::ApiRequest& request) {
           if (!request.parameters.empty())
             return sluice::engine::refused(sluice::engine::bad_request, "no parameters");
           return sluice::engine::ApiAnswer{.text = element.trait<sluice::engine::View>()->view()};
         }}};
    return all;
  }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return sluice::engine::offer<sluice::engine::Api>(name, &type);
}

}  // namespace

void UdpPrefix::look(Batch& batch, Span span) {
  const Rule& rule = *rule_.load(std::memory_order_acquire);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    verdicts(batch)[i] = batch.is_live(i) && matches(rule, batch.data(i), batch.length[i]) ? 1 : 0;
  }
}

void UdpPrefix::apply(Batch& batch, Span span, sluice::engine::Emitter& /*out*/) {
  std::uint64_t looked_at = 0, dropped = 0;
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (!batch.is_live(i)) continue;
    ++looked_at;
    if (verdicts(batch)[i] == 0) continue;
    ++dropped;
    batch.drop(i, matched);
  }
  looked_at_.fetch_add(looked_at, std::memory_order_relaxed);
  matched_.fetch_add(dropped, std::memory_order_relaxed);
}

// Nothing changes before commit(), which cannot fail.
Expected<UdpPrefix::Change> UdpPrefix::reload(Element& fresh) {
  const Rule rule = *static_cast<UdpPrefix&>(fresh).rule_;
  return Change{"udp_prefix: " + std::to_string(rule.length) + " bytes at port " + std::to_string(rule.port),
                [this, rule] { put_in_force(rule); }};
}

std::vector<sluice::engine::Metric> UdpPrefix::metrics() const {
  return {{"udp_prefix_looked_at", "frames that udp_prefix looked at", looked_at_},
          {"udp_prefix_matches", "frames that begin with the bytes", matched_}};
}

std::string UdpPrefix::view() const {
  const Rule& rule = *rule_.load();
  return R"({"port": )" + std::to_string(rule.port) + R"(, "bytes": )" + std::to_string(rule.length) + "}";
}

}  // namespace udp_prefix

SLUICE_PLUGIN("udp_prefix", "1.0", [] {
  return std::vector<sluice::engine::ElementType>{
      {.name = "udp_prefix",
       .text = "drops UDP datagrams whose payload begins with given bytes",
       .make = [](sluice::Settings& settings,
                  const sluice::engine::PortTable&) -> sluice::Expected<std::unique_ptr<sluice::engine::Element>> {
         return std::make_unique<udp_prefix::UdpPrefix>(udp_prefix::read_rule(settings));
       },
       .options = [] { return std::vector{sluice::option::section("[udp_prefix]", udp_prefix::settings())}; },
       .find_trait = udp_prefix::find_type_trait}};
})
