// Classification for kernels that do more than classify: any thread, no cooperation with others, no shared memory.
//
//     const RuleIndex rule = acl::classify4(view, source, destination, ports, protocol | flags << 8 | tags << 16);
//
// Addresses and ports are words whose bytes lie as in the frame (network order), as loads from a header give them:
// `ports` holds the source port in its first two bytes. What tables.h calls cells, records and rows is read here.
//
// Cost, in dependent steps: one to three reads of each trie (IPv6: up to fifteen; both addresses at the same time), one
// for the classes in the groups, one for the cells of all groups, one for their first records, then those that follow
// in a list; where a cell leads to a row, meanwhile three more steps for the ports. Nearly all lines are shared by many
// keys and stay in L1 and L2.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "device/launch.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/tables_view.h"

namespace sluice::lookup::acl {

namespace detail {

constexpr unsigned swap_bytes = 0x0123;

__device__ inline uint4 words4(const std::uint32_t* words, std::uint32_t at) {
  return __ldg(reinterpret_cast<const uint4*>(words + at));
}

__device__ inline std::uint32_t address_class4(const std::uint32_t* trie, std::uint32_t address) {
  const std::uint32_t host = __byte_perm(address, 0, swap_bytes);
  std::uint32_t slot = __ldg(trie + (host >> 16));
  if ((slot & FamilyTables::child_flag) != 0) {
    slot = __ldg(trie + ((slot << 8) + (host >> 8 & 255)));
  }
  if ((slot & FamilyTables::child_flag) != 0) {
    slot = __ldg(trie + ((slot << 8) + (host & 255)));
  }
  return slot;
}

__device__ inline std::uint32_t address_class6(const std::uint32_t* trie, uint4 address) {
  const std::uint32_t first = __byte_perm(address.x, 0, swap_bytes);
  std::uint32_t slot = __ldg(trie + (first >> 16));
  // The bytes that are still to be used, the next one highest: in registers, where an array would not be.
  std::uint64_t next = static_cast<std::uint64_t>(first) << 48 |
                       static_cast<std::uint64_t>(__byte_perm(address.y, 0, swap_bytes)) << 16 |
                       __byte_perm(address.z, 0, swap_bytes) >> 16;
  std::uint64_t later = static_cast<std::uint64_t>(__byte_perm(address.z, 0, swap_bytes)) << 48 |
                        static_cast<std::uint64_t>(__byte_perm(address.w, 0, swap_bytes)) << 16;
  while ((slot & FamilyTables::child_flag) != 0) {
    slot = __ldg(trie + ((slot << 8) + static_cast<std::uint32_t>(next >> 56)));
    next = next << 8 | later >> 56;
    later <<= 8;
  }
  return slot;
}

// first <= port <= last.
__device__ inline bool in_range(std::uint32_t port, std::uint32_t range) {
  return port >= (range & 0xffff) && port <= range >> 16;
}

struct Rest {
  std::uint32_t source_port;       // host order
  std::uint32_t destination_port;  // host order
  std::uint32_t protocol;
  std::uint32_t flags;
  std::uint32_t tags;
};

__device__ inline Rest rest_of(std::uint32_t ports, std::uint32_t protocol_flags) {
  const std::uint32_t host = __byte_perm(ports, 0, swap_bytes);
  return {host >> 16, host & 0xffff, protocol_flags & 255, protocol_flags >> 8 & 255, protocol_flags >> 16};
}

__device__ inline bool matches(uint4 record, const Rest& rest) {
  const std::uint32_t pf = record.z;
  return in_range(rest.source_port, record.x) && in_range(rest.destination_port, record.y) &&
         (rest.protocol & (pf >> 8 & 255)) == (pf & 255) && (rest.flags & pf >> 24) == (pf >> 16 & 255);
}

// Of a rule with tags_flag.
__device__ inline bool has_tags(const std::uint32_t* words, const FamilyTables& t, RuleIndex rule, const Rest& rest) {
  const std::uint32_t wanted = __ldg(words + t.tags + rule);
  return (rest.tags & wanted >> 16) == (wanted & 0xffff);
}

// The first rule of the list that begins with record `at`, already read, if it comes before `best`; else `best`.
__device__ inline RuleIndex first_of(const std::uint32_t* words, const FamilyTables& t, std::uint32_t at, uint4 record,
                                     const Rest& rest, RuleIndex best) {
  const std::uint32_t* const records = words + t.records;
  while (true) {
    const RuleIndex rule = record.w & ~(FamilyTables::last_flag | FamilyTables::tags_flag);
    if (rule >= best) {
      return best;
    }
    if (matches(record, rest) && ((record.w & FamilyTables::tags_flag) == 0 || has_tags(words, t, rule, rest))) {
      return rule;
    }
    if ((record.w & FamilyTables::last_flag) != 0) {
      return best;
    }
    ++at;
    record = words4(records, at * 4);
  }
}

__device__ inline std::uint32_t port_class(const std::uint32_t* words, const FamilyTables& t, const Rest& rest) {
  const std::uint32_t source = __ldg(words + t.source_ports + rest.source_port);
  const std::uint32_t destination = __ldg(words + t.destination_ports + rest.destination_port);
  const std::uint32_t protocol = __ldg(words + t.protocol_flags + (rest.protocol << 8 | rest.flags));
  const std::uint32_t pair = __ldg(words + t.port_pairs + source * t.destination_port_classes + destination);
  return __ldg(words + t.port_classes + pair * t.protocol_classes + protocol);
}

// Where a group's cell is, counted from the first one.
__device__ inline std::uint32_t cell_index(const std::uint32_t* words, const FamilyTables& t, unsigned group,
                                           std::uint32_t row, std::uint32_t column) {
  if ((t.paged >> group & 1) == 0) {
    return row + column;
  }
  return __ldg(words + t.pages + row + column / page_cells) * page_cells + column % page_cells;
}

__device__ inline RuleIndex classify_classes(const std::uint32_t* words, const FamilyTables& t,
                                             std::uint32_t source_class, std::uint32_t destination_class,
                                             const Rest& rest) {
  const uint4 row = words4(words, t.source_rows + source_class * group_count);
  const uint4 column = words4(words, t.destination_columns + destination_class * group_count);
  const std::uint32_t index[group_count] = {
      cell_index(words, t, 0, row.x, column.x), cell_index(words, t, 1, row.y, column.y),
      cell_index(words, t, 2, row.z, column.z), cell_index(words, t, 3, row.w, column.w)};
  // Loads first, tests after: those of all groups are under way at the same time.
  std::uint32_t cell[group_count];
  SLUICE_UNROLL
  for (unsigned g = 0; g < group_count; ++g) {
    cell[g] = (t.groups >> g & 1) != 0 ? __ldg(words + t.cells + index[g]) : 0;
  }
  uint4 record[group_count] = {};
  bool any_row = false;
  SLUICE_UNROLL
  for (unsigned g = 0; g < group_count; ++g) {
    const bool is_row = (cell[g] & FamilyTables::row_flag) != 0;
    any_row |= is_row;
    if (cell[g] != 0 && !is_row) {
      record[g] = words4(words, t.records + cell[g] * 4);
    }
  }
  RuleIndex best = no_match;
  if (any_row) {
    const std::uint32_t of_ports = port_class(words, t, rest);
    SLUICE_UNROLL
    for (unsigned g = 0; g < group_count; ++g) {
      if ((cell[g] & FamilyTables::row_flag) != 0) {
        const std::uint32_t at = (cell[g] & ~FamilyTables::row_flag) * t.port_class_count + of_ports;
        best = min(best, __ldg(words + t.rows + at));
      }
    }
  }
  SLUICE_UNROLL
  for (unsigned g = 0; g < group_count; ++g) {
    if (cell[g] != 0 && (cell[g] & FamilyTables::row_flag) == 0) {
      best = first_of(words, t, cell[g], record[g], rest, best);
    }
  }
  return best;
}

}  // namespace detail

// `protocol_flags`: the protocol in the lowest byte, the flags in the next, then the tags.
__device__ inline RuleIndex classify4(const ClassifierView& view, std::uint32_t source, std::uint32_t destination,
                                      std::uint32_t ports, std::uint32_t protocol_flags) {
  const FamilyTables& t = view.v4;
  if (t.groups == 0) {
    return no_match;
  }
  const std::uint32_t source_class = detail::address_class4(view.words + t.source_trie, source);
  const std::uint32_t destination_class = detail::address_class4(view.words + t.destination_trie, destination);
  return detail::classify_classes(view.words, t, source_class, destination_class,
                                  detail::rest_of(ports, protocol_flags));
}

// Addresses as four words of four bytes each, as a 16-byte load gives them.
__device__ inline RuleIndex classify6(const ClassifierView& view, uint4 source, uint4 destination, std::uint32_t ports,
                                      std::uint32_t protocol_flags) {
  const FamilyTables& t = view.v6;
  if (t.groups == 0) {
    return no_match;
  }
  const std::uint32_t source_class = detail::address_class6(view.words + t.source_trie, source);
  const std::uint32_t destination_class = detail::address_class6(view.words + t.destination_trie, destination);
  return detail::classify_classes(view.words, t, source_class, destination_class,
                                  detail::rest_of(ports, protocol_flags));
}

// A Key4 and a Key6 as they lie in memory.
__device__ inline RuleIndex classify4(const ClassifierView& view, uint4 key) {
  return classify4(view, key.x, key.y, key.z, key.w);
}
constexpr unsigned key6_pairs = sizeof(Key6) / sizeof(uint2);
__device__ inline RuleIndex classify6(const ClassifierView& view, const uint2* key) {
  const uint2 s0 = key[0];
  const uint2 s1 = key[1];
  const uint2 d0 = key[2];
  const uint2 d1 = key[3];
  const uint2 rest = key[4];
  return classify6(view, make_uint4(s0.x, s0.y, s1.x, s1.y), make_uint4(d0.x, d0.y, d1.x, d1.y), rest.x, rest.y);
}

// Whether the rule's action is to deny; `deny_others`: of what no rule matches.
__device__ inline bool denies(const ClassifierView& view, RuleIndex rule, bool deny_others) {
  return rule == no_match ? deny_others : (__ldg(view.words + view.denied + rule / 32) >> rule % 32 & 1) != 0;
}

}  // namespace sluice::lookup::acl
