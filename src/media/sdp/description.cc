#include "media/sdp/description.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/quote.h"
#include "media/text.h"

namespace sluice::media::sdp {

namespace {

constexpr std::array<std::string_view, 4> profile_names = {"RTP/AVP", "RTP/AVPF", "RTP/SAVP", "RTP/SAVPF"};

// The value of "a=NAME" or "a=NAME:VALUE".
std::optional<std::string_view> attribute_value(const Line& line, std::string_view name) {
  if (line.type() != 'a') {
    return std::nullopt;
  }
  std::string_view value = line.value();
  if (value == name) {
    return std::string_view{};
  }
  if (value.size() > name.size() && value.starts_with(name) && value[name.size()] == ':') {
    return value.substr(name.size() + 1);
  }
  return std::nullopt;
}

// The first line, which CR, LF or both end; `text` becomes what follows.
Line take_line(std::string_view& text) {
  const std::size_t at = text.find_first_of("\r\n");
  if (at == std::string_view::npos) {
    Line line{SecretText(text), ""};
    text = {};
    return line;
  }
  Line line{SecretText(text.substr(0, at)), text[at] == '\n' ? "\n" : "\r\n"};
  text.remove_prefix(at + (text.substr(at).starts_with("\r\n") ? 2 : 1));
  return line;
}

std::string at_line(std::size_t line, const std::string& what) {
  return "line " + std::to_string(line) + ": " + what;
}

tl::unexpected<Error> wrong(std::size_t line, const std::string& what) {
  return make_error(at_line(line, what));
}

// The fields of "m=kind port[/count] protocol formats".
struct MediaFields {
  std::string_view kind, port, protocol, formats;
};

std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const std::size_t at = std::min(text.size(), text.find_first_of(" \t"));
  const std::string_view word = text.substr(0, at);
  text = trim(text.substr(at));
  return word;
}

MediaFields fields_of(std::string_view value) {
  MediaFields fields;
  fields.kind = take_word(value);
  fields.port = take_word(value);
  fields.protocol = take_word(value);
  fields.formats = value;
  return fields;
}

// Without what some servers put in front of the text or behind it.
std::string_view without_frame(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) {
    text.remove_prefix(byte_order_mark.size());
  }
  return text.substr(0, text.find('\0'));
}

// Whether blanks in the value are its writer's own.
bool is_free_text(char type) {
  return std::string_view("siuep").find(type) != std::string_view::npos;
}

// "x=..." of a line in any form that a liberal reader takes for it; nothing: it has no type.
std::optional<SecretText> proper_line(std::string_view line) {
  std::string_view rest = trim(line);
  const char type = rest.empty() ? '\0' : lower(rest.front());
  if (type < 'a' || type > 'z') {
    return std::nullopt;
  }
  rest = line.substr(line.find(rest.front()) + 1);
  const std::size_t equals = rest.find_first_not_of(" \t");
  if (equals == std::string_view::npos || rest[equals] != '=') {
    return std::nullopt;
  }
  std::string_view value = rest.substr(equals + 1);
  if (!is_free_text(type)) {
    value = trim(value);
  }
  SecretText text(std::string_view(&type, 1));
  text.append("=");
  std::string_view behind = value;
  if (type == 'a' && same_name(trim(take_until(behind, ':')), "control") && value.find(':') != std::string_view::npos) {
    return std::move(text.append("control:").append(trim(behind)));
  }
  return std::move(text.append(value));
}

// Forms of RTP/AVP and RTP/AVPF that servers write, such as "RTP/AVP/UDP", "TCP/RTP/AVP", "RTP//AVP", "RTP-AVP" and
// "RTP": what is below RTP is agreed on in SETUP.
std::string_view proper_protocol(std::string_view protocol) {
  static constexpr std::array<std::string_view, 6> others = {"RTSP", "IP", "UDP", "TCP", "unicast", "multicast"};
  bool rtp = false, avp = false, avpf = false;
  for (std::string_view rest = protocol; !rest.empty();) {
    const std::size_t size = std::min(rest.size(), rest.find_first_of("/_-,;:.|"));
    const std::string_view word = rest.substr(0, size);
    rest.remove_prefix(std::min(rest.size(), size + 1));
    rtp = rtp || same_name(word, "RTP");
    avp = avp || same_name(word, "AVP");
    avpf = avpf || same_name(word, "AVPF");
    const auto is_it = [word](std::string_view one) { return same_name(one, word); };
    const bool known = word.empty() || same_name(word, "RTP") || same_name(word, "AVP") || same_name(word, "AVPF") ||
                       std::ranges::any_of(others, is_it);
    if (!known) {
      return protocol;
    }
  }
  return avpf && !avp ? "RTP/AVPF" : rtp || avp ? "RTP/AVP" : protocol;
}

