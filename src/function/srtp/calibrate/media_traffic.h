// RTP of the streams of a configuration's element "srtp", written into a replay port's frames as they come in, because
// they have to have new sequence numbers each time around. It is of those that protect in turn; and of each that
// unprotects what its twin (made_streams.h) has protected. Such a frame comes back as it left, and goes on to the
// other's addresses: so as many are unprotected as their twins protect.
//
// With UDP checksums, which the element checks and makes anew. A stream's frames come by one lane; where frames of a
// queue are spread over lanes, what comes back by another one than its twin's begins anew. Thread-safety: write() by
// lane; lanes apart. Cost: 40 or 60 bytes a frame and the end of what it was, whose tag the checksum is to go without;
// of a frame without a checksum, or of the other family, all of it.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/calibration.h"
#include "engine/section_view.h"

namespace sluice::function {

// A configuration's text without what keeps streams to their rates and ports, for more than those rates is measured,
// and traffic comes by all lanes: the lines `rate`, `burst`, `packet_bytes` and `ingress` of [[srtp.stream]] are empty.
std::string without_limits(const std::string& text);

class MediaTraffic final : public engine::Traffic {
 public:
  // Of [[srtp.stream]]; an Error when the table has fewer streams that protect than lanes (made_streams.h). Frames have
  // `most` bytes in clear, or what fits with a tag of the stream's suite where that is less.
  static Expected<std::unique_ptr<engine::Traffic>> make(engine::SectionView& view, unsigned most, unsigned lanes);
  std::vector<std::string> kinds() const override { return {kinds_.begin(), kinds_.end()}; }
  double mean_packet() const override;
  std::string_view reasons() const override { return "srtp_"; }
  // Makes the frame the next packet of one of the lane's streams, or, where it holds what a twin of the lane has
  // protected, one of the stream that unprotects it.
  void write(std::uint32_t lane, rte_mbuf* frame) override;

 private:
  using Headers = std::array<std::uint8_t, 60>;  // IPv4 or IPv6, UDP, RTP
  struct Stream {
    Headers headers;
    bool six = false;
    std::uint16_t packet = 0, sequence = 0;
    std::uint16_t tag = 0;  // what protecting adds
    bool is_twin = false;
    Headers opened;  // of a twin: addresses and ports of the stream that unprotects, at their places
  };
  struct alignas(64) Lane {
    std::vector<Stream> streams;
    std::size_t next = 0;
  };
  Stream* sealed_by(std::uint32_t lane, const std::uint8_t* frame);

  struct Place {
    std::uint32_t lane, index;
  };
  std::vector<Lane> lanes_;
  std::vector<Place> twins_;  // by their ports
  std::set<std::string> kinds_;
  std::size_t streams_ = 0;
};

}  // namespace sluice::function
