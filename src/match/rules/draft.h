// A rule while its options are read one after another: the rule so far, and what later options refer to.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "match/rules/classification.h"
#include "match/rules/rule.h"

namespace sluice::match {

struct Draft {
  // The modifiers that the last content was given.
  enum Given : unsigned {
    offset = 1,
    depth = 2,
    distance = 4,
    within = 8,
    starts = 16,
    ends = 32,
    moved = 64,
    fast = 128
  };

  explicit Draft(const Classification& classes) : classification(classes) {}

  Rule rule;
  const Classification& classification;
  Buffer buffer = Buffer::payload;  // of a check that stands here: what the last sticky name said
  std::size_t sticky_checks = 0;    // checks before the last sticky name
  int last_content = -1;            // index into rule.checks
  unsigned given = 0;
  bool has_fast_pattern = false;
  bool has_priority = false;
  bool has_base64_decode = false;
  std::set<std::string, std::less<>> seen;  // options that may be there once, and were

  // nullptr: no content came before.
  Content* content() {
    return last_content < 0 ? nullptr : &std::get<Content>(rule.checks[static_cast<std::size_t>(last_content)]);
  }
  void add(Content content) {
    last_content = static_cast<int>(rule.checks.size());
    given = 0;
    rule.checks.emplace_back(std::move(content));
  }
  // Of a number or isdataat that stands here: the sticky buffer in force; without one, if relative, the buffer of the
  // check before it.
  Buffer buffer_of(bool relative) const;
  // A number between the limits, or the name of a variable that the rule has already made.
  std::string read_operand(std::string_view text, std::int64_t min, std::int64_t max, Operand& operand) const;
  // A new variable; an empty answer and its index, or what is wrong.
  std::string declare(std::string_view name, std::int16_t& variable);
};

// Readers of options, as ParseOption (keywords.h): a file for each group.
#define SLUICE_OPTION(name) std::string name(Draft& draft, std::string_view value)

// options_meta.cc
SLUICE_OPTION(read_msg);
SLUICE_OPTION(read_sid);
SLUICE_OPTION(read_gid);
SLUICE_OPTION(read_rev);
SLUICE_OPTION(read_classtype);
SLUICE_OPTION(read_priority);
SLUICE_OPTION(read_reference);
SLUICE_OPTION(read_metadata);
SLUICE_OPTION(read_target);
SLUICE_OPTION(read_noalert);
// options_content.cc
SLUICE_OPTION(read_content);
SLUICE_OPTION(read_uricontent);
SLUICE_OPTION(read_nocase);
SLUICE_OPTION(read_rawbytes);
SLUICE_OPTION(read_offset);
SLUICE_OPTION(read_depth);
SLUICE_OPTION(read_distance);
SLUICE_OPTION(read_within);
SLUICE_OPTION(read_startswith);
SLUICE_OPTION(read_endswith);
SLUICE_OPTION(read_fast_pattern);
SLUICE_OPTION(read_pcre_option);
// options_bytes.cc
SLUICE_OPTION(read_byte_test);
SLUICE_OPTION(read_byte_jump);
SLUICE_OPTION(read_byte_extract);
SLUICE_OPTION(read_byte_math);
SLUICE_OPTION(read_isdataat);
SLUICE_OPTION(read_base64_decode);
// options_header.cc
SLUICE_OPTION(read_dsize);
SLUICE_OPTION(read_ttl);
SLUICE_OPTION(read_id);
SLUICE_OPTION(read_tos);
SLUICE_OPTION(read_ip_proto);
SLUICE_OPTION(read_fragoffset);
SLUICE_OPTION(read_itype);
SLUICE_OPTION(read_icode);
SLUICE_OPTION(read_icmp_id);
SLUICE_OPTION(read_icmp_seq);
SLUICE_OPTION(read_seq);
SLUICE_OPTION(read_ack);
SLUICE_OPTION(read_window);
SLUICE_OPTION(read_urilen);
SLUICE_OPTION(read_bsize);
SLUICE_OPTION(read_flags);
SLUICE_OPTION(read_fragbits);
SLUICE_OPTION(read_ipopts);
SLUICE_OPTION(read_sameip);
// options_flow.cc
SLUICE_OPTION(read_flow);
SLUICE_OPTION(read_flowbits);
SLUICE_OPTION(read_stream_size);
SLUICE_OPTION(read_threshold);
SLUICE_OPTION(read_detection_filter);

#undef SLUICE_OPTION

}  // namespace sluice::match