// "49170/2"; "0" of what is no port.
std::string proper_port(std::string_view text) {
  std::string_view count = text;
  const auto port = number<std::uint16_t>(take_until(count, '/'));
  const auto counted = number<std::uint16_t>(count);
  return !port ? "0" : std::to_string(*port) + (counted ? '/' + std::to_string(*counted) : std::string());
}

// The m= line of a medium with these fields, as all readers take it; an error: why nobody can say what it is.
Expected<SecretText> proper_medium(const MediaFields& fields) {
  if (!is_token(fields.kind)) {
    return make_error(in_quotes(fields.kind) + " is no kind of medium");
  }
  if (fields.protocol.empty()) {
    return make_error("a medium without a port or a transport");
  }
  SecretText text("m=");
  text.append(fields.kind)
      .append(" ")
      .append(proper_port(fields.port))
      .append(" ")
      .append(proper_protocol(fields.protocol));
  for (std::string_view formats = fields.formats; !formats.empty();) {
    text.append(" ").append(take_word(formats));
  }
  return text;
}

std::optional<std::uint64_t> bits_of(std::string_view text, std::uint64_t unit) {
  const auto value = number<std::uint64_t>(trim(text), UINT64_MAX / 1000);
  return value ? std::optional(*value * unit) : std::nullopt;
}

void add_bandwidth(const Line& line, Bandwidth& bandwidth) {
  if (line.type() == 'b') {
    std::string_view value = line.value();
    const std::string_view kind = take_until(value, ':');
    if (kind == "AS") {
      bandwidth.as_bits = bits_of(value, 1000);
    } else if (kind == "TIAS") {
      bandwidth.tias_bits = bits_of(value, 1);
    }
  }
  if (const auto rate = attribute_value(line, "maxprate")) {
    std::string_view fraction = trim(*rate);
    const auto whole = number<std::uint32_t>(take_until(fraction, '.'));
    const auto part = fraction.empty() ? std::optional<std::uint32_t>(0) : number<std::uint32_t>(fraction);
    if (whole && part) {
      bandwidth.max_packet_rate = *whole + (*part == 0 ? 0.0 : *part / std::pow(10.0, fraction.size()));
    }
  }
}

}  // namespace

std::optional<std::uint64_t> Bandwidth::rate(bool ipv6) const {
  std::optional<std::uint64_t> rate = as_bits;
  if (tias_bits) {
    const double headers = max_packet_rate.value_or(0) * (ipv6 ? 60 : 40) * 8;  // IP, UDP and RTP
    const std::uint64_t whole = *tias_bits + static_cast<std::uint64_t>(std::ceil(headers));
    rate = std::max(rate.value_or(0), whole);
  }
  return rate;
}

std::optional<std::string_view> Section::attribute(std::string_view name) const {
  for (const Line& line : lines) {
    if (const auto value = attribute_value(line, name)) {
      return value;
    }
  }
  return std::nullopt;
}

std::vector<std::string_view> Section::attributes(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Line& line : lines) {
    if (const auto value = attribute_value(line, name)) {
      values.push_back(*value);
    }
  }
  return values;
}

std::size_t Section::remove_attributes(std::string_view name) {
  return std::erase_if(lines, [name](const Line& line) { return attribute_value(line, name).has_value(); });
}

void Section::add_attribute(std::string_view name, std::string_view value) {
  // A section may end the text without an end of line, which then moves to the new last line.
  const std::string_view end = lines.empty() || lines.front().end.empty() ? "\r\n" : lines.front().end;
  Line line{SecretText("a="), end};
  line.text.append(name).append(":").append(value);
  if (!lines.empty() && lines.back().end.empty()) {
    lines.back().end = end;
  }
  lines.push_back(std::move(line));
}

Bandwidth Section::bandwidth() const {
  Bandwidth bandwidth;
  for (const Line& line : lines) {
    add_bandwidth(line, bandwidth);
  }
  return bandwidth;
}

std::optional<packet::IpAddress> Section::connection() const {
  for (const Line& line : lines) {
    if (line.type() != 'c') {
      continue;
    }
    std::string_view value = line.value();
    const std::string_view net = take_until(value, ' ');
    const std::string_view family = take_until(value, ' ');
    const auto address = packet::IpAddress::parse(take_until(value, '/'));
    if (net != "IN" || !address || family != (address->family == 4 ? "IP4" : "IP6")) {
      return std::nullopt;
    }
    return *address;
  }
  return std::nullopt;
}

Profile profile_named(std::string_view protocol) {
  for (std::size_t i = 0; i < profile_names.size(); ++i) {
    if (same_name(profile_names[i], protocol)) {
      return static_cast<Profile>(i);
    }
  }
  return Profile::other;
}

