// What ports on a kernel interface (net_af_packet, net_af_xdp) need and DPDK 22.11's drivers do not do.
//
// packet_socket.cc also stands in front of libc's setsockopt() for the whole program: the af_packet driver joins every
// socket to a fanout group that reassembles IPv4 fragments, without a way to say no, and a reassembled datagram does
// not fit into a frame. A router must pass fragments as they are (RFC 791, RFC 1812 4.2.2.7), so that flag is taken out
// on the way to the kernel; and the socket is told to ignore what the kernel itself sends out of the interface.
#pragma once

#include <string>
#include <vector>

namespace sluice::port {

// Whether the interface is up and has a carrier; false when there is no such interface. Control path: three system
// calls.
bool interface_running(const std::string& interface);

// The sockets that the af_packet driver has opened on this thread since the last call, in the order of their queues.
std::vector<int> take_packet_sockets();

}  // namespace sluice::port
