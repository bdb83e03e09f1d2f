#include "function/srtp/stream_settings.h"

#include <algorithm>
#include <initializer_list>
#include <unordered_set>
#include <utility>

#include "function/srtp/address_settings.h"
#include "media/secret.h"
#include "media/text.h"

namespace sluice::function {
namespace {

constexpr std::int64_t most_ssrcs = 65536;

packet::IpAddress address_of(Settings& settings, const char* key, AddressUse use) {
  const std::string text = settings.required_text(key);
  const auto address = packet::IpAddress::parse(text);
  if (address) {
    if (const std::string why = why_in_no_packet(*address, use); !why.empty()) settings.error(key, why);
    return *address;
  }
  // Its own message shows the text, which may be a line that has run into a key.
  if (!text.empty() || settings.is(key, "")) settings.error(key, "is not an IPv4 or IPv6 address");
  return {};
}

std::uint16_t port_of(Settings& settings, const char* key) {
  if (!settings.has(key)) settings.error(key, "is missing: give a UDP port");
  return static_cast<std::uint16_t>(settings.integer(key, 1, 1, 65535));
}

std::string names_of_suites() {
  std::string names;
  for (const srtp::SuiteFacts& suite : srtp::suites) names += (names.empty() ? "" : ", ") + std::string(suite.name);
  return names;
}

// Why the value has no tag and known suite where they belong; empty: it has. Only then do messages of parse_crypto()
// name nothing that may be a key.
std::string why_no_crypto(std::string_view value) {
  constexpr std::string_view blanks = " \t", digits = "0123456789";
  constexpr std::size_t longest_tag = 9;
  std::string how = "give \"1 SUITE inline:KEY\", as in an a=crypto line of SDP; suites are " + names_of_suites();
  if (value.find_first_of("\r\n") != value.npos)
    return "has several lines: give the one a=crypto line that was agreed on";
  if (media::same_name(value.substr(0, 9), "key-mgmt:") || media::same_name(value.substr(0, 6), "mikey "))
    return "is MIKEY, which is read from RTSP alone: " + how;
  const auto suite_of = [&](std::string_view text) {
    return srtp::suite_named(text.substr(0, text.find_first_of(blanks))).has_value();
  };
  const std::size_t tag = std::min(value.find_first_not_of(digits), value.size());
  if (suite_of(value))
    return "begins with the suite: its tag, a number, belongs in front, such as \"1 SUITE inline:KEY\"";
  if (tag == 0 || tag == value.size() || blanks.find(value[tag]) == blanks.npos) return how;
  if (tag > longest_tag) return "its tag has more than nine digits";
  value.remove_prefix(tag);
  if (!suite_of(media::trim(value))) return "its suite is none that is supported: " + how;
  return "";
}

void read_crypto(Settings& settings, MediaStreamSettings& stream) {
  const media::WipedString line(settings.required_text("crypto"));
  if (line.text().empty() && !settings.is("crypto", "")) return;  // that has been said
  const std::string_view value = media::sdp::crypto_value(line.text());
  if (const std::string why = why_no_crypto(value); !why.empty()) {
    settings.error("crypto", why);
    return;
  }
  auto crypto = media::sdp::parse_crypto(value);
  if (crypto) {
    stream.crypto = std::move(*crypto);
  } else {
    settings.error("crypto", crypto.error().message);
  }
}

void read_rollover(Settings& settings, MediaStreamSettings& stream) {
  const bool given = settings.has("roc");
  const auto ssrc = settings.integer("ssrc", 0, 0, 0xffffffff);
  const auto counter = settings.integer("roc", 0, 0, 0xffffffff);
  if (given != settings.has("ssrc")) {
    settings.error("", "ssrc and roc go together: the rollover counter with which this SSRC begins");
  } else if (given) {
    stream.rollover = {static_cast<std::uint32_t>(ssrc), static_cast<std::uint32_t>(counter)};
  }
}

// Of a stream that says no burst: what comes in this part of a second, and two of the largest frames at least.
constexpr std::uint64_t bursts_a_second = 10;
// RTCP's part of a stream's rate (RFC 3550 section 6.2), where it has a 5-tuple of its own.
constexpr std::uint64_t rtcp_part = 20;
constexpr std::int64_t highest_rate = 1'000'000'000'000;
constexpr std::int64_t smallest_packet = 64;

void read_rate(Settings& settings, std::uint32_t largest_frame, MediaStreamSettings& stream) {
  const auto bits = static_cast<std::uint64_t>(settings.integer("rate", 1, 1, highest_rate));
  const auto least = std::uint64_t{2} * largest_frame;
  const auto burst =
      static_cast<std::uint64_t>(settings.integer("burst", 0, static_cast<std::int64_t>(least), largest_stream_burst));
  const auto largest = static_cast<std::uint32_t>(settings.integer("packet_bytes", 0, smallest_packet, largest_frame));
  if (settings.has("rate")) {
    stream.rate = {bits, stream_burst(bits, burst, largest_frame), largest};
  } else {
    for (const char* key : {"burst", "packet_bytes", "measured"}) {
      if (settings.has(key)) settings.error(key, "there is no rate: say how many bits a second the stream may bring");
    }
  }
  stream.deadline = settings.duration("deadline", {});
}

constexpr std::int64_t highest_margin = 1000;

void read_measuring(Settings& settings, MediaStreamSettings& stream) {
  MeasureSettings measure;
  const bool measured = settings.boolean("measured", false);
  measure.time = settings.duration("measure_time", measure.time);
  measure.margin = static_cast<std::uint32_t>(settings.integer("rate_margin", measure.margin, 0, highest_margin));
  if (!measured) {
    for (const char* key : {"measure_time", "rate_margin"}) {
      if (settings.has(key))
        settings.error(key, "is for a stream that is measured: set measured = true beside its rate");
    }
  } else if (stream.rate) {
    stream.measure = std::move(measure);
  }
}

void read_ingress(Settings& settings, const engine::PortTable& ports, MediaStreamSettings& stream) {
  if (!settings.has("ingress")) return;
  stream.ingress = ports.index(settings.text("ingress", ""));
  if (stream.ingress) return;
  std::string names;
  for (std::size_t port = 0; port < ports.size(); ++port) names += (port == 0 ? "" : ", ") + ports[port].name;
  settings.error("ingress", "is no [[port]]'s name; there are " + names);
}

std::string name_of(const packet::IpAddress& source, std::uint16_t source_port, const packet::IpAddress& destination,
                    std::uint16_t destination_port) {
  const auto end = [](const packet::IpAddress& address, std::uint16_t port) {
    return (address.family == 6 ? "[" + address.str() + "]" : address.str()) + ":" + std::to_string(port);
  };
  return end(source, source_port) + " -> " + end(destination, destination_port);
}

// Between the names of RTP and RTCP.
constexpr const char* joint = " and ";

// What has been read.
struct Read {
  std::vector<MediaStreamSettings> streams;
  std::unordered_set<MediaKey, MediaKeyHash> keys;  // theirs
};

// One for each 5-tuple: RTCP may have ports of its own.
void read_ends(Settings& settings, const MediaStreamSettings& stream, Read& read) {
  std::vector<MediaStreamSettings>& streams = read.streams;
  const packet::IpAddress source = address_of(settings, "source", AddressUse::source);
  const packet::IpAddress destination = address_of(settings, "destination", AddressUse::destination);
  if (source.family != destination.family && !source.empty() && !destination.empty()) {
    settings.error("destination", "is of another address family than source");
  }
  const std::uint16_t source_port = port_of(settings, "source_port");
  const std::uint16_t destination_port = port_of(settings, "destination_port");
  const auto add = [&](Carries carries, std::uint16_t from, std::uint16_t to) {
    MediaStreamSettings one = stream;
    one.carries = carries;
    one.key = media_key(source, from, destination, to);
    one.name = name_of(source, from, destination, to);
    if (carries == Carries::rtcp) one.rollover.reset();
    if (carries == Carries::rtcp && one.rate) one.rate->bits = std::max<std::uint64_t>(one.rate->bits / rtcp_part, 1);
    if (carries == Carries::rtcp && one.measure) one.measure->follows = streams.back().key;
    if (!read.keys.insert(one.key).second) settings.error("", one.name + " is in the table already");
    streams.push_back(std::move(one));
  };
  const bool own_rtcp = settings.has("rtcp_source_port") || settings.has("rtcp_destination_port");
  add(own_rtcp ? Carries::rtp : Carries::both, source_port, destination_port);
  if (own_rtcp) {
    const std::uint16_t from = port_of(settings, "rtcp_source_port");
    add(Carries::rtcp, from, port_of(settings, "rtcp_destination_port"));
  }
  if (!stream.measure) return;
  MediaStreamSettings& last = streams.back();
  MediaStreamSettings& first = own_rtcp ? streams[streams.size() - 2] : last;
  first.measure->share = own_rtcp ? first.name + joint + last.name : first.name;
  last.measure->share = first.measure->share;
}

// So that an unknown key is told of all that there are, whether they are here or not.
void know(Settings& settings, std::initializer_list<const char*> keys) {
  for (const char* const key : keys) {
    if (!settings.has(key)) (void)settings.is(key, "");
  }
}

}  // namespace

std::uint64_t stream_burst(std::uint64_t bits, std::uint64_t given, std::uint32_t largest_frame) {
  return given != 0 ? given : std::max(bits / 8 / bursts_a_second, std::uint64_t{2} * largest_frame);
}

std::string share_of(Settings& settings) {
  if (!settings.has("rate") || !settings.boolean("measured", false)) return {};
  const auto address = [&](const char* key) {
    return packet::IpAddress::parse(settings.text(key, "")).value_or(packet::IpAddress());
  };
  const auto port = [&](const char* key) { return static_cast<std::uint16_t>(settings.integer(key, 1, 1, 65535)); };
  const packet::IpAddress source = address("source"), destination = address("destination");
  std::string share = name_of(source, port("source_port"), destination, port("destination_port"));
  if (!settings.has("rtcp_source_port")) return share;
  return share + joint + name_of(source, port("rtcp_source_port"), destination, port("rtcp_destination_port"));
}

namespace {

void read_stream(Settings& settings, std::uint32_t largest_frame, const engine::PortTable& ports, Read& read) {
  MediaStreamSettings stream;
  stream.place = settings.place("");
  if (!settings.has("action")) settings.error("action", "is missing: \"protect\" or \"unprotect\"");
  stream.direction = settings.choice("action", "protect", {"protect", "unprotect"}) == "protect"
                         ? srtp::Direction::protect
                         : srtp::Direction::unprotect;
  read_crypto(settings, stream);
  stream.max_ssrcs = static_cast<std::uint32_t>(settings.integer("max_ssrcs", 16, 1, most_ssrcs));
  stream.passes_others = settings.choice("others", "drop", {"drop", "pass"}) == "pass";
  read_rollover(settings, stream);
  read_rate(settings, largest_frame, stream);
  read_measuring(settings, stream);
  read_ingress(settings, ports, stream);

  read_ends(settings, stream, read);
  know(settings, {"ingress", "rtcp_source_port", "rtcp_destination_port"});
  settings.finish();
}

// What a reader makes of a text, or its mistakes, a line each.
template <typename Reader>
Expected<std::vector<MediaStreamSettings>> read_text(std::string_view text, const std::string& what,
                                                     const Reader& reader) {
  Diagnostics diagnostics;
  auto settings = Settings::from_text(text, what, diagnostics);
  if (!settings) return make_error(what + " is no TOML, which is all that can be said without showing it");
  settings->hide_values();
  Read read;
  if (settings->has("srtp")) {
    Settings srtp = settings->section("srtp");
    std::vector<Settings> sections = srtp.sections("stream");
    if (sections.size() != 1)
      settings->error("srtp", "give the keys of one stream, with [[srtp.stream]] in front or without");
    for (Settings& section : sections) reader(section, read);
    srtp.finish();
    settings->finish();
  } else {
    reader(*settings, read);
  }
  for (MediaStreamSettings& stream : read.streams) stream.place.clear();  // a line of no file
  if (diagnostics.ok()) return std::move(read.streams);
  std::string mistakes;
  for (const std::string& line : diagnostics.lines) mistakes += (mistakes.empty() ? "" : "\n") + line;
  return make_error(mistakes);
}

}  // namespace

std::vector<MediaStreamSettings> read_streams(Settings& srtp, std::uint32_t largest_frame,
                                              const engine::PortTable& ports) {
  Read read;
  for (Settings& stream : srtp.sections("stream")) read_stream(stream, largest_frame, ports, read);
  return std::move(read.streams);
}

Expected<std::vector<MediaStreamSettings>> read_stream_text(std::string_view text, const std::string& what,
                                                            std::uint32_t largest_frame,
                                                            const engine::PortTable& ports) {
  return read_text(text, what,
                   [&](Settings& settings, Read& read) { read_stream(settings, largest_frame, ports, read); });
}

Expected<std::vector<MediaStreamSettings>> read_stream_ends(std::string_view text, const std::string& what) {
  return read_text(text, what, [](Settings& settings, Read& read) {
    read_ends(settings, {}, read);
    // What else read_stream() knows says nothing about which one it is.
    for (const char* const key :
         {"action", "crypto", "max_ssrcs", "others", "ssrc", "roc", "rate", "burst", "packet_bytes", "measured",
          "measure_time", "rate_margin", "deadline", "ingress", "rtcp_source_port", "rtcp_destination_port"}) {
      (void)settings.is(key, "");
    }
    settings.finish();
  });
}

}  // namespace sluice::function
