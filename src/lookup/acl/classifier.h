// First-match classification on the CPU by DPDK's rte_acl: one set of tries for each family.
//
// In: keys (acl_rule.h). Out: the index of the first rule of the list that matches, or no_match.
//
// A Classifier never changes. Rules change at run time by making a new one beside it and publishing that
// (base/published.h): a reader classifies a whole batch by the old list or a whole batch by the new one.
//
// Threads: create() and destruction on the control thread; classify4() and classify6() on any number of threads at the
// same time, without locks. Memory: rte_acl's tables lie in DPDK's heap, `max_table_bytes` at most for each family; in
// passing a build takes several times that of ordinary memory. Errors: rules that check() refuses, tables that would be
// larger than the limit or than the heap has capacity for. Cost: a build takes up to some seconds for 10,000 rules, a
// lookup 50 to 200 ns of one core (docs/acl.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "lookup/acl/acl_rule.h"

struct rte_acl_ctx;

namespace sluice::lookup::acl {

// rte_acl's searches: the widest that this CPU has and EAL's --force-max-simd-bitwidth allows, or one by name, which is
// for benches.
enum class Search { widest, avx2, avx512x16, avx512x32 };

class Classifier {
 public:
  struct Options {
    std::string name = "acl";  // at most 16 characters; need not be unique, a number is appended
    std::size_t max_table_bytes = 512U << 20;
    int numa_node = -1;  // -1: any
  };

  // `rules` in match order; they are not kept.
  static Expected<std::unique_ptr<Classifier>> create(const Options& options, std::span<const AclRule> rules);
  ~Classifier();
  Classifier(const Classifier&) = delete;
  Classifier& operator=(const Classifier&) = delete;

  // out[i] = first rule that matches keys[i]. Any n; best from 32 on.
  void classify4(const Key4* keys, RuleIndex* out, unsigned n) const;
  void classify6(const Key6* keys, RuleIndex* out, unsigned n) const;

  // From then on; not while others classify. An Error where this CPU has no such search, or EAL forbids it. A new
  // Classifier has the widest.
  Expected<void> use(Search search);

  // DPDK heap that the tables and the copies of the rules hold.
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  Classifier() = default;
  Expected<void> build(int family, const Options& options, std::span<const AclRule> rules);

  rte_acl_ctx* context4_ = nullptr;  // null: no rule of this family
  rte_acl_ctx* context6_ = nullptr;
  std::size_t memory_bytes_ = 0;
};

}  // namespace sluice::lookup::acl
