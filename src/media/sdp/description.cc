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

Line take_line(std::string_view& text) {
  const std::size_t at = text.find('\n');
  if (at == std::string_view::npos) {
    Line line{SecretText(text), ""};
    text = {};
    return line;
  }
  const bool crlf = at > 0 && text[at - 1] == '\r';
  Line line{SecretText(text.substr(0, crlf ? at - 1 : at)), crlf ? "\r\n" : "\n"};
  text.remove_prefix(at + 1);
  return line;
}

tl::unexpected<Error> wrong(std::size_t line, const std::string& what) {
  return make_error("line " + std::to_string(line) + ": " + what);
}

// The fields of "m=kind port[/count] protocol formats".
struct MediaFields {
  std::string_view kind, port, protocol, formats;
};

MediaFields fields_of(std::string_view value) {
  MediaFields fields;
  fields.kind = take_until(value, ' ');
  fields.port = take_until(value, ' ');
  fields.protocol = take_until(value, ' ');
  fields.formats = value;
  return fields;
}

bool readable(const MediaFields& fields) {
  std::string_view count = fields.port;
  const bool counted = count.find('/') != std::string_view::npos;
  const std::string_view port = take_until(count, '/');
  return is_token(fields.kind) && number<std::uint16_t>(port) && (!counted || number<std::uint16_t>(count)) &&
         !fields.protocol.empty() && !fields.formats.empty();
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
  Description description;
  Section* section = &description.session;
  for (std::size_t number = 1; !text.empty(); ++number) {
    if (number > limits.lines) {
      return wrong(number, "a description has at most " + std::to_string(limits.lines) + " lines");
    }
    Line line = take_line(text);
    if (line.text.size() > limits.line_bytes) {
      return wrong(number, "a line has at most " + std::to_string(limits.line_bytes) + " bytes");
    }
    if (number == 1 && line.view() != "v=0") {
      return wrong(number, "a description begins with v=0, not " + in_quotes(line.view()));
    }
    // A lone CR or NUL may end a line for one reader and not for another.
    if (line.view().find_first_of(std::string_view("\r\0", 2)) != std::string_view::npos) {
      return wrong(number, "a carriage return or NUL within a line");
    }
    // "m=" alone, and odd spellings of it that a peer might take for one.
    const std::string_view squeezed = trim(line.view());
    if (line.type() == 'm' || same_name(squeezed.substr(0, 2), "m=") || same_name(squeezed.substr(0, 2), "m ")) {
      if (line.type() != 'm' || !readable(fields_of(line.value()))) {
        return wrong(number, "not a medium that can be read: " + in_quotes(line.view()));
      }
      if (description.media.size() == limits.media) {
        return wrong(number, "a description has at most " + std::to_string(limits.media) + " media");
      }
      section = &description.media.emplace_back();
    }
    section->lines.push_back(std::move(line));
  }
  if (description.session.lines.empty()) {
    return make_error("the description is empty");
  }
  return description;
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
