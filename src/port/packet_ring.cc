#include "port/packet_ring.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <rte_cycles.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sluice::port {
namespace {

constexpr std::size_t longest_frame = 65536 + ETH_HLEN + 4 * sizeof(std::uint32_t);
constexpr std::size_t macs_bytes = 2 * ETH_ALEN;
constexpr std::size_t tag_bytes = 4;
constexpr std::uint64_t ns_per_s = 1'000'000'000;

Error failure(const std::string& what) {
  return Error{"a packet socket does not " + what + ": " + std::strerror(errno)};
}

bool set(int socket, int name, int value) {
  return setsockopt(socket, SOL_PACKET, name, &value, sizeof value) == 0;
}

}  // namespace

Expected<std::unique_ptr<PacketRing>> PacketRing::open(unsigned interface, const PacketRingOptions& options, bool alone,
                                                       std::optional<std::uint16_t> group) {
  std::unique_ptr<PacketRing> ring(new PacketRing());
  // In this order: the header's form is settled before the ring, and the ring last, since setting it empties the socket
  // of what came by before it shared its frames with the others.
  const auto done = ring->set_up(interface, options)
                        .and_then([&] { return alone ? Expected<void>() : ring->share(group); })
                        .and_then([&] { return ring->map(options); });
  return done ? Expected<std::unique_ptr<PacketRing>>(std::move(ring)) : tl::unexpected(done.error());
}

Expected<void> PacketRing::set_up(unsigned interface, const PacketRingOptions& options) {
  socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) {
    return tl::unexpected(failure("open"));
  }
  if (!set(socket_, PACKET_VERSION, TPACKET_V2) || !set(socket_, PACKET_VNET_HDR, 1)) {
    return tl::unexpected(failure("report unfinished checksums (PACKET_VNET_HDR, Linux 4.6)"));
  }
  set(socket_, PACKET_IGNORE_OUTGOING, 1);  // Linux 4.20; older ones go without
  const int queue = static_cast<int>(options.queue_bytes);
  if (!set(socket_, PACKET_COPY_THRESH, 1) ||
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof queue) != 0) {
    return tl::unexpected(failure("queue frames that are longer than a slot"));
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(interface);
  if (bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return tl::unexpected(failure("bind to the interface"));
  }
  long_frame_.resize(longest_frame);
  ticks_per_ns_ = static_cast<double>(rte_get_tsc_hz()) / static_cast<double>(ns_per_s);
  return {};
}

// Without reassembly (PACKET_FANOUT_FLAG_DEFRAG): a router passes fragments as they are (RFC 791, RFC 1812 4.2.2.7).
Expected<void> PacketRing::share(std::optional<std::uint16_t> group) {
  const int how = group ? PACKET_FANOUT_HASH : PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID;
  int fanout = 0;
  socklen_t size = sizeof fanout;
  if (!set(socket_, PACKET_FANOUT, how << 16 | group.value_or(0)) ||
      getsockopt(socket_, SOL_PACKET, PACKET_FANOUT, &fanout, &size) != 0) {
    return tl::unexpected(failure("share the interface's frames with the port's other queues"));
  }
  group_ = static_cast<std::uint16_t>(fanout & 0xffff);
  return {};
}

Expected<void> PacketRing::map(const PacketRingOptions& options) {
  const unsigned in_block = options.block_bytes / options.slot_bytes;
  const unsigned blocks = in_block == 0 ? 0 : (options.slots + in_block - 1) / in_block;
  tpacket_req ring{};
  ring.tp_block_size = options.block_bytes;
  ring.tp_block_nr = blocks;
  ring.tp_frame_size = options.slot_bytes;
  ring.tp_frame_nr = blocks * in_block;
  const std::string shape = "make a ring of " + std::to_string(options.slots) + " slots (framecnt) of " +
                            std::to_string(options.slot_bytes) + " bytes (framesz) in blocks of " +
                            std::to_string(options.block_bytes) + " (blocksz)";
  if (blocks == 0) {
    errno = EINVAL;
    return tl::unexpected(failure(shape));
  }
  if (setsockopt(socket_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
    return tl::unexpected(failure(shape));
  }
  memory_bytes_ = std::size_t{blocks} * options.block_bytes;
  void* const memory = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket_, 0);
  if (memory == MAP_FAILED) {
    return tl::unexpected(failure(shape));
  }
  memory_ = static_cast<std::uint8_t*>(memory);
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t slot = 0; slot < in_block; ++slot) {
      slots_.push_back(
          reinterpret_cast<tpacket2_hdr*>(memory_ + block * options.block_bytes + slot * options.slot_bytes));
    }
  }
  return {};
}

