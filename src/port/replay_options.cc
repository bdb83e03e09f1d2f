#include "port/replay_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/file.h"
#include "port/replay_words.h"

namespace sluice::port {
namespace {

constexpr std::uint16_t dns_port = 53;
constexpr std::size_t largest_destinations = 256U << 20;

constexpr std::string_view replay_keys[] = {"mix",     "frames",  "family",       "seed",     "rate",    "ring",
                                            "ordered", "refresh", "destinations", "protocol", "payload", "flows"};

// In the order of ReplayOptions::Protocol.
constexpr std::string_view protocol_names[] = {"udp", "tcp", "streams", "http"};

std::string none_of_family(const std::string& has_no, const std::string& what, int family) {
  return "replay: " + has_no + (family == 4 ? " IPv4 " : " IPv6 ") + what + ", and family is " +
         std::to_string(family) + ": add some, or change family";
}

bool any_of_family(const std::vector<packet::IpAddress>& addresses, int family) {
  return std::ranges::any_of(addresses, [&](const auto& address) { return address.family == family; });
}

Expected<std::vector<packet::IpAddress>> read_addresses(const std::string& path) {
  const auto text = read_regular_file(path, largest_destinations);
  if (!text) {
    return make_error("replay: destinations: " + text.error().message);
  }
  std::vector<packet::IpAddress> addresses;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    auto address = packet::IpAddress::parse(line);
    if (!address) {
      return make_error("replay: " + path + ":" + std::to_string(addresses.size() + 1) + ": " +
                        address.error().message);
    }
    addresses.push_back(*address);
  }
  if (addresses.empty()) {
    return make_error("replay: destinations: " + path + ": is empty: write an address on each line");
  }
  return addresses;
}

Expected<ReplayOptions::Flow> read_flow(const std::string& line) {
  std::istringstream in(line);
  std::string source, destination, rest;
  unsigned source_port = 0, destination_port = 0;
  constexpr unsigned most = 65535;
  const bool whole = in >> source >> source_port >> destination >> destination_port && !(in >> rest);
  if (!whole || source_port > most || destination_port > most) {
    return make_error("write 'SOURCE PORT DESTINATION PORT', such as 192.0.2.1 1024 198.51.100.1 80");
  }
  const auto from = packet::IpAddress::parse(source), to = packet::IpAddress::parse(destination);
  for (const auto* const address : {&from, &to}) {
    if (!*address) return tl::unexpected(address->error());
  }
  if (from->family != to->family) return make_error("one address is IPv4, the other IPv6: write two of a family");
  return ReplayOptions::Flow{*from, *to, static_cast<std::uint16_t>(source_port),
                             static_cast<std::uint16_t>(destination_port)};
}

Expected<std::vector<ReplayOptions::Flow>> read_flows(const std::string& path) {
  const auto text = read_regular_file(path, largest_destinations);
  if (!text) return make_error("replay: flows: " + text.error().message);
  std::vector<ReplayOptions::Flow> flows;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto flow = read_flow(line);
    if (!flow) {
      return make_error("replay: " + path + ":" + std::to_string(flows.size() + 1) + ": " + flow.error().message);
    }
    flows.push_back(*flow);
  }
  if (flows.empty()) return make_error("replay: flows: " + path + ": is empty: write a flow on each line");
  return flows;
}

// What flows are not used with.
Expected<void> check_flows(const ReplayOptions& options) {
  if (options.flows.empty()) return {};
  if (options.protocol >= ReplayOptions::Protocol::streams) {
    return make_error("replay: flows are for protocol=udp and protocol=tcp: conversations have their own");
  }
  if (!options.destinations.empty()) {
    return make_error("replay: flows say where frames go: leave destinations out");
  }
  if (std::ranges::none_of(options.flows, [&](const auto& flow) { return flow.source.family == options.family; })) {
    return make_error(no_flow(options.family));
  }
  return {};
}

// The commonest words, which is what an English text mostly is.
std::vector<std::string> words_of_text() {
  std::istringstream words(
      "the of and to in is you that it he was for on are as with his they at be this have from or one had by word but "
      "not what all were we when your can said there use an each which she do how their if will up other about out "
      "many "
      "then them these so some her would make like him into time has look two more write go see number no way could "
      "people my than first water been call who oil its now find long down day did get come made may part");
  std::vector<std::string> pieces;
  for (std::string word; words >> word;) pieces.push_back(word + " ");
  return pieces;
}

Expected<std::vector<std::string>> read_pieces(const std::string& value) {
  if (value == "random") return std::vector<std::string>();
  if (value == "text") return words_of_text();
  if (value == "web") return std::vector<std::string>(std::begin(web_words), std::end(web_words));
  const auto text = read_regular_file(value, largest_destinations);
  if (!text) {
    return make_error("replay: payload: " + text.error().message +
                      "; it takes random, text, web, codings, resets, or a file of pieces");
  }
  std::vector<std::string> pieces;
  std::istringstream lines(*text);
  unsigned number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    const bool digits = line.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos && line.size() % 2 == 0;
    if (!digits) {
      return make_error("replay: " + value + ":" + std::to_string(number) + ": a piece is pairs of hexadecimal digits");
    }
    std::string piece;
    for (std::size_t at = 0; at < line.size(); at += 2) {
      piece.push_back(static_cast<char>(std::stoi(line.substr(at, 2), nullptr, 16)));
    }
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty()) return make_error("replay: payload: " + value + ": is empty: write a piece on each line");
  return pieces;
}

