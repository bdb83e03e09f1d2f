// What ports on a kernel interface (net_af_packet, net_af_xdp) need and DPDK 22.11's drivers do not do.
//
// packet_socket.cc stands in front of libc's setsockopt(), getsockopt() and poll() for the whole program:
//   - the af_packet driver joins every socket to a fanout group that reassembles IPv4 fragments, without a way to say
//     no, and a reassembled datagram does not fit into a frame. A router must pass fragments as they are (RFC 791, RFC
//     1812 4.2.2.7), so that flag is taken out on the way to the kernel; and the socket is told to ignore what the
//     kernel itself sends out of the interface
//   - the af_packet driver never asks how many frames found its ring full, and the af_xdp driver leaves that number out
//     of the one it reports. Nothing is lost silently: the sockets are remembered, the number is added
//   - the af_packet driver waits without end for room in a full transmit ring, and with it all ports of the lane. A
//     wait for a packet socket to become writable returns at once instead; the frames are dropped as tx_full
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace sluice::port {

// The packet sockets that one port's driver opened, which stay the driver's.
class PacketSockets {
 public:
  // Those with a receive ring that were made in this process since the last call, by whatever driver. Control thread,
  // right before and after an af_packet device is probed.
  static std::vector<int> take_new();

  void watch(std::vector<int> sockets) { sockets_ = std::move(sockets); }
  // Frames that found the rings full so far. The kernel forgets its number when it is read, so it is summed up here.
  // Any thread; one system call for each socket.
  std::uint64_t missed();

 private:
  std::mutex mutex_;
  std::vector<int> sockets_;
  std::uint64_t missed_ = 0;
};

}  // namespace sluice::port
