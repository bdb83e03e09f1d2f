#include "media/rtsp/transport.h"

#include <algorithm>

#include "base/quote.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

constexpr std::size_t rtp_profile_slashes = 2;  // "RTP/AVP/UDP": the second one begins the lower transport

// Where the lower transport begins with its '/', or the end.
std::size_t profile_end(std::string_view protocol) {
  std::size_t at = 0;
  for (std::size_t slashes = 0; at < protocol.size(); ++at) {
    if (protocol[at] == '/' && ++slashes == rtp_profile_slashes) {
      break;
    }
  }
  return at;
}

// "UDP" of "RTP/AVP/UDP" and of "RTP/AVP/UDP/unicast".
std::string_view lower_transport(std::string_view protocol) {
  const std::size_t at = profile_end(protocol);
  std::string_view lower = at == protocol.size() ? std::string_view{} : protocol.substr(at + 1);
  return take_until(lower, '/');
}

const Transport::Parameter* find(const std::vector<Transport::Parameter>& parameters, std::string_view name) {
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [name](const Transport::Parameter& one) { return same_name(one.name, name); });
  return at == parameters.end() ? nullptr : &*at;
}

Expected<void> add_parameters(Transport& transport, std::string_view text) {
  while (!text.empty()) {
    std::string_view value = trim(take_unquoted(text, ';'));
    if (value.empty()) {
      continue;  // "unicast;;" and "unicast;" are written by some
    }
    const bool valued = value.find('=') != std::string_view::npos;
    std::string name(trim(take_until(value, '=')));
    if (name.empty()) {
      continue;
    }
    transport.remove(name);
    if (transport.parameters.size() == max_transport_parameters) {
      return make_error("Transport: more than " + std::to_string(max_transport_parameters) + " parameters");
    }
    transport.parameters.push_back({std::move(name), valued ? std::optional<std::string>(trim(value)) : std::nullopt});
  }
  return {};
}

Expected<Transport> transport_of(std::string_view text) {
  Transport transport;
  transport.protocol = trim(take_unquoted(text, ';'));
  if (transport.protocol.empty() || transport.protocol.find_first_of(" \t\"=") != std::string::npos) {
    return make_error("Transport: " + in_quotes(transport.protocol) + " is no protocol such as RTP/AVP");
  }
  return add_parameters(transport, text).map([&] { return std::move(transport); });
}

// Whether what follows a comma is of the alternative before it: some write commas between parameters.
bool continues(std::string_view text) {
  const std::string_view first = take_unquoted(text, ';');
  return first.find('/') == first.npos || first.find('=') != first.npos;
}

std::string_view take_digits(std::string_view& text) {
  text = trim(text);
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

// Whether each quote that begins ends, as take_unquoted() has it.
bool quotes_end(std::string_view text) {
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      quoted = !quoted;
    } else if (quoted && text[at] == '\\') {
      ++at;
    }
  }
  return !quoted;
}

}  // namespace

sdp::Profile Transport::profile() const {
  return sdp::profile_named(std::string_view(protocol).substr(0, profile_end(protocol)));
}

void Transport::set_profile(sdp::Profile profile) {
  protocol.replace(0, profile_end(protocol), sdp::profile_name(profile));
}

bool Transport::udp() const {
  const std::string_view lower = lower_transport(protocol);
  return lower.empty() || same_name(lower, "UDP") || same_name(lower, "unicast");
}

bool Transport::tcp() const {
  return same_name(lower_transport(protocol), "TCP");
}

bool Transport::has(std::string_view name) const {
  return find(parameters, name) != nullptr;
}

std::optional<std::string_view> Transport::value(std::string_view name) const {
  const Parameter* const found = find(parameters, name);
  return found != nullptr && found->value ? std::optional(without_quotes(*found->value)) : std::nullopt;
}

