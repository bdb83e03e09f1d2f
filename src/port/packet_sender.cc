#include "port/packet_sender.h"

#include <linux/if_packet.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sluice::port {
namespace {

constexpr int buffer_bytes = 8 << 20;           // of frames that the interface has not sent yet
constexpr unsigned bursts_one_by_one = 10'000;  // before a refused interface is tried again
constexpr std::uint16_t tcp_checksum_offset = 16;

void add(std::atomic<std::uint64_t>& cell, std::uint64_t n) {
  cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// There is no capacity now; anything else is about the frame or the interface, and stays.
bool passes(int error) {
  return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EINTR;
}

const std::uint8_t* bytes_of(const rte_mbuf* frame) {
  return rte_pktmbuf_mtod(frame, const std::uint8_t*);
}

// Whoever received it made or verified it, and whoever has changed the frame since has kept it right.
packet::Merger::Checksum checksum_of(const rte_mbuf* frame) {
  return (frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD
             ? packet::Merger::Checksum::known_right
             : packet::Merger::Checksum::to_verify;
}

}  // namespace

PacketSender::~PacketSender() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

Expected<std::unique_ptr<PacketSender>> PacketSender::open(unsigned interface, bool qdisc_bypass, bool merges) {
  std::unique_ptr<PacketSender> sender(new PacketSender());
  sender->socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sender->merges_ = merges;
  const int on = 1;
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(interface);
  const auto set = [&](int level, int name, const int& value) {
    return setsockopt(sender->socket_, level, name, &value, sizeof value) == 0;
  };
  if (sender->socket_ < 0 || !set(SOL_PACKET, PACKET_VNET_HDR, on) ||
      (qdisc_bypass && !set(SOL_PACKET, PACKET_QDISC_BYPASS, on)) || !set(SOL_SOCKET, SO_SNDBUFFORCE, buffer_bytes) ||
      bind(sender->socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return make_error(std::string("no packet socket to send by: ") + std::strerror(errno));
  }
  return sender;
}

std::uint16_t PacketSender::send(rte_mbuf** frames, std::uint16_t count) {
  unsigned taken = 0;
  std::uint64_t bytes = 0;
  while (taken < count) {
    const unsigned now = send_some(frames + taken, std::min<unsigned>(most, count - taken));
    if (now == 0) {
      break;
    }
    for (unsigned i = 0; i < now; ++i) {
      bytes += rte_pktmbuf_pkt_len(frames[taken + i]);
    }
    rte_pktmbuf_free_bulk(frames + taken, now);
    taken += now;
  }
  add(frames_, taken);
  add(bytes_, bytes);
  return static_cast<std::uint16_t>(taken);
}

// How many frames were taken.
unsigned PacketSender::send_some(rte_mbuf** frames, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (frames[i]->nb_segs != 1 && rte_pktmbuf_linearize(frames[i]) != 0) {
      if (i == 0) {
        add(errors_, 1);
        return 1;
      }
      count = i;
      break;
    }
  }
  const int sent = sendmmsg(socket_, messages_.data(), describe(frames, count), MSG_DONTWAIT);
  if (sent > 0) {
    unsigned taken = 0;
    for (int message = 0; message < sent; ++message) {
      taken += frames_of_[static_cast<std::size_t>(message)];
    }
    return taken;
  }
  if (frames_of_[0] > 1 && errno != EAGAIN) {
    one_by_one_ = bursts_one_by_one;
    return send_some(frames, count);
  }
  if (passes(errno)) {
    return 0;
  }
  add(errors_, 1);
  return 1;
}

// Into messages_, whose number it returns.
unsigned PacketSender::describe(rte_mbuf** frames, unsigned count) {
  const bool merges = merges_ && one_by_one_ == 0;
  one_by_one_ -= one_by_one_ == 0 ? 0 : 1;
  parts_used_ = 0;
  unsigned messages = 0;
  for (unsigned i = 0; i < count; ++messages) {
    msghdr& message = messages_[messages].msg_hdr;
    message.msg_iov = &parts_[parts_used_];
    const unsigned before = parts_used_;
    unsigned together = merges ? merge(frames + i, count - i, messages) : 1;
    if (together == 1) {
      heads_[messages].offloads = {};
      add_part(&heads_[messages].offloads, sizeof(VirtioHeader));
      add_part(bytes_of(frames[i]), rte_pktmbuf_data_len(frames[i]));
    }
    message.msg_iovlen = parts_used_ - before;
    frames_of_[messages] = together;
    i += together;
  }
  return messages;
}

// How many of the frames go together, and describes them; 1: the first goes alone, and is not described.
unsigned PacketSender::merge(rte_mbuf** frames, unsigned count, unsigned message) {
  packet::Merger merger;
  if (count < 2 || !merger.begin(bytes_of(frames[0]), rte_pktmbuf_data_len(frames[0]), checksum_of(frames[0]))) {
    return 1;
  }
  const auto follows = [&](const rte_mbuf* frame) {
    return merger.add(bytes_of(frame), rte_pktmbuf_data_len(frame), checksum_of(frame));
  };
  unsigned together = 1;
  while (together < count && follows(frames[together])) {
    ++together;
  }
  if (together == 1) {
    return 1;
  }
  Head& head = heads_[message];
  const bool is_ipv4 = (bytes_of(frames[0])[14] >> 4) == 4;
  head.offloads = {virtio_needs_checksum,
                   is_ipv4 ? virtio_tcp4 : virtio_tcp6,
                   static_cast<std::uint16_t>(merger.header_bytes()),
                   static_cast<std::uint16_t>(merger.payload_bytes()),
                   static_cast<std::uint16_t>(merger.transport()),
                   tcp_checksum_offset};
  merger.write_headers(head.headers.data());
  static_assert(offsetof(Head, headers) == sizeof(VirtioHeader));
  add_part(&head, sizeof(VirtioHeader) + merger.header_bytes());
  for (unsigned i = 0; i < together; ++i) {
    add_part(bytes_of(frames[i]) + merger.header_bytes(), rte_pktmbuf_data_len(frames[i]) - merger.header_bytes());
  }
  return together;
}

void PacketSender::add_part(const void* bytes, std::size_t length) {
  parts_[parts_used_++] = {const_cast<void*>(bytes), length};
}

PacketSender::Counts PacketSender::counts() const {
  return {frames_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
          errors_.load(std::memory_order_relaxed)};
}

}  // namespace sluice::port
