#include "function/ipsec/ipsec_settings.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "function/ipsec/ipsec_section.h"
#include "ipsec/proposal.h"
#include "ipsec/xfrm/listener.h"

namespace sluice::function {
namespace {

std::string cipher_names() {
  std::string names;
  for (const CipherName& one : ipsec_ciphers()) {
    names += (names.empty() ? "`" : ", `") + option::literal(one.name) + "`";
  }
  return names;
}

std::string file_of(const Settings& settings) {
  const std::string place = settings.place("");
  return settings.line("") == 0 ? place : place.substr(0, place.rfind(':'));
}

// Of a section that has been read.
IpsecLines::Sa lines_of(const Settings& section, const GivenSa& given) {
  return {.section = section.line(""),
          .own_end = section.line(given.sa.direction == ipsec::Direction::in ? "destination" : "source"),
          .proposal = section.line("proposal"),
          .pad_to = section.line("pad_to"),
          .ignored = given.ignored};
}

void check_ike_socket(Settings& settings, const std::string& path) {
  const std::string why = path.empty() ? "" : ipsec::xfrm::why_no_socket_path(path);
  if (!why.empty()) settings.error("ike_socket", why);
}

}  // namespace

std::string IpsecLines::before(unsigned line) const {
  if (file.empty()) return "";
  return file + (line == 0 ? "" : ":" + std::to_string(line)) + ": ";
}

const std::vector<Option<IpsecOptions>>& ipsec_settings() {
  static const std::vector<Option<IpsecOptions>> all = {
      option::number(
          "max_sas", &IpsecOptions::max_sas, {2, 1'000'000},
          "the most SAs, of both directions together, that the file and the API may have; an IKE daemon may have a "
          "quarter more for the time of a rekey"),
      option::number("max_policies", &IpsecOptions::max_policies, {1, 1'000'000}, "likewise of policies"),
      option::text("ike_socket", &IpsecOptions::ike_socket,
                   "the unix socket where an IKE daemon finds the databases; empty: there is none")
          .takes("path that begins with `/`")
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
      sa_section(), policy_section()};
}

std::optional<packet::IpAddress> read_address(Settings& section, const char* key, const std::string& text) {
  if (text.empty()) return std::nullopt;
  auto address = packet::IpAddress::parse(text);
  if (!address) {
    section.error(key, address.error().message);
    return std::nullopt;
  }
  return *address;
}

namespace {

// Why no host has it alone; empty: one may.
std::string why_no_hosts(const packet::IpAddress& address) {
  constexpr std::uint32_t broadcast = 0xffffffff;
  constexpr std::uint8_t multicast4 = 224, multicast4_end = 240, multicast6 = 0xff;
  const std::uint8_t first = address.bytes[0];
  if (std::ranges::all_of(address.bytes, [](std::uint8_t byte) { return byte == 0; })) return "no address";
  if (address.family == 4 && address.v4_host_order() == broadcast) return "the broadcast address";
  const bool many = address.family == 4 ? first >= multicast4 && first < multicast4_end : first == multicast6;
  return many ? "a multicast address" : "";
}

}  // namespace

std::optional<packet::IpAddress> read_end(Settings& section, const char* key, const std::string& text) {
  const auto address = read_address(section, key, text);
  const std::string why = address ? why_no_hosts(*address) : "";
  if (!why.empty()) section.error(key, "is " + why + ": an SA is between two hosts, write the address of one");
  return address;
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
  check_ike_socket(settings, options.ike_socket);
  options.lines.file = file_of(settings);
  std::set<ipsec::SaId> ids;
  for (Settings& section : settings.sections("sa")) {
    GivenSa given = read_given_sa(section);
    const ipsec::SaSettings& sa = given.sa;
    if (!sa.id.destination.empty() && sa.id.spi != 0 && !ids.insert(sa.id).second) {
      section.error("spi", "is there twice for this destination and protocol");
    }
    options.lines.sas.push_back(lines_of(section, given));
    options.sas.push_back(std::move(given.sa));
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
    const char* const own_end = policy.direction == ipsec::Direction::in ? "tunnel_destination" : "tunnel_source";
    options.lines.policies.push_back({.section = section.line(""), .own_end = section.line(own_end)});
    options.policies.push_back(std::move(policy));
  }
  if (options.policies.size() > options.max_policies) {
    settings.error("max_policies",
                   "there are " + std::to_string(options.policies.size()) + " policies: raise it above that");
  }
  return options;
}

}  // namespace sluice::function
