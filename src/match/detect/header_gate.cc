#include "match/detect/header_gate.h"

#include "packet/headers.h"

namespace sluice::match {
namespace {

std::uint8_t transport_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::tcp:
    case Protocol::tcp_pkt:
    case Protocol::tcp_stream:
      return packet::protocol_tcp;
    case Protocol::udp:
      return packet::protocol_udp;
    default:
      return 0;
  }
}

bool is_constant(const Operand& operand) {
  return operand.variable < 0;
}

}  // namespace

void HeaderGate::Range::narrow(std::int64_t from, std::int64_t to) {
  first = static_cast<std::uint16_t>(std::clamp<std::int64_t>(from, first, most));
  last = static_cast<std::uint16_t>(std::clamp<std::int64_t>(to, 0, last));
}

HeaderGate::HeaderGate(const Rule& rule)
    : rule_(&rule), transport_(transport_of(rule.protocol)), direction_(rule.flow.direction), state_(rule.flow.state) {
  take_ports();
  for (const NumberCheck& check : rule.numbers) take(check);
  for (const BitCheck& check : rule.bits) take(check);
  for (const Check& check : rule.checks) take(check);
}

void HeaderGate::take_ports() {
  const PortSet &source = rule_->source.ports, &destination = rule_->destination.ports;
  by_ports_ = !source.is_any() || !destination.is_any();
  if (!by_ports_) return;
  const bool simple = source.ranges().size() == 1 && destination.ranges().size() == 1;
  ranges_say_all_ = simple && !rule_->both_ways;
  if (rule_->both_ways || source.empty() || destination.empty()) return;
  source_ = {source.ranges().front().first, source.ranges().back().last};
  destination_ = {destination.ranges().front().first, destination.ranges().back().last};
}

void HeaderGate::take(const NumberCheck& check) {
  if (check.negated) return;
  if (check.field == HeaderField::payload_size) packet_.narrow(check.first, check.last);
  if (check.field != HeaderField::icmp_type) return;
  type_.narrow(check.first, check.last);
  by_type_ = true;
}

void HeaderGate::take(const BitCheck& check) {
  if (check.field != BitCheck::Field::tcp_flags || flags_asked_ != 0) return;
  if (check.mode != BitMode::exactly && check.mode != BitMode::all) return;
  const auto counted = static_cast<std::uint8_t>(~check.ignored);
  flags_asked_ = check.mode == BitMode::exactly ? counted : counted & check.bits;
  flags_set_ = check.bits;
}

void HeaderGate::take(const Check& check) {
  if (const auto* const content = std::get_if<Content>(&check)) {
    if (content->buffer != Buffer::payload || content->negated) return;
    const Placement& place = content->place;
    const std::int64_t before = place.relative || !is_constant(place.start) ? 0 : place.start.value;
    inspected_.narrow(before + static_cast<std::int64_t>(content->bytes.size()), most);
  } else if (const auto* const data = std::get_if<IsDataAt>(&check)) {
    if (data->buffer != Buffer::payload || data->relative || !is_constant(data->count)) return;
    data->negated ? inspected_.narrow(0, data->count.value) : inspected_.narrow(data->count.value + 1, most);
  }
}

bool HeaderGate::passes_port_sets(std::uint16_t source, std::uint16_t destination) const {
  const auto ends = [&](std::uint16_t from, std::uint16_t to) {
    return rule_->source.ports.contains(from) && rule_->destination.ports.contains(to);
  };
  return ends(source, destination) || (rule_->both_ways && ends(destination, source));
}

}  // namespace sluice::match
