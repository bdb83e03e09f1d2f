// Alerts as text: EVE JSON as Suricata 7 writes it, and fast.log. docs/alerts.md says what each field is, and what
// differs.
//
// A line has no newline at its end and none within. Bytes that are no UTF-8 are escaped as Suricata does (`\xNN` in a
// signature, a dot in payload_printable): nothing throws for what a rule or a packet holds. Times are in UTC.
//
// Thread-safety: any thread. Cost: some 10 us a line, mostly the JSON library's.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "function/inspect/alert_record.h"

namespace sluice::function {

struct EveOptions {
  bool payload = true;            // base64
  bool payload_printable = true;  // as text
};

// `http`: what record.http took. `in_iface`: empty: the field is left out, as for a capture.
std::string eve_alert(const AlertRecord& record, std::string_view payload, const char* http, std::string_view in_iface,
                      const EveOptions& options);
// The record's frame is dropped; of an alert it is the rule's doing.
std::string eve_drop(const AlertRecord& record, std::string_view in_iface);

// What a rule of the element acl decided for the record's frame.
struct AclEvent {
  std::uint64_t number = 0;                // its place in match order
  std::string_view name, comment, action;  // the first two may be empty
  std::string_view verdict;                // "passed", or why it is dropped
  bool dropped = false;
  std::string_view out_iface;    // empty: not known
  std::uint64_t suppressed = 0;  // frames that the rule has decided without a line since its last one
};
// A `drop` event with a field `acl`, or, of a frame that goes on, an event `acl`.
std::string eve_acl(const AlertRecord& record, std::string_view in_iface, const AclEvent& event);
// The same for people.
std::string acl_line(const AlertRecord& record, std::string_view in_iface, const AclEvent& event);

std::string eve_stats(std::uint64_t microseconds, const nlohmann::ordered_json& stats);

std::string fast_line(const AlertRecord& record);

// The same for both directions of a flow, and for as long as it lasts: 51 bits, which a double holds.
std::uint64_t flow_id_of(const flow::Flow& flow);

}  // namespace sluice::function
