#include "function/srtp/rewrite.h"

#include <cstring>

#include "packet/checksum.h"

namespace sluice::function {
namespace {

// What has changed of the words that a checksum covers.
class Difference {
 public:
  // Writes `size` bytes, an even number.
  void write(void* place, const void* value, std::size_t size) {
    auto* const bytes = static_cast<std::uint8_t*>(place);
    for (std::size_t at = 0; at < size; at += 2) {
      std::uint16_t before, after;
      std::memcpy(&before, bytes + at, sizeof before);
      std::memcpy(&after, static_cast<const std::uint8_t*>(value) + at, sizeof after);
      sum_ += static_cast<std::uint16_t>(~before);
      sum_ += after;
    }
    std::memcpy(place, value, size);
  }
  std::uint16_t apply(std::uint16_t checksum) const {
    return static_cast<std::uint16_t>(~packet::fold_sum32(sum_ + static_cast<std::uint16_t>(~checksum)));
  }

 private:
  std::uint32_t sum_ = 0;
};

}  // namespace

void rewrite_ends(std::uint8_t* frame, std::uint32_t udp_offset, const MediaKey& ends) {
  constexpr std::uint32_t l3 = sizeof(packet::EthernetHeader);
  Difference difference;
  if (ends.family == 4) {
    auto& ip = packet::header_at<packet::Ipv4Header>(frame, l3);
    difference.write(&ip.source, ends.source, sizeof ip.source);
    difference.write(&ip.destination, ends.destination, sizeof ip.destination);
    ip.checksum = difference.apply(ip.checksum);
  } else {
    auto& ip = packet::header_at<packet::Ipv6Header>(frame, l3);
    difference.write(ip.source, ends.source, sizeof ip.source);
    difference.write(ip.destination, ends.destination, sizeof ip.destination);
  }
  auto& udp = packet::header_at<packet::UdpHeader>(frame, udp_offset);
  difference.write(&udp.source_port, &ends.source_port, sizeof udp.source_port);
  difference.write(&udp.destination_port, &ends.destination_port, sizeof udp.destination_port);
  if (udp.checksum == 0) return;
  const std::uint16_t checksum = difference.apply(udp.checksum);
  udp.checksum = checksum != 0 ? checksum : 0xffff;
}

}  // namespace sluice::function
