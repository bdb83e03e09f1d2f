#include "function/ipsec/ipsec_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "ipsec/proposal.h"

namespace sluice::function {
namespace {

using ipsec::Direction;
using ipsec::Mode;
using ipsec::Protocol;
using packet::IpAddress;

constexpr std::uint32_t least_spi = 256;
constexpr const char* direction_is_missing = "`direction` is missing: write \"in\" or \"out\"";
constexpr std::uint64_t most_count = std::uint64_t{1} << 62;

// An SA as its section has it, before its values are put together.
struct SaWords {
  std::string name, source, destination, proposal, key, auth_key;
  Direction direction = Direction::in;
  Protocol protocol = Protocol::esp;
  Mode mode = Mode::tunnel;
  std::int64_t spi = 0, reqid = 0;
  bool esn = false, copy_dscp = true, ecn = true;
  std::uint32_t replay_window = 64;
  ipsec::DontFragment dont_fragment = ipsec::DontFragment::copy;
  std::uint16_t udp_source = 0, udp_destination = 0, pad_to = 0;
  ipsec::Lifetime lifetime;
};

struct PolicyWords {
  std::string name, source, destination, tunnel_source, tunnel_destination;
  Direction direction = Direction::out;
  ipsec::Action action = ipsec::Action::protect;
  Protocol protocol = Protocol::esp;
  Mode mode = Mode::tunnel;
  std::int64_t priority = 1000, reqid = 0, ah_reqid = 0;
  bool ah_around = false;
  std::int64_t upper = 0, source_port = -1, destination_port = -1;
};

template <class T>
Option<T> needed(const char* key, std::string T::*member, const char* values, std::string text) {
  return Option<T>{key, std::move(text), [=](Settings& section, T& to) { to.*member = section.required_text(key); },
                   [=](const T& of) { return option::literal(of.*member); }}
      .by_default(option::required)
      .takes(values);
}

template <class T>
Option<T> direction_option(std::string text) {
  return option::word("direction", &T::direction, {{"in", Direction::in}, {"out", Direction::out}}, std::move(text))
      .by_default(option::required);
}
template <class T>
Option<T> protocol_option() {
  return option::word("protocol", &T::protocol, {{"esp", Protocol::esp}, {"ah", Protocol::ah}},
                      "the protocol that protects");
}
template <class T>
Option<T> mode_option() {
  return option::word("mode", &T::mode, {{"tunnel", Mode::tunnel}, {"transport", Mode::transport}},
                      "whether whole packets are protected, or what their IP headers carry");
}

Option<SaWords> limit_option(const char* key, ipsec::Limit ipsec::Lifetime::*limit, std::uint64_t ipsec::Limit::*which,
                             std::string text) {
  return Option<SaWords>{key,
                         std::move(text),
                         [=](Settings& section, SaWords& to) {
                           (to.lifetime.*limit).*which =
                               static_cast<std::uint64_t>(section.integer(key, 0, 1, most_count));
                         },
                         [=](const SaWords& of) { return std::to_string((of.lifetime.*limit).*which); },
                         false,
                         "a number above 0"}
      .by_default("no limit");
}

const std::vector<Option<SaWords>>& sa_settings() {
  using ipsec::Lifetime;
  using ipsec::Limit;
  static const std::vector<Option<SaWords>> all = option::all_reloadable<SaWords>(
      {option::text("name", &SaWords::name, "what the SA is called in lists").by_default("its SPI"),
       direction_option<SaWords>("`in`: packets to this gateway, to be opened; `out`: to be protected"),
       needed<SaWords>("source", &SaWords::source, "IPv4 or IPv6 address", "the outer packet's source"),
       needed<SaWords>("destination", &SaWords::destination, "IPv4 or IPv6 address", "and its destination"),
       option::number("spi", &SaWords::spi, {least_spi, 0xffffffff}, "the security parameter index")
           .by_default(option::required),
       protocol_option<SaWords>(),
       mode_option<SaWords>(),
       option::number("reqid", &SaWords::reqid, {0, 0xffffffff},
                      "policies with this number use the SA; 0: those with 0, of the same addresses"),
       needed<SaWords>("proposal", &SaWords::proposal, "as of strongSwan's `esp_proposals`",
                       "the algorithms: `aes128-sha256`, `aes256gcm16`, `aes128ctr-sha1`, `chacha20poly1305`, "
                       "`null-sha256`, ..."),
       option::text("key", &SaWords::key,
                    "the cipher's key in hexadecimal digits, of a counter mode with the 4 bytes of salt behind it")
           .takes("hexadecimal digits"),
       option::text("auth_key", &SaWords::auth_key, "the key of the hash, as long as its digest")
           .takes("hexadecimal digits"),
       option::flag("esn", &SaWords::esn, "extended sequence numbers, of 64 bits"),
       option::number("replay_window", &SaWords::replay_window, {0, ipsec::most_replay_window, "packets"},
                      "how far behind the newest packet one may come; 0: replayed packets are not looked for"),
       option::number("udp_source_port", &SaWords::udp_source, {0, 65535},
                      "UDP encapsulation (RFC 3948), together with the next one; 0: none"),
       option::number("udp_destination_port", &SaWords::udp_destination, {0, 65535}, "the other end's port"),
       option::word("dont_fragment", &SaWords::dont_fragment,
                    {{"copy", ipsec::DontFragment::copy},
                     {"set", ipsec::DontFragment::set},
                     {"clear", ipsec::DontFragment::clear}},
                    "the outer packet's DF bit: as the inner packet's, or always so"),
       option::flag("copy_dscp", &SaWords::copy_dscp, "the outer packet has the inner packet's DSCP; else 0"),
       option::flag("ecn", &SaWords::ecn, "congestion marks go through the tunnel (RFC 6040)"),
       option::number("pad_to", &SaWords::pad_to, {0, 65535, "bytes"},
                      "inner packets are padded to this length, so that their own does not show (RFC 4303 2.7)"),
       limit_option("soft_bytes", &Lifetime::bytes, &Limit::soft, "an event says when so many inner bytes went by"),
       limit_option("hard_bytes", &Lifetime::bytes, &Limit::hard, "the SA ends then"),
       limit_option("soft_packets", &Lifetime::packets, &Limit::soft, "the same for packets"),
       limit_option("hard_packets", &Lifetime::packets, &Limit::hard, "the same for packets"),
       limit_option("soft_seconds", &Lifetime::seconds, &Limit::soft, "the same for seconds since the SA was added"),
       limit_option("hard_seconds", &Lifetime::seconds, &Limit::hard, "the same for seconds since the SA was added")});
  return all;
}

// A port, or -1: any.
Option<PolicyWords> port_option(const char* key, std::int64_t PolicyWords::*member, std::string text) {
  return Option<PolicyWords>{
      key,
      std::move(text),
      [=](Settings& section, PolicyWords& to) {
        const std::int64_t port = section.integer(key, 0, 0, 65535);
        if (section.has(key)) to.*member = port;
      },
      [=](const PolicyWords& of) { return of.*member < 0 ? option::literal("any") : std::to_string(of.*member); },
      false,
      "0 to 65535"}
      .by_default("any");
}

const std::vector<Option<PolicyWords>>& policy_settings() {
  static const std::vector<Option<PolicyWords>> all = option::all_reloadable<PolicyWords>(
      {option::text("name", &PolicyWords::name, "what the policy is called in lists").by_default("what it is for"),
       direction_option<PolicyWords>("`out`: of packets that leave; `in`: of those that came in"),
       needed<PolicyWords>("source", &PolicyWords::source, "IPv4 or IPv6 prefix", "of the packets that it is for"),
       needed<PolicyWords>("destination", &PolicyWords::destination, "IPv4 or IPv6 prefix", "and their destination"),
       option::number("upper_protocol", &PolicyWords::upper, {0, 255},
                      "their protocol, as IANA numbers it: 6 TCP, 17 UDP; 0: any"),
       port_option("source_port", &PolicyWords::source_port, "their source port; of ICMP the type"),
       port_option("destination_port", &PolicyWords::destination_port, "their destination port; of ICMP the code"),
       option::number("priority", &PolicyWords::priority, {0, 0xffffffff},
                      "of several policies that fit, that with the lowest number counts"),
       option::word("action", &PolicyWords::action,
                    {{"protect", ipsec::Action::protect},
                     {"bypass", ipsec::Action::bypass},
                     {"discard", ipsec::Action::discard}},
                    "whether they must be protected, go by in clear, or are dropped"),
       protocol_option<PolicyWords>(), mode_option<PolicyWords>(),
       option::text("tunnel_source", &PolicyWords::tunnel_source, "this end of the tunnel, where packets leave by it")
           .takes("IPv4 or IPv6 address"),
       option::text("tunnel_destination", &PolicyWords::tunnel_destination, "and the other one")
           .takes("IPv4 or IPv6 address"),
       option::number("reqid", &PolicyWords::reqid, {0, 0xffffffff},
                      "SAs of this number are used; 0: any between the tunnel's ends"),
       option::flag("ah_around", &PolicyWords::ah_around,
                    "AH in transport mode is around ESP: both protect the packet (RFC 4301)"),
       option::number("ah_reqid", &PolicyWords::ah_reqid, {0, 0xffffffff},
                      "and its SAs have this number; 0: any between the same ends")});
  return all;
}

std::optional<IpAddress> read_address(Settings& section, const char* key, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto address = IpAddress::parse(text);
  if (!address) {
    section.error(key, address.error().message);
    return std::nullopt;
  }
  return *address;
}

// `key` in hexadecimal digits, or 0x and these.
std::vector<std::uint8_t> read_key(Settings& section, const char* key, std::string_view digits) {
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    std::uint8_t value = 0;
    const char* const end = digits.data() + at + 2;
    if (std::from_chars(digits.data() + at, end, value, 16).ptr != end) break;
    bytes.push_back(value);
  }
  if (bytes.size() * 2 != digits.size()) section.error(key, "is to be pairs of hexadecimal digits");
  return bytes;
}

void check_transport(Settings& section, ipsec::SaSettings& sa, const SaWords& words) {
  const auto proposal = ipsec::parse_proposal(words.proposal, sa.id.protocol);
  if (!proposal) {
    if (!words.proposal.empty()) section.error("proposal", proposal.error().message);
    return;
  }
  std::vector<std::uint8_t> key = read_key(section, "key", words.key);
  std::vector<std::uint8_t> auth_key = read_key(section, "auth_key", words.auth_key);
  auto transform = ipsec::make_transform(*proposal, key, auth_key);
  crypto::wipe(key.data(), key.size());
  crypto::wipe(auth_key.data(), auth_key.size());
  if (!transform) {
    section.error("proposal", transform.error().message);
    return;
  }
  sa.transform = std::move(*transform);
}

// Who has a name is of people, and of no IKE daemon (ipsec/security_association.h).
std::string default_name(std::int64_t spi) {
  char name[16];
  std::snprintf(name, sizeof name, "0x%08x", static_cast<std::uint32_t>(spi));
  return name;
}

void check_limit(Settings& section, const char* what, const ipsec::Limit& limit) {
  if (limit.soft == 0 || limit.hard == 0 || limit.soft <= limit.hard) return;
  section.error("soft_" + std::string(what),
                "is above hard_" + std::string(what) + ": the SA would end without notice");
}

std::optional<packet::IpPrefix> read_prefix(Settings& section, const char* key, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto prefix = packet::IpPrefix::parse(text);
  if (!prefix) {
    section.error(key, prefix.error().message);
    return std::nullopt;
  }
  return *prefix;
}

void read_template(Settings& section, const PolicyWords& words, ipsec::Policy& policy) {
  ipsec::Template way{.protocol = words.protocol, .mode = words.mode, .reqid = static_cast<std::uint32_t>(words.reqid)};
  const auto source = read_address(section, "tunnel_source", words.tunnel_source);
  const auto destination = read_address(section, "tunnel_destination", words.tunnel_destination);
  if (words.mode == Mode::transport) {
    if (source || destination) {
      section.error(source ? "tunnel_source" : "tunnel_destination", "is of tunnel mode alone");
    }
  } else if (words.tunnel_source.empty() || words.tunnel_destination.empty()) {
    section.error("", "`tunnel_source` and `tunnel_destination` are missing: the ends of the tunnel");
  } else if (source && destination) {
    way.source = *source;
    way.destination = *destination;
    if (source->family != destination->family) {
      section.error("tunnel_destination", "is of another family than `tunnel_source`");
    }
  }
  policy.templates.push_back(way);
  if (words.ah_around) {
    if (words.protocol != Protocol::esp) section.error("ah_around", "needs `protocol = \"esp\"`: it is around that");
    policy.templates.push_back(
        {.protocol = Protocol::ah, .mode = Mode::transport, .reqid = static_cast<std::uint32_t>(words.ah_reqid)});
  } else if (words.ah_reqid != 0) {
    section.error("ah_reqid", "needs `ah_around = true` beside it");
  }
}

ipsec::PortMatch port_match(std::int64_t port) {
  return port < 0 ? ipsec::PortMatch{} : ipsec::PortMatch{static_cast<std::uint16_t>(port), 0xffff};
}

std::string cipher_names() {
  std::string names;
  for (const CipherName& one : ipsec_ciphers()) {
    names += (names.empty() ? "`" : ", `") + option::literal(one.name) + "`";
  }
  return names;
}

ipsec::Selector read_selector(Settings& section, const PolicyWords& words) {
  ipsec::Selector selector;
  const auto source = read_prefix(section, "source", words.source);
  const auto destination = read_prefix(section, "destination", words.destination);
  if (source && destination && source->address.family != destination->address.family) {
    section.error("destination", "is of another family than `source`");
  }
  if (source) selector.source = *source;
  if (destination) selector.destination = *destination;
  selector.protocol = static_cast<std::uint8_t>(words.upper);
  selector.source_port = port_match(words.source_port);
  selector.destination_port = port_match(words.destination_port);
  return selector;
}

// Policies of an IKE daemon have ranges of ports, too.
void read_mask(Settings& section, const char* port, const char* key, ipsec::PortMatch& match) {
  const auto mask = static_cast<std::uint16_t>(section.integer(key, 0xffff, 0, 0xffff));
  if (!section.has(key)) return;
  if (!section.has(port)) section.error(key, "needs `" + std::string(port) + "` beside it");
  match.mask = mask;
}

}  // namespace

