#include "function/srtp/stream_settings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>
#include <utility>

#include "base/option.h"
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

// Of a stream that says no burst: what comes in this part of a second, and two of the largest frames at least.
constexpr std::uint64_t bursts_a_second = 10;
// RTCP's part of a stream's rate (RFC 3550 section 6.2), where it has a 5-tuple of its own.
constexpr std::uint64_t rtcp_part = 20;
constexpr std::int64_t highest_rate = 1'000'000'000'000;
constexpr std::int64_t smallest_packet = 64;
constexpr std::int64_t highest_margin = 1000;

// What is read of a [[srtp.stream]], but for its ends.
struct Reading {
  const engine::PortTable* ports = nullptr;
  std::uint32_t largest_frame = 0;
  MediaStreamSettings stream = {};
  std::uint32_t ssrc = 0, counter = 0;
  std::uint64_t bits = 1, burst = 0;
  std::uint32_t largest = 0;
  bool measured = false;
  MeasureSettings measure = {};
};
using StreamOption = Option<Reading>;

// Values are never shown: there are keys among them. What a key means without a value, `usual` says.
StreamOption stream_option(std::string key, std::string values, std::string usual, std::string text,
                           std::function<void(Settings& section, Reading&)> read) {
  return StreamOption{std::move(key), std::move(text), std::move(read), {}}
      .takes(std::move(values))
      .by_default(std::move(usual))
      .reloadable();
}

void read_action(Settings& settings, Reading& to) {
  if (!settings.has("action")) settings.error("action", "is missing: \"protect\" or \"unprotect\"");
  to.stream.direction = settings.choice("action", "protect", {"protect", "unprotect"}) == "protect"
                            ? srtp::Direction::protect
                            : srtp::Direction::unprotect;
}

const std::vector<StreamOption>& key_settings() {
  const auto number = [](std::uint32_t Reading::*member, const char* key) {
    return [=](Settings& settings, Reading& to) {
      to.*member = static_cast<std::uint32_t>(settings.integer(key, 0, 0, 0xffffffff));
    };
  };
  static const std::vector<StreamOption> all = {
      stream_option("action", "`\"protect\"`, `\"unprotect\"`", option::required,
                    "`\"protect\"`: what comes is RTP and RTCP, what leaves is SRTP and SRTCP; `\"unprotect\"`: the "
                    "other way round",
                    read_action),
      stream_option(
          "crypto", "`\"1 AES_CM_128_HMAC_SHA1_80 inline:KEY\"`, KEY in base64", option::required,
          "suite, master key and salt as in a line `a=crypto` of SDP (RFC 4568). Behind it: `\\|2^20` (lifetime), "
          "`\\|1:4` (MKI 1 in four bytes), further keys (`;inline:...`), `KDR=`, and `WSH=`, the replay "
          "window: otherwise 128, 64 to 16384, rounded up to a power of two. `a=crypto:` may stand in front as "
          "it does in SDP, and blanks and line ends around. All suites of [srtp.md](srtp.md#what-there-is). "
          "Two streams that protect want [a key each](srtp.md#keys-that-streams-share)",
          [](Settings& settings, Reading& to) { read_crypto(settings, to.stream); }),
      stream_option(
          "max_ssrcs", option::Range{1, most_ssrcs, "SSRCs"}.text(), "`16`",
          "SSRCs that the stream may have, RTP's and RTCP's apart; none gives way to another, for its index would "
          "begin anew under the same key if it came back",
          [](Settings& settings, Reading& to) {
            to.stream.max_ssrcs = static_cast<std::uint32_t>(settings.integer("max_ssrcs", 16, 1, most_ssrcs));
          }),
      stream_option("others", "`\"drop\"`, `\"pass\"`", "`\"drop\"`",
                    "what becomes of the 5-tuple's packets that are not of RTP's version 2, such as STUN and DTLS; "
                    "`\"pass\"`: as they came",
                    [](Settings& settings, Reading& to) {
                      to.stream.passes_others = settings.choice("others", "drop", {"drop", "pass"}) == "pass";
                    }),
      stream_option("ssrc", "0 to 4294967295", "none",
                    "the SSRC whose rollover counter begins with `roc`; both or none. Others begin with 0",
                    number(&Reading::ssrc, "ssrc")),
      stream_option("roc", "0 to 4294967295", "none", "the rollover counter with which RTP of `ssrc` begins",
                    number(&Reading::counter, "roc"))};
  return all;
}

