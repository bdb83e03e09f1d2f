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

std::string_view lower_transport(std::string_view protocol) {
  const std::size_t at = profile_end(protocol);
  return at == protocol.size() ? std::string_view{} : protocol.substr(at + 1);
}

const Transport::Parameter* find(const std::vector<Transport::Parameter>& parameters, std::string_view name) {
  const auto at = std::find_if(parameters.begin(), parameters.end(),
                               [name](const Transport::Parameter& one) { return same_name(one.name, name); });
  return at == parameters.end() ? nullptr : &*at;
}

Expected<Transport> transport_of(std::string_view text) {
  Transport transport;
  transport.protocol = trim(take_unquoted(text, ';'));
  if (transport.protocol.empty() || transport.protocol.find_first_of(" \t\"=") != std::string::npos) {
    return make_error("Transport: " + in_quotes(transport.protocol) + " is no protocol such as RTP/AVP");
  }
  while (!text.empty()) {
    std::string_view value = trim(take_unquoted(text, ';'));
    if (value.empty()) {
      continue;  // "unicast;;" and "unicast;" are written by some
    }
    const bool valued = value.find('=') != std::string_view::npos;
    std::string name(trim(take_until(value, '=')));
    if (name.empty()) {
      return make_error("Transport: a parameter without a name");
    }
    transport.remove(name);
    if (transport.parameters.size() == max_transport_parameters) {
      return make_error("Transport: more than " + std::to_string(max_transport_parameters) + " parameters");
    }
    transport.parameters.push_back({std::move(name), valued ? std::optional<std::string>(trim(value)) : std::nullopt});
  }
  return transport;
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
  return lower.empty() || same_name(lower, "UDP");
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
  while (!value.empty()) {
    const std::string_view alternative = trim(take_unquoted(value, ','));
    if (alternative.empty()) {
      continue;
    }
    if (transports.size() == max_transports) {
      return make_error("Transport: more than " + std::to_string(max_transports) + " alternatives");
    }
    auto transport = transport_of(alternative);
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