const std::vector<Option<IpsecOptions>>& ipsec_settings() {
  static const std::vector<Option<IpsecOptions>> all = {
      option::number(
          "max_sas", &IpsecOptions::max_sas, {2, 1'000'000},
          "the most SAs, of both directions together, that the file and the API may have; an IKE daemon may have a "
          "quarter more for the time of a rekey"),
      option::number("max_policies", &IpsecOptions::max_policies, {1, 1'000'000}, "likewise of policies"),
      option::text("ike_socket", &IpsecOptions::ike_socket,
                   "the unix socket where an IKE daemon finds the databases; empty: there is none")
          .takes("path")
          .by_default("none"),
      option::number("gpu_at_least", &IpsecOptions::gpu_at_least, {0, 65535, "packets"},
                     "where there is a GPU: a batch with fewer packets to compute is computed by its lane's core, "
                     "which is sooner done"),
      option::texts("cores_compute", &IpsecOptions::cores_compute,
                    "where there is a GPU: the ciphers that lanes' cores compute all the same. ChaCha20 is always "
                    "theirs")
          .takes("list of " + cipher_names())};
  return all;
}

std::span<const CipherName> ipsec_ciphers() {
  using crypto::Cipher;
  static constexpr CipherName all[] = {{"aes-cbc", Cipher::aes_cbc},
                                       {"aes-ctr", Cipher::aes_ctr_esp},
                                       {"aes-gcm", Cipher::aes_gcm_esp},
                                       {"null", Cipher::null}};
  return all;
}

