// What [[ipsec.sa]] and [[ipsec.policy]] have in common, for who reads them (ipsec_settings.h).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/option.h"
#include "base/settings.h"
#include "ipsec/security_association.h"
#include "packet/ip_address.h"

namespace sluice::function {

inline constexpr const char* direction_is_missing = "`direction` is missing: write \"in\" or \"out\"";

template <class T>
Option<T> needed(const char* key, std::string T::*member, const char* values, std::string text) {
  return Option<T>{key, std::move(text), [=](Settings& section, T& to) { to.*member = section.required_text(key); },
                   [=](const T& of) { return option::literal(of.*member); }}
      .by_default(option::required)
      .takes(values);
}

template <class T>
Option<T> direction_option(std::string text) {
  return option::word("direction", &T::direction, {{"in", ipsec::Direction::in}, {"out", ipsec::Direction::out}},
                      std::move(text))
      .by_default(option::required);
}
template <class T>
Option<T> protocol_option() {
  return option::word("protocol", &T::protocol, {{"esp", ipsec::Protocol::esp}, {"ah", ipsec::Protocol::ah}},
                      "the protocol that protects");
}
template <class T>
Option<T> mode_option() {
  return option::word("mode", &T::mode, {{"tunnel", ipsec::Mode::tunnel}, {"transport", ipsec::Mode::transport}},
                      "whether whole packets are protected, or what their IP headers carry");
}

// Reports what is none to `section`. An empty text is none, and said nothing of.
std::optional<packet::IpAddress> read_address(Settings& section, const char* key, const std::string& text);
// Likewise what is no host's: an end of an SA.
std::optional<packet::IpAddress> read_end(Settings& section, const char* key, const std::string& text);

// Each one's keys.
OptionSection sa_section();
OptionSection policy_section();

}  // namespace sluice::function