void check_rollover(Settings& settings, Reading& to) {
  const bool given = settings.has("roc");
  if (given != settings.has("ssrc")) {
    settings.error("", "ssrc and roc go together: the rollover counter with which this SSRC begins");
  } else if (given) {
    to.stream.rollover = {to.ssrc, to.counter};
  }
}

const std::vector<StreamOption>& rate_settings() {
  static const std::vector<StreamOption> all = {
      stream_option("rate", option::Range{1, highest_rate, "bits a second"}.text(), "any",
                    "what the stream may bring, in whole frames. What is beyond is dropped, counted as `srtp_policed`. "
                    "RTCP on ports of its own may bring a twentieth of the rate besides",
                    [](Settings& settings, Reading& to) {
                      to.bits = static_cast<std::uint64_t>(settings.integer("rate", 1, 1, highest_rate));
                    }),
      stream_option("burst", "bytes, two of the largest frames or more", "a tenth of a second of `rate`",
                    "how many bytes may come at once; goes with `rate`",
                    [](Settings& settings, Reading& to) {
                      const std::int64_t least = std::int64_t{2} * to.largest_frame;
                      to.burst = static_cast<std::uint64_t>(settings.integer("burst", 0, least, largest_stream_burst));
                    }),
      stream_option(
          "packet_bytes", "64 bytes to the largest frame", "the largest frame that the MTU allows",
          "bytes of the largest frame that may come; larger ones are dropped, counted as `srtp_policed`, so it goes "
          "with `rate`. Where streams are [admitted](real-time.md#which-streams-fit) it may not exceed what "
          "the device was measured with",
          [](Settings& settings, Reading& to) {
            to.largest =
                static_cast<std::uint32_t>(settings.integer("packet_bytes", 0, smallest_packet, to.largest_frame));
          })};
  return all;
}

void check_rate(Settings& settings, Reading& to) {
  if (settings.has("rate")) {
    to.stream.rate = {to.bits, stream_burst(to.bits, to.burst, to.largest_frame), to.largest};
    return;
  }
  for (const char* key : {"burst", "packet_bytes", "measured"}) {
    if (settings.has(key)) settings.error(key, "there is no rate: say how many bits a second the stream may bring");
  }
}

const std::vector<StreamOption>& measure_settings() {
  static const std::vector<StreamOption> all = {
      stream_option("deadline", "time above 0", "the engine's",
                    "what the stream is promised where streams are [admitted](real-time.md#which-streams-fit): it has "
                    "to be above the bound of the configuration. Frames are late by `[engine] deadline` all the same",
                    [](Settings& settings, Reading& to) { to.stream.deadline = settings.duration("deadline", {}); }),
      stream_option(
          "measured", "`true`, `false`", "`false`",
          "`rate` is what the stream may bring until it has been [measured](real-time.md#measured-streams), "
          "and the most that it may have later; then it has what it was found to bring and `rate_margin`, and "
          "other streams the difference",
          [](Settings& settings, Reading& to) { to.measured = settings.boolean("measured", false); }),
      stream_option("measure_time", "time above 0", "`\"10s\"`",
                    "of one that is measured: for so long packets must have come",
                    [](Settings& settings, Reading& to) {
                      to.measure.time = settings.duration("measure_time", to.measure.time);
                    }),
      stream_option(
          "rate_margin", option::Range{0, highest_margin, "per cent"}.text(), "`25`",
          "of one that is measured: what it may bring beyond the fullest window", [](Settings& settings, Reading& to) {
            to.measure.margin =
                static_cast<std::uint32_t>(settings.integer("rate_margin", to.measure.margin, 0, highest_margin));
          })};
  return all;
}

