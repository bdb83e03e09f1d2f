#include "function/vxlan/vxlan.h"

#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/batch_edit.h"
#include "engine/emitter.h"
#include "engine/pipeline.h"
#include "packet/icmp_error.h"
#include "packet/metadata.h"
#include "packet/parse.h"

namespace sluice::function {
namespace {

using packet::Reason;

const Reason malformed = packet::register_reason(
    "vxlan_malformed", "a tunnel's frame whose lengths do not fit, or that names no network (VNI)");
const Reason bad_udp_checksum = packet::register_reason(
    "vxlan_checksum", "a tunnel's frame whose UDP checksum is wrong, or left out over IPv6 with udp_checksum = true");
const Reason in_fragments =
    packet::register_reason("vxlan_fragment", "a fragment of a tunnel's frame that does not fit to the others of it");
const Reason unknown_vni =
    packet::register_reason("vxlan_unknown_vni", "a tunnel's frame of a network (VNI) that no [[vxlan.tunnel]] has");
const Reason unknown_remote =
    packet::register_reason("vxlan_unknown_remote", "a tunnel's frame from an address that is none of its remotes");
const Reason ecn_mark = packet::register_reason(
    "vxlan_ecn", "marked as congested in a tunnel, of a transport that could not see the mark");  // RFC 6040

constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);

Reason reason_of(packet::VxlanFault fault) {
  switch (fault) {
    case packet::VxlanFault::none:
      return packet::no_reason;
    case packet::VxlanFault::header_checksum:
      return packet::bad_checksum;
    case packet::VxlanFault::udp_checksum:
    case packet::VxlanFault::zero_checksum:
      return bad_udp_checksum;
    case packet::VxlanFault::length:
    case packet::VxlanFault::no_vni:
      return malformed;
  }
  return malformed;
}

}  // namespace

Vxlan::Vxlan(TunnelSettings settings, const engine::PortTable& ports) : ports_(ports), read_(std::move(settings)) {}

Expected<void> Vxlan::prepare(const engine::Plan& plan) {
  in_ = std::vector<In>(std::size_t{2} * plan.lanes);
  out_ = std::vector<Out>(plan.lanes);
  in_of_port_ = std::vector<OfPort>(in_.size());
  out_of_port_ = std::vector<OutOfPort>(out_.size());
  is_routed_ = plan.pipeline == nullptr || plan.pipeline->all<engine::Ingress>().size() > 1;
  control_ = std::make_unique<VxlanControl>(read_, ports_);
  return control_->start(std::size_t{3} * plan.lanes);
}

bool Vxlan::take(engine::Batch& batch, std::uint32_t i, const VxlanView& view, In& in) {
  packet::VxlanView outer;
  if (!packet::find_vxlan(batch.data(i), batch.length[i], outer)) return false;
  if (!(outer.fragment ? view.is_local(outer) : view.ends_here(outer))) return false;
  if (packet::mac_word(batch.data(i)) != view.source_macs[batch.row[i].port]) return false;
  if (outer.fragment) return take_piece(batch, i, view, outer, in);
  take_out(batch, i, view, outer, in);
  return true;
}

// The piece that completes its packet becomes the packet.
bool Vxlan::take_piece(engine::Batch& batch, std::uint32_t i, const VxlanView& view, packet::VxlanView outer, In& in) {
  const auto taken = in.fragments.put_together(batch, i, view.ends_here(outer), control_->now());
  if (taken == OuterFragments::Taken::no) return false;
  if (taken == OuterFragments::Taken::refused) {
    batch.drop(i, in_fragments);
    return true;
  }
  in.pieces.add(1);
  if (taken == OuterFragments::Taken::too_long) {
    batch.drop(i, vxlan_too_long);
  } else if (taken == OuterFragments::Taken::whole) {
    packet::find_vxlan(batch.data(i), batch.length[i], outer);
    take_out(batch, i, view, outer, in);
  }
  return true;
}

