// SAs and policies that people bring, the configuration's file and the API, in the databases that an IKE daemon
// changes, too. Each takes away what it has brought; people may take away the daemon's as well.
//
// A reload brings the file's into force. An SA that has not changed stays as it is, with its numbers, window and
// counters; with another key it is replaced; with the same key it is changed in place, or where the databases cannot do
// that the reload is refused. What others have brought stays.
//
// Of keys nothing is kept here but 64 bits of a keyed hash, by which a reload knows one again.
//
// Thread-safety: any thread. Cost: control path; that of the databases, and a microsecond for each key.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "crypto/secret.h"
#include "engine/element.h"
#include "function/ipsec/ipsec_settings.h"
#include "ipsec/databases.h"

namespace sluice::function {

struct IpsecChange {
  std::string done;  // a sentence
  std::vector<std::string> warnings = {};
};

class IpsecControl {
 public:
  static constexpr std::string_view trait_name = "ipsec_control";

  enum class Origin : std::uint8_t { configuration, api, ike };
  // That the file and the API hold to. The databases have capacity for some more.
  struct Limits {
    std::size_t sas, policies;
  };
  // `databases` outlives it. An Error: the system has no random bytes.
  static Expected<std::unique_ptr<IpsecControl>> make(ipsec::Databases& databases, Limits limits);

  // The file's, at the start. An Error: the first one that the databases do not take.
  Expected<void> load(const IpsecOptions& file);
  // As Element::reload(). commit() waits up to a second where what it replaces is still in use and there is no more
  // capacity; what finds none then is not in force, and the log says so.
  Expected<engine::Element::Change> reload(const IpsecOptions& file);

  // The API's.
  Expected<IpsecChange> add(const ipsec::SaSettings& sa);
  Expected<IpsecChange> add(const GivenSa& given);
  Expected<IpsecChange> add(const ipsec::Policy& policy);
  Expected<IpsecChange> remove(const ipsec::SaId& id);
  Expected<IpsecChange> remove(const PolicyId& id);

  struct SaFilter {
    packet::IpAddress address = {};  // of one of its ends; empty: any
    std::optional<std::uint32_t> spi = {};
  };
  template <class T>
  struct Listing {
    struct Row {
      T value;
      Origin origin;
      ipsec::Count count = {};  // of a policy
    };
    std::vector<Row> rows;
    std::size_t count = 0;  // how many there are, of those that are asked for
  };
  Listing<ipsec::SaStatus> list_sas(std::size_t most, const SaFilter& filter) const;
  Listing<ipsec::Policy> list_policies(std::size_t most, std::optional<ipsec::Direction> direction) const;

 private:
  struct Known {
    Origin origin;
    std::uint64_t key_hash = 0;  // of an SA; 0: not known, and like no other
  };
  struct Plan;

  IpsecControl(ipsec::Databases& databases, Limits limits) : databases_(databases), limits_(limits) {}

  std::uint64_t key_hash(const ipsec::SaSettings& sa) const;
  // The caller holds the mutex, as for all that follows.
  Origin origin_of(const ipsec::SaStatus& sa) const;
  Origin origin_of(const ipsec::Policy& policy) const;
  Expected<void> plan_sas(const IpsecOptions& file, Plan& plan) const;
  Expected<void> plan_policies(const IpsecOptions& file, Plan& plan) const;
  void commit(const Plan& plan);

  ipsec::Databases& databases_;
  const Limits limits_;
  crypto::Secret<32> own_key_;
  mutable std::mutex mutex_;
  std::map<ipsec::SaId, Known> sas_;
  std::map<PolicyId, Known> policies_;
};

// Why keys from people are dangerous for an outbound SA of this transform; empty: they are not.
std::string manual_key_warning(const ipsec::Transform& transform);
// What is said of GivenSa::ignored, behind where it is; empty: nothing is ignored.
std::string ignored_warning(const std::string& ignored);

}  // namespace sluice::function
