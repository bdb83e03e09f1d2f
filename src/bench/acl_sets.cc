#include "bench/acl_sets.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/machine.h"
#include "lookup/acl/acl_settings.h"
#include "lookup/acl/classbench.h"
#include "lookup/acl/make_rules.h"

namespace sluice::cli::bench {
namespace {

using namespace lookup::acl;

constexpr std::size_t made_rules = 10'000;
constexpr std::size_t most_headers = 65'536;
constexpr std::uint64_t seed = 2022;

std::uint32_t mask_of(unsigned length) {
  return length == 0 ? 0 : ~std::uint32_t{0} << (32 - length);
}

std::uint32_t number(const std::uint8_t* bytes, unsigned count) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < count; ++i) {
    value = value << 8 | bytes[i];
  }
  return value;
}

void find_expected(AclSet& set) {
  const FirstMatch rules(set.rules);
  set.expected.resize(set.keys.size());
  const std::size_t workers = allowed_cores().size();
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::size_t i = worker; i < set.keys.size(); i += workers) {
        set.expected[i] = rules.of(set.keys[i]);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

Expected<std::vector<Key4>> read_keys(const std::string& path) {
  const auto trace = read_classbench_trace(path);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  if (trace->empty()) {
    return make_error(path + ": has no headers");
  }
  std::vector<Key4> keys;
  for (std::size_t i = 0; i < std::min(trace->size(), most_headers); ++i) {
    keys.push_back((*trace)[i].key);
  }
  return keys;
}

Expected<AclSet> read_set(const BenchOptions& options) {
  auto rules = options.rules.ends_with(".toml") ? read_rules_file(options.rules) : read_classbench(options.rules);
  if (!rules) {
    return tl::unexpected(rules.error());
  }
  std::vector<AclRule> of4;
  std::copy_if(rules->begin(), rules->end(), std::back_inserter(of4), [](const AclRule& r) { return r.is_of(4); });
  if (of4.empty()) {
    return make_error(options.rules + ": has no rule for IPv4, which is what this bench measures");
  }
  AclSet set{std::filesystem::path(options.rules).stem().string(), std::move(of4), {}, {}};
  if (options.trace.empty()) {
    set.keys = make_headers4(set.rules, most_headers, seed);
    return set;
  }
  auto keys = read_keys(options.trace);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  set.keys = std::move(*keys);
  return set;
}

}  // namespace

FirstMatch::FirstMatch(const std::vector<AclRule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const AclRule& r = rules[i];
    if (r.is_of(4)) {
      rules_.push_back({r.source.address.v4_host_order(), mask_of(r.source.length),
                        r.destination.address.v4_host_order(), mask_of(r.destination.length), r.source_port,
                        r.destination_port, r.protocol.value, r.protocol.mask, r.flags.value, r.flags.mask,
                        static_cast<RuleIndex>(i)});
    }
  }
}

RuleIndex FirstMatch::of(const Key4& key) const {
  const std::uint32_t source = number(key.source, 4);
  const std::uint32_t destination = number(key.destination, 4);
  const std::uint32_t source_port = number(key.source_port, 2);
  const std::uint32_t destination_port = number(key.destination_port, 2);
  for (const PlainRule& r : rules_) {
    if ((source & r.source_mask) == r.source && (destination & r.destination_mask) == r.destination &&
        source_port >= r.source_port.first && source_port <= r.source_port.last &&
        destination_port >= r.destination_port.first && destination_port <= r.destination_port.last &&
        (key.protocol & r.protocol_mask) == r.protocol && (key.flags & r.flags_mask) == r.flags) {
      return r.index;
    }
  }
  return no_match;
}

Expected<std::vector<AclSet>> load_acl_sets(const BenchOptions& options) {
  std::vector<AclSet> sets;
  if (!options.rules.empty()) {
    auto set = read_set(options);
    if (!set) {
      return tl::unexpected(set.error());
    }
    sets.push_back(std::move(*set));
  } else {
    for (const RuleMix mix : all_mixes) {
      AclSet set{std::string(name_of(mix)), make_rules(mix, made_rules, seed), {}, {}};
      set.keys = make_headers4(set.rules, most_headers, seed);
      sets.push_back(std::move(set));
    }
  }
  for (AclSet& set : sets) {
    find_expected(set);
  }
  return sets;
}

Expected<void> verify_acl(const AclSet& set, const std::string& who, const std::vector<RuleIndex>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const RuleIndex wanted = set.expected[i % set.keys.size()];
    if (answers[i] != wanted) {
      return make_error(fmt::format("NOT VERIFIED: {}: header {} of {}: {} answers rule {}, the first match is {}",
                                    set.name, i % set.keys.size(), set.keys.size(), who,
                                    static_cast<std::int32_t>(answers[i]), static_cast<std::int32_t>(wanted)));
    }
  }
  return {};
}

}  // namespace sluice::cli::bench
