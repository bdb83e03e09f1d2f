// What a medium that RTSP has admitted is held to: a token bucket for each of its streams, of the rate that its
// description names and a margin, and for RTCP of a twentieth of that each way (RFC 3550 section 6.2). Where clients
// open ways back by packets to RTP's port, those have such a twentieth, too.
//
// Thread-safety: any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "function/srtp/media_stream.h"

namespace sluice::function::rtsp {

// A medium as it is admitted.
struct Medium {
  std::uint64_t rate = 0;     // bits a second; 0: its description does not say
  bool client_opens = false;  // of an explicit proxy: what the client sends to RTP's port is a stream of its own
  std::string share{};        // engine::StreamDemand's, of one that is measured; empty: it keeps its rate
  // For its deadline: of the description's m=; and which of RtspOptions::upstream it is of, in explicit mode.
  std::string kind{};
  std::optional<std::size_t> server{};
};

// Bits of whole frames a second.
struct MediumRate {
  std::uint64_t media = 0;  // 0: it is held to nothing
  std::uint64_t rtcp = 0;   // each way, and what the client sends to RTP's port
  bool client_opens = false;
  // Of all its streams together; the highest number where that is less.
  std::uint64_t sum() const;
};

// Of a medium, which may bring so many per cent more than its rate: b= leaves out the link's headers, and encoders keep
// to it on average. Of rate 0: it has none.
MediumRate medium_rate(const Medium& medium, std::uint32_t margin);

// Bytes that all its streams may bring at once, as police() has it, or somewhat more. Of rate 0: 0.
std::uint64_t medium_burst(const MediumRate& rate, std::chrono::nanoseconds burst_time, std::uint32_t largest_frame);

// Gives the streams of a medium, the server's RTP first, their buckets; what the client sends has RTCP's. What comes in
// `burst_time` may come at once, and two of the largest frames at least. With `measure` the server's RTP is measured,
// and the others follow it.
void police(std::vector<function::MediaStreamSettings>& streams, const MediumRate& rate,
            std::chrono::nanoseconds burst_time, std::uint32_t largest_frame,
            const std::optional<function::MeasureSettings>& measure = std::nullopt);

}  // namespace sluice::function::rtsp