Expected<void> read_number(ReplayOptions& options, const std::string& key, const std::string& value) {
  const auto allowed = [&](const char* what) {
    return make_error("replay: '" + key + "=" + value + "': " + key + " takes " + what);
  };
  double number = 0;
  const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = ec == std::errc() && end == value.data() + value.size() && number >= 0 && number <= 1e9;
  if (key == "family" || key == "ordered") {
    const bool is_family = key == "family";
    if (value != (is_family ? "4" : "0") && value != (is_family ? "6" : "1")) {
      return allowed(is_family ? "4 or 6" : "0 or 1");
    }
  } else if (!is_number) {
    return allowed("a number from 0 to 1e9");
  } else if (key != "rate" && number != std::floor(number)) {
    return allowed("a whole number");
  }
  if (key == "frames") {
    options.frames = static_cast<unsigned>(number);
  } else if (key == "family") {
    options.family = static_cast<int>(number);
  } else if (key == "seed") {
    options.seed = static_cast<std::uint64_t>(number);
  } else if (key == "rate") {
    options.rate = number;
  } else if (key == "ring") {
    options.ring = static_cast<unsigned>(number);
  } else if (key == "ordered") {
    options.ordered = number == 1;
  } else {
    options.refresh = static_cast<unsigned>(number);
  }
  return {};
}

Expected<void> read_argument(ReplayOptions& options, const std::string& item) {
  const std::size_t equals = item.find('=');
  const std::string key = item.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
  if (item.empty()) {
    return make_error("replay: there is no argument behind a comma: take the comma out, or write KEY=VALUE behind it");
  }
  if (std::ranges::find(replay_keys, key) == std::end(replay_keys)) {
    return make_error(
        "replay: '" + item +
        "': the keys are mix, frames, family (4 or 6), seed, rate, ring, ordered (0 or 1), refresh, destinations, "
        "protocol (udp, tcp, streams or http), payload, flows");
  }
  if (key == "mix") {
    options.mix = value;
    return {};
  }
  if (key == "protocol") {
    const auto named = std::ranges::find(protocol_names, value);
    if (named == std::end(protocol_names)) {
      return make_error("replay: '" + item + "': protocol takes udp, tcp, streams or http");
    }
    options.protocol = static_cast<ReplayOptions::Protocol>(named - std::begin(protocol_names));
    return {};
  }
  if (key == "payload") {
    options.codings = value == "codings";
    options.resets = value == "resets";
    auto pieces = read_pieces(options.codings || options.resets ? "random" : value);
    options.text = value == "text" || value == "web";
    if (value == "web") options.udp_port = dns_port;
    if (pieces) options.pieces = std::move(*pieces);
    return pieces ? Expected<void>() : tl::unexpected(pieces.error());
  }
  if (key == "flows") {
    auto flows = read_flows(value);
    if (flows) options.flows = std::move(*flows);
    return flows ? Expected<void>() : tl::unexpected(flows.error());
  }
  if (key != "destinations") {
    return read_number(options, key, value);
  }
  auto read = read_addresses(value);
  if (!read) {
    return tl::unexpected(read.error());
  }
  options.destinations = std::move(*read);
  return {};
}

}  // namespace

std::string no_destination(int family) {
  return none_of_family("destinations has no", "address", family);
}

std::string no_flow(int family) {
  return none_of_family("flows has no", "flow", family);
}

Expected<ReplayOptions> ReplayOptions::parse(const std::string& devargs) {
  ReplayOptions options;
  std::vector<std::string> seen;
  std::size_t at = devargs.find(',');
  while (at != std::string::npos) {
    const std::size_t next = devargs.find(',', at + 1);
    const std::string item = devargs.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const std::string key = item.substr(0, item.find('='));
    if (std::ranges::find(seen, key) != seen.end()) {
      return make_error("replay: " + key + " is there twice: give it once");
    }
    if (auto fine = read_argument(options, item); !fine) {
      return tl::unexpected(fine.error());
    }
    seen.push_back(key);
    at = next;
  }
  if (auto fine = check_flows(options); !fine) return tl::unexpected(fine.error());
  if (options.codings && options.protocol != ReplayOptions::Protocol::http) {
    return make_error("replay: payload=codings is of bodies of HTTP: say protocol=http, too");
  }
  if (options.resets && options.protocol != ReplayOptions::Protocol::streams) {
    return make_error("replay: payload=resets is of TCP conversations: say protocol=streams, too");
  }
  if (!options.destinations.empty() && !any_of_family(options.destinations, options.family)) {
    return make_error(no_destination(options.family));
  }
  if (options.frames < ReplayOptions::least_frames) {
    return make_error("replay: frames=" + std::to_string(options.frames) + " is too few; " +
                      std::to_string(ReplayOptions::least_frames) + " is the least");
  }
  if (options.ring > options.frames) {
    return make_error("replay: ring=" + std::to_string(options.ring) + " is more than the " +
                      std::to_string(options.frames) + " frames of a queue");
  }
  return options;
}

}  // namespace sluice::port
