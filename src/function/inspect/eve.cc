#include "function/inspect/eve.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "packet/headers.h"

namespace sluice::function {
namespace {

using flow::Direction;
using Json = nlohmann::ordered_json;

// Who speaks to whom, as the lines say it: of the packet, or of the flow where the packet is none of the flow's (its
// stream was inspected when it ended).
struct Tuple {
  packet::IpAddress source, destination;
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t protocol = 0;
  bool of_packet = true;
};

// As flow::read_packet() takes it: fragments are of a flow without ports, though the first one has them.
bool is_of_flow(const match::PacketFacts& packet, const flow::Flow& flow) {
  const bool fragment = packet.fragment();
  const std::uint8_t protocol = fragment && packet.family == 6 ? packet.fragment_protocol : packet.protocol;
  if (packet.family != flow.family || protocol != flow.protocol) return false;
  const bool to_server = packet.source.bytes == flow.client && packet.destination.bytes == flow.server;
  const bool to_client = packet.source.bytes == flow.server && packet.destination.bytes == flow.client;
  if (fragment || !packet::facts_have_ports(packet.protocol) || !packet.has_ports) return to_server || to_client;
  return (to_server && packet.source_port == flow.client_port && packet.destination_port == flow.server_port) ||
         (to_client && packet.source_port == flow.server_port && packet.destination_port == flow.client_port);
}

Tuple tuple_of(const AlertRecord& record) {
  const match::PacketFacts& packet = record.packet;
  const flow::Flow& flow = record.flow;
  if (record.has_frame && (!record.has_flow || is_of_flow(packet, flow))) {
    const bool ports = packet.has_ports && packet::facts_have_ports(packet.protocol);
    return {packet.source,
            packet.destination,
            ports ? packet.source_port : std::uint16_t{0},
            ports ? packet.destination_port : std::uint16_t{0},
            packet.protocol,
            true};
  }
  Tuple tuple;
  tuple.of_packet = false;
  if (!record.has_flow) return tuple;
  tuple.protocol = flow.protocol;
  tuple.source = packet::IpAddress::from_bytes(flow.family, flow.client.data());
  tuple.destination = packet::IpAddress::from_bytes(flow.family, flow.server.data());
  if (packet::facts_have_ports(flow.protocol)) {
    tuple.source_port = flow.client_port;
    tuple.destination_port = flow.server_port;
  }
  if (record.direction == Direction::to_client) {
    std::swap(tuple.source, tuple.destination);
    std::swap(tuple.source_port, tuple.destination_port);
  }
  return tuple;
}

// IPv6 with all its digits, as Suricata writes it.
std::string text_of(const packet::IpAddress& address) {
  if (address.family != 6) return address.str();
  char text[40];
  for (std::size_t i = 0; i < 8; ++i) {
    std::snprintf(text + 5 * i, 6, "%02x%02x%s", address.bytes[2 * i], address.bytes[2 * i + 1], i < 7 ? ":" : "");
  }
  return text;
}

// As Suricata names the protocols that are met, by IANA's keywords but for IP in IP; nullptr: none.
const char* name_of_protocol(std::uint8_t protocol) {
  static constexpr struct {
    std::uint8_t number;
    const char* name;
  } names[] = {{0, "HOPOPT"},      {1, "ICMP"},       {2, "IGMP"},   {4, "IP-in-IP"},    {6, "TCP"},
               {17, "UDP"},        {33, "DCCP"},      {41, "IPv6"},  {43, "IPv6-Route"}, {44, "IPv6-Frag"},
               {46, "RSVP"},       {47, "GRE"},       {50, "ESP"},   {51, "AH"},         {58, "IPv6-ICMP"},
               {59, "IPv6-NoNxt"}, {60, "IPv6-Opts"}, {88, "EIGRP"}, {89, "OSPFIGP"},    {94, "IPIP"},
               {103, "PIM"},       {108, "IPComp"},   {112, "VRRP"}, {115, "L2TP"},      {132, "SCTP"},
               {136, "UDPLite"}};
  for (const auto& one : names) {
    if (one.number == protocol) return one.name;
  }
  return nullptr;
}

std::tm utc_of(std::uint64_t microseconds) {
  std::tm utc{};
  const auto seconds = static_cast<std::time_t>(microseconds / 1'000'000);
  gmtime_r(&seconds, &utc);
  return utc;
}

std::string time_text(std::uint64_t microseconds, const char* pattern, const char* zone) {
  const std::tm utc = utc_of(microseconds);
  char text[64];
  std::size_t length = std::strftime(text, sizeof text, pattern, &utc);
  length += static_cast<std::size_t>(std::snprintf(text + length, sizeof text - length, ".%06u%s",
                                                   static_cast<unsigned>(microseconds % 1'000'000), zone));
  return {text, length};
}

std::string eve_time(std::uint64_t microseconds) {
  return time_text(microseconds, "%Y-%m-%dT%H:%M:%S", "+0000");
}

std::string base64(std::string_view bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? static_cast<std::uint8_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += k <= count ? digits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string printable(std::string_view bytes) {
  std::string text(bytes);
  for (char& c : text) {
    if ((c < ' ' || c > '~') && c != '\n' && c != '\r') c = '.';
  }
  return text;
}

// Bytes of the UTF-8 character that `text` begins with (RFC 3629); 0: it begins with none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies behind U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Text of a rule, which may be no UTF-8: then its bytes above 126 and below 32 are written as \xNN.
std::string readable(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string escaped;
  for (const char c : text) {
    char hex[5] = {c, 0};
    if (c < ' ' || c > '~') std::snprintf(hex, sizeof hex, "\\x%02X", static_cast<std::uint8_t>(c));
    escaped += hex;
  }
  return escaped;
}

std::string dump(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const match::Rule& rule_of(const AlertRecord& record) {
  return record.rules->detector().rules().rules[record.rule];
}

const std::string* class_of(const AlertRecord& record) {
  const match::ClassType* type = record.rules->detector().rules().classification.find(rule_of(record).classtype);
  return type == nullptr ? nullptr : &type->description;
}

std::string text_of_protocol(std::uint8_t protocol) {
  const char* const name = name_of_protocol(protocol);
  return name != nullptr ? name : std::to_string(protocol);
}

// Suricata's texts, and in their manner of what it does not know. What it takes off without a packet of its own (MPLS,
// PPPoE) is of the wire.
const char* packet_source(const AlertRecord& record, const Tuple& tuple) {
  if (!tuple.of_packet) return "stream (flow timeout)";
  switch (record.tunnel.kind) {
    case packet::Tunnel::ip:
      return record.tunnel.family == 6 ? "ipv6 tunnel" : "ipv4 tunnel";
    case packet::Tunnel::gre:
      return "gre tunnel";
    case packet::Tunnel::vxlan:
      return "vxlan encapsulation";
    case packet::Tunnel::geneve:
      return "geneve encapsulation";
    case packet::Tunnel::gtp_u:
      return "gtp-u tunnel";
    case packet::Tunnel::nsh:
      return "nsh encapsulation";
    case packet::Tunnel::none:
    case packet::Tunnel::mpls:
    case packet::Tunnel::pppoe:
      break;
  }
  return "wire/pcap";
}

// The outermost packet.
Json tunnel_of(const TunnelEnds& ends) {
  Json tunnel;
  tunnel["src_ip"] = text_of(ends.source);
  tunnel["src_port"] = ends.source_port;
  tunnel["dest_ip"] = text_of(ends.destination);
  tunnel["dest_port"] = ends.destination_port;
  tunnel["proto"] = text_of_protocol(ends.protocol);
  tunnel["depth"] = ends.depth;
  tunnel["pkt_src"] = "wire/pcap";
  return tunnel;
}

Json header(const AlertRecord& record, const Tuple& tuple, const char* type, std::string_view in_iface) {
  Json line;
  line["timestamp"] = eve_time(record.microseconds);
  if (record.has_flow) line["flow_id"] = flow_id_of(record.flow);
  if (!in_iface.empty()) line["in_iface"] = in_iface;
  line["event_type"] = type;
  if (tuple.of_packet && record.vlans != 0) {
    line["vlan"] = std::vector<std::uint16_t>(record.vlan.begin(), record.vlan.begin() + record.vlans);
  }
  line["src_ip"] = text_of(tuple.source);
  line["src_port"] = tuple.source_port;
  line["dest_ip"] = text_of(tuple.destination);
  line["dest_port"] = tuple.destination_port;
  line["proto"] = text_of_protocol(tuple.protocol);
  if (tuple.of_packet && record.packet.has_icmp) {
    line["icmp_type"] = record.packet.icmp_type;
    line["icmp_code"] = record.packet.icmp_code;
  }
  line["pkt_src"] = packet_source(record, tuple);
  if (tuple.of_packet && record.tunnel.depth != 0 && record.tunnel.family != 0)
    line["tunnel"] = tunnel_of(record.tunnel);
  return line;
}

// "key value" and "key value" of one key are a list.
Json metadata_of(const match::Rule& rule) {
  Json all;
  for (const std::string& entry : rule.metadata) {
    const std::size_t space = entry.find(' ');
    if (space == std::string::npos) continue;  // Suricata knows only pairs
    const std::size_t value = entry.find_first_not_of(' ', space);
    if (value == std::string::npos) continue;
    all[readable(entry.substr(0, space))].push_back(readable(entry.substr(value)));
  }
  return all;
}

// Whose attack it is, as the rule's `target` says.
void add_source_and_target(Json& alert, const match::Rule& rule, const Tuple& tuple) {
  if (rule.target == match::Rule::Target::none) return;
  const auto end = [&](const packet::IpAddress& address, std::uint16_t port) {
    Json object;
    object["ip"] = text_of(address);
    if (packet::facts_have_ports(tuple.protocol)) object["port"] = port;
    return object;
  };
  Json source = end(tuple.source, tuple.source_port), destination = end(tuple.destination, tuple.destination_port);
  const bool attacks_source = rule.target == match::Rule::Target::source;
  alert["source"] = attacks_source ? destination : source;
  alert["target"] = attacks_source ? source : destination;
}

Json alert_object(const AlertRecord& record, const Tuple& tuple, bool blocked, bool with_metadata) {
  const match::Rule& rule = rule_of(record);
  const std::string* const category = class_of(record);
  Json alert;
  alert["action"] = blocked ? "blocked" : "allowed";
  alert["gid"] = rule.gid;
  alert["signature_id"] = rule.sid;
  alert["rev"] = rule.rev;
  alert["signature"] = readable(rule.msg);
  alert["category"] = category == nullptr ? std::string() : readable(*category);
  alert["severity"] = rule.priority;
  add_source_and_target(alert, rule, tuple);
  if (with_metadata) {
    Json metadata = metadata_of(rule);
    if (!metadata.empty()) alert["metadata"] = std::move(metadata);
  }
  return alert;
}

Json flow_object(const AlertRecord& record) {
  const flow::Flow& flow = record.flow;
  const std::uint64_t milliseconds = record.microseconds / 1000;
  const std::uint32_t age = static_cast<std::uint32_t>(milliseconds) - flow.began;  // they wrap
  Json object;
  object["pkts_toserver"] = flow.packets[0];
  object["pkts_toclient"] = flow.packets[1];
  object["bytes_toserver"] = flow.bytes[0];
  object["bytes_toclient"] = flow.bytes[1];
  object["start"] = eve_time((milliseconds - std::min<std::uint64_t>(age, milliseconds)) * 1000);
  object["src_ip"] = text_of(packet::IpAddress::from_bytes(flow.family, flow.client.data()));
  object["dest_ip"] = text_of(packet::IpAddress::from_bytes(flow.family, flow.server.data()));
  if (packet::facts_have_ports(flow.protocol)) {
    object["src_port"] = flow.client_port;
    object["dest_port"] = flow.server_port;
  }
  return object;
}

// Of a text that was cut: without the piece of a character at its end.
std::string_view whole_characters(std::string_view text) {
  for (std::size_t cut = 1; cut <= std::min<std::size_t>(3, text.size()); ++cut) {
    const std::string_view end = text.substr(text.size() - cut);
    const auto first = static_cast<std::uint8_t>(end.front());
    if (first >= 0xc0) return utf8_length(end) == cut ? text : text.substr(0, text.size() - cut);
    if (first < 0x80) break;
  }
  return text;
}

// As Suricata's, with those fields that it has of itself.
Json http_object(const AlertHttp& http, const char* text) {
  Json object;
  for (std::size_t t = 0; t < http.size.size(); text += http.size[t++]) {
    const std::string_view value(text, http.size[t]);
    const bool is_cut = (http.cut >> t & 1) != 0;
    if (!value.empty())
      object[AlertHttp::texts[t].name] = readable(std::string(is_cut ? whole_characters(value) : value));
  }
  if (http.status > 0) object["status"] = http.status;
  object["length"] = http.length;
  if (http.cut != 0) object["cut"] = true;
  return object;
}

const char* name_of(Direction direction) {
  return direction == Direction::to_server ? "to_server" : "to_client";
}

const char* name_of(DropReason reason) {
  switch (reason) {
    case DropReason::flow_drop:
      return "flow drop";
    case DropReason::budget:
      return "inspection budget";
    case DropReason::conflict:
      return "stream conflict";
    case DropReason::no_capacity:
      return "stream memcap";
    case DropReason::fragment:
      return "defrag error";
    case DropReason::outside:
      return "stream error";
    case DropReason::silent:
      return "stream midstream";
    case DropReason::http_limit:
      return "applayer error";
    case DropReason::rules:
      break;
  }
  return "rules";
}

void add_transport(Json& drop, const AlertRecord& record) {
  const match::PacketFacts& packet = record.packet;
  if (packet.has_tcp) {
    const auto flag = [&](std::uint8_t bit) { return (packet.tcp_flags & bit) != 0; };
    drop["tcpseq"] = packet.tcp_sequence;
    drop["tcpack"] = packet.tcp_acknowledgement;
    drop["tcpwin"] = packet.tcp_window;
    drop["syn"] = flag(packet::tcp_syn);
    drop["ack"] = flag(packet::tcp_ack);
    drop["psh"] = flag(packet::tcp_psh);
    drop["rst"] = flag(packet::tcp_rst);
    drop["urg"] = flag(0x20);
    drop["fin"] = flag(packet::tcp_fin);
    drop["tcpres"] = record.tcp_reserved;
    drop["tcpurgp"] = record.tcp_urgent;
  } else if (packet.protocol == packet::protocol_udp && packet.has_ports) {
    drop["udplen"] = record.udp_length;
  } else if (packet.has_icmp) {
    if (packet.icmp_id) drop["icmp_id"] = *packet.icmp_id;
    if (packet.icmp_sequence) drop["icmp_seq"] = *packet.icmp_sequence;
  }
}

Json drop_object(const AlertRecord& record) {
  const match::PacketFacts& packet = record.packet;
  Json drop;
  drop["len"] = record.ip_length;
  if (packet.family == 4) {
    drop["tos"] = packet.tos;
    drop["ttl"] = packet.ttl;
    drop["ipid"] = packet.ip_id.value_or(0);
  } else {
    drop["tc"] = packet.tos;
    drop["hoplimit"] = packet.ttl;
    drop["flowlbl"] = record.flow_label;
  }
  add_transport(drop, record);
  drop["reason"] = name_of(record.reason);
  return drop;
}

// Of a rule's text in a line of its own: nothing that would end the line.
std::string on_a_line(std::string text) {
  for (char& c : text) {
    if (static_cast<std::uint8_t>(c) < ' ' || c == 0x7f) c = '.';
  }
  return text;
}

}  // namespace

std::uint64_t flow_id_of(const flow::Flow& flow) {
  std::uint64_t id = std::uint64_t{flow.hash} << 32 | flow.began;
  id = (id ^ id >> 30) * 0xbf58476d1ce4e5b9U;  // the finish of splitmix64
  id = (id ^ id >> 27) * 0x94d049bb133111ebU;
  return (id ^ id >> 31) & ((std::uint64_t{1} << 51) - 1);
}

std::string eve_alert(const AlertRecord& record, std::string_view payload, const char* http, std::string_view in_iface,
                      const EveOptions& options) {
  const Tuple tuple = tuple_of(record);
  Json line = header(record, tuple, "alert", in_iface);
  if (record.http.there) line["tx_id"] = record.http.number;
  line["alert"] = alert_object(record, tuple, record.blocked, true);
  if (record.http.there) line["http"] = http_object(record.http, http);
  if (record.has_flow) {
    if ((record.flow.user & FlowMark::http) != 0) line["app_proto"] = "http";
    line["direction"] = name_of(record.direction);
    line["flow"] = flow_object(record);
  }
  if (options.payload) line["payload"] = base64(payload);
  if (options.payload_printable) line["payload_printable"] = printable(payload);
  if (options.payload || options.payload_printable) line["stream"] = record.stream ? 1 : 0;
  return dump(line);
}

std::string eve_drop(const AlertRecord& record, std::string_view in_iface) {
  const Tuple tuple = tuple_of(record);
  Json line = header(record, tuple, "drop", in_iface);
  if (record.has_flow) line["direction"] = name_of(record.direction);
  line["drop"] = drop_object(record);
  if (record.rules != nullptr) line["alert"] = alert_object(record, tuple, true, false);
  return dump(line);
}

std::string eve_acl(const AlertRecord& record, std::string_view in_iface, const AclEvent& event) {
  Json line = header(record, tuple_of(record), event.dropped ? "drop" : "acl", in_iface);
  Json acl;
  acl["rule"] = event.number;
  if (!event.name.empty()) acl["name"] = event.name;
  if (!event.comment.empty()) acl["comment"] = readable(std::string(event.comment));
  acl["action"] = event.action;
  acl["verdict"] = event.verdict;
  if (!event.out_iface.empty()) acl["out_iface"] = event.out_iface;
  acl["suppressed"] = event.suppressed;
  if (event.dropped) {
    line["drop"] = drop_object(record);
    line["drop"]["reason"] = "acl";
  }
  line["acl"] = std::move(acl);
  return dump(line);
}

std::string acl_line(const AlertRecord& record, std::string_view in_iface, const AclEvent& event) {
  const Tuple tuple = tuple_of(record);
  const char* const protocol = name_of_protocol(tuple.protocol);
  const auto end = [&](const packet::IpAddress& address, std::uint16_t port) {
    if (!packet::facts_have_ports(tuple.protocol)) return address.str();
    return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ":" + std::to_string(port);
  };
  std::string text = "acl: rule " + std::to_string(event.number);
  if (!event.name.empty()) text.append(" \"").append(event.name).append("\"");
  text.append(" (").append(event.action).append("): ");
  text.append(in_iface.empty() ? "" : "in ").append(in_iface).append(in_iface.empty() ? "" : " ");
  if (!event.out_iface.empty()) text.append("out ").append(event.out_iface).append(" ");
  text.append(protocol != nullptr ? protocol : "protocol " + std::to_string(tuple.protocol)).append(" ");
  text.append(end(tuple.source, tuple.source_port))
      .append(" -> ")
      .append(end(tuple.destination, tuple.destination_port));
  if (record.packet.has_icmp) text.append(", type ").append(std::to_string(record.packet.icmp_type));
  text.append(", ").append(event.verdict);
  if (event.suppressed != 0)
    text.append("; ").append(std::to_string(event.suppressed)).append(" more were not reported");
  return text;
}

std::string eve_stats(std::uint64_t microseconds, const Json& stats) {
  Json line;
  line["timestamp"] = eve_time(microseconds);
  line["event_type"] = "stats";
  line["stats"] = stats;
  return dump(line);
}

std::string fast_line(const AlertRecord& record) {
  const match::Rule& rule = rule_of(record);
  const std::string* const category = class_of(record);
  Tuple tuple = tuple_of(record);
  if (tuple.of_packet && record.packet.has_icmp) {
    tuple.source_port = record.packet.icmp_type;
    tuple.destination_port = record.packet.icmp_code;
  }
  const char* const name = name_of_protocol(tuple.protocol);
  char number[16];
  std::snprintf(number, sizeof number, "PROTO:%03u", tuple.protocol);
  const auto end = [](const packet::IpAddress& address, std::uint16_t port) {
    return text_of(address) + ":" + std::to_string(port);
  };
  return time_text(record.microseconds, "%m/%d/%Y-%H:%M:%S", "  ") +
         (record.blocked      ? "[Drop] "
          : record.would_drop ? "[wDrop] "
                              : "") +
         "[**] [" + std::to_string(rule.gid) + ":" + std::to_string(rule.sid) + ":" + std::to_string(rule.rev) + "] " +
         on_a_line(rule.msg) + " [**] [Classification: " + (category == nullptr ? "(null)" : on_a_line(*category)) +
         "] [Priority: " + std::to_string(rule.priority) + "] {" + (name != nullptr ? name : number) + "} " +
         end(tuple.source, tuple.source_port) + " -> " + end(tuple.destination, tuple.destination_port);
}

}  // namespace sluice::function
