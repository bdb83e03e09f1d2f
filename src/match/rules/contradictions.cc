#include "match/rules/contradictions.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "match/rules/check_facts.h"
#include "match/rules/impossible_contents.h"
#include "match/rules/rule_point.h"
#include "match/rules/rule_scope.h"

namespace sluice::match {
namespace {

// What packets have to be for a part of a rule.
struct Kind {
  enum class Transport : std::uint8_t { any, tcp, udp, icmp, sctp };
  Transport transport = Transport::any;
  std::uint8_t family = 0;  // 0: either
};
using T = Kind::Transport;

constexpr std::string_view name_of(T transport) {
  constexpr std::array<std::string_view, 5> names{"any", "TCP", "UDP", "ICMP", "SCTP"};
  return names[static_cast<std::size_t>(transport)];
}

Kind kind_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::ipv4:
      return {T::any, 4};
    case Protocol::ipv6:
      return {T::any, 6};
    case Protocol::tcp:
    case Protocol::tcp_pkt:
    case Protocol::tcp_stream:
    case Protocol::http:
      return {T::tcp};
    case Protocol::udp:
      return {T::udp};
    case Protocol::icmp:
      return {T::icmp};
    case Protocol::icmpv4:
      return {T::icmp, 4};
    case Protocol::icmpv6:
      return {T::icmp, 6};
    case Protocol::sctp:
      return {T::sctp};
    default:
      return {};
  }
}

Kind kind_of(Buffer buffer) {
  switch (buffer) {
    case Buffer::ipv4_header:
      return {T::any, 4};
    case Buffer::ipv6_header:
      return {T::any, 6};
    case Buffer::tcp_header:
      return {T::tcp};
    case Buffer::udp_header:
      return {T::udp};
    case Buffer::icmpv4_header:
      return {T::icmp, 4};
    case Buffer::icmpv6_header:
      return {T::icmp, 6};
    default:
      return {is_of_http(buffer) ? T::tcp : T::any};
  }
}

struct FieldKind {
  HeaderField field;
  std::string_view option;
  Kind kind;
};
constexpr FieldKind fields[] = {
    {HeaderField::icmp_type, "itype", {T::icmp}}, {HeaderField::icmp_code, "icode", {T::icmp}},
    {HeaderField::icmp_id, "icmp_id", {T::icmp}}, {HeaderField::icmp_sequence, "icmp_seq", {T::icmp}},
    {HeaderField::tcp_sequence, "seq", {T::tcp}}, {HeaderField::tcp_acknowledgement, "ack", {T::tcp}},
    {HeaderField::tcp_window, "window", {T::tcp}}};

// What the parts that came so far leave of packets.
class Kinds {
 public:
  explicit Kinds(const Rule& rule) : left_(kind_of(rule.protocol)) {}

  void take(std::string_view option, Kind kind) {
    if (!wrong_.empty()) return;
    if (kind.transport != T::any && left_.transport != T::any && kind.transport != left_.transport) {
      say(option, name_of(kind.transport), name_of(left_.transport));
    } else if (kind.family != 0 && left_.family != 0 && kind.family != left_.family) {
      say(option, kind.family == 4 ? "IPv4" : "IPv6", left_.family == 4 ? "IPv4" : "IPv6");
    }
    if (left_.transport == T::any) left_.transport = kind.transport;
    if (left_.family == 0) left_.family = kind.family;
  }
  T transport() const { return left_.transport; }
  const std::string& wrong() const { return wrong_; }

 private:
  void say(std::string_view option, std::string_view is, std::string_view others) {
    wrong_ = std::string(option) + ": it is of " + std::string(is) + ", and the rule of " + std::string(others);
  }

  Kind left_;
  std::string wrong_;
};

std::span<const std::uint32_t> numbers_of(T transport) {
  static constexpr std::uint32_t tcp[] = {6}, udp[] = {17}, icmp[] = {1, 58}, sctp[] = {132};
  switch (transport) {
    case T::tcp:
      return tcp;
    case T::udp:
      return udp;
    case T::icmp:
      return icmp;
    case T::sctp:
      return sctp;
    default:
      return {};
  }
}

// ip_proto of what is known to be of a transport.
std::string wrong_ip_proto(const Rule& rule, T transport) {
  const auto numbers = numbers_of(transport);
  for (const NumberCheck& check : rule.numbers) {
    if (check.field != HeaderField::ip_proto || numbers.empty()) continue;
    const auto is_let_by = [&](std::uint32_t number) {
      return (number >= check.first && number <= check.last) != check.negated;
    };
    if (std::none_of(numbers.begin(), numbers.end(), is_let_by)) {
      return "ip_proto: it leaves nothing of " + std::string(name_of(transport));
    }
  }
  return {};
}

// 0: of both.
std::uint8_t family_of(const AddressSet& addresses) {
  if (addresses.empty()) return 0;
  const std::uint8_t first = addresses.ranges().front().first.family, last = addresses.ranges().back().first.family;
  return first == last ? first : 0;
}