void Transport::set(std::string_view name, std::string value) {
  for (Parameter& parameter : parameters) {
    if (same_name(parameter.name, name)) {
      parameter.value = std::move(value);
      return;
    }
  }
  parameters.push_back({std::string(name), std::move(value)});
}

bool Transport::remove(std::string_view name) {
  return std::erase_if(parameters, [name](const Parameter& one) { return same_name(one.name, name); }) > 0;
}

std::optional<PortPair> Transport::ports(std::string_view name) const {
  const auto text = value(name);
  if (!text) {
    return std::nullopt;
  }
  std::string_view second = *text;
  const auto rtp = number<std::uint16_t>(trim(take_until(second, '-')));
  second = trim(second);
  const bool pair = !second.empty();
  if (!rtp || *rtp == 0 || (!pair && *rtp == 65535)) {
    return std::nullopt;
  }
  const auto rtcp = pair ? number<std::uint16_t>(second) : static_cast<std::uint16_t>(*rtp + 1);
  if (!rtcp || *rtcp == 0) {
    return std::nullopt;
  }
  return PortPair{*rtp, *rtcp};
}

std::optional<PortPair> Transport::ports_in(std::string_view name) const {
  if (const auto exact = ports(name)) {
    return exact;
  }
  std::string_view text = value(name).value_or("");
  const auto rtp = number<std::uint16_t>(take_digits(text));
  if (!rtp || *rtp == 0 || *rtp == 65535) {
    return std::nullopt;
  }
  text = trim(text);
  std::optional<std::uint16_t> rtcp;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    rtcp = number<std::uint16_t>(take_digits(text));
  }
  return PortPair{*rtp, rtcp.value_or(0) != 0 ? *rtcp : static_cast<std::uint16_t>(*rtp + 1)};
}

void Transport::set_ports(std::string_view name, PortPair ports) {
  set(name, std::to_string(ports.rtp) + '-' + std::to_string(ports.rtcp));
}

std::optional<std::uint32_t> Transport::ssrc() const {
  const auto text = value("ssrc");
  return text && text->size() <= 8 ? number<std::uint32_t>(*text, UINT32_MAX, 16) : std::nullopt;
}

bool Transport::plays() const {
  const std::string_view mode = value("mode").value_or("");
  return mode.empty() || same_name(mode, "PLAY");
}

Expected<std::vector<Transport>> parse_transports(std::string_view value) {
  std::string unquoted;
  if (!quotes_end(value)) {
    unquoted = value;
    std::erase(unquoted, '"');
    value = unquoted;
  }
  std::vector<Transport> transports;
  std::optional<Error> error;
  enum class Last : std::uint8_t { none, kept, left_out } last = Last::none;
  while (!value.empty()) {
    const std::string_view alternative = trim(take_unquoted(value, ','));
    if (alternative.empty()) {
      continue;
    }
    if (last != Last::none && continues(alternative)) {
      if (last == Last::left_out) {
        continue;
      }
      if (auto added = add_parameters(transports.back(), alternative); !added) {
        return tl::unexpected(added.error());
      }
      continue;
    }
    if (transports.size() == max_transports) {
      return make_error("Transport: more than " + std::to_string(max_transports) + " alternatives");
    }
    auto transport = transport_of(alternative);
    last = transport ? Last::kept : Last::left_out;
    if (transport) {
      transports.push_back(std::move(*transport));
    } else if (!error) {
      error = transport.error();
    }
  }
  if (transports.empty()) {
    return error ? tl::unexpected(*error) : make_error("Transport: it is empty");
  }
  return transports;
}

std::string transports_text(const std::vector<Transport>& transports) {
  std::string text;
  for (const Transport& transport : transports) {
    text += text.empty() ? "" : ",";
    text += transport.protocol;
    for (const Transport::Parameter& parameter : transport.parameters) {
      text += ';' + parameter.name + (parameter.value ? '=' + *parameter.value : "");
    }
  }
  return text;
}

}  // namespace sluice::media::rtsp
