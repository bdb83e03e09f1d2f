#include "lookup/acl/classifier.h"

#include <rte_acl.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <vector>

namespace sluice::lookup::acl {

namespace {

constexpr std::size_t longest_name = 16;
constexpr unsigned chunk = 256;  // keys at a time: rte_acl takes pointers to them

// Fields in the order that rte_acl wants: one of a single byte first, then groups of four bytes. The protocol is read
// once by itself and, with the flags, once more in the last group, where its bits are masked off.
constexpr unsigned fields4 = 6;
constexpr unsigned fields6 = 12;
RTE_ACL_RULE_DEF(Rule4, fields4);
RTE_ACL_RULE_DEF(Rule6, fields6);

constexpr rte_acl_field_def field(int type, unsigned size, unsigned index, unsigned input, std::size_t offset) {
  return {static_cast<std::uint8_t>(type), static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(index),
          static_cast<std::uint8_t>(input), static_cast<std::uint32_t>(offset)};
}

// The fields of a key whose addresses have `words` words of four bytes each.
template <typename Key>
void define_fields(rte_acl_config& config) {
  constexpr unsigned words = sizeof(Key::source) / 4;
  rte_acl_field_def* def = config.defs;
  unsigned index = 0;
  def[index] = field(RTE_ACL_FIELD_TYPE_BITMASK, 1, index, 0, offsetof(Key, protocol));
  ++index;
  for (unsigned word = 0; word < 2 * words; ++word, ++index) {
    def[index] = field(RTE_ACL_FIELD_TYPE_MASK, 4, index, 1 + word, offsetof(Key, source) + 4 * word);
  }
  constexpr unsigned ports = 1 + 2 * words;
  def[index] = field(RTE_ACL_FIELD_TYPE_RANGE, 2, index, ports, offsetof(Key, source_port));
  ++index;
  def[index] = field(RTE_ACL_FIELD_TYPE_RANGE, 2, index, ports, offsetof(Key, destination_port));
  ++index;
  def[index] = field(RTE_ACL_FIELD_TYPE_BITMASK, 4, index, ports + 1, offsetof(Key, protocol));
  config.num_fields = index + 1;
  config.num_categories = 1;
}

void set_address(rte_acl_field* field, const packet::IpPrefix& prefix, unsigned words) {
  const bool any = prefix.address.empty();
  for (unsigned word = 0; word < words; ++word) {
    const std::uint8_t* const b = prefix.address.bytes.data() + 4 * word;
    const int bits = any ? 0 : std::clamp(static_cast<int>(prefix.length) - static_cast<int>(32 * word), 0, 32);
    field[word].value.u32 = static_cast<std::uint32_t>(b[0]) << 24 | static_cast<std::uint32_t>(b[1]) << 16 |
                            static_cast<std::uint32_t>(b[2]) << 8 | b[3];
    field[word].mask_range.u32 = static_cast<std::uint32_t>(bits);
  }
}

void set_range(rte_acl_field& field, PortRange range) {
  field.value.u16 = range.first;
  field.mask_range.u16 = range.last;
}

template <typename Rule>
Rule as_rte(const AclRule& rule, RuleIndex index, unsigned words) {
  Rule out{};
  out.data.category_mask = 1;
  out.data.priority = static_cast<std::int32_t>(RTE_ACL_MAX_PRIORITY - index);
  out.data.userdata = index + 1;  // 0 is rte_acl's word for no match
  out.field[0].value.u8 = rule.protocol.value;
  out.field[0].mask_range.u8 = rule.protocol.mask;
  set_address(&out.field[1], rule.source, words);
  set_address(&out.field[1 + words], rule.destination, words);
  set_range(out.field[1 + 2 * words], rule.source_port);
  set_range(out.field[2 + 2 * words], rule.destination_port);
  // The tags' lower byte is the third one of the four.
  const auto last_word = [](std::uint8_t flags, std::uint16_t tags) {
    return static_cast<std::uint32_t>(flags) << 16 | (tags & 0xffU) << 8 | static_cast<std::uint32_t>(tags >> 8);
  };
  out.field[3 + 2 * words].value.u32 = last_word(rule.flags.value, rule.tags.value);
  out.field[3 + 2 * words].mask_range.u32 = last_word(rule.flags.mask, rule.tags.mask);
  return out;
}

template <typename Rule>
int add_rules(rte_acl_ctx* context, int family, std::span<const AclRule> rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].is_of(family)) {
      continue;
    }
    const Rule rule = as_rte<Rule>(rules[i], static_cast<RuleIndex>(i), family == 4 ? 1 : 4);
    if (const int status = rte_acl_add_rules(context, reinterpret_cast<const rte_acl_rule*>(&rule), 1); status != 0) {
      return status;
    }
  }
  return 0;
}

std::size_t heap_used() {
  std::size_t used = 0;
  for (unsigned i = 0; i < rte_socket_count(); ++i) {
    rte_malloc_socket_stats stats;
    if (rte_malloc_get_socket_stats(rte_socket_id_by_idx(i), &stats) == 0) {
      used += stats.heap_allocsz_bytes;
    }
  }
  return used;
}

