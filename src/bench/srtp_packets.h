// RTP packets as jobs in pinned memory: a frame every 2,048 bytes, as a NIC's DMA would leave them, each with capacity
// for its tag; streams in turn, a key for each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "crypto/cpu.h"
#include "crypto/gpu_crypto.h"
#include "crypto/key_table.h"
#include "device/gpu.h"

namespace sluice::cli::bench {

struct SrtpSuite {
  const char* name;  // as in SDP
  crypto::Cipher cipher;
  unsigned key_bytes, tag_bytes;
};
std::span<const SrtpSuite> srtp_suites();

class SrtpPackets {
 public:
  static constexpr std::uint32_t pitch = 2048;
  static constexpr std::uint32_t header_bytes = 42;  // Ethernet, IPv4, UDP; then RTP's 12

  // Packets of one suite and `streams` streams, in clear, in frames of the mix at `memory`, which the GPU addresses.
  // The jobs are allocated from the GPU and live as long as it.
  static Expected<SrtpPackets> make(device::Gpu& gpu, void* memory, std::uint32_t count, const std::string& mix,
                                    const SrtpSuite& suite, std::uint32_t streams);

  std::uint32_t count() const { return count_; }
  crypto::KeyTable& keys() { return keys_; }
  // Of packets [first, first + count): what crosses the link each way, from the first of RTP to the end of the tag.
  std::uint64_t bytes(std::uint32_t first, std::uint32_t count) const { return sum_[first + count] - sum_[first]; }
  // The same in clear.
  std::uint32_t clear_bytes(std::uint32_t packet) const {
    return static_cast<std::uint32_t>(bytes(packet, 1)) - tag_bytes_;
  }
  crypto::GpuBatch batch(std::uint32_t first, std::uint32_t count) const;
  std::span<const crypto::Job> jobs() const { return {jobs_, count_}; }

  // What the next batches do with the packets.
  void seal_next() { set_opens(false); }
  void open_next() { set_opens(true); }
  void forget_verdicts();

  // Every verdict is `done`; after a batch of each packet.
  Expected<void> all_done() const;
  // Opened by the CPU, every packet is authentic, and, with `clear`, as make() made it: the first that is not is named.
  // The packets are left in clear.
  Expected<void> open_by_cpu(crypto::Cpu& cpu, bool clear);
  // Every packet is as make() made it.
  Expected<void> all_clear() const;

 private:
  explicit SrtpPackets(crypto::KeyTable keys) : keys_(std::move(keys)) {}
  void set_opens(bool opens);

  crypto::KeyTable keys_;
  crypto::Job* jobs_ = nullptr;
  crypto::Verdict* verdicts_ = nullptr;
  std::uint32_t count_ = 0, tag_bytes_ = 0;
  std::vector<std::uint64_t> sum_;
};

}  // namespace sluice::cli::bench
