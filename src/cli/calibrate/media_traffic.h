// RTP of the streams that a configuration's stage "srtp" protects, written into a replay port's frames as they come in,
// because they have to have new sequence numbers each time around.
//
// IPv4 alone, with UDP checksums, which the stage checks and makes anew. A stream's frames come by one lane.
// Thread-safety: write() by lane; lanes apart. Cost: 40 bytes a frame and the end of what it was, whose tag the
// checksum is to go without; of a frame without a checksum all of it.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/config.h"

namespace sluice::cli {

// A configuration's text without what keeps streams to their rates and ports, for more than those rates is measured,
// and traffic comes by all lanes: the lines `rate`, `burst`, `packet_bytes` and `ingress` of [[srtp.stream]] are empty.
std::string without_limits(const std::string& text);

class MediaTraffic {
 public:
  // Of [[srtp.stream]]; an Error when the chain has a stage "srtp" and the table fewer streams to be protected over
  // IPv4 than lanes (made_streams.h). No stage, no streams: other frames stay as they are. Frames have `most` bytes, or
  // what fits with a tag of the stream's suite where that is less.
  static Expected<MediaTraffic> make(control::Config& config, unsigned most, unsigned lanes);
  // Those that traffic can be made of.
  static std::size_t usable_streams(control::Config& config);

  bool empty() const { return streams_ == 0; }
  // Of all frames, in bytes.
  double mean_packet() const;
  // Makes the frame the next packet of one of the lane's streams.
  void write(std::uint32_t lane, rte_mbuf* frame);

 private:
  using Headers = std::array<std::uint8_t, 40>;  // IPv4, UDP, RTP
  struct Stream {
    Headers headers;
    std::uint16_t packet = 0, sequence = 0;
  };
  struct alignas(64) Lane {
    std::vector<Stream> streams;
    std::size_t next = 0;
  };
  std::vector<Lane> lanes_;
  std::size_t streams_ = 0;
};

}  // namespace sluice::cli
