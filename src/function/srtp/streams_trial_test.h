// What the tests of streams that come and go share: streams by their port, and frames of them.
#pragma once

#include <string>
#include <vector>

#include "function/srtp/srtp_trial_test.h"
#include "function/srtp/stream_settings.h"

namespace sluice::function {

// From 10.0.0.1:5004 to 10.0.0.2:`port`.
inline std::string text_of(unsigned port, const std::string& action = "protect", const std::string& key = key30) {
  return "action = \"" + action + "\"\nsource = \"10.0.0.1\"\nsource_port = 5004\ndestination = \"10.0.0.2\"\n" +
         "destination_port = " + std::to_string(port) + "\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 inline:" + key + "\"\n";
}

inline std::vector<MediaStreamSettings> settings_of(unsigned port, Keyless keyless = Keyless::no) {
  auto streams = *read_stream_text(text_of(port), "a test", 1514);
  streams[0].origin = MediaOrigin::rtsp;
  streams[0].keyless = keyless;
  return streams;
}

inline MediaKey key_of(unsigned port) {
  return settings_of(port)[0].key;
}

inline MediaStreams& streams_of(SrtpTrial& trial) {
  return trial.streams();
}

inline Bytes frame_to(unsigned port, std::uint16_t sequence, std::size_t payload = 30) {
  return udp_frame(rtp(sequence, payload), false, 5004, static_cast<std::uint16_t>(port)).build();
}

}  // namespace sluice::function
