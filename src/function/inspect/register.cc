// The element's entry in the list of elements: reads [inspect].
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "engine/element.h"
#include "engine/port_table.h"
#include "function/inspect/inspect.h"
#include "function/inspect/inspect_type.h"
#include "match/rules/given_variables.h"

namespace sluice::function {
namespace {

constexpr std::uint64_t most_memory = std::uint64_t{1} << 40;

void read_variables(Settings& settings, match::Variables& variables) {
  for (const std::string& wrong : match::fix_variables(settings.texts("variables"), variables)) {
    settings.error("variables", wrong);
  }
  for (const std::string& wrong : match::unusable_variables(variables)) settings.error("variables", wrong);
}

std::uint64_t memory(Settings& settings, std::string_view key, std::uint64_t fallback) {
  constexpr std::uint64_t least = 1 << 20;
  const std::uint64_t bytes = settings.bytes(key, fallback);
  if (bytes >= least && bytes <= most_memory) return bytes;
  settings.error(key, "allowed is \"1M\" to \"1T\"");
  return fallback;
}

// A number of bytes between two, which the message says as the file does.
std::uint32_t size(Settings& settings, std::string_view key, std::uint32_t fallback, std::uint32_t least,
                   std::uint32_t most, const std::string& allowed) {
  const std::uint64_t bytes = settings.bytes(key, fallback);
  if (bytes >= least && bytes <= most) return static_cast<std::uint32_t>(bytes);
  settings.error(key, "allowed is " + allowed);
  return fallback;
}

// How far streams and HTTP are looked into.
void read_limits(Settings& settings, flow::ConversationSettings& tables) {
  constexpr std::uint32_t kb = 1 << 10, mb = 1 << 20;
  flow::StreamSettings& streams = tables.streams;
  streams.depth = settings.bytes("stream_depth", streams.depth);
  if (streams.depth != 0 && (streams.depth < 4 * kb || streams.depth > most_memory)) {
    settings.error("stream_depth", "allowed is \"4K\" to \"1T\", or 0 for no limit");
  }
  streams.window = size(settings, "stream_history", streams.window, 256, 64 * kb, "256 to \"64K\"");
  flow::http::Settings& http = tables.http;
  const std::string body = "\"1K\" to \"1M\", the largest block of http_memory";
  http.request_body_limit = size(settings, "request_body_limit", http.request_body_limit, kb, mb, body);
  http.response_body_limit = size(settings, "response_body_limit", http.response_body_limit, kb, mb, body);
  http.header_limit = size(settings, "header_limit", http.header_limit, kb, 256 * kb, "\"1K\" to \"256K\"");
  // With what merging adds, a message's headers have room in the largest block.
  http.headers_limit =
      size(settings, "headers_limit", http.headers_limit, 16 * kb, http.headers_limit, "\"16K\" to 1000000");
  http.max_headers =
      static_cast<unsigned>(settings.integer("header_fields", http.max_headers, 16, flow::http::Settings::most_fields));
  http.request_layers = http.response_layers = static_cast<unsigned>(
      settings.integer("content_codings", http.request_layers, 1, flow::http::ContentDecoder::max_layers));
}

void read_conversations(Settings& settings, flow::ConversationSettings& tables) {
  constexpr std::int64_t most_flows = std::int64_t{1} << 28;
  const auto number = [&](std::string_view key, std::int64_t fallback, std::int64_t least) {
    return static_cast<std::uint32_t>(settings.integer(key, fallback, least, most_flows));
  };
  tables.flows.capacity = number("flows", 1 << 18, 16);
  tables.extras = number("streams", std::max(16U, tables.flows.capacity / 4), 1);
  tables.http_connections = number("http", std::max(16U, tables.extras / 4), 1);
  tables.http_transactions = 2 * tables.http_connections;
  tables.stream_bytes = memory(settings, "stream_memory", 128U << 20);
  tables.http_bytes = memory(settings, "http_memory", 128U << 20);
  tables.flows.midstream = settings.boolean("midstream", false);
}

// A folder is not made: one that is not there is more likely misspelt.
std::string read_path(Settings& settings, std::string_view key) {
  std::string path = settings.text(key, "");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (std::error_code fault; std::filesystem::is_directory(path, fault)) {
    settings.error(key, "is a folder: name a file in it");
  } else if (const auto kind = std::filesystem::status(path, fault);
             path != "-" && std::filesystem::is_other(kind) && !std::filesystem::is_character_file(kind)) {
    settings.error(key, "is a pipe, a socket or a disk: name a regular file");
  } else if (!folder.empty() && !std::filesystem::is_directory(folder, fault)) {
    settings.error(key, "there is no folder " + folder.string() + ": make it, or name a file in one that is there");
  }
  return path;
}

void read_log(Settings& settings, const engine::PortTable& ports, AlertLogSettings& log) {
  log.eve = read_path(settings, "eve");
  log.fast = read_path(settings, "fast");
  if (AlertLog::are_one_file(log.eve, log.fast)) settings.error("fast", "is eve's file: name two files");
  log.fields.payload = log.fields.payload_printable = settings.boolean("payload", true);
  log.alerts_per_second = static_cast<std::uint32_t>(settings.integer("alerts_per_second", 1000, 0, 10'000'000));
  log.stats_seconds = static_cast<std::uint32_t>(settings.integer("stats_interval", 8, 0, 86400));
  for (std::size_t port = 0; port < ports.size(); ++port) {
    log.ports.push_back(ports[static_cast<std::uint16_t>(port)].name);
  }
}

Expected<std::unique_ptr<engine::Element>> make_inspect(Settings& settings, const engine::PortTable& ports) {
  InspectOptions options;
  options.rules = settings.texts("rules");
  if (options.rules.empty()) {
    settings.error("rules", "must be there: files of rules, such as [\"/etc/sluice/local.rules\"]");
  }
  read_variables(settings, options.reading.variables);
  options.reading.commented_out = settings.boolean("commented_out", false);
  options.strict = settings.boolean("strict", false);
  options.reading.threshold_file = settings.text("threshold_file", "");
  read_conversations(settings, options.inspection.conversations);
  options.inspection.fragments.memory = memory(settings, "fragment_memory", 32U << 20);
  read_limits(settings, options.inspection.conversations);
  options.inspection.tunnels = settings.boolean("tunnels", true);
  options.inspection.drop_on_overload = settings.choice("on_overload", "drop", {"drop", "pass"}) == "drop";
  flow::StreamSettings& streams = options.inspection.conversations.streams;
  streams.drop_without_room = options.inspection.drop_on_overload;
  streams.drop_conflicts = settings.choice("on_conflict", "drop", {"drop", "pass"}) == "drop";
  options.inspection.conversations.drop_silent = settings.choice("on_silence", "drop", {"drop", "pass"}) == "drop";
  options.inspection.drop_on_http_limit = settings.choice("on_http_limit", "drop", {"drop", "pass"}) == "drop";
  options.inspection.budget = static_cast<std::uint32_t>(settings.integer("candidates", 1000, 1, 1'000'000));
  if (!settings.is("budget", "auto")) options.budget = settings.duration("budget", std::chrono::nanoseconds(0));
  read_log(settings, ports, options.log);
  for (std::size_t port = 0; port < ports.size(); ++port) {
    options.lanes = std::max(options.lanes, ports[static_cast<std::uint16_t>(port)].lanes);
  }
  return std::make_unique<Inspect>(std::move(options));
}

const bool registered = engine::register_element(
    {.name = "inspect",
     .text = "drops and reports what rules of Snort and Suricata hold for: intrusion prevention",
     .make = make_inspect,
     .follows_conversations = true,
     .one_thread = true,
     .classify_time = std::chrono::nanoseconds(75),
     .find_trait = find_inspect_type_trait});

}  // namespace
}  // namespace sluice::function
