// One conversation: both directions of a 5-tuple. 128 bytes, two cache lines; what only inspected conversations need is
// in an optional record of the caller's, named by `extra`.
//
// The client is who began: the sender of the first SYN; the receiver of a SYN-ACK whose SYN was not seen; in TCP picked
// up in the middle, the side with the higher port (the sender, when they are equal); for all else the first sender.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "flow/packet.h"

namespace sluice::flow {

// Time of a lane, milliseconds since some start.
using Milliseconds = std::uint64_t;

enum class FlowState : std::uint8_t {
  fresh,        // one side has been heard; TCP: a SYN, or picked up in the middle with one side heard
  half_open,    // TCP: the SYN and a SYN-ACK that fits it
  established,  // TCP: the handshake is done, or (`midstream`) both sides heard; else both sides heard
  closing,      // TCP: one side has sent FIN
  closed,       // TCP: both have, or a valid RST
  silent,       // TCP: it was established, has ended here, and is remembered (FlowSettings::remembered)
};

inline constexpr std::uint32_t no_index = std::numeric_limits<std::uint32_t>::max();

struct FlowFlag {
  static constexpr std::uint8_t heard_client = 0x01;  // a packet from the client
  static constexpr std::uint8_t heard_server = 0x02;
  static constexpr std::uint8_t fin_client = 0x04;
  static constexpr std::uint8_t fin_server = 0x08;
  static constexpr std::uint8_t fin_both = fin_client | fin_server;  // silent: it had been reset, or was unanswered
  static constexpr std::uint8_t midstream = 0x10;                    // TCP whose SYN was not seen
  static constexpr std::uint8_t no_session = 0x20;  // such TCP while midstream pickup is off: never established
  static constexpr std::uint8_t was_open = 0x40;    // has been established, whatever it is now; or Flow::unanswered()
  static constexpr std::uint8_t crossed = 0x80;     // TCP: the server answered the SYN with a SYN of its own
};

struct Flow {
  std::array<std::uint8_t, 16> client;  // as Packet::source
  std::array<std::uint8_t, 16> server;
  std::uint16_t client_port;  // host order
  std::uint16_t server_port;
  std::uint8_t family;
  std::uint8_t protocol;
  FlowState state;
  std::uint8_t flags;  // FlowFlag

  std::uint32_t hash;       // the table's own
  std::uint32_t began;      // the low 32 bits of Milliseconds
  std::uint32_t last_seen;  // likewise
  std::uint32_t extra;      // the caller's record; no_index: none

  std::array<std::uint32_t, 2> packets;  // by Direction; wrap
  std::array<std::uint64_t, 2> bytes;    // of IP

  // TCP, by the Direction that the side sends in.
  std::array<std::uint32_t, 2> initial;  // sequence of its SYN, or, without one, before its first byte
  std::array<std::uint32_t, 2> end;      // the highest sequence it has sent, plus one
  std::array<std::uint32_t, 2> acked;    // what the other side has acknowledged
  std::array<std::uint32_t, 2> limit;    // right edge of the window that the other side has opened
  std::array<std::uint8_t, 2> scale;     // window scale of its own SYN; 0xff: none (or of_fragments())

  std::uint16_t user;  // the caller's: for instance a verdict that holds for the rest of the flow

  std::uint32_t previous;  // the table's
  std::uint32_t next;

  // TCP, established or silent: sequence of a later SYN of the client's, which the server may answer if it has
  // forgotten this conversation; initial[0]: there was none; `several` away from that: several different ones. Closed
  // by an RST, or silent since: the Direction of that; silent and `unanswered` before: nobodys_rst.
  static constexpr std::uint32_t several = std::uint32_t{1} << 31, nobodys_rst = 2;
  std::uint32_t new_syn;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  bool has_all(std::uint8_t wanted) const { return (flags & wanted) == wanted; }
  // Closed by an RST, of who knew where the other side was: one that was taken up in the middle may have been ended by
  // anybody's.
  bool reset() const { return state == FlowState::closed && !has_all(FlowFlag::fin_both) && !has(FlowFlag::midstream); }
  // Before the server said anything: the RST may have reached nobody, and decides nothing for a SYN or an answer that
  // comes after it.
  bool reset_unanswered() const { return reset() && !has(FlowFlag::heard_server); }
  // Its SYN stands in the place of a conversation that was established and that may go on at its hosts: nobody has
  // answered it yet.
  bool unanswered() const { return state == FlowState::fresh && has(FlowFlag::was_open); }
  // What Suricata's and Snort's `flow:established` asks for.
  bool established() const { return state == FlowState::established || state == FlowState::closing; }
  // Of fragments, by their datagrams' protocol: no conversation of TCP with ports 0, whose scales are others.
  static constexpr std::uint8_t scale_of_fragments = 0xfe;
  bool of_fragments() const { return scale[0] == scale_of_fragments; }
};
static_assert(sizeof(Flow) == 128);

}  // namespace sluice::flow
