#include "packet/checksum.h"

#include <cstddef>

namespace sluice::packet {
namespace {

std::uint16_t transport_result(std::uint8_t protocol, std::uint64_t sum) {
  const std::uint16_t checksum = finish_sum(sum);
  return protocol == protocol_udp && checksum == 0 ? 0xffff : checksum;
}

// The compiler's own vectors: instructions of whatever CPU it builds for (SLUICE_ARCH), AVX2 or SSE2. No function takes
// or gives one by value: how that is done differs between CPUs (-Wpsabi).
using Sums = std::uint64_t __attribute__((vector_size(32)));
constexpr std::size_t block_bytes = 2 * sizeof(Sums);

std::uint64_t sum_blocks(const std::uint8_t* at, std::size_t blocks) {
  // Both 32-bit words of each 64 bits; four sums, none of which waits for another. No array: gcc keeps that in memory.
  Sums low0{}, high0{}, low1{}, high1{};
  for (; blocks != 0; --blocks, at += block_bytes) {
    Sums words0, words1;
    std::memcpy(&words0, at, sizeof words0);
    std::memcpy(&words1, at + sizeof words0, sizeof words1);
    low0 += words0 & 0xffffffff;
    high0 += words0 >> 32;
    low1 += words1 & 0xffffffff;
    high1 += words1 >> 32;
  }
  const Sums sums = low0 + low1 + high0 + high1;
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

std::uint64_t partial_sum(const void* bytes, std::size_t length, std::uint64_t sum) {
  const auto* at = static_cast<const std::uint8_t*>(bytes);
  if (const std::size_t blocks = length / block_bytes; blocks != 0) {
    sum += sum_blocks(at, blocks);
    at += blocks * block_bytes;
    length %= block_bytes;
  }
  for (; length >= 4; at += 4, length -= 4) {
    std::uint32_t word;
    std::memcpy(&word, at, sizeof word);
    sum += word;
  }
  if (length != 0) {
    std::uint32_t word = 0;
    std::memcpy(&word, at, length);
    sum += word;
  }
  return sum;
}

std::uint16_t ipv4_header_checksum(const Ipv4Header& header) {
  const std::size_t length = (header.version_ihl & 0x0fU) * 4U;
  const std::uint64_t sum = partial_sum(&header, length);
  return finish_sum(sum + static_cast<std::uint16_t>(~header.checksum));
}

std::uint16_t transport_checksum(const Ipv4Header& ip, const void* segment, std::size_t length) {
  std::uint64_t sum = std::uint64_t{ip.source} + ip.destination;
  sum += be16(ip.protocol) + std::uint64_t{be16(static_cast<std::uint16_t>(length))};
  return transport_result(ip.protocol, partial_sum(segment, length, sum));
}

std::uint16_t transport_checksum(const Ipv6Header& ip, std::uint8_t protocol, const void* segment, std::size_t length) {
  std::uint64_t sum = partial_sum(ip.source, sizeof ip.source + sizeof ip.destination);
  sum += be16(protocol) + std::uint64_t{be32(static_cast<std::uint32_t>(length))};
  return transport_result(protocol, partial_sum(segment, length, sum));
}

}  // namespace sluice::packet
