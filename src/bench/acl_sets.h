// What sluice bench acl classifies: sets of rules with IPv4 headers and, for each header, the first rule that matches,
// found by trying one after the other. Shares no code with the classifiers that are measured.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "bench/bench.h"
#include "lookup/acl/acl_rule.h"

namespace sluice::cli::bench {

struct AclSet {
  std::string name;
  std::vector<lookup::acl::AclRule> rules;
  std::vector<lookup::acl::Key4> keys;
  std::vector<lookup::acl::RuleIndex> expected;  // by key
};

// The first rule that matches, by trying one after the other.
class FirstMatch {
 public:
  explicit FirstMatch(const std::vector<lookup::acl::AclRule>& rules);
  lookup::acl::RuleIndex of(const lookup::acl::Key4& key) const;

 private:
  // As bare numbers in host order.
  struct PlainRule {
    std::uint32_t source, source_mask, destination, destination_mask;
    lookup::acl::PortRange source_port, destination_port;
    std::uint8_t protocol, protocol_mask, flags, flags_mask;
    lookup::acl::RuleIndex index;
  };
  std::vector<PlainRule> rules_;
};

// That of --rules and --trace, or made-up ones of 10,000 rules like ClassBench's acl, fw and ipc. Cost: the comparison
// takes some seconds on all cores.
Expected<std::vector<AclSet>> load_acl_sets(const BenchOptions& options);

// An Error with the first header for which an answer is not the first match. answers[i] is that of key i % keys.
Expected<void> verify_acl(const AclSet& set, const std::string& who,
                          const std::vector<lookup::acl::RuleIndex>& answers);

}  // namespace sluice::cli::bench