std::vector<OptionSection> ipsec_sections() {
  return {
      option::section("[ipsec]", ipsec_settings(),
                      "Security associations and policies: [ipsec.md](ipsec.md). No message shows a value of an SA; "
                      "the file is for its owner's eyes alone."),
      option::section("[[ipsec.sa]]", sa_settings(),
                      "A security association with keys of its own. Those of an IKE daemon are not in the file."),
      option::section("[[ipsec.policy]]", policy_settings(), "Which packets are protected, and how.")};
}

ipsec::SaSettings read_sa(Settings& section) {
  section.hide_values();
  SaWords words;
  option::read(sa_settings(), section, words);
  ipsec::SaSettings sa;
  sa.name = words.name.empty() ? default_name(words.spi) : words.name;
  sa.direction = words.direction;
  sa.mode = words.mode;
  sa.reqid = static_cast<std::uint32_t>(words.reqid);
  sa.id.spi = static_cast<std::uint32_t>(words.spi);
  sa.id.protocol = words.protocol;
  const auto source = read_address(section, "source", words.source);
  const auto destination = read_address(section, "destination", words.destination);
  if (source) sa.source = *source;
  if (destination) sa.id.destination = *destination;
  if (source && destination && source->family != destination->family) {
    section.error("destination", "is of another family than `source`");
  }
  if (!section.has("direction")) section.error("", direction_is_missing);
  if (!section.has("spi")) section.error("", "`spi` is missing");
  check_transport(section, sa, words);
  crypto::wipe(words.key.data(), words.key.size());
  crypto::wipe(words.auth_key.data(), words.auth_key.size());
  sa.esn = words.esn;
  sa.replay_window = words.replay_window;
  if ((words.udp_source != 0) != (words.udp_destination != 0)) {
    section.error(words.udp_source != 0 ? "udp_source_port" : "udp_destination_port",
                  "needs the other end's port beside it: UDP encapsulation has both");
  } else if (words.udp_source != 0) {
    if (sa.id.protocol == Protocol::ah) section.error("udp_source_port", "is of ESP alone (RFC 3948)");
    sa.udp = ipsec::UdpPorts{words.udp_source, words.udp_destination};
  }
  sa.lifetime = words.lifetime;
  check_limit(section, "bytes", sa.lifetime.bytes);
  check_limit(section, "packets", sa.lifetime.packets);
  check_limit(section, "seconds", sa.lifetime.seconds);
  sa.dont_fragment = words.dont_fragment;
  sa.copy_dscp = words.copy_dscp;
  sa.ecn = words.ecn;
  sa.pad_to = words.pad_to;
  if (sa.pad_to != 0 && sa.mode == Mode::transport) section.error("pad_to", "is of tunnel mode alone");
  section.finish();
  return sa;
}

