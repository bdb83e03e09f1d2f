// `sluice ctl ipsec`: SAs and policies, and what adds and removes them.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/option.h"
#include "base/text_table.h"
#include "function/ipsec/ipsec_rows.h"
#include "function/ipsec/ipsec_type.h"
#include "function/verb_text.h"
#include "ipsec/selector.h"

namespace sluice::function {
namespace {

using engine::refuse_verb;
using engine::VerbReader;
using engine::VerbRefusal;
using engine::VerbRequest;
using engine::VerbWords;
using Kind = VerbRefusal::Kind;
using Request = tl::expected<VerbRequest, VerbRefusal>;

// As an SPI is written: 4097 or 0x1001.
std::optional<std::uint32_t> parse_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, hexadecimal ? 16 : 10);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

tl::unexpected<VerbRefusal> no_spi(const std::string& text) {
  return refuse_verb(Kind::input, text + ": an SPI is a number of 32 bits, as 4097 or 0x1001");
}

Request request_sas(const VerbWords& words, const VerbReader& /*read*/) {
  const auto of_address = address_query(words.one("--address"));
  if (!of_address) return tl::unexpected(of_address.error());
  std::string query = "?limit=" + words.one("--limit") + *of_address;
  if (const std::string spi = words.one("--spi"); !spi.empty()) {
    const auto number = parse_number(spi);
    if (!number) return no_spi(spi);
    query += "&spi=" + std::to_string(*number);
  }
  return VerbRequest{.path = "/api/v1/ipsec/sas" + query, .print = printer(ipsec_sas_report)};
}

Request request_policies(const VerbWords& words, const VerbReader& /*read*/) {
  const std::string direction = words.one("DIRECTION");
  if (!direction.empty() && direction != "in" && direction != "out") {
    return refuse_verb(Kind::input, direction + ": DIRECTION is in or out");
  }
  const std::string query = direction.empty() ? "" : "&direction=" + direction;
  return VerbRequest{.path = "/api/v1/ipsec/policies?limit=" + words.one("--limit") + query,
                     .print = printer(ipsec_policies_report)};
}

VerbRequest change(const std::string& path, std::string body) {
  return change_request("/api/v1/ipsec/" + path, std::move(body));
}

engine::Verb adds(const char* name, const char* path, const char* section, const char* text) {
  return {.name = name,
          .text = text,
          .arguments = {{.name = "FILE",
                         .text = std::string("the keys of one [[") + section + "]]; -: the standard input",
                         .required = true,
                         .is_file = true}},
          .footer = "Until the gateway ends, or it is removed; a reload leaves it as it is.",
          .request = [path = std::string(path)](const VerbWords& words, const VerbReader& /*read*/) -> Request {
            auto body = read_section_file(words.one("FILE"));
            if (!body) return refuse_verb(Kind::input, body.error().message);
            return change(path, std::move(*body));
          }};
}

Request request_remove(const VerbWords& words, const VerbReader& /*read*/) {
  const auto spi = parse_number(words.one("SPI"));
  if (!spi) return no_spi(words.one("SPI"));
  std::string body = fmt::format("spi = {}\ndestination = {}\n", *spi, option::literal(words.one("DESTINATION")));
  if (words.has("--protocol")) body += "protocol = " + option::literal(words.one("--protocol")) + "\n";
  return change("sas/remove", std::move(body));
}

Request request_remove_policy(const VerbWords& words, const VerbReader& /*read*/) {
  std::string body;
  for (const auto& [word, key] :
       {std::pair("DIRECTION", "direction"), {"SOURCE", "source"}, {"DESTINATION", "destination"}}) {
    body += fmt::format("{} = {}\n", key, option::literal(words.one(word)));
  }
  if (const std::string given = words.one("--upper-protocol"); !given.empty()) {
    const auto protocol = ipsec::parse_protocol(given);
    if (!protocol) return refuse_verb(Kind::input, "--upper-protocol " + given + ": as listed, or a number up to 255");
    body += fmt::format("upper_protocol = {}\n", *protocol);
  }
  for (const auto& [word, key] :
       {std::pair("--source-port", "source_port"), {"--destination-port", "destination_port"}}) {
    const std::string given = words.one(word);
    if (given.empty()) continue;
    const auto slash = given.find('/');
    const auto port = parse_number(std::string_view(given).substr(0, slash));
    const auto mask = slash == std::string::npos ? 0xffff : parse_number(std::string_view(given).substr(slash + 1));
    if (!port || !mask) {
      return refuse_verb(Kind::input, fmt::format("{} {}: a number, or with a mask as 1024/0xfc00", word, given));
    }
    body += fmt::format("{0} = {1}\n{0}_mask = {2}\n", key, *port, *mask);
  }
  return change("policies/remove", std::move(body));
}

engine::Verb remove_sa() {
  return {.name = "remove",
          .text = "Take away an SA, whoever has brought it. Packets under way are finished",
          .arguments = {{.name = "SPI", .text = "as listed, or decimal", .required = true},
                        {.name = "DESTINATION", .text = "of the outer packet", .required = true},
                        {.name = "--protocol", .text = "esp (default) or ah", .type = "PROTOCOL"}},
          .footer = "One of the file comes back with a reload, and begins its sequence numbers anew.",
          .request = request_remove};
}

engine::Verb remove_policy() {
  return {.name = "remove-policy",
          .text = "Take away a policy, whoever has brought it: what it protected leaves in clear, if no other one does",
          .arguments = {{.name = "DIRECTION", .text = "in or out", .required = true},
                        {.name = "SOURCE", .text = "its source prefix", .required = true},
                        {.name = "DESTINATION", .text = "its destination prefix", .required = true},
                        {.name = "--upper-protocol", .text = "its protocol, if it has one", .type = "PROTOCOL"},
                        {.name = "--source-port", .text = "its source port, or type of ICMP", .type = "PORT[/MASK]"},
                        {.name = "--destination-port",
                         .text = "its destination port, or code of ICMP",
                         .type = "PORT[/MASK]"}},
          .footer = "All of it as `ctl ipsec policies` lists it. One of the file comes back with a reload.",
          .request = request_remove_policy};
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// For NAME, where it says more than the other columns.
std::string name_beside(const std::string& name, const std::string& usual) {
  return name == usual ? "-" : or_dash(name);
}

std::string template_text(const IpsecTemplateRow& row) {
  std::string text = row.protocol + " " + row.mode;
  if (!row.source.empty()) text += " " + row.source + " -> " + row.destination;
  if (row.reqid != 0) text += fmt::format(" reqid {}", row.reqid);
  if (row.spi != 0) text += fmt::format(" spi 0x{:08x}", row.spi);
  return text;
}

}  // namespace

std::vector<engine::Verb> ipsec_verbs() {
  return {{.name = "ipsec",
           .text = "SAs of the element ipsec, without their keys; policies; add and remove them",
           .arguments = {{.name = "--address", .text = "only SAs with this address at one end", .type = "ADDRESS"},
                         {.name = "--spi", .text = "only SAs with this SPI", .type = "SPI"},
                         engine::limit_argument()},
           .request = request_sas,
           .verbs = {{.name = "policies",
                      .text = "Policies, of a direction in the order in which they are looked at",
                      .arguments = {{.name = "DIRECTION", .text = "in or out: only these"}, engine::limit_argument()},
                      .request = request_policies},
                     adds("add", "sas/add", "ipsec.sa", "Add an SA with keys of its own"),
                     remove_sa(),
                     adds("add-policy", "policies/add", "ipsec.policy", "Add a policy"),
                     remove_policy()}}};
}

std::string ipsec_sas_report(const IpsecSaTable& sas) {
  if (sas.count == 0) return "no such SA: there is none, or none has this address or SPI\n";
  Table table({"DIRECTION", "SPI", "SOURCE", "DESTINATION", "PROTOCOL", "MODE", "PROPOSAL", ">REQID", "STATE", ">AGE S",
               ">PACKETS", ">BYTES", ">DROPPED", ">IDLE S", ">PATH MTU", "FROM", "NAME"});
  for (const IpsecSaRow& row : sas.sas) {
    std::uint64_t dropped = 0;
    for (const auto& [name, count] : row.drops) dropped += count;
    const std::string spi = fmt::format("0x{:08x}", row.spi);
    const auto end = [&](const std::string& address, std::uint16_t port) {
      return port == 0 ? address : fmt::format("{} port {}", address, port);
    };
    table.add({row.direction, spi, end(row.source, row.udp_source_port), end(row.destination, row.udp_destination_port),
               row.protocol, row.mode, or_dash(row.proposal), std::to_string(row.reqid), row.state,
               std::to_string(row.age_s), std::to_string(row.packets), std::to_string(row.bytes),
               std::to_string(dropped), row.idle_s < 0 ? "-" : std::to_string(row.idle_s),
               row.path_mtu == 0 ? "-" : std::to_string(row.path_mtu), row.origin, name_beside(row.name, spi)});
  }
  return table.str() + more_text(sas.sas.size(), sas.count, "SAs");
}

std::string ipsec_policies_report(const IpsecPolicyTable& policies) {
  if (policies.count == 0) return "no such policy: what no policy is for goes by in clear\n";
  Table table({"DIRECTION", "TRAFFIC", ">PRIORITY", "ACTION", "BY", ">PACKETS", ">BYTES", "FROM", "NAME"});
  for (const IpsecPolicyRow& row : policies.policies) {
    std::string by;
    for (const IpsecTemplateRow& one : row.templates) by += (by.empty() ? "" : ", in ") + template_text(one);
    table.add({row.direction, row.selector, std::to_string(row.priority), row.action, or_dash(by),
               std::to_string(row.packets), std::to_string(row.bytes), row.origin,
               name_beside(row.name, row.selector)});
  }
  return table.str() + more_text(policies.policies.size(), policies.count, "policies");
}

}  // namespace sluice::function
