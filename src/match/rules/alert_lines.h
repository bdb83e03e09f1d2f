// Lines that keep alerts back, as Snort's threshold.conf and Suricata's threshold.config have them:
//
//   suppress gen_id 1, sig_id 2000001
//   suppress gen_id 1, sig_id 2000001, track by_src, ip [192.0.2.0/24,!192.0.2.7]
//   event_filter gen_id 1, sig_id 2000002, type limit, track by_src, count 1, seconds 60
//
// `threshold` is event_filter's older name. sig_id 0: all rules of the gen_id; gen_id 0 (with sig_id 0): all rules.
// `track` of suppress is by_src, by_dst or by_either, with `ip`; that of event_filter one of a rule's `threshold`.
// `count -1`: the rule is left to itself, whatever a line for more rules says. What they do: detect/alert_filter.h.
//
// Values only. Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "match/rules/address_set.h"
#include "match/rules/rule.h"
#include "match/rules/variables.h"

namespace sluice::match {

// Whose rules a line is about, and where it stands.
struct AlertLine {
  std::uint32_t gid = 0;  // 0: any
  std::uint32_t sid = 0;  // 0: all of the gid
  std::uint32_t file = 0, line = 0;
  bool names(const Rule& rule) const { return (gid == 0 || gid == rule.gid) && (sid == 0 || sid == rule.sid); }
};

struct Suppression : AlertLine {
  enum class Of : std::uint8_t { all, source, destination, either };
  Of of = Of::all;
  AddressSet addresses;  // of the packet's end; Of::all: none
};

struct EventFilter : AlertLine {
  std::optional<Threshold> threshold;  // nothing: count -1
};

// What stands behind the word `suppress`, `event_filter` or `threshold`, without its place. Errors say what is missing
// or cannot be read.
Expected<Suppression> read_suppression(std::string_view text, const Variables& variables);
Expected<EventFilter> read_event_filter(std::string_view text);

}  // namespace sluice::match