void check_measuring(Settings& settings, Reading& to) {
  if (!to.measured) {
    for (const char* key : {"measure_time", "rate_margin"}) {
      if (settings.has(key))
        settings.error(key, "is for a stream that is measured: set measured = true beside its rate");
    }
  } else if (to.stream.rate) {
    to.stream.measure = std::move(to.measure);
  }
}

void read_ingress(Settings& settings, Reading& to) {
  if (!settings.has("ingress")) {
    (void)settings.is("ingress", "");  // so that the message about an unknown key names it
    return;
  }
  const engine::PortTable& ports = *to.ports;
  to.stream.ingress = ports.index(settings.text("ingress", ""));
  if (to.stream.ingress) return;
  std::string names;
  for (std::size_t port = 0; port < ports.size(); ++port) names += (port == 0 ? "" : ", ") + ports[port].name;
  settings.error("ingress", "is no [[port]]'s name; there are " + names);
}

const std::vector<StreamOption>& ingress_settings() {
  static const std::vector<StreamOption> all = {stream_option(
      "ingress", "name of a `[[port]]`", "any",
      "port by which the stream's packets, RTCP's too, have to come; by another they are dropped, counted as "
      "`srtp_wrong_port`. For what is to be protected: [nothing else](srtp.md#who-gets-a-stream) keeps "
      "hosts behind other ports from bringing in packets with the sender's address",
      read_ingress)};
  return all;
}

