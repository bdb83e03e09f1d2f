// Named reasons why a frame left the fast path. Every frame that is received and not transmitted is counted under
// exactly one of these names (architecture: "nothing is lost silently").
//
// A room or function adds its own reasons without touching this file:
//     inline const Reason no_route = register_reason("no_route", "no route matches the destination address");
//
// Thread-safety: registration happens during static initialisation, before main(); after that the table is constant and
// reading it needs no lock. Cost on the packet path: one array index.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::packet {

// An index into the table of reasons; 0 is "none" (the frame is fine).
using Reason = std::uint8_t;

inline constexpr Reason no_reason = 0;
inline constexpr unsigned max_reasons = 96;

// `name`: snake_case, unique, used in counters and metrics. `text`: one phrase for people. Both must be string
// literals. Aborts with a message when a name is registered twice or the table is full (a programming error, seen at
// every start).
Reason register_reason(std::string_view name, std::string_view text);

unsigned reason_count();
std::string_view reason_name(Reason reason);
std::string_view reason_text(Reason reason);

}  // namespace sluice::packet
