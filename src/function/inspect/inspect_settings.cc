#include "function/inspect/inspect_settings.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "match/rules/given_variables.h"

namespace sluice::function {
namespace {

using InspectOption = Option<InspectOptions>;
using InspectSettings = std::vector<InspectOption>;

constexpr std::uint32_t kb = 1 << 10, mb = 1 << 20;
constexpr std::uint64_t most_memory = std::uint64_t{1} << 40;
constexpr std::int64_t most_flows = std::int64_t{1} << 28;

void read_rules(Settings& section, InspectOptions& to) {
  to.rules = section.texts("rules");
  if (!to.rules.empty()) return;
  section.error("rules", "must be there: files of rules, such as [\"/etc/sluice/local.rules\"]");
}

void read_variables(Settings& section, InspectOptions& to) {
  match::Variables& variables = to.reading.variables;
  for (const std::string& wrong : match::fix_variables(section.texts("variables"), variables)) {
    section.error("variables", wrong);
  }
  for (const std::string& wrong : match::unusable_variables(variables)) section.error("variables", wrong);
}

// A folder is not made: one that is not there is more likely misspelt.
void read_path(Settings& section, std::string_view key, std::string& path) {
  path = section.text(key, "");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (std::error_code fault; std::filesystem::is_directory(path, fault)) {
    section.error(key, "is a folder: name a file in it");
  } else if (const auto kind = std::filesystem::status(path, fault);
             path != "-" && std::filesystem::is_other(kind) && !std::filesystem::is_character_file(kind)) {
    section.error(key, "is a pipe, a socket or a disk: name a regular file");
  } else if (!folder.empty() && !std::filesystem::is_directory(folder, fault)) {
    section.error(key, "there is no folder " + folder.string() + ": make it, or name a file in one that is there");
  }
}

void read_fast(Settings& section, InspectOptions& to) {
  read_path(section, "fast", to.log.fast);
  if (AlertLog::are_one_file(to.log.eve, to.log.fast)) section.error("fast", "is eve's file: name two files");
}

option::Sizes memory() {
  return {mb, most_memory};
}

template <class Field>
InspectOption drop_or_pass(std::string key, Field field, std::string text) {
  return option::word<InspectOptions>(std::move(key), field, {{"drop", true}, {"pass", false}}, std::move(text));
}

// A number of records; without the key a quarter of those of another kind.
template <class Field, class Of>
InspectOption quarter(std::string key, Field field, Of of, const std::string& of_what, std::string text) {
  return InspectOption{key, std::move(text),
                       [=](Settings& section, InspectOptions& to) {
                         const std::uint32_t usual = std::max(16U, of(to) / 4);
                         field(to) = static_cast<std::uint32_t>(section.integer(key, usual, 1, most_flows));
                       },
                       [=](const InspectOptions& all) { return std::to_string(field(all)); }}
      .takes(option::Range{1, most_flows}.text())
      .by_default("`" + of_what + "` / 4");
}

InspectSettings rule_settings() {
  return option::all_reloadable<InspectOptions>(
      {InspectOption{"rules",
                     "rules ([rules.md](rules.md)), also a snort.conf with its includes; "
                     "`\"/etc/sluice/rules/*.rules\"`: all of these, sorted, with `*`, `?` and `[a-z]` as a shell "
                     "knows them, looked for anew at each reload; none is an error. Relative names are as seen from "
                     "where Sluice is started",
                     read_rules, [](const InspectOptions& of) { return option::list_literal(of.rules); }}
           .takes("list of paths")
           .by_default(option::required),
       InspectOption{"variables",
                     "variables of the rules, over their defaults; they may name each other, each is there once. They "
                     "stand before what the files themselves set (`ipvar`, `portvar`, `var`); `check` and the log say "
                     "when they do, and which of them no rule uses",
                     read_variables,
                     {}}
           .takes("list such as `[\"HOME_NET=[192.0.2.0/24,2001:db8::/32]\", \"EXTERNAL_NET=!$HOME_NET\"]`")
           .by_default("`[]`"),
       option::flag<InspectOptions>(
           "commented_out", [](auto& all) -> auto& { return all.reading.commented_out; },
           "read rules behind a `#`, too"),
       option::flag("strict", &InspectOptions::strict,
                    "refuse files with a rule that does not load, at a start, by `check` and by a reload, which leaves "
                    "the old rules in force. Else the other rules are in force and the log says how many do not load. "
                    "For files that are checked before they come here: public sets have [rules that do not "
                    "load](rules.md#the-public-sets)"),
       option::text<InspectOptions>(
           "threshold_file", [](auto& all) -> auto& { return all.reading.threshold_file; },
           "a file of `suppress` and `event_filter` lines, which [keep alerts back](inspect.md#fewer-alerts); `\"\"`: "
           "none")
           .takes("path")});
}

// For all lanes together.
InspectSettings table_settings() {
  const auto streams = [](auto& all) -> auto& {
    return all.inspection.conversations.extras;
  };
  const auto http = [](auto& all) -> auto& {
    return all.inspection.conversations.http_connections;
  };
  const auto flows = [](auto& all) -> auto& {
    return all.inspection.conversations.flows.capacity;
  };
  return {
      option::number<InspectOptions>(
          "flows", flows, {16, most_flows},
          "conversations at a time. This and the next four are for all lanes together; what they take: "
          "[memory](inspect.md#memory)"),
      quarter("streams", streams, flows, "flows", "conversations of these that are TCP and are put together"),
      quarter("http", http, streams, "streams",
              "of these, connections of HTTP. Those that are silent between messages give way to others, and "
              "lose nothing; when all are in the midst of one, it is left to `on_http_limit`"),
      option::bytes<InspectOptions>(
          "stream_memory", [](auto& all) -> auto& { return all.inspection.conversations.stream_bytes; }, memory(),
          "memory for segments that wait and what came before. Taken from the system at start, unless all frames come "
          "from captures"),
      option::bytes<InspectOptions>(
          "http_memory", [](auto& all) -> auto& { return all.inspection.conversations.http_bytes; }, memory(),
          "memory for headers and bodies of HTTP, likewise"),
      option::bytes<InspectOptions>(
          "fragment_memory", [](auto& all) -> auto& { return all.inspection.fragments.memory; }, memory(),
          "memory for fragments until their datagram is complete ([fragments](inspect.md#fragments)), for all lanes "
          "together")};
}

// How far streams and HTTP are looked into.
InspectSettings limit_settings() {
  const std::string of_http_memory = ", the largest block of http_memory";
  const flow::http::Settings usual;
  const auto field = [](auto flow::http::Settings::*member) {
    return [member](auto& all) -> auto& {
      return all.inspection.conversations.http.*member;
    };
  };
  return {
      option::bytes<InspectOptions>(
          "stream_depth", [](auto& all) -> auto& { return all.inspection.conversations.streams.depth; },
          {4 * kb, most_memory, ", or 0 for no limit", true},
          "bytes of each direction of TCP that are put together. What is behind is inspected packet by packet. "
          "Suricata's "
          "`stream.reassembly.depth`"),
      option::bytes<InspectOptions>(
          "stream_history", [](auto& all) -> auto& { return all.inspection.conversations.streams.window; },
          {256, 64 * kb},
          "bytes of a stream that are looked at together with the next ones: contents and `pcre` find what is not "
          "longer. "
          "Each direction that has sent data takes so much of `stream_memory`, and each piece takes longer to confirm"),
      option::bytes<InspectOptions>("request_body_limit", field(&flow::http::Settings::request_body_limit),
                                    {kb, mb, of_http_memory},
                                    "bytes of a request's body, decoded, that are looked at, the largest block of "
                                    "`http_memory` at most; of br with a window of 1 MiB or more, at most 512 KiB. As "
                                    "Suricata's of that name"),
      option::bytes<InspectOptions>("response_body_limit", field(&flow::http::Settings::response_body_limit),
                                    {kb, mb, of_http_memory}, "bytes of a response's body, likewise"),
      option::bytes<InspectOptions>(
          "header_limit", field(&flow::http::Settings::header_limit), {kb, 256 * kb},
          "bytes of a line of HTTP's headers, request lines with their URI among them: a connection with a longer one "
          "is "
          "inspected as HTTP no further, and left to `on_http_limit`. libhtp's hard field limit"),
      // With what merging adds, a message's headers fit in the largest block.
      option::bytes<InspectOptions>(
          "headers_limit", field(&flow::http::Settings::headers_limit), {16 * kb, usual.headers_limit},
          "bytes of a message's first line, headers and trailers together, what the largest block "
          "of `http_memory` holds at most; behind it likewise"),
      option::number<InspectOptions>(
          "header_fields", field(&flow::http::Settings::max_headers), {16, flow::http::Settings::most_fields, "fields"},
          "fields of a message that rules see one by one: those behind are in `http.header.raw` alone, and the "
          "connection is "
          "left to `on_http_limit`. libhtp's limit. Each takes 16 bytes of `http_memory` besides its text, twice while "
          "headers come"),
      option::number<InspectOptions>(
          "content_codings", field(&flow::http::Settings::request_layers),
          {1, flow::http::ContentDecoder::max_layers, "codings"},
          "codings (gzip, deflate, br) of a body that are undone: a body that is said to be in more is left to "
          "`on_http_limit`. Each takes 48 KB of `http_memory` while a body comes, br 64 to 700 KB until as much is "
          "decoded as is looked at. libhtp's limit"),
      option::flag<InspectOptions>(
          "midstream", [](auto& all) -> auto& { return all.inspection.conversations.flows.midstream; },
          "follow TCP whose handshake was not seen"),
      option::flag<InspectOptions>(
          "tunnels", [](auto& all) -> auto& { return all.inspection.tunnels; },
          "inspect packets in tunnels, too ([tunnels](inspect.md#tunnels)): IP in IP, GRE, VXLAN, Geneve, GTP-U, MPLS, "
          "PPPoE, NSH")};
}

InspectSettings answer_settings() {
  return {
      drop_or_pass(
          "on_overload", [](auto& all) -> auto& { return all.inspection.drop_on_overload; },
          "a frame for which a rule that drops might hold, and whose prefilter matches were not all confirmed, a TCP "
          "segment "
          "for which `stream_memory` has no capacity, or a fragment that cannot be put together "
          "([overload](inspect.md#overload), [fragments](inspect.md#fragments))"),
      drop_or_pass(
          "on_conflict", [](auto& all) -> auto& { return all.inspection.conversations.streams.drop_conflicts; },
          "a TCP segment with other bytes than were inspected for its place ([decoys](inspect.md#decoys))"),
      drop_or_pass(
          "on_silence", [](auto& all) -> auto& { return all.inspection.conversations.drop_silent; },
          "data of a TCP conversation that goes on after it was silent for so long that it is followed no more "
          "([limits](inspect.md#limits))"),
      drop_or_pass(
          "on_http_limit", [](auto& all) -> auto& { return all.inspection.drop_on_http_limit; },
          "a conversation of HTTP that would not be inspected as its server reads it: it goes beyond `header_limit`, "
          "`headers_limit`, `header_fields` or `content_codings`. Or its request has chunks that cannot be read, or "
          "can "
          "be read in more than one way. Or `http_memory` or `http` is used up. `\"drop\"`: from there on, if any rule "
          "drops ([HTTP beyond a limit](inspect.md#http-beyond-a-limit))"),
      option::number<InspectOptions>(
          "candidates", [](auto& all) -> auto& { return all.inspection.budget; }, {1, 1'000'000, "rules"},
          "rules that are confirmed for a frame at most"),
      option::duration(
          "budget", &InspectOptions::budget, "auto",
          "time for confirming, of each batch, which [its frames share](inspect.md#overload). `\"auto\"`: a "
          "cycle, without one a quarter of the deadline, less where frames would be late by it; of "
          "captures alone no limit. A time that is given is taken as it is")};
}

InspectSettings log_settings() {
  return {
      InspectOption{"eve",
                    "a file of EVE JSON lines, appended to; `\"-\"`: standard output, which then has nothing else: the "
                    "summary of `run` is on standard error; `\"\"`: none. It is [no file that is something "
                    "else](inspect.md#files)",
                    [](Settings& section, InspectOptions& to) { read_path(section, "eve", to.log.eve); },
                    [](const InspectOptions& of) { return option::literal(of.log.eve); }}
          .takes("path"),
      InspectOption{"fast", "the same for fast.log", read_fast,
                    [](const InspectOptions& of) { return option::literal(of.log.fast); }}
          .takes("path"),
      option::flag<InspectOptions>(
          "payload", [](auto& all) -> auto& { return all.log.fields.payload; },
          "EVE's alerts hold the payload, up to 1,500 bytes of it"),
      option::number<InspectOptions>(
          "alerts_per_second", [](auto& all) -> auto& { return all.log.alerts_per_second; },
          {0, 10'000'000, "alerts a second"},
          "alerts that are written at most, and as many `drop` events; 0: no limit, as for captures alone"),
      option::number<InspectOptions>(
          "stats_interval", [](auto& all) -> auto& { return all.log.stats_seconds; }, {0, 86400, "s"},
          "time between `stats` events of EVE; 0: only those about alerts that were suppressed")};
}

}  // namespace

const std::vector<Option<InspectOptions>>& inspect_settings() {
  static const InspectSettings all = [] {
    InspectSettings settings;
    for (InspectSettings part :
         {rule_settings(), table_settings(), limit_settings(), answer_settings(), log_settings()}) {
      std::ranges::move(part, std::back_inserter(settings));
    }
    return settings;
  }();
  return all;
}

InspectOptions usual_inspect() {
  InspectOptions usual;
  flow::ConversationSettings& tables = usual.inspection.conversations;
  tables.flows.capacity = 1 << 18;
  tables.flows.midstream = false;
  tables.stream_bytes = tables.http_bytes = 128U << 20;
  tables.streams.drop_conflicts = tables.drop_silent = true;
  usual.inspection.fragments.memory = 32U << 20;
  usual.inspection.drop_on_overload = usual.inspection.drop_on_http_limit = true;
  usual.log.fields.payload = true;
  return usual;
}

}  // namespace sluice::function