// The groups, in the order in which they are read.
std::array<const std::vector<StreamOption>*, 4> stream_settings() {
  return {&key_settings(), &rate_settings(), &measure_settings(), &ingress_settings()};
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

// A stream's ends as written. Ports of RTCP are read where there is one of them.
struct Ends {
  packet::IpAddress source, destination;
  std::uint16_t source_port = 0, destination_port = 0, rtcp_source_port = 0, rtcp_destination_port = 0;
};

Option<Ends> address_option(const char* key, packet::IpAddress Ends::*member, AddressUse use, std::string text) {
  return Option<Ends>{
      key, std::move(text), [=](Settings& settings, Ends& to) { to.*member = address_of(settings, key, use); }, {}}
      .takes("IPv4 or IPv6 address")
      .by_default(option::required)
      .reloadable();
}

Option<Ends> port_option(const char* key, std::uint16_t Ends::*member, const char* usual, std::string text) {
  return Option<Ends>{
      key, std::move(text), [=](Settings& settings, Ends& to) { to.*member = port_of(settings, key); }, {}}
      .takes("1 to 65535")
      .by_default(usual)
      .reloadable();
}

const std::vector<Option<Ends>>& address_settings() {
  static const std::vector<Option<Ends>> all = {
      address_option(
          "source", &Ends::source, AddressUse::source,
          "sender of its packets, as it stands in them: one host's; no IPv4-mapped, unspecified or loopback one"),
      address_option(
          "destination", &Ends::destination, AddressUse::destination,
          "receiver, likewise, of the family of `source`. May be multicast in a chain that ends in `bridge`; a router "
          "leaves what goes there to the host, so that it is refused")};
  return all;
}

const std::vector<Option<Ends>>& port_settings() {
  static const std::vector<Option<Ends>> all = {
      port_option("source_port", &Ends::source_port, option::required,
                  "UDP port of RTP, and of RTCP where it has none of its own (RFC 5761). The way back is a stream of "
                  "its own"),
      port_option("destination_port", &Ends::destination_port, option::required, "likewise of the destination")};
  return all;
}

const std::vector<Option<Ends>>& rtcp_settings() {
  static const std::vector<Option<Ends>> all = {
      port_option("rtcp_source_port", &Ends::rtcp_source_port, "none", "port of RTCP; with the next one or not at all"),
      port_option("rtcp_destination_port", &Ends::rtcp_destination_port, "none", "likewise of the destination")};
  return all;
}

// So that the message about an unknown key names all that there are, whether they are here or not.
template <class T>
void know(Settings& settings, const std::vector<Option<T>>& options) {
  for (const Option<T>& option : options) {
    if (!settings.has(option.key)) (void)settings.is(option.key, "");
  }
}

// One for each 5-tuple: RTCP may have ports of its own.
void read_ends(Settings& settings, const MediaStreamSettings& stream, Read& read) {
  std::vector<MediaStreamSettings>& streams = read.streams;
  Ends ends;
  option::read(address_settings(), settings, ends);
  if (ends.source.family != ends.destination.family && !ends.source.empty() && !ends.destination.empty()) {
    settings.error("destination", "is of another address family than source");
  }
  option::read(port_settings(), settings, ends);
  const auto add = [&](Carries carries, std::uint16_t from, std::uint16_t to) {
    MediaStreamSettings one = stream;
    one.carries = carries;
    one.key = media_key(ends.source, from, ends.destination, to);
    one.name = name_of(ends.source, from, ends.destination, to);
    if (carries == Carries::rtcp) one.rollover.reset();
    if (carries == Carries::rtcp && one.rate) one.rate->bits = std::max<std::uint64_t>(one.rate->bits / rtcp_part, 1);
    if (carries == Carries::rtcp && one.measure) one.measure->follows = streams.back().key;
    if (!read.keys.insert(one.key).second) settings.error("", one.name + " is in the table already");
    streams.push_back(std::move(one));
  };
  const bool own_rtcp = settings.has("rtcp_source_port") || settings.has("rtcp_destination_port");
  add(own_rtcp ? Carries::rtp : Carries::both, ends.source_port, ends.destination_port);
  if (own_rtcp) {
    option::read(rtcp_settings(), settings, ends);
    add(Carries::rtcp, ends.rtcp_source_port, ends.rtcp_destination_port);
  } else {
    know(settings, rtcp_settings());
  }
  if (!stream.measure) return;
  MediaStreamSettings& last = streams.back();
  MediaStreamSettings& first = own_rtcp ? streams[streams.size() - 2] : last;
  first.measure->share = own_rtcp ? first.name + joint + last.name : first.name;
  last.measure->share = first.measure->share;
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
  Reading reading{&ports, largest_frame};
  reading.stream.place = settings.place("");
  option::read(key_settings(), settings, reading);
  check_rollover(settings, reading);
  option::read(rate_settings(), settings, reading);
  check_rate(settings, reading);
  option::read(measure_settings(), settings, reading);
  check_measuring(settings, reading);
  option::read(ingress_settings(), settings, reading);
  read_ends(settings, reading.stream, read);
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

OptionSection stream_section() {
  OptionSection all{"[[srtp.stream]]",
                    "A stream. A file is read up to 64 MB, which are some 300,000 of them ([what 100,000 "
                    "cost](srtp.md#many-streams-in-one-file)); more come by `ctl srtp add` and the [API](api.md).",
                    {}};
  const auto add = [&](const OptionSection& some) {
    all.options.insert(all.options.end(), some.options.begin(), some.options.end());
  };
  for (const auto* options : {&address_settings(), &port_settings(), &rtcp_settings()}) {
    add(option::section("", *options));
  }
  for (const std::vector<StreamOption>* options : stream_settings()) add(option::section("", *options));
  return all;
}

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
    for (const std::vector<StreamOption>* options : stream_settings()) {
      for (const StreamOption& option : *options) (void)settings.is(option.key, "");
    }
    settings.finish();
  });
}

}  // namespace sluice::function