void Vxlan::admit(engine::Batch& batch, engine::Span span) {
  const VxlanView& view = control_->view(admit_place(batch));
  In& in = in_[admit_place(batch)];
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    if (!batch.goes_on(i)) continue;
    if (take(batch, i, view, in)) continue;
    // A port that is no end of a wire is one of tunnels alone: the rest on it is between its link and the host.
    const std::uint16_t port = batch.row[i].port;
    if (!is_routed_ && ports_.peer(port) == port) batch.punt(i);
  }
  control_->release(admit_place(batch));
}

void Vxlan::take_out(engine::Batch& batch, std::uint32_t i, const VxlanView& view, packet::VxlanView outer, In& in) {
  const auto fault = packet::check_vxlan(batch.data(i), batch.length[i], true, outer);
  if (fault != packet::VxlanFault::none) return batch.drop(i, reason_of(fault));
  const TunnelView* const tunnel = view.tunnel_for(outer);
  if (tunnel == nullptr) return batch.drop(i, unknown_vni);
  const auto& udp = packet::header_at<packet::UdpHeader>(batch.data(i), outer.udp);
  if (udp.checksum == 0 && outer.family == 6 && tunnel->tunnel().udp_checksum) return batch.drop(i, bad_udp_checksum);
  const Remote* const remote = tunnel->by_address(outer.source);
  if (remote == nullptr) return batch.drop(i, unknown_remote);
  std::uint8_t* const inner = engine::shrink_front(batch, i, outer.inner);
  engine::set_length(batch, i, outer.inner_length);  // without what fills the outer frame up
  batch.row[i].port = tunnel->tunnel().port;
  const packet::InnerIp ip = packet::inner_ip(inner, outer.inner_length);
  if (ip.offset != 0) {
    const auto before = static_cast<packet::Ecn>(ip.tos & 3);
    const auto ecn = packet::ecn_unwrapped(before, static_cast<packet::Ecn>(outer.tos & 3));
    if (!ecn) return batch.drop(i, ecn_mark);
    if (*ecn != before) packet::set_ecn(inner, ip, *ecn);
  }
  if (tunnel->tunnel().learning) learn(*tunnel, *remote, inner, in);
  in.frames.add(1);
  in.bytes.add(outer.inner_length);
  OfPort& of_port = in_of_port_[admit_place(batch)];
  of_port.frames[tunnel->tunnel().port].add(1);
  of_port.bytes[tunnel->tunnel().port].add(outer.inner_length);
}

void Vxlan::learn(const TunnelView& tunnel, const Remote& remote, const std::uint8_t* inner, In& in) {
  const std::uint64_t mac = packet::mac_word(inner + 6);
  constexpr std::uint64_t group = 1;
  if ((mac & group) != 0 || mac == 0 || tunnel.by_station(mac) != nullptr) return;
  const Fdb::Learned learned = control_->fdb(tunnel.tunnel().port).learn(mac, remote.id, control_->now());
  if (learned == Fdb::Learned::full) in.fdb_full.add(1);
  if (learned == Fdb::Learned::moved) in.moved.add(1);
}

unsigned Vxlan::leave(std::uint32_t lane, std::uint16_t port, rte_mbuf** frames, unsigned count, engine::Emitter& out) {
  Out& state = out_[lane];
  OutOfPort& of_port = out_of_port_[lane];
  const std::uint16_t port_before = of_port.now;
  count_for_port(state, of_port, port);
  const bool outermost = state.view == nullptr;
  if (outermost) state.view = &control_->view(out_reader(lane));
  const TunnelView& tunnel = state.view->tunnels[state.view->of_port[port]];
  for (unsigned i = 0; i < count; ++i) put_in(tunnel, frames[i], state, out);
  count_for_port(state, of_port, port_before);
  if (outermost) {
    state.view = nullptr;
    control_->release(out_reader(lane));
  }
  return 0;
}

void Vxlan::count_for_port(const Out& state, OutOfPort& of_port, std::uint16_t next) {
  const std::uint64_t frames = state.frames.get(), bytes = state.bytes.get();
  if (of_port.now != engine::no_port) {
    of_port.frames[of_port.now].add(frames - of_port.counted_frames);
    of_port.bytes[of_port.now].add(bytes - of_port.counted_bytes);
  }
  of_port.counted_frames = frames;
  of_port.counted_bytes = bytes;
  of_port.now = next;
}