ipsec::Policy read_policy(Settings& section) {
  PolicyWords words;
  option::read(policy_settings(), section, words);
  ipsec::Policy policy{.direction = words.direction, .selector = {}, .action = words.action, .name = words.name};
  policy.priority = static_cast<std::uint32_t>(words.priority);
  policy.selector = read_selector(section, words);
  if ((words.source_port >= 0 || words.destination_port >= 0) && words.upper == 0) {
    section.error(words.source_port >= 0 ? "source_port" : "destination_port",
                  "needs `upper_protocol` beside it: ports are a protocol's");
  }
  if (policy.name.empty()) policy.name = policy.selector.str();
  if (!section.has("direction")) section.error("", direction_is_missing);
  if (policy.action == ipsec::Action::protect) {
    read_template(section, words, policy);
  } else {
    for (const char* const key :
         {"tunnel_source", "tunnel_destination", "reqid", "mode", "protocol", "ah_around", "ah_reqid"}) {
      if (section.has(key)) section.error(key, "is of action = \"protect\" alone");
    }
  }
  section.finish();
  return policy;
}

ipsec::SaId read_sa_id(Settings& section) {
  section.hide_values();
  ipsec::SaId id;
  const auto destination = read_address(section, "destination", section.required_text("destination"));
  if (destination) id.destination = *destination;
  id.spi = static_cast<std::uint32_t>(section.integer("spi", 0, least_spi, 0xffffffff));
  if (!section.has("spi")) section.error("", "`spi` is missing");
  if (section.choice("protocol", "esp", {"esp", "ah"}) == "ah") id.protocol = Protocol::ah;
  // The other keys of an SA may be there.
  for (const Option<SaWords>& option : sa_settings()) section.is(option.key, "");
  section.finish();
  return id;
}

