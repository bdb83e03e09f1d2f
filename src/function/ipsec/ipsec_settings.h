// What [ipsec] says: SAs with keys of their own, policies, and where an IKE daemon finds the databases.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/option.h"
#include "base/settings.h"
#include "crypto/key.h"
#include "ipsec/security_association.h"
#include "ipsec/selector.h"

namespace sluice::function {

// Where a file has what notes and refusals are about: its lines; 0: it is not known.
struct IpsecLines {
  struct Sa {
    unsigned section = 0, own_end = 0, proposal = 0, pad_to = 0;
    std::string ignored = {};  // in the proposal (ipsec/proposal.h)
  };
  struct Policy {
    unsigned section = 0, own_end = 0;
  };
  std::string file = {};
  std::vector<Sa> sas = {};  // of each SA and policy, in order; empty where there is no file
  std::vector<Policy> policies = {};
  // "FILE:LINE: "; without a line "FILE: "; without a file nothing.
  std::string before(unsigned line) const;
};

struct IpsecOptions {
  std::uint32_t max_sas = 4096;
  std::uint32_t max_policies = 4096;
  std::string ike_socket = {};  // XFRM for an IKE daemon; empty: none
  // Where there is a GPU: what lanes' cores compute all the same.
  std::uint32_t gpu_at_least = 64;              // packets of a batch; fewer are theirs
  std::vector<std::string> cores_compute = {};  // ciphers, as ipsec_ciphers() names them
  std::vector<ipsec::SaSettings> sas = {};
  std::vector<ipsec::Policy> policies = {};
  IpsecLines lines = {};
};

// The keys of [ipsec] itself, and those of all its sections.
const std::vector<Option<IpsecOptions>>& ipsec_settings();
std::vector<OptionSection> ipsec_sections();

// What `cores_compute` may name. ChaCha20 is always theirs.
struct CipherName {
  std::string_view name;
  crypto::Cipher cipher;
};
std::span<const CipherName> ipsec_ciphers();

// Reports what is wrong to `settings`, with its place; what it returns then is good for nothing.
IpsecOptions read_ipsec(Settings& settings);

// One section, up to finish(): an [[ipsec.sa]] or [[ipsec.policy]]. No message shows a value of an SA.
ipsec::SaSettings read_sa(Settings& section);
// With what is no part of it and was in its proposal all the same (ipsec/proposal.h).
struct GivenSa {
  ipsec::SaSettings sa;
  std::string ignored;
};
GivenSa read_given_sa(Settings& section);
ipsec::Policy read_policy(Settings& section);

// What an SA and a policy are found by. Whatever else such a section may have is not looked at.
struct PolicyId {
  ipsec::Direction direction;
  ipsec::Selector selector;  // in normal form
  auto operator<=>(const PolicyId&) const = default;
};
ipsec::SaId read_sa_id(Settings& section);
PolicyId read_policy_id(Settings& section);

// The keys of one such section, of the API; an Error has a line for each mistake.
Expected<ipsec::SaSettings> read_sa_text(std::string_view text, const std::string& what);
Expected<GivenSa> read_given_sa_text(std::string_view text, const std::string& what);
Expected<ipsec::Policy> read_policy_text(std::string_view text, const std::string& what);
Expected<ipsec::SaId> read_sa_id_text(std::string_view text, const std::string& what);
Expected<PolicyId> read_policy_id_text(std::string_view text, const std::string& what);

}  // namespace sluice::function