enum rte_acl_classify_alg algorithm(Search search) {
  switch (search) {
    case Search::avx2:
      return RTE_ACL_CLASSIFY_AVX2;
    case Search::avx512x16:
      return RTE_ACL_CLASSIFY_AVX512X16;
    case Search::avx512x32:
      return RTE_ACL_CLASSIFY_AVX512X32;
    case Search::widest:
      break;
  }
  return RTE_ACL_CLASSIFY_DEFAULT;
}

tl::unexpected<Error> does_not_fit(int family, std::size_t count, std::size_t most, int status) {
  return make_error("rte_acl's tables for " + std::to_string(count) + " IPv" + std::to_string(family) +
                    " rules do not fit into " + std::to_string(most >> 20) + " MB and what DPDK's memory has free (" +
                    rte_strerror(-status) + "); raise [memory] size, or take rules out");
}

template <typename Key>
void classify(const rte_acl_ctx* context, const Key* keys, RuleIndex* out, unsigned n) {
  if (context == nullptr) {
    std::fill_n(out, n, no_match);
    return;
  }
  std::array<const std::uint8_t*, chunk> data;
  for (unsigned done = 0; done < n; done += chunk) {
    const unsigned now = std::min(chunk, n - done);
    for (unsigned i = 0; i < now; ++i) {
      data[i] = reinterpret_cast<const std::uint8_t*>(keys + done + i);
    }
    rte_acl_classify(context, data.data(), out + done, now, 1);
    for (unsigned i = 0; i < now; ++i) {
      out[done + i] -= 1;  // no match: 0 becomes no_match
    }
  }
}
static_assert(no_match == static_cast<RuleIndex>(0) - 1);

}  // namespace

Expected<std::unique_ptr<Classifier>> Classifier::create(const Options& options, std::span<const AclRule> rules) {
  if (options.name.empty() || options.name.size() > longest_name) {
    return make_error("a classifier's name has 1 to 16 characters, not '" + options.name + "'");
  }
  if (auto good = check(rules); !good) {
    return tl::unexpected(good.error());
  }
  std::unique_ptr<Classifier> made(new Classifier);
  const std::size_t before = heap_used();
  for (const int family : {4, 6}) {
    if (auto built = made->build(family, options, rules); !built) {
      return tl::unexpected(built.error());
    }
  }
  made->memory_bytes_ = heap_used() - before;
  if (auto ok = made->use(Search::widest); !ok) {
    return tl::unexpected(ok.error());
  }
  return made;
}

Expected<void> Classifier::build(int family, const Options& options, std::span<const AclRule> rules) {
  const auto count = static_cast<std::size_t>(
      std::count_if(rules.begin(), rules.end(), [family](const AclRule& rule) { return rule.is_of(family); }));
  if (count == 0) {
    return {};
  }
  static std::atomic<unsigned> made{0};  // contexts of one name would be one and the same
  const std::string name = options.name + std::to_string(family) + "-" + std::to_string(made.fetch_add(1));
  rte_acl_param parameters{};
  parameters.name = name.c_str();
  parameters.socket_id = options.numa_node;
  parameters.rule_size = RTE_ACL_RULE_SZ(family == 4 ? fields4 : fields6);
  parameters.max_rule_num = static_cast<std::uint32_t>(count);
  rte_acl_ctx*& context = family == 4 ? context4_ : context6_;
  context = rte_acl_create(&parameters);
  if (context == nullptr) {
    return does_not_fit(family, count, options.max_table_bytes, ENOMEM);
  }
  int status = family == 4 ? add_rules<Rule4>(context, 4, rules) : add_rules<Rule6>(context, 6, rules);
  if (status == 0) {
    rte_acl_config config{};
    family == 4 ? define_fields<Key4>(config) : define_fields<Key6>(config);
    config.max_size = options.max_table_bytes;
    status = rte_acl_build(context, &config);
  }
  if (status != 0) {
    return does_not_fit(family, count, options.max_table_bytes, status);
  }
  return {};
}

Expected<void> Classifier::use(Search search) {
  for (rte_acl_ctx* const context : {context4_, context6_}) {
    if (context != nullptr && rte_acl_set_ctx_classify(context, algorithm(search)) != 0) {
      return make_error("rte_acl has no such search on this CPU, or EAL's --force-max-simd-bitwidth forbids it");
    }
  }
  return {};
}

Classifier::~Classifier() {
  rte_acl_free(context4_);
  rte_acl_free(context6_);
}

void Classifier::classify4(const Key4* keys, RuleIndex* out, unsigned n) const {
  classify(context4_, keys, out, n);
}

void Classifier::classify6(const Key6* keys, RuleIndex* out, unsigned n) const {
  classify(context6_, keys, out, n);
}

}  // namespace sluice::lookup::acl