std::string_view profile_name(Profile profile) {
  return profile == Profile::other ? std::string_view{} : profile_names[static_cast<std::size_t>(profile)];
}

Profile secured(Profile profile) {
  return profile == Profile::avp ? Profile::savp : profile == Profile::avpf ? Profile::savpf : profile;
}

Profile plain(Profile profile) {
  return profile == Profile::savp ? Profile::avp : profile == Profile::savpf ? Profile::avpf : profile;
}

std::string_view Medium::kind() const {
  return fields_of(lines.front().value()).kind;
}
std::string_view Medium::protocol() const {
  return fields_of(lines.front().value()).protocol;
}
std::string_view Medium::formats() const {
  return fields_of(lines.front().value()).formats;
}
std::uint16_t Medium::port() const {
  std::string_view port = fields_of(lines.front().value()).port;
  return number<std::uint16_t>(take_until(port, '/')).value_or(0);
}
std::uint16_t Medium::port_count() const {
  std::string_view port = fields_of(lines.front().value()).port;
  take_until(port, '/');
  return number<std::uint16_t>(port).value_or(1);
}

void Medium::set_protocol(std::string_view protocol) {
  Line& line = lines.front();
  const std::string_view old = this->protocol();
  const std::size_t at = static_cast<std::size_t>(old.data() - line.view().data());
  SecretText text(line.view().substr(0, at));
  text.append(protocol).append(line.view().substr(at + old.size()));
  line.text = std::move(text);
}

std::vector<std::uint32_t> Medium::ssrcs() const {
  std::vector<std::uint32_t> ssrcs;
  for (std::string_view value : attributes("ssrc")) {
    const auto ssrc = number<std::uint32_t>(take_until(value, ' '));
    if (ssrc && std::find(ssrcs.begin(), ssrcs.end(), *ssrc) == ssrcs.end()) {
      ssrcs.push_back(*ssrc);
    }
  }
  return ssrcs;
}

Expected<Description> Description::parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return make_error("the description has " + std::to_string(text.size()) + " bytes; the limit is " +
                      std::to_string(limits.bytes));
  }
  text = without_frame(text);
  Description description;
  Section* section = &description.session;  // nullptr: what is left out
  bool has_version = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    if (number > limits.lines) {
      return wrong(number, "a description has at most " + std::to_string(limits.lines) + " lines");
    }
    Line line = take_line(text);
    if (line.text.size() > limits.line_bytes) {
      return wrong(number, "a line has at most " + std::to_string(limits.line_bytes) + " bytes");
    }
    if (trim(line.view()).empty()) {
      continue;
    }
    auto proper = proper_line(line.view());
    if (!proper) {
      description.left_out.push_back({false, at_line(number, "it is not of the form x=...")});
      continue;
    }
    line.text = std::move(*proper);
    has_version = has_version || line.type() == 'v';
    if (line.type() == 'm') {
      section = description.begin_medium(line, number, limits);
    }
    if (section != nullptr) {
      section->lines.push_back(std::move(line));
    }
  }
  const bool has_medium = !description.media.empty() ||
                          std::ranges::any_of(description.left_out, [](const LeftOut& one) { return one.medium; });
  if (!has_version && !has_medium) {
    return make_error("it has neither v= nor m=: it is empty, or no description");
  }
  return description;
}

// Where the lines of the medium go that `line` begins; nullptr: nowhere, for it is left out.
Section* Description::begin_medium(Line& line, std::size_t number, const Limits& limits) {
  auto proper = proper_medium(fields_of(line.value()));
  if (!proper) {
    left_out.push_back({true, at_line(number, proper.error().message)});
    return nullptr;
  }
  if (media.size() == limits.media) {
    left_out.push_back({true, at_line(number, "a description has at most " + std::to_string(limits.media) + " media")});
    return nullptr;
  }
  line.text = std::move(*proper);
  Medium& medium = media.emplace_back();
  medium.line_number = number;
  return &medium;
}

SecretText Description::text() const {
  SecretText text;
  std::size_t size = 0;
  const auto each = [this](const auto& visit) {
    std::for_each(session.lines.begin(), session.lines.end(), visit);
    for (const Medium& medium : media) {
      std::for_each(medium.lines.begin(), medium.lines.end(), visit);
    }
  };
  each([&size](const Line& line) { size += line.text.size() + 2; });
  text.reserve(size);
  each([&text](const Line& line) { text.append(line.view()).append(line.end); });
  return text;
}

std::optional<std::uint64_t> Description::rate(const Medium& medium, bool ipv6) const {
  const auto own = medium.bandwidth().rate(ipv6);
  return own ? own : session.bandwidth().rate(ipv6);
}

}  // namespace sluice::media::sdp
