#include "flow/tcp_track.h"

#include <algorithm>
#include <utility>

namespace sluice::flow {
namespace {

constexpr std::uint32_t slack = 65536;      // behind the window's right edge, for windows seen late
constexpr std::uint8_t unknown_scale = 14;  // of a side whose SYN was not seen: the largest

unsigned number(Direction direction) {
  return static_cast<unsigned>(direction);
}

std::uint32_t segment_end(const Packet& packet) {
  return packet.sequence + static_cast<std::uint32_t>(packet.payload.size()) +
         ((packet.tcp_flags & tcp_syn) != 0 ? 1U : 0U) + ((packet.tcp_flags & tcp_fin) != 0 ? 1U : 0U);
}

// Has this side been heard, so that its sequence numbers are known?
bool heard(const Flow& flow, unsigned side) {
  return flow.has(side == 0 ? FlowFlag::heard_client : FlowFlag::heard_server);
}

std::uint8_t fin_of(unsigned side) {
  return side == 0 ? FlowFlag::fin_client : FlowFlag::fin_server;
}

// Of several SYNs: which of them counts is not known, and of one that comes again a host keeps the first one's. With
// too large a scale a window is too large, with too small a one true segments would lie outside it.
std::uint8_t larger_scale(std::uint8_t a, std::uint8_t b) {
  return a == 0xff || b == 0xff ? std::min(a, b) : std::max(a, b);
}

void start_side(Flow& flow, unsigned side, const Packet& packet) {
  flow.initial[side] = packet.sequence - ((packet.tcp_flags & tcp_syn) != 0 ? 0 : 1);
  flow.end[side] = segment_end(packet);
  flow.acked[side] = packet.sequence;
  flow.limit[side] = flow.end[side];
  flow.scale[side] = larger_scale(flow.scale[side], packet.window_scale);
  flow.flags |= side == 0 ? FlowFlag::heard_client : FlowFlag::heard_server;
  flow.flags &= static_cast<std::uint8_t>(~fin_of(side));
}

// The other side knows which of several SYNs counts.
void settle_side(Flow& flow, unsigned side, std::uint32_t acknowledgment) {
  flow.initial[side] = flow.acked[side] = acknowledgment - 1;
  flow.end[side] = flow.limit[side] = acknowledgment;
  flow.flags &= static_cast<std::uint8_t>(~fin_of(side));
}

// Of the window that `side` sends. In a conversation found in the middle a scale that was not seen may be any, and one
// that was seen holds.
unsigned scale_of(const Flow& flow, unsigned side, const Packet& packet) {
  if ((packet.tcp_flags & tcp_syn) != 0) {
    return 0;
  }
  if (flow.has(FlowFlag::midstream)) {
    return flow.scale[side] == 0xff ? unknown_scale : flow.scale[side];
  }
  return flow.scale[0] != 0xff && flow.scale[1] != 0xff ? flow.scale[side] : 0;
}

// The acknowledgment and window that `side` sends: they are about what the other side has sent.
void take_acknowledgment(Flow& flow, unsigned side, const Packet& packet) {
  const unsigned other = 1 - side;
  if ((packet.tcp_flags & tcp_ack) == 0) {
    return;
  }
  const std::uint32_t limit = packet.acknowledgment + (std::uint32_t{packet.window} << scale_of(flow, side, packet));
  if (!heard(flow, other)) {
    flow.end[other] = flow.acked[other] = packet.acknowledgment;
    flow.limit[other] = limit;
    return;
  }
  if (sequence_after(packet.acknowledgment, flow.end[other] + slack)) {
    if (!flow.has(FlowFlag::midstream)) {
      return;  // of what has not been sent
    }
    flow.end[other] = packet.acknowledgment;  // it was sent before this conversation was found
  }
  if (sequence_after(packet.acknowledgment, flow.acked[other])) {
    flow.acked[other] = packet.acknowledgment;
  }
  if (sequence_after(limit, flow.limit[other])) {
    flow.limit[other] = limit;
  }
}

bool acknowledges_syn(const Flow& flow, unsigned side, const Packet& packet) {
  const unsigned other = 1 - side;
  return (packet.tcp_flags & tcp_ack) != 0 && sequence_after(packet.acknowledgment, flow.initial[other]) &&
         !sequence_after(packet.acknowledgment, flow.end[other]);
}

// Exactly where the receiver is (RFC 5961 section 3.2: it answers others within its window, and goes on): at the
// sequence that it waits for, or, where that is not known, behind all that was sent or acknowledged.
bool reset_fits(const Flow& flow, unsigned side, const Packet& packet, std::optional<std::uint32_t> expected) {
  if (!heard(flow, side)) {  // in answer to a SYN (RFC 9293 section 3.10.7.3)
    return acknowledges_syn(flow, side, packet);
  }
  if (packet.sequence == flow.end[side] && (!expected || flow.acked[side] == flow.end[side])) {
    return true;
  }
  return packet.sequence == expected.value_or(flow.acked[side]);
}

// The client's SYN-ACK where the server answered its SYN with a SYN (RFC 9293 section 3.5; a split handshake).
TcpCheck track_crossed(Flow& flow, const Packet& packet, FlowState& next) {
  if (packet.sequence != flow.initial[0] || !acknowledges_syn(flow, 0, packet)) {
    return TcpCheck::bad;
  }
  take_acknowledgment(flow, 0, packet);
  next = FlowState::half_open;
  return TcpCheck::good;
}

// The client has sent SYNs with different sequences, none of which was answered yet. Nothing else uses `acked`
// meanwhile.
bool several_syns(const Flow& flow) {
  return !flow.has(FlowFlag::midstream) && flow.acked[0] != flow.initial[0];
}

// The server has sent SYN-ACKs with different sequences, none of which the client has acknowledged yet.
bool several_answers(const Flow& flow) {
  return flow.acked[1] + 1 == flow.initial[1];
}

// Which of them counts, the client says.
void settle_answer(Flow& flow, unsigned side, const Packet& packet) {
  if (side == 0 && (packet.tcp_flags & tcp_ack) != 0 && several_answers(flow) && !acknowledges_syn(flow, 0, packet)) {
    settle_side(flow, 1, packet.acknowledgment);
  }
}

// A SYN before its answer: the client has begun anew, or somebody wants it to look so.
void take_syn_again(Flow& flow, const Packet& packet) {
  const bool several = several_syns(flow) || packet.sequence != flow.initial[0];
  const std::uint32_t end = flow.end[0];
  start_side(flow, 0, packet);
  if (!several && sequence_after(end, flow.end[0])) {
    flow.end[0] = flow.limit[0] = end;  // sent again without its data (RFC 7413), which the server may have
  }
  flow.acked[0] -= several ? 1 : 0;
}

// A SYN of an established conversation: the client has forgotten it, or somebody wants it to look so. Which, the server
// says.
void remember_syn(Flow& flow, const Packet& packet) {
  const bool other = flow.new_syn != flow.initial[0] && flow.new_syn != packet.sequence;
  flow.new_syn = other ? flow.initial[0] + Flow::several : packet.sequence;
}

TcpCheck track_syn(Flow& flow, unsigned side, const Packet& packet, FlowState& next) {
  const bool answer = (packet.tcp_flags & tcp_ack) != 0;
  const bool opening = flow.state == FlowState::fresh || flow.state == FlowState::half_open || flow.reset_unanswered();
  if (!answer && side == 1 && flow.state == FlowState::fresh && !heard(flow, 1) && !flow.has(FlowFlag::midstream)) {
    start_side(flow, 1, packet);
    flow.flags |= FlowFlag::crossed;
    return TcpCheck::good;
  }
  if (answer && side == 0 && opening && flow.has(FlowFlag::crossed)) {
    return track_crossed(flow, packet, next);
  }
  if (!answer) {
    if (side != 0 || !opening) {
      if (packet.sequence == flow.initial[side]) {
        return TcpCheck::good;
      }
      if (side == 0 && flow.established()) {
        remember_syn(flow, packet);
      }
      return TcpCheck::bad;
    }
    if (flow.state == FlowState::half_open && packet.sequence != flow.initial[0]) {
      return TcpCheck::bad;
    }
    take_syn_again(flow, packet);
    next = flow.state == FlowState::half_open ? FlowState::half_open : FlowState::fresh;
    return TcpCheck::good;
  }
  if (side != 1) {
    return TcpCheck::bad;
  }
  if (!opening) {
    return packet.sequence == flow.initial[1] ? TcpCheck::good : TcpCheck::bad;
  }
  if (heard(flow, 0) && !acknowledges_syn(flow, 1, packet)) {
    if (flow.state == FlowState::half_open || !several_syns(flow)) {
      return TcpCheck::bad;
    }
    settle_side(flow, 0, packet.acknowledgment);
  }
  if (packet.sequence != flow.initial[1]) {
    flow.flags &= static_cast<std::uint8_t>(~FlowFlag::crossed);  // that SYN was somebody else's
  }
  const bool several =
      flow.state == FlowState::half_open && (several_answers(flow) || packet.sequence != flow.initial[1]);
  start_side(flow, 1, packet);
  flow.acked[1] -= several ? 1 : 0;
  take_acknowledgment(flow, 1, packet);
  next = FlowState::half_open;
  return TcpCheck::good;
}

// Farther than a sender goes that keeps to the window, as far as it was seen.
bool lies_outside(const Flow& flow, unsigned side, const Packet& packet) {
  return sequence_after(packet.sequence, flow.limit[side] + slack) &&
         sequence_after(packet.sequence, flow.end[side] + slack);
}

// The first packet of a side other than the one that began. In the middle the other side may have opened a window
// already.
void hear_side(Flow& flow, unsigned side, const Packet& packet) {
  const std::uint32_t opened = flow.limit[side];
  start_side(flow, side, packet);
  if (flow.has(FlowFlag::midstream) && sequence_after(opened, flow.limit[side])) {
    flow.limit[side] = opened;
  }
}

// `fin`: the packet has one that the receiver takes, at once or once what is before it has come.
FlowState state_after(Flow& flow, unsigned side, const Packet& packet, bool midstream, bool fin) {
  FlowState state = flow.state;
  if (state == FlowState::half_open && !flow.has(FlowFlag::no_session) && (side == 0 || flow.has(FlowFlag::crossed)) &&
      acknowledges_syn(flow, side, packet)) {
    state = FlowState::established;
  }
  if (state == FlowState::fresh && midstream && flow.has(FlowFlag::midstream) && heard(flow, 0) && heard(flow, 1)) {
    state = FlowState::established;
  }
  if (fin) {
    flow.flags |= fin_of(side);
  }
  if (state != flow.state) {
    flow.new_syn = flow.initial[0];
  }
  const bool both = flow.has(FlowFlag::fin_client) && flow.has(FlowFlag::fin_server);
  const bool one = flow.has(FlowFlag::fin_client) || flow.has(FlowFlag::fin_server);
  if (state == FlowState::established && one) {
    state = FlowState::closing;
  }
  return state == FlowState::closing && both ? FlowState::closed : state;
}

}  // namespace

Direction first_direction(const Packet& packet) {
  const bool syn = (packet.tcp_flags & tcp_syn) != 0;
  const bool ack = (packet.tcp_flags & tcp_ack) != 0;
  if (syn) {
    return ack ? Direction::to_client : Direction::to_server;
  }
  return packet.source_port >= packet.destination_port ? Direction::to_server : Direction::to_client;
}

bool begins_anew(const Flow& flow, Direction direction, const Packet& packet) {
  const bool again = flow.reset_unanswered() && direction == Direction::to_server;
  const bool over = (flow.state == FlowState::closed && !again) ||
                    (flow.state == FlowState::silent && flow.has_all(FlowFlag::fin_both)) ||
                    (flow.unanswered() && direction == Direction::to_client);
  return (packet.tcp_flags & (tcp_syn | tcp_ack)) == tcp_syn &&
         (over || (flow.has(FlowFlag::midstream) && !flow.established()));
}

bool answers_new_syn(const Flow& flow, Direction direction, const Packet& packet) {
  if ((packet.tcp_flags & (tcp_syn | tcp_ack)) != (tcp_syn | tcp_ack) || direction != Direction::to_client ||
      !(flow.established() || flow.state == FlowState::silent)) {
    return false;
  }
  if (flow.state == FlowState::silent && flow.has_all(FlowFlag::fin_both)) {
    return flow.new_syn == Flow::nobodys_rst && packet.acknowledgment == flow.initial[0] + 1;
  }
  if (flow.new_syn == flow.initial[0]) {
    return false;
  }
  const bool again = packet.sequence == flow.initial[1] && packet.acknowledgment == flow.initial[0] + 1;
  return flow.new_syn == flow.initial[0] + Flow::several ? !again : packet.acknowledgment == flow.new_syn + 1;
}

Packet syn_of_answer(const Packet& answer) {
  Packet syn = answer;
  std::swap(syn.source, syn.destination);
  std::swap(syn.source_port, syn.destination_port);
  syn.tcp_flags = tcp_syn;
  syn.sequence = answer.acknowledgment - 1;
  syn.acknowledgment = 0;
  syn.window_scale = answer.window_scale == 0xff ? 0xff : unknown_scale;  // both have one, or neither
  syn.payload = {};
  return syn;
}

void begin_tcp(Flow& flow, Direction direction, const Packet& packet, bool midstream) {
  const bool syn_only = (packet.tcp_flags & (tcp_syn | tcp_ack)) == tcp_syn;
  flow.scale = {0xff, 0xff};
  if (!syn_only) {
    flow.flags |= FlowFlag::midstream | (midstream ? 0 : FlowFlag::no_session);
  }
  const unsigned side = number(direction);
  start_side(flow, side, packet);
  take_acknowledgment(flow, side, packet);
}

TcpCheck track_tcp(Flow& flow, Direction direction, const Packet& packet, bool midstream,
                   std::optional<std::uint32_t> expected, FlowState& next) {
  const unsigned side = number(direction);
  next = flow.state;
  if (flow.state == FlowState::silent) [[unlikely]] {
    if (side == 0 && (packet.tcp_flags & (tcp_syn | tcp_ack)) == tcp_syn && packet.sequence != flow.initial[0]) {
      remember_syn(flow, packet);
    }
    return TcpCheck::no_session;
  }
  if ((packet.tcp_flags & tcp_rst) != 0) {
    if (!reset_fits(flow, side, packet, expected)) {
      return TcpCheck::bad;
    }
    next = FlowState::closed;
    flow.new_syn = side;
    return flow.has(FlowFlag::no_session) ? TcpCheck::no_session : TcpCheck::good;
  }
  if ((packet.tcp_flags & tcp_syn) != 0) {
    const TcpCheck check = track_syn(flow, side, packet, next);
    return check == TcpCheck::bad && flow.has(FlowFlag::no_session) ? TcpCheck::no_session : check;
  }
  bool outside = false;
  if (flow.unanswered()) [[unlikely]] {
    return TcpCheck::bad;  // of the conversation before it: hosts send nothing before a SYN is answered
  }
  if (!heard(flow, side)) {
    if (side == 1 && !flow.has(FlowFlag::midstream) &&
        ((packet.tcp_flags & tcp_ack) == 0 || packet.acknowledgment != flow.initial[0] + 1)) {
      return TcpCheck::bad;  // to a SYN that it does not acknowledge
    }
    if (side == 1 && !flow.has(FlowFlag::midstream)) {  // the SYN-ACK was missed, or is still to come
      if (!midstream) {
        return TcpCheck::no_session;
      }
      flow.flags |= FlowFlag::midstream;
    }
    hear_side(flow, side, packet);
  } else if (lies_outside(flow, side, packet)) [[unlikely]] {
    if (!flow.has(FlowFlag::midstream)) {
      return TcpCheck::bad;
    }
    outside = true;  // what was under way before it was found is not known: its window goes on here
  }
  if (flow.state == FlowState::half_open) {
    settle_answer(flow, side, packet);
  }
  const std::uint32_t end = segment_end(packet);
  const std::uint32_t right = sequence_after(flow.limit[side], flow.end[side]) ? flow.limit[side] : flow.end[side];
  const bool fin = (packet.tcp_flags & tcp_fin) != 0 && !sequence_after(end, right + 1);
  if (sequence_after(end, flow.end[side])) {
    flow.end[side] = end;
  }
  take_acknowledgment(flow, side, packet);
  next = state_after(flow, side, packet, midstream, fin);
  return outside || flow.has(FlowFlag::no_session) ? TcpCheck::no_session : TcpCheck::good;
}

}  // namespace sluice::flow
