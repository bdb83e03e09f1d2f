// The key of receive-side scaling (RSS) that puts both directions of a flow on one queue: Woo and Park, "Scalable TCP
// session monitoring with symmetric receive-side scaling" (2012).
//
// Thread-safety: keeps no state. Cost: start only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::port {

// A key of `bytes` bytes, as many as the NIC's Toeplitz hash takes. It repeats every 16 bits, as ports and addresses
// do when source and destination change places, so both orders have the same hash.
std::vector<std::uint8_t> symmetric_rss_key(std::size_t bytes);

// What to say at start when several queues share a port's frames by a key that is the NIC's own, because its driver
// takes none (`key_bytes` = 0); empty: nothing.
std::string rss_key_note(std::size_t key_bytes);

}  // namespace sluice::port
