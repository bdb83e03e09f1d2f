// Any bytes as a Transport header: what is taken is written and read again as the same, and a change of profile changes
// nothing else.
#include <cstdint>
#include <string>
#include <string_view>

#include "media/rtsp/transport.h"
#include "require.h"

using namespace sluice::media;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto transports = rtsp::parse_transports({reinterpret_cast<const char*>(data), size});
  if (!transports) {
    return 0;
  }
  REQUIRE(!transports->empty() && transports->size() <= rtsp::max_transports);
  const std::string text = rtsp::transports_text(*transports);
  const auto again = rtsp::parse_transports(text);
  REQUIRE(again.has_value());
  REQUIRE(rtsp::transports_text(*again) == text);
  for (rtsp::Transport& transport : *transports) {
    (void)transport.ssrc();
    (void)transport.plays();
    for (const char* const name : {"client_port", "server_port"}) {
      if (const auto ports = transport.ports(name)) {
        REQUIRE(ports->rtp != 0 && ports->rtcp != 0);
      }
      if (const auto ports = transport.ports_in(name)) {
        REQUIRE(ports->rtp != 0 && ports->rtcp != 0);
      }
    }
    const sdp::Profile profile = transport.profile();
    if (profile != sdp::Profile::other) {
      transport.set_profile(sdp::secured(profile));
      REQUIRE(transport.profile() == sdp::secured(profile));
      transport.set_profile(profile);
    }
  }
  const auto unchanged = rtsp::parse_transports(rtsp::transports_text(*transports));
  REQUIRE(unchanged.has_value() && unchanged->size() == transports->size());
  return 0;
}