PacketRing::~PacketRing() {
  if (memory_ != nullptr) {
    munmap(memory_, memory_bytes_);
  }
  if (socket_ >= 0) {
    close(socket_);
  }
}

// The slot at the head, if the kernel has filled it.
tpacket2_hdr* PacketRing::ready() const {
  tpacket2_hdr* const slot = slots_[head_];
  return (__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) != 0 ? slot : nullptr;
}

void PacketRing::release() {
  __atomic_store_n(&slots_[head_]->tp_status, __u32{TP_STATUS_KERNEL}, __ATOMIC_RELEASE);
  head_ = head_ + 1 == slots_.size() ? 0 : head_ + 1;
}

void PacketRing::look_at_clock(const tpacket2_hdr& slot) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::uint64_t arrived = slot.tp_sec * ns_per_s + slot.tp_nsec;
  const std::uint64_t ns = static_cast<std::uint64_t>(now.tv_sec) * ns_per_s + static_cast<std::uint64_t>(now.tv_nsec);
  waited_ = ns > arrived ? static_cast<std::uint64_t>(static_cast<double>(ns - arrived) * ticks_per_ns_) : 0;
}

std::uint16_t PacketRing::receive(rte_mempool* pool, rte_mbuf** frames, std::uint16_t count) {
  std::uint16_t taken = 0;
  waited_ = 0;
  while (taken < count) {
    const tpacket2_hdr* const slot = ready();
    if (slot == nullptr) {
      break;
    }
    if (taken == 0) {
      look_at_clock(*slot);
    }
    if (segments_.done()) {
      rte_mbuf* frame = nullptr;
      if (!take_slot(*slot, pool, &frame)) {
        break;  // no mbuf: it waits in the ring
      }
      if (frame != nullptr) {
        frames[taken++] = frame;
      }
    }
    if (!segments_.done()) {
      const std::uint16_t pieces = cut(pool, frames + taken, static_cast<std::uint16_t>(count - taken));
      taken = static_cast<std::uint16_t>(taken + pieces);
      if (!segments_.done()) {
        break;
      }
    }
    release();
  }
  if (taken != 0) {
    std::uint64_t bytes = 0;
    for (std::uint16_t i = 0; i < taken; ++i) {
      bytes += rte_pktmbuf_data_len(frames[i]);
    }
    frames_.add(taken);
    bytes_.add(bytes);
  }
  return taken;
}

