// Named reasons why a frame left the fast path. Every frame that is received and not transmitted is counted under
// exactly one of these names (architecture: "nothing is lost silently").
//
// A room or function adds its own reasons without touching this file:
//     inline const Reason no_route = register_reason("no_route", "no route matches the destination address");
//
// Thread-safety: registration happens during static initialisation, before main(), and while a plug-in is loaded,
// before lanes start; after that the table is constant and reading it needs no lock. Cost on the packet path: one array
// index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::packet {

// An index into the table of reasons; 0 is "none" (the frame is fine).
using Reason = std::uint8_t;

inline constexpr Reason no_reason = 0;
inline constexpr unsigned max_reasons = 96;

// Whether frames are lost by a fault, or dropped because somebody wants it so: a rule, or a route. The latter is no
// ailment, however many they are (control/drop_watch.h).
enum class DroppedBy : std::uint8_t { fault, purpose };

// `name`: snake_case, unique, used in counters and metrics. `text`: one phrase for people. Both must be string
// literals. Aborts with a message when a name is registered twice or the table is full (a programming error, seen at
// every start). While a ReasonTrial is under way it takes them instead.
Reason register_reason(std::string_view name, std::string_view text, DroppedBy by = DroppedBy::fault);

// The registrations of a plug-in while it is loaded. They go when the trial ends, unless they are kept. A name that is
// there with the same text is that reason: a header's that program and plug-in share. One trial at a time.
class ReasonTrial {
 public:
  ReasonTrial();
  ~ReasonTrial();
  ReasonTrial(const ReasonTrial&) = delete;
  ReasonTrial& operator=(const ReasonTrial&) = delete;
  // What was wrong with a registration, the first one; empty: nothing.
  const std::string& mistake() const { return mistake_; }
  void keep() { keeps_ = true; }

 private:
  friend Reason register_reason(std::string_view name, std::string_view text, DroppedBy by);
  unsigned count_;  // of reasons before it
  bool keeps_ = false;
  std::string mistake_;
};

unsigned reason_count();
std::string_view reason_name(Reason reason);
std::string_view reason_text(Reason reason);
bool is_on_purpose(Reason reason);

}  // namespace sluice::packet
