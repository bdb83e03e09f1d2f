#include "port/packet_ring.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "../tests/support/net_namespace.h"
#include "packet/builder.h"
#include "packet/headers.h"
#include "port/port.h"

namespace sluice::port {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using test::NetNamespace;

// The other end of the port's cable, where frames are sent as a host's kernel would hand them to its card.
class Sender {
 public:
  explicit Sender(const char* interface) : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface));
    const int on = 1;
    setsockopt(socket_, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on);
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Sender() { close(socket_); }
  void send(const VirtioHeader& header, const Bytes& frame) const {
    Bytes message(sizeof header);
    std::memcpy(message.data(), &header, sizeof header);
    message.insert(message.end(), frame.begin(), frame.end());
    EXPECT_EQ(::send(socket_, message.data(), message.size(), 0), static_cast<ssize_t>(message.size()));
  }

 private:
  int socket_;
};

class PacketRingTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
    ASSERT_EQ(space_.run("ip link add x0 type veth peer name x1 && "
                         "echo 1 | tee /proc/sys/net/ipv6/conf/x0/disable_ipv6 "
                         "/proc/sys/net/ipv6/conf/x1/disable_ipv6 > /dev/null && "
                         "ip link set x0 up && ip link set x1 up"),
              0);
  }
  void open(const std::string& arguments = "", unsigned queues = 1) {
    PortOptions options;
    options.name = "p";
    options.device = "net_af_packet7,iface=x0" + arguments;
    options.queues = queues;
    auto opened = Port::open(options, {}, 1);
    ASSERT_TRUE(opened) << opened.error().message;
    port_ = std::move(*opened);
  }
  std::vector<Bytes> received(std::uint16_t queue = 0, std::uint16_t most = 32) {
    std::vector<Bytes> all;
    std::array<rte_mbuf*, 64> frames{};
    while (const std::uint16_t count = port_->rx_burst(queue, frames.data(), most)) {
      for (std::uint16_t i = 0; i < count; ++i) {
        const auto* const at = rte_pktmbuf_mtod(frames[i], const std::uint8_t*);
        all.emplace_back(at, at + rte_pktmbuf_data_len(frames[i]));
      }
      rte_pktmbuf_free_bulk(frames.data(), count);
    }
    return all;
  }

  NetNamespace space_;
  NetNamespace::Entry inside_ = space_.enter();
  std::unique_ptr<Port> port_;
};

Bytes unfinished_tcp(std::size_t payload) {
  return PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").tcp(1, 2).payload(payload).transport_checksum(0x1234).build();
}

TEST_F(PacketRingTest, AWholeFrameComesAsItIs) {
  open();
  const Sender sender("x1");
  const Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(100).build();
  sender.send({}, frame);
  EXPECT_EQ(received(), std::vector<Bytes>{frame});
  EXPECT_EQ(port_->stats().checksums_finished, 0U);
}

// 1448 bytes a piece, of a packet that is larger than a slot and of one that is not; taken a few at a time.
TEST_F(PacketRingTest, APacketLongerThanTheMtuComesAsTheFramesThatACardWouldHaveSent) {
  open();
  const Sender sender("x1");
  for (const std::size_t payload : {1448U * 40U, 700U * 2U}) {
    VirtioHeader header;
    header.flags = virtio_needs_checksum;
    header.segmentation = virtio_tcp4;
    header.headers = 54;
    header.segment_bytes = payload > 2000 ? 1448 : 700;
    header.checksum_start = 34;
    header.checksum_offset = 16;
    // The kernel takes the pseudo-header's sum on trust.
    sender.send(header, unfinished_tcp(payload));
    const std::vector<Bytes> frames = received(0, 7);
    ASSERT_EQ(frames.size(), payload / header.segment_bytes);
    std::size_t at = 0;
    for (const Bytes& frame : frames) {
      ASSERT_EQ(frame.size(), 54U + header.segment_bytes);
      EXPECT_EQ(packet::be32(packet::header_at<packet::TcpHeader>(frame.data(), 34).sequence), at);
      at += header.segment_bytes;
    }
  }
  EXPECT_EQ(port_->stats().cut_up, 2U);
  EXPECT_EQ(port_->stats().missed + port_->stats().rx_errors, 0U);
}