void Vxlan::put_in(const TunnelView& tunnel, rte_mbuf* frame, Out& state, engine::Emitter& out) {
  if (rte_pktmbuf_pkt_len(frame) < ethernet) return out.drop(frame, packet::frame_too_short);
  const auto* const data = rte_pktmbuf_mtod(frame, const std::uint8_t*);
  if ((data[0] & 1) != 0) return flood(tunnel, frame, state, out);
  const std::uint64_t mac = packet::mac_word(data);
  const Remote* remote = tunnel.by_station(mac);
  if (remote == nullptr) remote = tunnel.by_id(control_->fdb(tunnel.tunnel().port).find(mac));
  if (remote == nullptr) return flood(tunnel, frame, state, out);
  if (const Reason reason = why_not(*remote, *frame); reason != packet::no_reason) {
    if (reason == vxlan_too_long) return refuse_size(tunnel, frame, remote->most, state, out);
    return out.drop(frame, reason);
  }
  send_into_tunnel(*remote, frame, state, out);
}

namespace {

// The MTU that the sender is to be notified of, where a frame may have `most` bytes; 0: it is not notified. Only of
// packets that may not be fragmented on the way, and none that is less than what all links carry anyway.
std::uint32_t mtu_to_report(const std::uint8_t* frame, std::uint32_t length, std::uint32_t most,
                            packet::Metadata& meta) {
  constexpr std::uint32_t least_ipv4 = 576, least_ipv6 = 1280;
  if (!packet::may_answer_with_icmp_error(frame, length)) return 0;
  packet::read_metadata(frame, length, packet::Depth::network, meta);
  const std::uint32_t mtu = most > meta.network ? most - meta.network : 0;
  if (meta.family == 6) return mtu >= least_ipv6 ? mtu : 0;
  const auto& ip = packet::header_at<packet::Ipv4Header>(frame, meta.network);
  return mtu >= least_ipv4 && ip.fragment == packet::be16(packet::ipv4_dont_fragment) ? mtu : 0;
}

// The error, from the packet's destination to its sender; null: there is no buffer.
rte_mbuf* size_error(const rte_mbuf& buffer, std::uint32_t mtu, const packet::Metadata& meta) {
  const auto* const frame = rte_pktmbuf_mtod(&buffer, const std::uint8_t*);
  const std::uint32_t length = rte_pktmbuf_pkt_len(&buffer);
  const std::uint8_t* const destination = meta.family == 6
                                              ? packet::header_at<packet::Ipv6Header>(frame, meta.network).destination
                                              : frame + meta.network + offsetof(packet::Ipv4Header, destination);
  const packet::IpAddress source = packet::IpAddress::from_bytes(meta.family, destination);
  std::uint8_t own_mac[6];
  std::memcpy(own_mac, frame, sizeof own_mac);
  rte_mbuf* const made = rte_pktmbuf_alloc(buffer.pool);
  if (made == nullptr) return nullptr;
  auto* const error = rte_pktmbuf_mtod(made, std::uint8_t*);
  const std::uint32_t capacity = rte_pktmbuf_tailroom(made);
  std::uint32_t left = 0;
  if (length <= capacity) {
    std::memcpy(error, frame, length);
    left = packet::make_icmp_error(
        error, length, capacity,
        {.kind = packet::IcmpErrorKind::too_big, .mtu = mtu, .source = source, .own_mac = own_mac});
  }
  if (left == 0) {
    rte_pktmbuf_free(made);
    return nullptr;
  }
  made->data_len = static_cast<std::uint16_t>(left);
  made->pkt_len = left;
  return made;
}

}  // namespace

// What the host sends it fits to its twin's MTU itself.
void Vxlan::refuse_size(const TunnelView& tunnel, rte_mbuf* frame, std::uint32_t most, Out& state,
                        engine::Emitter& out) {
  const std::uint16_t port = tunnel.tunnel().port;
  const std::uint16_t peer = ports_.peer(port);
  const auto* const data = rte_pktmbuf_mtod(frame, const std::uint8_t*);
  const std::uint32_t length = rte_pktmbuf_pkt_len(frame);
  const bool is_bridged = !is_routed_ && peer != port && packet::mac_word(data + 6) != ports_[port].mac.word();
  packet::Metadata meta;
  const std::uint32_t mtu = is_bridged && length > most ? mtu_to_report(data, length, most, meta) : 0;
  if (mtu != 0 && out.may_answer()) {
    if (rte_mbuf* const error = size_error(*frame, mtu, meta); error != nullptr) {
      state.answered.add(1);
      out.emit(error, peer);
    }
  }
  out.drop(frame, vxlan_too_long);
}

