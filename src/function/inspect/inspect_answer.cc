// How the ends of a rejected packet are notified.
#include <rte_mbuf.h>

#include <algorithm>

#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "function/inspect/inspect.h"
#include "packet/icmp_error.h"
#include "packet/tcp_reset.h"

namespace sluice::function {
namespace {

// Makes the frame an ICMP error to its sender; false: it may get none.
bool answer_with_icmp(engine::Batch& batch, std::uint32_t i, const match::PacketFacts& facts, engine::Emitter& out) {
  std::uint8_t* const frame = batch.data(i);
  if (!packet::may_answer_with_icmp_error(frame, batch.length[i]) || !out.may_answer()) return false;
  std::uint8_t own_mac[6];
  std::copy_n(frame, 6, own_mac);
  const std::uint32_t length =
      packet::make_icmp_error(frame, batch.length[i], engine::capacity_from(batch, i),
                              {packet::IcmpErrorKind::prohibited, 0, facts.destination, own_mac});
  if (length != 0) engine::set_length(batch, i, length);
  return length != 0;
}

// In a frame of its own, for the other end's RST takes the place of the one that came. False: no answer is to be sent
// any more now, there is no capacity for one, or it is nothing that an RST answers.
bool reset_sender_besides(const engine::Batch& batch, std::uint32_t i, packet::Reason reason, engine::Emitter& out) {
  if (!out.may_answer()) return false;
  rte_mbuf* const made = rte_pktmbuf_copy(batch.mbuf[i], batch.mbuf[i]->pool, 0, UINT32_MAX);
  if (made == nullptr) return false;
  const std::uint32_t length =
      packet::make_tcp_reset(rte_pktmbuf_mtod(made, std::uint8_t*), batch.length[i], packet::ResetTo::sender);
  if (length == 0) {
    rte_pktmbuf_free(made);
    return false;
  }
  rte_pktmbuf_data_len(made) = rte_pktmbuf_pkt_len(made) = static_cast<std::uint16_t>(length);
  out.answer_besides(batch, i, made, reason);
  return true;
}

}  // namespace

// To the ends of a frame that its rules of reject name: RSTs, as from each other; else an ICMP error to the sender, as
// from its destination. Errors about what a host has not sent would mean nothing to it. False: it is dropped. A RST to
// the receiver goes on where the frame would have gone; back out where nothing is sent on.
bool Inspect::answer(engine::Batch& batch, std::uint32_t i, packet::Reason reason, engine::Emitter& out) {
  InspectLane& lane = lane_of(batch.lane);
  const Judgement& judgement = lane.last();
  if (!judgement.reject) return false;
  std::uint8_t* const frame = batch.data(i);
  const match::PacketFacts facts = match::facts_of({reinterpret_cast<const char*>(frame), batch.length[i]});
  if (!facts.has_tcp) {
    if (!judgement.notify_source || !answer_with_icmp(batch, i, facts, out)) return false;
    batch.answer(i, reason);
    return true;
  }
  if (!out.may_answer()) return false;
  const bool both = judgement.notify_source && judgement.notify_destination;
  const bool sender_notified = both && reset_sender_besides(batch, i, reason, out);
  const bool onward = judgement.notify_destination;
  const auto to = onward ? packet::ResetTo::receiver : packet::ResetTo::sender;
  const std::uint32_t length = packet::make_tcp_reset(frame, batch.length[i], to);
  if (length == 0) return false;
  engine::set_length(batch, i, length);
  if (both && !sender_notified) lane.note_unnotified();
  if (onward && sends_) {
    out.note_answer(batch, i, reason);
  } else {
    batch.answer(i, reason);
  }
  return true;
}

}  // namespace sluice::function
