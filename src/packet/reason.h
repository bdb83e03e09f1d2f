// Named reasons for drops. Every frame that is received and not transmitted is counted under exactly one of these
// names: no frame is lost silently.
//
// A room, a function or a plug-in adds its own reasons without touching this file:
//     inline const Reason no_route = register_reason("no_route", "no route matches the destination address");
//
// Thread-safety: reasons are registered during static initialisation and while a plug-in is loaded, always before lanes
// start. After that the table is constant, and reading it needs no lock. Cost on the packet path: one array index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::packet {

// An index into the table of reasons; 0 is "none" (the frame is fine).
using Reason = std::uint8_t;

inline constexpr Reason no_reason = 0;
// Of the program and all its plug-ins together, `none` included. Each costs 16 bytes of counters in each side of a
// lane.
inline constexpr unsigned max_reasons = 192;

// fault: something is wrong; /healthz reports many such drops (control/drop_watch.h). purpose: a rule or a route asks
// for the drop; /healthz never reports it.
enum class DroppedBy : std::uint8_t { fault, purpose };

// `name`: snake_case, unique, used in counters and metrics. `text`: one phrase for people. Both must be string
// literals. A name that is registered twice, or a full table, aborts the program with a message: it is a programming
// error that every start shows. While a ReasonTrial exists the trial records the message instead.
Reason register_reason(std::string_view name, std::string_view text, DroppedBy by = DroppedBy::fault);

// The registrations of a plug-in while it is loaded. They are removed when the trial ends, unless keep() was called. A
// name that is there already with the same text and the same DroppedBy gives the reason that is there: program and
// plug-in share the header that registers it. One trial at a time.
class ReasonTrial {
 public:
  ReasonTrial();
  ~ReasonTrial();
  ReasonTrial(const ReasonTrial&) = delete;
  ReasonTrial& operator=(const ReasonTrial&) = delete;
  // The message of the first registration that failed; empty: none failed.
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
