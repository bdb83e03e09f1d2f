// [[ipsec.sa]]: a security association of the file or of the API.
#include <charconv>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

#include "function/ipsec/ipsec_section.h"
#include "function/ipsec/ipsec_settings.h"
#include "ipsec/proposal.h"

namespace sluice::function {
namespace {

using ipsec::Direction;
using ipsec::Mode;
using ipsec::Protocol;

constexpr std::uint32_t least_spi = 256;
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

constexpr std::uint64_t most_seconds = 3'155'760'000;  // a hundred years

Option<SaWords> limit_option(const char* key, ipsec::Limit ipsec::Lifetime::*limit, std::uint64_t ipsec::Limit::*which,
                             std::string text, std::uint64_t most = most_count) {
  return Option<SaWords>{key,
                         std::move(text),
                         [=](Settings& section, SaWords& to) {
                           (to.lifetime.*limit).*which = static_cast<std::uint64_t>(section.integer(key, 0, 1, most));
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
                       "`null-sha256`, ...; `-esn` is `esn = true`, and what is of IKE, as `-modp2048`, is ignored"),
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
                      "ESP in tunnel mode: inner packets are padded to this length, so that their own does not show "
                      "(RFC 4303 2.7)"),
       limit_option("soft_bytes", &Lifetime::bytes, &Limit::soft, "an event says when so many inner bytes went by"),
       limit_option("hard_bytes", &Lifetime::bytes, &Limit::hard, "the SA ends then"),
       limit_option("soft_packets", &Lifetime::packets, &Limit::soft, "the same for packets"),
       limit_option("hard_packets", &Lifetime::packets, &Limit::hard, "the same for packets"),
       limit_option("soft_seconds", &Lifetime::seconds, &Limit::soft, "the same for seconds since the SA was added",
                    most_seconds),
       limit_option("hard_seconds", &Lifetime::seconds, &Limit::hard, "the same for seconds since the SA was added",
                    most_seconds)});
  return all;
}

// `key` in hexadecimal digits, or 0x and these. None: it has been reported.
std::optional<std::vector<std::uint8_t>> read_key(Settings& section, const char* key, std::string_view digits) {
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at + 1 < digits.size(); at += 2) {
    std::uint8_t value = 0;
    const char* const end = digits.data() + at + 2;
    if (std::from_chars(digits.data() + at, end, value, 16).ptr != end) break;
    bytes.push_back(value);
  }
  if (bytes.size() * 2 == digits.size()) return bytes;
  section.error(key, "is to be pairs of hexadecimal digits");
  crypto::wipe(bytes.data(), bytes.size());
  return std::nullopt;
}

void check_transport(Settings& section, ipsec::SaSettings& sa, const SaWords& words) {
  const auto proposal = ipsec::parse_proposal(words.proposal, sa.id.protocol);
  if (!proposal) {
    if (section.has("proposal")) section.error("proposal", proposal.error().message);
    return;
  }
  if (proposal->esn && section.has("esn") && *proposal->esn != words.esn) {
    section.error("esn", "the proposal says otherwise: write it in one of both");
  }
  sa.esn = proposal->esn.value_or(words.esn);
  auto key = read_key(section, "key", words.key);
  auto auth_key = read_key(section, "auth_key", words.auth_key);
  if (!key || !auth_key) return;
  auto transform = ipsec::make_transform(*proposal, *key, *auth_key);
  const char* const named =
      key->size() == std::size_t{proposal->key_length} + proposal->salt_length ? "auth_key" : "key";
  crypto::wipe(key->data(), key->size());
  crypto::wipe(auth_key->data(), auth_key->size());
  if (!transform) {
    section.error(section.has(named) ? named : "proposal", transform.error().message);
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

}  // namespace

OptionSection sa_section() {
  return option::section("[[ipsec.sa]]", sa_settings(),
                         "A security association with keys of its own. Those of an IKE daemon are not in the file.");
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
  const auto source = read_end(section, "source", words.source);
  const auto destination = read_end(section, "destination", words.destination);
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
  if (sa.pad_to != 0 && (sa.mode == Mode::transport || sa.id.protocol == Protocol::ah)) {
    section.error("pad_to", "is of ESP in tunnel mode alone");
  }
  section.finish();
  return sa;
}

GivenSa read_given_sa(Settings& section) {
  ipsec::SaSettings sa = read_sa(section);
  const auto proposal = ipsec::parse_proposal(section.text("proposal", ""), sa.id.protocol);
  return {.sa = std::move(sa), .ignored = proposal ? proposal->ignored : ""};
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

}  // namespace sluice::function