void Vxlan::flood(const TunnelView& tunnel, rte_mbuf* frame, Out& state, engine::Emitter& out) {
  const Flooded flooded = flood_into_tunnel(tunnel.flooded(), frame, state, out);
  if (flooded.reason == vxlan_too_long) return refuse_size(tunnel, frame, flooded.least, state, out);
  if (flooded.reason != packet::no_reason) out.drop(frame, flooded.reason);
}

Expected<engine::Element::Change> Vxlan::reload(Element& fresh) {
  TunnelSettings next = static_cast<Vxlan&>(fresh).read_;
  for (const std::string& key : option::differing(vxlan_settings(), read_, next)) {
    return make_error("[vxlan] " + key + " is memory that was taken at the start: restart the gateway to change it");
  }
  if (auto ok = control_->check(next); !ok) return tl::unexpected(ok.error());
  const std::size_t tunnels = next.tunnels.size();
  const bool flushes =
      std::ranges::any_of(next.tunnels, [&](const Tunnel& one) { return changes_network(read_, one); });
  return Change{"the tunnels are in force (" + std::to_string(tunnels) + "); learned stations stay" +
                    (flushes ? ", but not those of a tunnel with another vni" : ""),
                [this, next = std::move(next)]() mutable {
                  read_ = next;
                  control_->change(std::move(next));
                }};
}

std::vector<engine::Metric> Vxlan::metrics() const {
  const auto sum = [](const auto& sides, auto counter) {
    std::uint64_t all = 0;
    for (const auto& side : sides) all += (side.*counter).get();
    return all;
  };
  return {
      {"vxlan_in_frames", "frames taken out of tunnels", sum(in_, &In::frames)},
      {"vxlan_in_bytes", "bytes of these, without outer headers", sum(in_, &In::bytes)},
      {"vxlan_out_frames", "frames put into tunnels, copies too", sum(out_, &Out::frames)},
      {"vxlan_out_bytes", "bytes of these, without outer headers", sum(out_, &Out::bytes)},
      {"vxlan_flooded_frames", "of these, those for a group or an unknown station", sum(out_, &Out::flooded)},
      {"vxlan_flood_lost", "copies of flooded frames that one of several remotes did not get",
       sum(out_, &Out::copies_lost)},
      {"vxlan_size_answers", "ICMP errors to senders of bridged packets that are too long for a tunnel",
       sum(out_, &Out::answered)},
      {"vxlan_fragments", "outer fragments that were put together, or wait for others", sum(in_, &In::pieces)},
      {"vxlan_moved", "times that a station turned up behind another remote", sum(in_, &In::moved)},
      {"vxlan_fdb_full", "frames whose station found no capacity in the forwarding table", sum(in_, &In::fdb_full)},
      {"vxlan_fdb_entries", "stations learned", control_ ? control_->learned() : 0, false},
      {"vxlan_unresolved", "remotes that cannot be reached now", control_ ? control_->unresolved() : 0, false},
  };
}

bool Vxlan::check_chain(const engine::Pipeline& pipeline, Settings& section, bool /*was_right*/,
                        const std::function<std::string(std::string_view)>& /*chain_with*/) const {
  const Ingress* const first = pipeline.elements().front()->trait<engine::Ingress>();
  if (first == this) return true;
  if (pipeline.first<engine::Departure>() != nullptr) {
    section.error("",
                  "\"vxlan\" and \"ipsec\" are not in one chain, since each stands first: "
                  "give each a gateway");
    return false;
  }
  section.error("", "\"vxlan\" stands first in [engine] chain, so that all others see what comes out of tunnels");
  return false;
}

}  // namespace sluice::function
