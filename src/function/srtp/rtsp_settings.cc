#include "function/srtp/rtsp_settings.h"

#include <algorithm>
#include <string>

namespace sluice::function {
namespace {

// Each is a rule of the kernel for each twin and port.
constexpr std::size_t most_servers = 64, most_ports = 8;
constexpr std::int64_t most_rate = 1'000'000'000'000;

void read_servers(Settings& settings, RtspOptions& options) {
  const std::vector<std::string> servers = settings.texts("servers");
  if (servers.empty())
    settings.error("servers", "is missing: give the prefixes of the servers, such as [\"10.2.0.0/24\"]");
  if (servers.size() > most_servers)
    settings.error("servers", "allowed are " + std::to_string(most_servers) + " prefixes");
  for (const std::string& text : servers) {
    const auto prefix = packet::IpPrefix::parse(text);
    if (!prefix) {
      settings.error("servers", prefix.error().message);
    } else {
      options.servers.push_back(*prefix);
    }
  }
}

void read_ports(Settings& settings, RtspOptions& options) {
  if (!settings.has("ports")) return;
  options.ports.clear();
  for (const std::int64_t port : settings.integers("ports")) {
    if (port < 1 || port > 65535) {
      settings.error("ports", "allowed are TCP ports from 1 to 65535");
    } else if (std::ranges::find(options.ports, port) != options.ports.end()) {
      settings.error("ports", std::to_string(port) + " is there twice");
    } else {
      options.ports.push_back(static_cast<std::uint16_t>(port));
    }
  }
  if (options.ports.size() > most_ports)
    settings.error("ports", "allowed are " + std::to_string(most_ports) + " ports");
}

void read_suite(Settings& settings, RtspOptions& options) {
  const std::string name = settings.text("suite", std::string(srtp::facts(options.suite).name));
  if (const auto suite = srtp::suite_named(name)) {
    options.suite = *suite;
    return;
  }
  std::string names;
  for (const srtp::SuiteFacts& suite : srtp::suites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
  settings.error("suite", "suites are " + names);
}

}  // namespace

RtspOptions read_rtsp(Settings settings, const engine::PortTable& ports) {
  RtspOptions options;
  read_servers(settings, options);
  read_ports(settings, options);
  read_suite(settings, options);
  options.accept_plain_profile = settings.boolean("accept_plain_profile", options.accept_plain_profile);
  options.accept_clear_rtcp = settings.boolean("accept_clear_rtcp", options.accept_clear_rtcp);
  const auto number = [&](const char* key, std::int64_t usual, std::int64_t least, std::int64_t most) {
    return static_cast<std::uint64_t>(settings.integer(key, usual, least, most));
  };
  options.max_connections = static_cast<std::uint32_t>(number("max_connections", options.max_connections, 1, 1 << 20));
  options.max_streams = static_cast<std::uint32_t>(number("max_streams", options.max_streams, 1, 1024));
  options.max_rate = number("max_rate", 0, 0, most_rate);
  options.default_rate = number("default_rate", 0, 0, most_rate);
  options.rate_margin = static_cast<std::uint32_t>(number("rate_margin", options.rate_margin, 0, 1000));
  options.burst_time = settings.duration("burst_time", options.burst_time);
  options.session_timeout = settings.duration("session_timeout", options.session_timeout);
  options.connect_timeout = settings.duration("connect_timeout", options.connect_timeout);
  options.idle_timeout = settings.duration("idle_timeout", options.idle_timeout);
  options.table = static_cast<std::uint32_t>(number("table", options.table, 256, 0x7fffffff));
  options.priority = static_cast<std::uint32_t>(number("priority", options.priority, 1, 32765));
  for (std::size_t port = 0; port < ports.size(); ++port) {
    if (!ports[port].has_twin) {
      settings.error(
          "", "the proxy is on the host's own TCP: give each [[port]] a twin; '" + ports[port].name + "' has none");
      break;
    }
  }
  settings.finish();
  return options;
}

}  // namespace sluice::function
