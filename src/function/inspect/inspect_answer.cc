// What the ends of a rejected packet are told.
#include <rte_mbuf.h>

#include <algorithm>

#include "engine/emitter.h"
#include "function/inspect/inspect.h"
#include "packet/icmp_error.h"
#include "packet/tcp_reset.h"

namespace sluice::function {
namespace {

void set_length(rte_mbuf* buffer, std::uint32_t length) {
  if (length != 0) rte_pktmbuf_data_len(buffer) = rte_pktmbuf_pkt_len(buffer) = static_cast<std::uint16_t>(length);
}

// The new length of the frame, which is an ICMP error to its sender then; 0: it may get none.
std::uint32_t answer_with_icmp(const engine::Batch& batch, std::uint32_t i, const match::PacketFacts& facts,
                               engine::Emitter& out) {
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  if (!packet::may_answer_with_icmp_error(frame, batch.length[i]) || !out.may_answer()) return 0;
  rte_mbuf* const buffer = batch.mbuf[i];
  const std::uint32_t room = rte_pktmbuf_data_len(buffer) + rte_pktmbuf_tailroom(buffer);
  std::uint8_t own_mac[6];
  std::copy_n(frame, 6, own_mac);
  const std::uint32_t length =
      packet::make_icmp_error(frame, room, {packet::IcmpErrorKind::prohibited, 0, facts.destination, own_mac});
  set_length(buffer, length);
  return length;
}

// In a frame of its own, for the other end's RST takes the place of the one that came. False: no answer is to be sent
// any more now, there is no room for one, or it is nothing that an RST answers.
bool reset_sender_besides(const engine::Batch& batch, std::uint32_t i, std::uint32_t l3, packet::Reason reason,
                          engine::Emitter& out) {
  if (!out.may_answer()) return false;
  rte_mbuf* const made = rte_pktmbuf_copy(batch.mbuf[i], batch.mbuf[i]->pool, 0, UINT32_MAX);
  if (made == nullptr) return false;
  const std::uint32_t length =
      packet::make_tcp_reset(rte_pktmbuf_mtod(made, std::uint8_t*), batch.length[i], l3, packet::ResetTo::sender);
  if (length == 0) {
    rte_pktmbuf_free(made);
    return false;
  }
  set_length(made, length);
  out.answer_besides(made, reason);
  return true;
}

}  // namespace

// To the ends of a frame that its rules of reject name: RSTs, as from each other; else an ICMP error to the sender, as
// from its destination. Errors about what a host has not sent would tell it nothing.
engine::Answer Inspect::answer(const engine::Batch& batch, std::byte* /*area*/, std::uint32_t i, packet::Reason reason,
                               engine::Emitter& out) {
  InspectLane& lane = lane_of(batch.lane);
  const Judgement& judgement = lane.last();
  if (!judgement.reject) return {};
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  const match::PacketFacts facts = match::facts_of({reinterpret_cast<const char*>(frame), batch.length[i]});
  if (!facts.has_tcp) return {judgement.tell_source ? answer_with_icmp(batch, i, facts, out) : 0};
  if (!out.may_answer()) return {};
  const auto l3 = static_cast<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(facts.ip_header.data()) - frame);
  const bool both = judgement.tell_source && judgement.tell_destination;
  const bool sender_told = both && reset_sender_besides(batch, i, l3, reason, out);
  const bool onward = judgement.tell_destination;
  const auto to = onward ? packet::ResetTo::receiver : packet::ResetTo::sender;
  const std::uint32_t length = packet::make_tcp_reset(frame, batch.length[i], l3, to);
  set_length(batch.mbuf[i], length);
  if (both && !sender_told && length != 0) lane.note_untold();
  return {length, onward};
}

}  // namespace sluice::function
