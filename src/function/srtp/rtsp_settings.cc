#include "function/srtp/rtsp_settings.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "function/srtp/address_settings.h"
#include "media/text.h"

namespace sluice::function {
namespace {

// Each is a rule of the kernel for each twin and port.
constexpr std::size_t most_servers = 64, most_ports = 8, most_listen = 16;
constexpr std::int64_t most_rate = 1'000'000'000'000, most_ssrcs = 65536;
constexpr std::chrono::seconds least_timeout{1}, most_timeout{24 * 60 * 60};

// Of prefixes that lie in what no host has.
std::string why_no_servers(const packet::IpPrefix& prefix) {
  constexpr unsigned long_enough = 8;  // the longest of those
  return prefix.length < long_enough ? "" : why_in_no_packet(prefix.address, AddressUse::host);
}

void read_servers(Settings& settings, RtspOptions& options) {
  const std::vector<std::string> servers = settings.texts("servers");
  if (servers.empty() && !settings.has("listen"))
    settings.error("servers",
                   "is missing: give the prefixes of the servers, such as [\"10.2.0.0/24\"], or for clients that "
                   "address the proxy itself its addresses as listen");
  if (servers.size() > most_servers)
    settings.error("servers", "allowed are " + std::to_string(most_servers) + " prefixes");
  for (const std::string& text : servers) {
    const auto prefix = packet::IpPrefix::parse(text);
    if (!prefix) {
      settings.error("servers", prefix.error().message);
    } else if (const packet::IpPrefix plain = without_mapping(*prefix); plain != *prefix) {
      settings.error("servers", prefix->str() + " is IPv4 in IPv6's form, which no packet has: write " + plain.str());
    } else if (const std::string why = why_no_servers(*prefix); !why.empty()) {
      settings.error("servers", prefix->str() + " " + why);
    } else if (std::ranges::find(options.servers, *prefix) != options.servers.end()) {
      settings.error("servers", prefix->str() + " is there twice");
    } else if (prefix->length == 0 && !settings.has("unprotected")) {
      settings.error("servers", prefix->str() +
                                    " has the clients in it, too, whose UDP would be dropped as the servers' "
                                    "media are: give the servers' prefixes, or say what is to be with unprotected");
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

void read_listen(Settings& settings, RtspOptions& options) {
  for (const std::string& text : settings.texts("listen")) {
    const auto address = packet::IpAddress::parse(text);
    if (!address) {
      settings.error("listen", address.error().message);
    } else if (const std::string why = why_in_no_packet(*address, AddressUse::host); !why.empty()) {
      settings.error("listen", address->str() + " " + why);
    } else if (options.is_explicit(*address)) {
      settings.error("listen", address->str() + " is there twice");
    } else {
      options.listen.push_back(*address);
    }
  }
  if (options.listen.size() > most_listen)
    settings.error("listen", "allowed are " + std::to_string(most_listen) + " addresses");
}

RtspServer read_server(Settings& settings) {
  RtspServer server;
  const std::string text = settings.required_text("address");
  const auto address = packet::IpAddress::parse(text);
  if (address) {
    server.address = *address;
    if (const std::string why = why_in_no_packet(*address, AddressUse::host); !why.empty())
      settings.error("address", address->str() + " " + why);
  } else if (!text.empty() || settings.is("address", "")) {
    settings.error("address", address.error().message);
  }
  server.port = static_cast<std::uint16_t>(settings.integer("port", server.port, 1, 65535));
  server.name = settings.text("name", "");
  server.path = settings.text("path", "");
  if (!server.path.empty() && !server.path.starts_with('/'))
    settings.error("path", "give what paths begin with, such as \"/door\"");
  while (server.path.ends_with('/')) server.path.pop_back();
  settings.finish();
  return server;
}

// Whether `earlier` is asked first and takes each request that `later` would.
bool leaves_nothing(const RtspServer& earlier, const RtspServer& later) {
  const bool has_its_name = earlier.name.empty() || media::same_name(earlier.name, later.name);
  const bool has_its_paths = later.path == earlier.path || later.path.starts_with(earlier.path + "/");
  return earlier.address.family == later.address.family && has_its_name && has_its_paths;
}

void read_upstream(Settings& settings, RtspOptions& options) {
  for (Settings& section : settings.sections("server")) {
    const RtspServer server = read_server(section);
    const auto hides = [&](const RtspServer& earlier) { return leaves_nothing(earlier, server); };
    const auto hiding = std::ranges::find_if(options.upstream, hides);
    if (hiding != options.upstream.end() && !server.address.empty()) {
      section.error("address", server.address.str() + " gets no connection: the server " + hiding->address.str() +
                                   " above it takes all that it would; the first that fits counts, so put the one with "
                                   "a name or a longer path first");
    }
    options.upstream.push_back(server);
  }
  if (options.listen.empty() && !options.upstream.empty())
    settings.error("listen", "is missing: give the addresses at which clients of [[srtp.rtsp.server]] find the proxy");
  for (const packet::IpAddress& address : options.listen) {
    const auto is_it = [&](const RtspServer& server) { return server.address == address; };
    if (std::ranges::any_of(options.upstream, is_it))
      settings.error("server", address.str() + " is the proxy's own address: give the server's");
    const auto fits = [&](const RtspServer& server) { return server.address.family == address.family; };
    if (std::ranges::none_of(options.upstream, fits)) {
      settings.error("listen", "no [[srtp.rtsp.server]] has an address of the family of " + address.str() +
                                   ": clients and servers speak the same one");
    }
  }
}

// "20000-29999".
void read_media_ports(Settings& settings, RtspOptions& options) {
  const std::string text = settings.text("media_ports", "20000-29999");
  unsigned first = 0, last = 0;
  char rest = 0;
  const bool range = std::sscanf(text.c_str(), "%5u-%5u%c", &first, &last, &rest) == 2;
  if (!range || first < 1024 || last > 65535 || first % 2 != 0 || last <= first) {
    settings.error("media_ports",
                   "give a range of UDP ports from 1024 to 65535 that begins with an even one, such as "
                   "\"20000-29999\"");
    return;
  }
  if (settings.has("media_ports") && !settings.has("listen"))
    settings.error("media_ports", "is for clients that address the proxy itself: give its addresses as listen");
  options.first_media_port = static_cast<std::uint16_t>(first);
  options.last_media_port = static_cast<std::uint16_t>(last);
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

// Connections are looked at once a second.
void read_timeout(Settings& settings, const char* key, std::chrono::nanoseconds& timeout) {
  const std::chrono::nanoseconds given = settings.duration(key, timeout);
  if (given < least_timeout || given > most_timeout) {
    settings.error(key, "allowed is \"1s\" to \"86400s\"");
  } else {
    timeout = given;
  }
}

void read_measuring(Settings& settings, RtspOptions& options) {
  options.measured = settings.boolean("measured", options.measured);
  options.measure_time = settings.duration("measure_time", options.measure_time);
  if (options.measured && options.default_rate == 0)
    settings.error("measured", "there is no default_rate: say what media without b= may bring until they are measured");
  if (!options.measured && settings.has("measure_time"))
    settings.error("measure_time", "is for media that are measured: set measured = true");
}

}  // namespace

RtspOptions read_rtsp(Settings settings, const engine::PortTable& ports) {
  RtspOptions options;
  options.deadlines = rtsp::read_medium_deadlines(settings);  // before the servers' sections are finished
  read_servers(settings, options);
  read_ports(settings, options);
  read_listen(settings, options);
  read_upstream(settings, options);
  read_media_ports(settings, options);
  read_suite(settings, options);
  options.accept_plain_profile = settings.boolean("accept_plain_profile", options.accept_plain_profile);
  options.accept_clear_rtcp = settings.boolean("accept_clear_rtcp", options.accept_clear_rtcp);
  options.drops_unprotected = settings.choice("unprotected", "drop", {"drop", "pass"}) == "drop";
  options.check_ingress = settings.boolean("check_ingress", options.check_ingress);
  const auto number = [&](const char* key, std::int64_t usual, std::int64_t least, std::int64_t most) {
    return static_cast<std::uint64_t>(settings.integer(key, usual, least, most));
  };
  options.max_connections = static_cast<std::uint32_t>(number("max_connections", options.max_connections, 1, 1 << 20));
  options.max_connections_per_client = static_cast<std::uint32_t>(
      number("max_connections_per_client", (options.max_connections + 3) / 4, 1, options.max_connections));
  options.max_streams = static_cast<std::uint32_t>(number("max_streams", options.max_streams, 1, 1024));
  options.max_ssrcs = static_cast<std::uint32_t>(number("max_ssrcs", options.max_ssrcs, 1, most_ssrcs));
  options.max_rate = number("max_rate", 0, 0, most_rate);
  options.default_rate = number("default_rate", 0, 0, most_rate);
  if (options.max_rate != 0 && options.default_rate > options.max_rate) {
    settings.error("default_rate", "exceeds max_rate, " + std::to_string(options.max_rate) +
                                       ": no medium whose description has no b= would ever be let in");
  }
  read_measuring(settings, options);
  options.rate_margin = static_cast<std::uint32_t>(number("rate_margin", options.rate_margin, 0, 1000));
  options.burst_time = settings.duration("burst_time", options.burst_time);
  read_timeout(settings, "session_timeout", options.session_timeout);
  read_timeout(settings, "connect_timeout", options.connect_timeout);
  read_timeout(settings, "answer_timeout", options.answer_timeout);
  read_timeout(settings, "idle_timeout", options.idle_timeout);
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

std::string rtsp_changes(const RtspOptions& running, const RtspOptions& wanted) {
  std::string lines;
  const auto compare = [&](const std::string& key, const auto& member) {
    if (member(running) == member(wanted)) return;
    lines += (lines.empty() ? "" : "\n") + key + " cannot change while the gateway runs: restart it";
  };
  const auto of = [](auto RtspOptions::*member) { return [member](const RtspOptions& all) { return all.*member; }; };
  const auto ports = [](const RtspOptions& all) { return std::pair(all.first_media_port, all.last_media_port); };
  compare("[srtp.rtsp] servers", of(&RtspOptions::servers));
  compare("[srtp.rtsp] listen", of(&RtspOptions::listen));
  compare("[[srtp.rtsp.server]]", of(&RtspOptions::upstream));
  compare("[srtp.rtsp] media_ports", ports);
  compare("[srtp.rtsp] ports", of(&RtspOptions::ports));
  compare("[srtp.rtsp] suite", of(&RtspOptions::suite));
  compare("[srtp.rtsp] accept_plain_profile", of(&RtspOptions::accept_plain_profile));
  compare("[srtp.rtsp] accept_clear_rtcp", of(&RtspOptions::accept_clear_rtcp));
  compare("[srtp.rtsp] unprotected", of(&RtspOptions::drops_unprotected));
  compare("[srtp.rtsp] check_ingress", of(&RtspOptions::check_ingress));
  compare("[srtp.rtsp] max_connections", of(&RtspOptions::max_connections));
  compare("[srtp.rtsp] max_connections_per_client", of(&RtspOptions::max_connections_per_client));
  compare("[srtp.rtsp] max_streams", of(&RtspOptions::max_streams));
  compare("[srtp.rtsp] max_ssrcs", of(&RtspOptions::max_ssrcs));
  compare("[srtp.rtsp] max_rate", of(&RtspOptions::max_rate));
  compare("[srtp.rtsp] default_rate", of(&RtspOptions::default_rate));
  compare("[srtp.rtsp] rate_margin", of(&RtspOptions::rate_margin));
  compare("[srtp.rtsp] measured", of(&RtspOptions::measured));
  compare("[srtp.rtsp] measure_time", of(&RtspOptions::measure_time));
  compare("[srtp.rtsp] burst_time", of(&RtspOptions::burst_time));
  compare("[srtp.rtsp] session_timeout", of(&RtspOptions::session_timeout));
  compare("[srtp.rtsp] connect_timeout", of(&RtspOptions::connect_timeout));
  compare("[srtp.rtsp] answer_timeout", of(&RtspOptions::answer_timeout));
  compare("[srtp.rtsp] idle_timeout", of(&RtspOptions::idle_timeout));
  compare("[srtp.rtsp] table", of(&RtspOptions::table));
  compare("[srtp.rtsp] priority", of(&RtspOptions::priority));
  for (std::size_t i = 0; i < rtsp::DeadlineKeys::keys.size(); ++i) {
    const std::string key = rtsp::DeadlineKeys::keys[i].name;
    compare("[srtp.rtsp] " + key, [i](const RtspOptions& all) { return all.deadlines.all.values[i]; });
    for (std::size_t at = 0; at < std::min(running.upstream.size(), wanted.upstream.size()); ++at) {
      compare("[[srtp.rtsp.server]] " + key,
              [i, at](const RtspOptions& all) { return all.deadlines.servers[at].values[i]; });
    }
  }
  if (lines.empty() && !(running == wanted)) lines = "[srtp.rtsp] cannot change while the gateway runs: restart it";
  return lines;
}

}  // namespace sluice::function