// False: there is no mbuf for it. Else it is in `frame`, in segments_, or counted.
bool PacketRing::take_slot(const tpacket2_hdr& slot, rte_mempool* pool, rte_mbuf** frame) {
  Tag tag;
  if ((slot.tp_status & TP_STATUS_VLAN_VALID) != 0) {
    tag.type =
        htons((slot.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? slot.tp_vlan_tpid : std::uint16_t{ETH_P_8021Q});
    tag.tci = htons(slot.tp_vlan_tci);
  }
  if (slot.tp_snaplen < slot.tp_len) {
    if ((slot.tp_status & TP_STATUS_COPY) != 0) {
      return take_queued(pool, frame, tag);
    }
    missed_.add(1);  // the receive queue had no capacity
    return true;
  }
  auto* const bytes = reinterpret_cast<std::uint8_t*>(const_cast<tpacket2_hdr*>(&slot)) + slot.tp_mac;
  VirtioHeader header;
  std::memcpy(&header, bytes - sizeof header, sizeof header);
  return take(bytes, slot.tp_snaplen, header, pool, frame, tag);
}

bool PacketRing::take_queued(rte_mempool* pool, rte_mbuf** frame, const Tag& tag) {
  if (rte_mempool_empty(pool) != 0) {
    return false;  // it can be read only once
  }
  VirtioHeader header;
  iovec parts[2] = {{&header, sizeof header}, {long_frame_.data(), long_frame_.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t length = recvmsg(socket_, &message, MSG_TRUNC);
  if (length < 0 && errno != EAGAIN) {
    length = recvmsg(socket_, &message, MSG_TRUNC);  // an interface that went down had left its error
  }
  const std::size_t bytes =
      length < static_cast<ssize_t>(sizeof header) ? 0 : static_cast<std::size_t>(length) - sizeof header;
  if (bytes == 0 || bytes > long_frame_.size()) {
    errors_.add(1);
    return true;
  }
  if (!take(long_frame_.data(), bytes, header, pool, frame, tag)) {
    missed_.add(1);
  }
  return true;
}

// False: there is no mbuf, and nothing has been done.
bool PacketRing::take(std::uint8_t* bytes, std::size_t length, const VirtioHeader& header, rte_mempool* pool,
                      rte_mbuf** frame, const Tag& tag) {
  const bool unfinished = (header.flags & virtio_needs_checksum) != 0;
  const unsigned kind = header.segmentation & ~unsigned{virtio_ecn};
  if (kind != virtio_no_segmentation) {
    const bool tcp = kind == virtio_tcp4 || kind == virtio_tcp6;
    const bool known = unfinished && (tcp || kind == virtio_udp);
    if (known && segments_.begin(bytes, length, tcp ? packet::Segmentation::tcp : packet::Segmentation::udp,
                                 header.segment_bytes, header.checksum_start)) {
      segments_tag_ = tag;
      cut_up_.add(1);
    } else {
      errors_.add(1);
    }
    return true;
  }
  const std::size_t capacity = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
  const std::size_t tagged = length + (tag.type != 0 ? tag_bytes : 0);
  if (tagged > capacity || length < ETH_HLEN) {
    errors_.add(1);
    return true;
  }
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
  if (mbuf == nullptr) {
    return false;
  }
  if (unfinished && packet::finish_checksum(bytes, length, header.checksum_start, header.checksum_offset)) {
    finished_.add(1);
    mbuf->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
  }
  auto* const to = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
  if (tag.type == 0) {
    std::memcpy(to, bytes, length);
  } else {
    std::memcpy(to, bytes, macs_bytes);
    put_tag(to, tag);
    std::memcpy(to + macs_bytes + tag_bytes, bytes + macs_bytes, length - macs_bytes);
  }
  rte_pktmbuf_data_len(mbuf) = static_cast<std::uint16_t>(tagged);
  rte_pktmbuf_pkt_len(mbuf) = static_cast<std::uint32_t>(tagged);
  *frame = mbuf;
  return true;
}

void PacketRing::put_tag(std::uint8_t* at, const Tag& tag) const {
  std::memcpy(at + macs_bytes, &tag.type, sizeof tag.type);
  std::memcpy(at + macs_bytes + sizeof tag.type, &tag.tci, sizeof tag.tci);
}

// The next frames of the packet at the head.
std::uint16_t PacketRing::cut(rte_mempool* pool, rte_mbuf** frames, std::uint16_t count) {
  const std::size_t capacity = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
  const std::size_t before = segments_tag_.type != 0 ? tag_bytes : 0;
  std::uint16_t taken = 0;
  while (taken < count && !segments_.done()) {
    const std::size_t length = segments_.next_length() + before;
    if (length > capacity) {
      errors_.add(1);
      segments_.drop();
      break;
    }
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
    if (mbuf == nullptr) {
      break;
    }
    auto* const to = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
    segments_.write_next(to + before);
    if (before != 0) {
      std::memmove(to, to + before, macs_bytes);
      put_tag(to, segments_tag_);
    }
    rte_pktmbuf_data_len(mbuf) = static_cast<std::uint16_t>(length);
    rte_pktmbuf_pkt_len(mbuf) = static_cast<std::uint32_t>(length);
    mbuf->ol_flags |= RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    frames[taken++] = mbuf;
  }
  finished_.add(taken);
  return taken;
}

PacketRing::Counts PacketRing::counts() const {
  Counts counts{frames_.get(), bytes_.get(), missed_.get(), errors_.get(), finished_.get(), cut_up_.get()};
  const std::lock_guard lock(asking_);
  tpacket_stats since{};
  socklen_t length = sizeof since;
  if (getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &since, &length) == 0) {
    kernel_missed_ += since.tp_drops;  // the kernel forgets its number when it is read
  }
  counts.missed += kernel_missed_;
  return counts;
}

}  // namespace sluice::port
