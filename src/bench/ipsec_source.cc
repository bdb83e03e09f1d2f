#include "bench/ipsec_source.h"

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/batch_edit.h"
#include "engine/counters.h"
#include "packet/checksum.h"
#include "packet/headers.h"

namespace sluice::cli::bench {
namespace {

using packet::be16;
using packet::be32;

constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::size_t headers = ethernet + sizeof(packet::Ipv4Header) + sizeof(packet::UdpHeader);

void set_frame(engine::Batch& batch, std::uint32_t i) {
  const rte_mbuf& frame = *batch.mbuf[i];
  batch.bytes += frame.data_len;
  batch.bytes -= batch.length[i];
  batch.max_length = std::max<std::uint32_t>(batch.max_length, frame.data_len);
  batch.length[i] = frame.data_len;
  batch.frame[i] = reinterpret_cast<std::uint64_t>(rte_pktmbuf_mtod(&frame, const void*));
}

}  // namespace

struct alignas(64) IpsecSource::Lane {
  // What is kept of a frame while the source checks.
  struct Kept {
    bool is_kept = false, in = false;
    std::uint32_t tunnel = 0, index = 0;  // index: of the sealed packet
    std::vector<std::uint8_t> clear;      // outbound
  };
  std::vector<std::uint16_t> length;  // of each frame in clear, outbound; 0: it has not come yet
  std::vector<SealedPackets::Came> came;
  std::vector<Kept> kept;
  std::uint32_t random = 1, next_sealed = 0;
  std::uint32_t tunnel = 0;  // of the frame that was made last, and the packet
  std::uint32_t index = 0;
  engine::Counter ticks, frames;
  std::array<std::uint8_t, headers> clear{};
  const rte_mempool* pool = nullptr;
};

IpsecSource::IpsecSource(const IpsecTunnels& tunnels, const SealedPackets* sealed, unsigned lanes, unsigned frames)
    : tunnels_(tunnels), sealed_(sealed), check_(tunnels, lanes) {
  const auto clear = clear_frame(ipsec::Direction::out, 0, headers, 0);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->length.resize(frames);
    lanes_.back()->kept.resize(frames);
    lanes_.back()->came.resize(frames);
    lanes_.back()->random = 2654435761U * (lane + 1);
    std::ranges::copy(clear, lanes_.back()->clear.begin());
  }
}

IpsecSource::~IpsecSource() = default;

void IpsecSource::admit(engine::Batch& batch, engine::Span span) {
  if (batch.pass != 0) return;  // what comes out of an SA
  const std::uint64_t begin = rte_rdtsc();
  Lane& lane = *lanes_[batch.lane];
  const bool in = in_.load(std::memory_order_relaxed), checking = checking_.load(std::memory_order_relaxed);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    rte_mbuf& frame = *batch.mbuf[i];
    const std::uint32_t index = port::ReplayPort::frame_index(&frame);
    if (lane.length[index] == 0) lane.length[index] = std::max<std::uint16_t>(frame.data_len, headers);
    frame.data_off = RTE_PKTMBUF_HEADROOM;
    if (in) {
      write_sealed(lane, batch.lane, frame, checking);
    } else {
      write_clear(lane, frame);
    }
    set_frame(batch, i);
    if (checking) [[unlikely]] {
      keep(lane, frame, in);
    }
  }
  lane.ticks.add(rte_rdtsc() - begin);
  lane.frames.add(span.count);
}

void IpsecSource::write_clear(Lane& lane, rte_mbuf& frame) {
  // Marsaglia's xorshift.
  lane.random ^= lane.random << 13;
  lane.random ^= lane.random >> 17;
  lane.random ^= lane.random << 5;
  lane.tunnel = static_cast<std::uint32_t>(std::uint64_t{lane.random} * tunnels_.count() >> 32);
  const std::uint16_t length = lane.length[port::ReplayPort::frame_index(&frame)];
  auto& ip = packet::header_at<packet::Ipv4Header>(lane.clear.data(), ethernet);
  auto& udp = packet::header_at<packet::UdpHeader>(lane.clear.data(), ethernet + sizeof ip);
  ip.total_length = be16(static_cast<std::uint16_t>(length - ethernet));
  ip.destination = be32(IpsecTunnels::far_host(lane.tunnel));
  ip.checksum = packet::ipv4_header_checksum(ip);
  udp.length = be16(static_cast<std::uint16_t>(length - ethernet - sizeof ip));
  std::memcpy(rte_pktmbuf_mtod(&frame, void*), lane.clear.data(), headers);
  lane.came[port::ReplayPort::frame_index(&frame)].is_there = false;
  frame.data_len = length;
  frame.pkt_len = length;
}

void IpsecSource::write_sealed(Lane& lane, std::uint32_t lane_index, rte_mbuf& frame, bool whole) {
  SealedPackets::Came& came = lane.came[port::ReplayPort::frame_index(&frame)];
  const SealedPackets::Sealed& sealed = sealed_->write(lane_index, came, lane.next_sealed, frame.data_len, whole,
                                                       rte_pktmbuf_mtod(&frame, std::uint8_t*));
  frame.data_len = sealed.length;
  frame.pkt_len = sealed.length;
  lane.tunnel = sealed.tunnel;
  lane.index = came.packet;
}

void IpsecSource::keep(Lane& lane, const rte_mbuf& frame, bool in) {
  Lane::Kept& kept = lane.kept[port::ReplayPort::frame_index(&frame)];
  kept.is_kept = true;
  kept.in = in;
  kept.tunnel = lane.tunnel;
  kept.index = lane.index;
  const auto* const bytes = rte_pktmbuf_mtod(&frame, const std::uint8_t*);
  if (!in) kept.clear.assign(bytes, bytes + frame.data_len);
}

void IpsecSource::check(bool on) {
  if (on) watching_.store(true, std::memory_order_relaxed);
  checking_.store(on, std::memory_order_relaxed);
}

void IpsecSource::watch(port::ReplayPort& port) {
  check(true);
  for (std::uint16_t lane = 0; lane < lanes_.size(); ++lane) lanes_[lane]->pool = port.pool(lane);
  port.observe([this](const rte_mbuf* frame) {
    if (!watching_.load(std::memory_order_relaxed)) [[likely]]
      return;
    const auto of_pool = [frame](const auto& lane) { return lane->pool == frame->pool; };
    const auto at = static_cast<unsigned>(std::ranges::find_if(lanes_, of_pool) - lanes_.begin());
    Lane::Kept& kept = lanes_[at]->kept[port::ReplayPort::frame_index(frame)];
    if (!std::exchange(kept.is_kept, false)) return;
    const std::span left(rte_pktmbuf_mtod(frame, const std::uint8_t*), rte_pktmbuf_data_len(frame));
    if (kept.in) kept.clear = sealed_->clear(at, kept.index);
    check_.frame(at, kept.in ? ipsec::Direction::in : ipsec::Direction::out, kept.tunnel, kept.clear, left);
  });
}

double IpsecSource::own_ns(double ticks_per_ns) {
  std::uint64_t ticks = 0, frames = 0;
  for (const auto& lane : lanes_) {
    ticks += lane->ticks.get();
    frames += lane->frames.get();
  }
  const auto spent = static_cast<double>(ticks - std::exchange(seen_ticks_, ticks));
  const auto count = static_cast<double>(frames - std::exchange(seen_frames_, frames));
  return count == 0 ? 0 : spent / count / ticks_per_ns;
}

}  // namespace sluice::cli::bench