PolicyId read_policy_id(Settings& section) {
  PolicyWords words;
  option::read(policy_settings(), section, words);
  if (!section.has("direction")) section.error("", direction_is_missing);
  ipsec::Selector selector = read_selector(section, words);
  read_mask(section, "source_port", "source_port_mask", selector.source_port);
  read_mask(section, "destination_port", "destination_port_mask", selector.destination_port);
  section.finish();
  return {words.direction, selector.normal()};
}

IpsecOptions read_ipsec(Settings& settings) {
  settings.hide_values();
  IpsecOptions options;
  option::read(ipsec_settings(), settings, options);
  for (const std::string& given : options.cores_compute) {
    if (std::ranges::find(ipsec_ciphers(), given, &CipherName::name) == ipsec_ciphers().end()) {
      settings.error("cores_compute", "there is no \"" + given + "\": write a list of " + cipher_names());
    }
  }
  std::set<ipsec::SaId> ids;
  for (Settings& section : settings.sections("sa")) {
    ipsec::SaSettings sa = read_sa(section);
    if (!sa.id.destination.empty() && sa.id.spi != 0 && !ids.insert(sa.id).second) {
      section.error("spi", "is there twice for this destination and protocol");
    }
    options.sas.push_back(std::move(sa));
  }
  if (options.sas.size() > options.max_sas) {
    settings.error("max_sas", "there are " + std::to_string(options.sas.size()) + " SAs: raise it above that");
  }
  std::set<PolicyId> policies;
  for (Settings& section : settings.sections("policy")) {
    ipsec::Policy policy = read_policy(section);
    const bool is_whole = !policy.selector.source.address.empty() && !policy.selector.destination.address.empty();
    if (is_whole && !policies.insert({policy.direction, policy.selector.normal()}).second) {
      section.error("", "there is a policy for these packets already");
    }
    options.policies.push_back(std::move(policy));
  }
  if (options.policies.size() > options.max_policies) {
    settings.error("max_policies",
                   "there are " + std::to_string(options.policies.size()) + " policies: raise it above that");
  }
  return options;
}

}  // namespace sluice::function
