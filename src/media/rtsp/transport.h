// The Transport header (RFC 2326 section 12.39): alternatives in order of preference, each with its parameters in their
// order, unknown ones too. What nobody changes is written as it was read, but for blanks around commas and semicolons.
//
//     RTP/AVP/UDP;unicast;client_port=3456-3457;mode="PLAY",RTP/AVP/TCP;interleaved=0-1
//
// Quoted values may hold commas and semicolons; where one does not end, all go. Of a parameter that
// comes twice the last one holds, as for ffmpeg and live555, and is written alone. What follows a comma and begins with
// no protocol is of the alternative before it. Empty alternatives, and those that cannot be read, are left out, as long
// as one is left; so are parameters without a name. RFC 7826's dest_addr and src_addr are kept like any other
// parameter.
// Thread-safety: none needed (values). Cost: control path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/sdp/description.h"

namespace sluice::media::rtsp {

inline constexpr std::size_t max_transports = 16;
inline constexpr std::size_t max_transport_parameters = 32;

struct PortPair {
  std::uint16_t rtp = 0;
  std::uint16_t rtcp = 0;
  bool operator==(const PortPair&) const = default;
};

struct Transport {
  struct Parameter {
    std::string name;
    std::optional<std::string> value;  // as written, with its quotes
  };

  std::string protocol;  // "RTP/AVP/UDP", as written
  std::vector<Parameter> parameters;

  sdp::Profile profile() const;  // of "RTP/AVP" and "RTP/AVP/UDP"; other when it is not RTP
  void set_profile(sdp::Profile profile);
  bool udp() const;  // the lower transport is UDP, "unicast" or not named, which is UDP for RTP
  bool tcp() const;
  bool has(std::string_view name) const;                               // names have no case
  std::optional<std::string_view> value(std::string_view name) const;  // without quotes
  // In the place of the first of that name, or as the last.
  void set(std::string_view name, std::string value);
  bool remove(std::string_view name);
  bool unicast() const { return has("unicast") && !has("multicast"); }
  // "4588-4589", with blanks or without; of a single port, and of "4588-", RTCP's is the next one. Nothing when absent,
  // 0, above 65535 or in another form.
  std::optional<PortPair> ports(std::string_view name) const;
  // The same, and of another form what players take of it: "5000/2", "5000-0", "5000-70000", "5000-5001-7". RTCP's is
  // the next one where none can be read.
  std::optional<PortPair> ports_in(std::string_view name) const;
  void set_ports(std::string_view name, PortPair ports);
  std::optional<std::uint32_t> ssrc() const;  // eight hexadecimal digits at most
  // mode is absent, empty or PLAY, in quotes or not, in any case.
  bool plays() const;
};

Expected<std::vector<Transport>> parse_transports(std::string_view value);
std::string transports_text(const std::vector<Transport>& transports);

}  // namespace sluice::media::rtsp
