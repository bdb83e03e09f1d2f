// `sluice ctl ipsec`: SAs and policies, and what adds and removes them.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/option.h"
#include "base/text_table.h"
#include "function/ipsec/ipsec_rows.h"
#include "function/ipsec/ipsec_type.h"
#include "function/verb_text.h"
#include "packet/ip_address.h"

namespace sluice::function {
namespace {

using engine::refuse_verb;
using engine::VerbReader;
using engine::VerbRefusal;
using engine::VerbRequest;
using engine::VerbWords;
using Kind = VerbRefusal::Kind;
using Request = tl::expected<VerbRequest, VerbRefusal>;

// More than the API takes, which says itself how much that is.
constexpr std::size_t largest_file = 64 << 10;

// A file, which may be a pipe, or "-": the standard input. Keys are in it, so none of it is ever shown.
Expected<std::string> read_section_file(const std::string& path) {
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input", largest_file);
  const int fd = open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return make_error(path + ": " + std::strerror(errno));
  auto text = read_descriptor(fd, path, largest_file);
  close(fd);
  return text;
}

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
  std::string query = "?limit=" + words.one("--limit");
  if (const std::string address = words.one("--address"); !address.empty()) {
    const auto parsed = packet::IpAddress::parse(address);
    if (!parsed) return refuse_verb(Kind::input, address + ": " + parsed.error().message);
    query += "&address=" + address;  // its characters need no escape in a query
  }
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

Request change(const std::string& path, std::string body) {
  return VerbRequest{.path = "/api/v1/ipsec/" + path, .change = true, .body = std::move(body), .print = print_change};
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
  for (const auto& [word, key] : {std::pair("--upper-protocol", "upper_protocol"),
                                  {"--source-port", "source_port"},
                                  {"--destination-port", "destination_port"}}) {
    if (!words.has(word)) continue;
    const auto number = parse_number(words.one(word));
    if (!number) return refuse_verb(Kind::input, std::string(word) + " " + words.one(word) + ": is no number");
    body += fmt::format("{} = {}\n", key, *number);
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
                        {.name = "--upper-protocol", .text = "its protocol's number, if it has one", .type = "NUMBER"},
                        {.name = "--source-port", .text = "its source port, if it has one", .type = "PORT"},
                        {.name = "--destination-port", .text = "its destination port, if it has one", .type = "PORT"}},
          .footer = "One of the file comes back with a reload.",
          .request = request_remove_policy};
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// For NAME, where it says more than the other columns.
std::string name_beside(const std::string& name, const std::string& usual) {
  return name == usual ? "-" : or_dash(name);
}

std::string more_text(std::size_t shown, std::uint64_t count, const char* what) {
  return count > shown ? fmt::format("{} of {} {}; --limit for more\n", shown, count, what) : "";
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
