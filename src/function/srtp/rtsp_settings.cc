#include "function/srtp/rtsp_settings.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "base/option.h"
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
  const std::vector<std::int64_t> ports = settings.integers("ports");
  if (!settings.has("ports")) return;
  options.ports.clear();
  for (const std::int64_t port : ports) {
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

void read_server_address(Settings& settings, RtspServer& server) {
  const std::string text = settings.required_text("address");
  const auto address = packet::IpAddress::parse(text);
  if (address) {
    server.address = *address;
    if (const std::string why = why_in_no_packet(*address, AddressUse::host); !why.empty())
      settings.error("address", address->str() + " " + why);
  } else if (!text.empty() || settings.is("address", "")) {
    settings.error("address", address.error().message);
  }
}

void read_path(Settings& settings, RtspServer& server) {
  server.path = settings.text("path", "");
  if (!server.path.empty() && !server.path.starts_with('/'))
    settings.error("path", "give what paths begin with, such as \"/door\"");
  while (server.path.ends_with('/')) server.path.pop_back();
}

const std::vector<Option<RtspServer>>& server_settings() {
  static const std::vector<Option<RtspServer>> all = {
      Option<RtspServer>{"address", "the server's", read_server_address,
                         [](const RtspServer& of) { return option::literal(of.address.str()); }}
          .takes("IPv4 or IPv6 address")
          .by_default(option::required),
      option::number("port", &RtspServer::port, {1, 65535}, "its RTSP port"),
      option::text("name", &RtspServer::name,
                   "the host in the client's URI, without its port and without case, an IPv6 address with brackets or "
                   "without: for names that lead to the proxy")
          .by_default("any"),
      Option<RtspServer>{"path",
                         "what the URI's path begins with: `\"/yard\"` is met by `/yard`, `/yard/a` and `/yard?b`, and "
                         "not by `/yards`. The server is asked for the whole path",
                         read_path, [](const RtspServer& of) { return option::literal(of.path); }}
          .takes("path")
          .by_default("any")};
  return all;
}

RtspServer read_server(Settings& settings) {
  RtspServer server;
  option::read(server_settings(), settings, server);
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
Option<RtspOptions> timeout(const char* key, std::chrono::nanoseconds RtspOptions::*member, std::string text) {
  return Option<RtspOptions>{key, std::move(text),
                             [=](Settings& settings, RtspOptions& to) {
                               const std::chrono::nanoseconds given = settings.duration(key, to.*member);
                               if (given < least_timeout || given > most_timeout) {
                                 settings.error(key, "allowed is \"1s\" to \"86400s\"");
                               } else {
                                 to.*member = given;
                               }
                             },
                             [=](const RtspOptions& of) { return option::literal(duration_text(of.*member)); }}
      .takes("`\"1s\"` to `\"86400s\"`");
}

template <class List>
std::string shown_list(const List& list) {
  std::vector<std::string> texts;
  for (const auto& one : list) texts.push_back(one.str());
  return option::list_literal(texts);
}

std::string shown_ports(const RtspOptions& of) {
  std::string all;
  for (const std::uint16_t port : of.ports) all += (all.empty() ? "" : ", ") + std::to_string(port);
  return "[" + all + "]";
}

std::string shown_media_ports(const RtspOptions& of) {
  return option::literal(std::to_string(of.first_media_port) + "-" + std::to_string(of.last_media_port));
}

void read_per_client(Settings& settings, RtspOptions& to) {
  to.max_connections_per_client = static_cast<std::uint32_t>(settings.integer(
      "max_connections_per_client", (to.max_connections + 3) / 4, 1, static_cast<std::int64_t>(to.max_connections)));
}

using Rtsp = Option<RtspOptions>;

std::vector<Rtsp> flow_settings() {
  return {
      Rtsp{"servers",
           "prefixes of the servers that speak in the clear, and of nobody else where `unprotected` is `\"drop\"`; "
           "none of what "
           "no host has (multicast, broadcast, loopback, `0.0.0.0`, `::`)",
           read_servers, [](const RtspOptions& of) { return shown_list(of.servers); }}
          .takes("list of up to " + std::to_string(most_servers) + " prefixes")
          .by_default("(required, or `listen`)"),
      Rtsp{"ports", "their RTSP ports, and those at which the explicit mode listens", read_ports, shown_ports}.takes(
          "list of up to " + std::to_string(most_ports) + " ports"),
      Rtsp{"listen",
           "addresses of the host that clients of the explicit mode open: of one host each, not `0.0.0.0`, multicast "
           "or loopback. They need not be there at the start",
           read_listen, [](const RtspOptions& of) { return shown_list(of.listen); }}
          .takes("list of up to " + std::to_string(most_listen) + " addresses"),
      Rtsp{
          "media_ports",
          "of the explicit mode: the proxy's UDP ports, two for each medium. Nothing else on the host may use them, so "
          "keep them out of `net.ipv4.ip_local_port_range`, or in `net.ipv4.ip_local_reserved_ports`: `check` and the "
          "log say where they are not",
          read_media_ports, shown_media_ports}
          .takes("range within 1024 to 65535 that begins with an even port"),
      Rtsp{"suite",
           "what media are protected with. `_32` is for clients of SDES alone, and ffmpeg knows no other suites than "
           "`AES_CM_128_HMAC_SHA1_80` and `_32`: it plays what it cannot decrypt ([keys](rtsp.md#keys)), so that "
           "`check` and the log warn of the others",
           read_suite, [](const RtspOptions& of) { return option::literal(srtp::facts(of.suite).name); }}
          .takes("name of a [suite](srtp.md#what-there-is)"),
      option::flag("accept_plain_profile", &RtspOptions::accept_plain_profile,
                   "a SETUP for RTP/AVP of a medium that was offered as RTP/SAVP, as ffmpeg sends it; no: 461"),
      option::flag("accept_clear_rtcp", &RtspOptions::accept_clear_rtcp,
                   "RTCP in clear of a client that named no key; no: it is dropped, though its client counts as alive"),
      option::word("unprotected", &RtspOptions::drops_unprotected, {{"drop", true}, {"pass", false}},
                   "UDP from `servers`, and from those of `[[srtp.rtsp.server]]`, between ports of 1024 and above that "
                   "belongs to no stream. `\"drop\"`: counted as `srtp_unprotected`, so that no media [goes on in "
                   "clear](rtsp.md#the-proxy-in-a-gateway) whose stream is not known. RTSP to a `[[srtp.rtsp.server]]` "
                   "[past the proxy](rtsp.md#explicit-mode) is dropped likewise, as `srtp_rtsp_past_proxy`. With a "
                   "prefix of all addresses it has to be there"),
      option::flag(
          "check_ingress", &RtspOptions::check_ingress,
          "media and RTCP have to come by the port of the gateway that their side's RTSP goes by "
          "([how](rtsp.md#the-proxy-in-a-gateway)), else `srtp_wrong_port`; no: for hosts whose packets come by "
          "others than the host's routes to them lead by")};
}

std::vector<Rtsp> limit_settings() {
  return {
      option::number("max_connections", &RtspOptions::max_connections, {1, 1 << 20, "connections"},
                     "connections of clients; each takes two open files. The start raises its limit (`ulimit -n`) to "
                     "these and 256, "
                     "with CAP_SYS_RESOURCE beyond the hard one; `check` and the log say where that is not enough"),
      Rtsp{"max_connections_per_client",
           "connections of one client address, of IPv6 of one /64; more are closed at once, counted as "
           "`rtsp_too_many_of_client`. "
           "For clients behind one NAT raise it",
           read_per_client, [](const RtspOptions& of) { return std::to_string(of.max_connections_per_client); }}
          .takes("1 to `max_connections`")
          .by_default("a quarter of `max_connections`"),
      option::number("max_streams", &RtspOptions::max_streams, {1, 1024, "media"},
                     "media of one connection; more: 453"),
      option::number(
          "max_ssrcs", &RtspOptions::max_ssrcs, {1, most_ssrcs, "SSRCs"},
          "SSRCs that a medium's server may have had since the SETUP, RTP's and RTCP's apart: with each change of "
          "it one more. What comes under another is `srtp_no_ssrc`, until the client sets the medium up anew. "
          "80 bytes of memory each"),
      option::number("max_rate", &RtspOptions::max_rate, {0, most_rate, "bits a second"},
                     "what all media together may bring, 0: no limit; more: 453. With a `[profile]` a medium must fit "
                     "[there](real-time.md#which-streams-fit), too"),
      option::number("default_rate", &RtspOptions::default_rate, {0, most_rate, "bits a second"},
                     "what a medium counts whose description has no `b=`, `max_rate` at most. With a `[profile]` one "
                     "without `b=` is refused (453) where this is 0; with `max_rate` alone it counts as nothing then. "
                     "`check` and the log say both"),
      option::flag(
          "measured", &RtspOptions::measured,
          "media without `b=` are [measured](real-time.md#measured-streams) where they are policed, as with "
          "`rate_margin`: `default_rate`, which has to be there, and `rate_margin` are what they may bring "
          "until packets have come for `measure_time`, and the most that they may have later. `max_rate` counts "
          "them as `default_rate` all the same"),
      option::duration("measure_time", &RtspOptions::measure_time, "",
                       "time for which packets must have come of media that are measured"),
      option::number("rate_margin", &RtspOptions::rate_margin, {0, 1000, "per cent"},
                     "what a medium may bring beyond its rate, where media are "
                     "[policed](rtsp.md#the-proxy-in-a-gateway): with `max_rate` or a `[profile]` that admits"),
      option::duration("burst_time", &RtspOptions::burst_time, "",
                       "how much may come at once, as time of that rate; two of the largest frames at least")};
}

std::vector<Rtsp> connection_settings() {
  return {
      timeout(
          "session_timeout", &RtspOptions::session_timeout,
          "time of a session when the server names none, or `timeout=0`; looked at once a second, as the next three"),
      timeout("connect_timeout", &RtspOptions::connect_timeout, "time for the server"),
      timeout("answer_timeout", &RtspOptions::answer_timeout,
              "time for the server to answer each request, in whole seconds: then the client gets "
              "[504](rtsp.md#what-is-refused)"),
      timeout("idle_timeout", &RtspOptions::idle_timeout, "time of a connection without a stream"),
      option::number("table", &RtspOptions::table, {256, 0x7fffffff},
                     "the kernel's routing table for local delivery, of this Sluice alone in its network namespace"),
      option::number(
          "priority", &RtspOptions::priority, {1, 32765},
          "priority of the rules that lead to `table`: [below all rules of others](rtsp.md#rules-of-the-kernel) that "
          "take RTSP")};
}

const std::vector<Rtsp>& rtsp_settings() {
  static const std::vector<Rtsp> all = [] {
    std::vector<Rtsp> settings = flow_settings();
    for (std::vector<Rtsp> part : {limit_settings(), connection_settings()}) {
      std::ranges::move(part, std::back_inserter(settings));
    }
    return settings;
  }();
  return all;
}

// They are admission's, which reads them (engine/stream_admission.h).
void add_deadlines(OptionSection& section, const std::string& usual) {
  const std::string what =
      "where streams are [admitted](real-time.md#which-streams-fit): above the bound of the configuration. Frames are "
      "late by `[engine] deadline` all the same";
  const std::pair<const char*, std::string> keys[] = {
      {"deadline", "what media are promised " + what +
                       ". The most particular one holds: that of a server before that "
                       "of `[srtp.rtsp]`, that of a kind before this"},
      {"audio_deadline", "what media are promised that their description's `m=` calls so"},
      {"video_deadline", "likewise"},
      {"application_deadline", "likewise"}};
  for (const auto& [key, text] : keys) section.options.push_back({key, "time above 0", usual, false, text});
}

}  // namespace

std::vector<OptionSection> rtsp_sections() {
  std::vector<OptionSection> sections = {
      option::section("[srtp.rtsp]", rtsp_settings(),
                      "Makes the gateway an RTSP proxy: with `servers` a [transparent](rtsp.md#the-proxy-in-a-gateway) "
                      "one, with `listen` and `[[srtp.rtsp.server]]` an [explicit](rtsp.md#explicit-mode) one, whose "
                      "address clients open, or both. Every port needs a twin."),
      option::section(
          "[[srtp.rtsp.server]]", server_settings(),
          "A server of the explicit mode; at least one for each family in `listen`. A client gets the first "
          "one that the URI of its connection's first request meets, of the family that it came by; where "
          "there is none, 404. One that gets no connection, because one above it takes all that it would, is "
          "a mistake.")};
  add_deadlines(sections[0], "the engine's");
  add_deadlines(sections[1], "that of `[srtp.rtsp]`");
  return sections;
}

RtspOptions read_rtsp(Settings settings, const engine::PortTable& ports) {
  RtspOptions options;
  options.deadlines = rtsp::read_medium_deadlines(settings);  // before the servers' sections are finished
  option::read(rtsp_settings(), settings, options);
  read_upstream(settings, options);
  if (options.max_rate != 0 && options.default_rate > options.max_rate) {
    settings.error("default_rate", "exceeds max_rate, " + std::to_string(options.max_rate) +
                                       ": no medium whose description has no b= would ever be let in");
  }
  if (options.measured && options.default_rate == 0)
    settings.error("measured", "there is no default_rate: say what media without b= may bring until they are measured");
  if (!options.measured && settings.has("measure_time"))
    settings.error("measure_time", "is for media that are measured: set measured = true");
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
  std::string lines = option::fixed("[srtp.rtsp]", rtsp_settings(), running, wanted);
  if (running.upstream != wanted.upstream) {
    lines += (lines.empty() ? "" : "\n") +
             std::string("[[srtp.rtsp.server]] cannot change while the gateway runs: restart it");
  }
  const auto compare = [&](const std::string& key, const auto& member) {
    if (member(running) == member(wanted)) return;
    lines += (lines.empty() ? "" : "\n") + key + " cannot change while the gateway runs: restart it";
  };
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
