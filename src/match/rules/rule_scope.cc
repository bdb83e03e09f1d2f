#include "match/rules/rule_scope.h"

#include <algorithm>

#include "match/rules/check_facts.h"
#include "match/rules/rule_point.h"

namespace sluice::match {
namespace {

bool is_packet_header(Buffer buffer) {
  return buffer >= Buffer::ipv4_header;
}

// Nothing of the packet's headers or the flow's state but the ends and the protocol.
bool asks_for_ends_only(const Rule& rule) {
  const auto is_condition = [](const Flowbits& bits) {
    return bits.operation == Flowbits::Operation::isset || bits.operation == Flowbits::Operation::isnotset;
  };
  return rule.checks.empty() && rule.numbers.empty() && rule.bits.empty() && rule.ip_options.empty() &&
         rule.stream_sizes.empty() && !rule.same_ip && rule.flow == FlowCheck{} &&
         std::none_of(rule.flowbits.begin(), rule.flowbits.end(), is_condition);
}

// Mostly a network, or lists of some, that is taken out of all addresses.
bool is_negated(const AddressSet& addresses) {
  return !addresses.is_any() && addresses.share() > 0.5;
}

// Fields of each packet, which a stream does not have.
bool asks_for_packet_fields(const Rule& rule) {
  return std::any_of(rule.numbers.begin(), rule.numbers.end(),
                     [](const NumberCheck& check) { return check.field != HeaderField::ip_proto; }) ||
         !rule.bits.empty() || !rule.ip_options.empty() || rule.same_ip;
}

}  // namespace

bool is_about_packets(const Rule& rule) {
  if (rule.checks.empty() || rule.protocol == Protocol::tcp_pkt || rule.flow.data == FlowData::no_stream) return true;
  const bool is_of_stream = rule.protocol == Protocol::tcp_stream || rule.flow.data == FlowData::only_stream;
  bool headers = !is_of_stream && asks_for_packet_fields(rule);
  for (const Check& check : rule.checks) {
    if (is_of_http(buffer_of(check))) return false;
    headers |= is_packet_header(buffer_of(check));
  }
  return headers;
}

bool is_about_places(const Rule& rule) {
  return std::any_of(rule.checks.begin(), rule.checks.end(), [](const Check& check) {
    if (buffer_of(check) != Buffer::payload || is_relative(check)) return false;
    if (const auto* const content = std::get_if<Content>(&check)) {
      return content->place.has_end || content->place.start != Operand{};
    }
    return !std::holds_alternative<Pcre>(check) && !std::holds_alternative<Base64Decode>(check);
  });
}

bool is_about_addresses(const Rule& rule) {
  const auto only_sets = [](const Flowbits& bits) { return bits.operation == Flowbits::Operation::set; };
  const bool counts = !rule.thresholds.empty() || !rule.detection_filters.empty();
  if (counts && (is_negated(rule.source.addresses) || is_negated(rule.destination.addresses))) return false;
  return asks_for_ends_only(rule) && rule.protocol < Protocol::http && rule.protocol != Protocol::tcp_pkt &&
         rule.protocol != Protocol::tcp_stream && std::all_of(rule.flowbits.begin(), rule.flowbits.end(), only_sets);
}

bool names_ports(const Rule& rule) {
  return !rule.source.ports.is_any() || !rule.destination.ports.is_any();
}

bool acts_on_flow(const Rule& rule, bool reassembled) {
  return rule.checks.empty() ? asks_for_ends_only(rule) : reassembled;
}

}  // namespace sluice::match
