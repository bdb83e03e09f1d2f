#include "function/ipsec/ipsec_settings.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "function/ipsec/ipsec_section.h"

namespace sluice::function {
namespace {

std::string cipher_names() {
  std::string names;
  for (const CipherName& one : ipsec_ciphers()) {
    names += (names.empty() ? "`" : ", `") + option::literal(one.name) + "`";
  }
  return names;
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