TEST_F(PacketRingTest, WhatFindsTheRingFullIsCountedAndWhatWaitsIsSeenToHaveWaited) {
  open(",framecnt=64");
  const Sender sender("x1");
  const Bytes frame = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(1, 2).payload(100).build();
  for (int i = 0; i < 100; ++i) sender.send({}, frame);
  const timespec pause{0, 30'000'000};
  nanosleep(&pause, nullptr);
  std::array<rte_mbuf*, 1> first{};
  ASSERT_EQ(port_->rx_burst(0, first.data(), 1), 1);
  EXPECT_GE(port_->waited(0), rte_get_tsc_hz() / 1000 * 29);
  rte_pktmbuf_free(first[0]);
  EXPECT_EQ(received().size(), 63U);
  EXPECT_EQ(port_->stats().missed, 36U);
  EXPECT_EQ(port_->stats().rx_frames, 64U);
  EXPECT_TRUE(port_->knows_arrival());
}

TEST_F(PacketRingTest, QueuesShareTheFramesByFlowAndNoneComesTwice) {
  open("", 2);
  const Sender sender("x1");
  for (std::uint16_t flow = 0; flow < 64; ++flow) {
    sender.send({}, PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").udp(flow, 2).payload(100).build());
  }
  const std::size_t one = received(0).size();
  const std::size_t other = received(1).size();
  EXPECT_EQ(one + other, 64U);
  EXPECT_GT(one, 0U);
  EXPECT_GT(other, 0U);
}

TEST_F(PacketRingTest, WhatTheKernelRefusesToSendIsCounted) {
  open();
  std::array<rte_mbuf*, 1> frame{};
  rte_mempool* const pool = port_->pools()[0];
  const auto send_one = [&](std::uint16_t length) {
    frame[0] = rte_pktmbuf_alloc(pool);
    std::memset(rte_pktmbuf_append(frame[0], length), 0x02, length);
    EXPECT_EQ(port_->tx_burst(0, frame.data(), 1), 1);
  };
  send_one(60);
  EXPECT_EQ(port_->stats().tx_errors, 0U);
  send_one(1900);
  EXPECT_EQ(port_->stats().tx_errors, 1U) << "longer than the MTU";
  ASSERT_EQ(space_.run("ip link set x0 down"), 0);
  send_one(60);
  EXPECT_EQ(port_->stats().tx_errors, 2U) << "down";
  EXPECT_EQ(port_->stats().tx_frames, 3U);
  EXPECT_EQ(rte_mempool_in_use_count(pool), 0U);
}

// What the port itself has cut up goes on as one packet, and is what it was to who cuts it up.
TEST_F(PacketRingTest, FramesThatFollowEachOtherAreSentAsOnePacket) {
  open();
  const auto other = PacketRing::open(if_nametoindex("x1"), {}, true, std::nullopt);
  ASSERT_TRUE(other) << other.error().message;
  rte_mempool* const pool = port_->pools()[0];
  std::array<rte_mbuf*, 64> burst{};
  std::vector<Bytes> frames;
  for (std::uint16_t i = 0; i < 44; ++i) {
    // A datagram in their midst, before and behind which they go together.
    PacketBuilder builder = PacketBuilder().ipv4("10.0.0.1", "10.1.0.1");
    const std::uint32_t number = i < 20 ? i : i - 1U;
    i == 20 ? builder.udp(1, 2).payload(100)
            : builder.id(number).tcp(1, 2).tcp_sequence(number * 1448, 7).payload(1448);
    frames.push_back(builder.build());
    burst[i] = rte_pktmbuf_alloc(pool);
    std::memcpy(rte_pktmbuf_append(burst[i], static_cast<std::uint16_t>(frames[i].size())), frames[i].data(),
                frames[i].size());
  }
  ASSERT_EQ(port_->tx_burst(0, burst.data(), 44), 44);
  std::vector<Bytes> arrived;
  while (const std::uint16_t count = (*other)->receive(pool, burst.data(), 64)) {
    for (std::uint16_t i = 0; i < count; ++i) {
      const auto* const at = rte_pktmbuf_mtod(burst[i], const std::uint8_t*);
      arrived.emplace_back(at, at + rte_pktmbuf_data_len(burst[i]));
    }
    rte_pktmbuf_free_bulk(burst.data(), count);
  }
  EXPECT_EQ(arrived, frames);
  EXPECT_EQ((*other)->counts().cut_up, 2U);
  EXPECT_EQ(port_->stats().tx_frames, 44U);
  EXPECT_EQ(rte_mempool_in_use_count(pool), 0U);
}

// Their checksums are wrong, as the sender's pseudo-header sum was. The port made them, so it merges them without a
// look; the same frames without its mark go one by one.
TEST_F(PacketRingTest, FramesThatThePortCutAreMergedWithoutVerifyingThem) {
  open();
  const auto other = PacketRing::open(if_nametoindex("x1"), {}, true, std::nullopt);
  ASSERT_TRUE(other) << other.error().message;
  const VirtioHeader header{virtio_needs_checksum, virtio_tcp4, 54, 1448, 34, 16};
  for (const bool marked : {true, false}) {
    Sender("x1").send(header, unfinished_tcp(1448U * 8U));
    std::array<rte_mbuf*, 8> burst{};
    ASSERT_EQ(port_->rx_burst(0, burst.data(), 8), 8);
    for (rte_mbuf* const frame : burst) {
      EXPECT_EQ(frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, RTE_MBUF_F_RX_L4_CKSUM_GOOD);
      if (!marked) frame->ol_flags &= ~RTE_MBUF_F_RX_L4_CKSUM_MASK;
    }
    ASSERT_EQ(port_->tx_burst(0, burst.data(), 8), 8);
    ASSERT_EQ((*other)->receive(port_->pools()[0], burst.data(), 8), 8);
    rte_pktmbuf_free_bulk(burst.data(), 8);
    EXPECT_EQ((*other)->counts().cut_up, 1U) << "marked: " << marked;
  }
}

// What came finished over the cable has no mark.
TEST_F(PacketRingTest, AFrameThatCameWithItsChecksumIsNotMarked) {
  open();
  Sender("x1").send({}, PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").tcp(1, 2).payload(100).build());
  rte_mbuf* frame = nullptr;
  ASSERT_EQ(port_->rx_burst(0, &frame, 1), 1);
  EXPECT_EQ(frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK, 0U);
  rte_pktmbuf_free(frame);
}

// Without the interface's own cutting up the kernel refuses the packet; the frames go one by one then.
TEST_F(PacketRingTest, WhereTheInterfaceTakesNoLongPacketsFramesGoOneByOne) {
  ASSERT_EQ(space_.run("ethtool -K x0 tso off > /dev/null"), 0);
  open();
  const auto other = PacketRing::open(if_nametoindex("x1"), {}, true, std::nullopt);
  ASSERT_TRUE(other) << other.error().message;
  rte_mempool* const pool = port_->pools()[0];
  std::array<rte_mbuf*, 8> burst{};
  for (std::uint32_t i = 0; i < 8; ++i) {
    const Bytes frame =
        PacketBuilder().ipv4("10.0.0.1", "10.1.0.1").id(i).tcp(1, 2).tcp_sequence(i * 1448, 7).payload(1448).build();
    burst[i] = rte_pktmbuf_alloc(pool);
    std::memcpy(rte_pktmbuf_append(burst[i], static_cast<std::uint16_t>(frame.size())), frame.data(), frame.size());
  }
  ASSERT_EQ(port_->tx_burst(0, burst.data(), 8), 8);
  EXPECT_EQ((*other)->receive(pool, burst.data(), 8), 8);
  rte_pktmbuf_free_bulk(burst.data(), 8);
  EXPECT_EQ((*other)->counts().cut_up, 0U);
  EXPECT_EQ(port_->stats().tx_errors, 0U);
}

}  // namespace
}  // namespace sluice::port