std::string wrong_kind(const Rule& rule) {
  Kinds kinds(rule);
  for (const auto& [what, end] : {std::pair{"source", &rule.source}, {"destination", &rule.destination}}) {
    if (!end->by_variable) kinds.take(what, {T::any, family_of(end->addresses)});
  }
  for (const BitCheck& check : rule.bits) {
    if (check.field == BitCheck::Field::tcp_flags) kinds.take("flags", {T::tcp});
  }
  for (const NumberCheck& check : rule.numbers) {
    for (const FieldKind& one : fields) {
      if (one.field == check.field) kinds.take(one.option, one.kind);
    }
  }
  if (!rule.stream_sizes.empty()) kinds.take("stream_size", {T::tcp});
  if (!rule.ip_options.empty()) kinds.take("ipopts", {T::any, 4});
  if (rule.flow.data == FlowData::only_stream) kinds.take("only_stream", {T::tcp});
  for (const Check& check : rule.checks) kinds.take(name_of(buffer_of(check)), kind_of(buffer_of(check)));
  return kinds.wrong().empty() ? wrong_ip_proto(rule, kinds.transport()) : kinds.wrong();
}

// A buffer of the message that does not go the flow's way, where the rule is inspected with that one.
std::string wrong_direction(const Rule& rule) {
  const FlowDirection direction = rule.flow.direction;
  const Point point = point_of(rule);
  if (direction == FlowDirection::any || point == Point::packet) return {};
  const bool to_client = direction == FlowDirection::to_client;
  if (is_of_response(point) == to_client) return {};
  const auto other = std::find_if(rule.checks.begin(), rule.checks.end(),
                                  [&](const Check& check) { return point_of(buffer_of(check), direction) == point; });
  return std::string(name_of(buffer_of(*other))) + ": it is of " + (to_client ? "requests" : "responses") +
         ", and the flow " + (to_client ? "to_client" : "to_server");
}

// Packets, or streams, in which no fragment is.
std::string wrong_data(const Rule& rule) {
  const bool by_packet = rule.protocol == Protocol::tcp_pkt || rule.flow.data == FlowData::no_stream;
  const bool by_stream = rule.protocol == Protocol::tcp_stream || rule.flow.data == FlowData::only_stream;
  const bool by_fragment = rule.flow.data == FlowData::only_frag;
  const std::string_view packets = rule.protocol == Protocol::tcp_pkt ? "tcp-pkt" : "no_stream";
  const std::string_view streams = rule.protocol == Protocol::tcp_stream ? "tcp-stream" : "only_stream";
  if (by_packet && by_stream) return std::string(packets) + ": the rule is " + std::string(streams);
  for (const Check& check : rule.checks) {
    if ((by_packet || by_fragment) && is_of_http(buffer_of(check))) {
      return std::string(name_of(buffer_of(check))) + ": it is of streams, and the rule " +
             std::string(by_fragment ? "only_frag" : packets);
    }
  }
  if (by_stream && is_about_packets(rule)) return std::string(streams) + ": the rule looks at packets alone";
  if (by_stream && by_fragment) return std::string(streams) + ": the rule is only_frag";
  return {};
}

// Ports that are those of mail and files alone; FTP's, SMTP's, POP3's, SMB's, IMAP's and NFS's.
bool is_of_other_files(const PortSet& ports) {
  static const PortSet others({{20, 21},
                               {25, 25},
                               {110, 110},
                               {139, 139},
                               {143, 143},
                               {445, 445},
                               {465, 465},
                               {587, 587},
                               {993, 993},
                               {995, 995},
                               {2049, 2049}});
  return !ports.is_any() && ports.intersection(others.complement()).empty();
}

// file_data that does not come with HTTP, as the server's port says.
std::string wrong_file(const Rule& rule) {
  const bool has_file = std::any_of(rule.checks.begin(), rule.checks.end(),
                                    [](const Check& check) { return buffer_of(check) == Buffer::file_data; });
  if (!has_file || rule.both_ways) return {};
  const bool by_source = rule.flow.direction != FlowDirection::to_server && is_of_other_files(rule.source.ports);
  const bool by_destination =
      rule.flow.direction != FlowDirection::to_client && is_of_other_files(rule.destination.ports);
  return by_source || by_destination ? "file_data: it is of HTTP, and these ports of mail or files" : "";
}

}  // namespace

Contradiction contradiction(const Rule& rule) {
  const std::string never = ": it could never hold";
  for (const auto find : {wrong_kind, wrong_direction, wrong_data}) {
    if (const std::string wrong = find(rule); !wrong.empty()) return {wrong + never, wrong + never};
  }
  if (const Impossible wrong = impossible_content(rule); !wrong.message.empty()) {
    return {wrong.message + never, wrong.reason + never};
  }
  const std::string wrong = wrong_file(rule);
  return {wrong, wrong};
}

}  // namespace sluice::match
