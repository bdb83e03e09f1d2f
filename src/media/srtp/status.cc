#include "media/srtp/status.h"

#include <array>
#include <cstddef>

namespace sluice::srtp {
namespace {

struct Words {
  std::string_view name, text;
};
constexpr std::array<Words, status_count> words = {{
    {"ok", "fine"},
    {"too_short", "the packet is too short for its headers, tag, MKI or SRTCP index"},
    {"bad_version", "not RTP version 2"},
    {"bad_header", "CSRCs or header extension do not fit, or not an RTCP packet"},
    {"no_capacity", "the frame has no capacity for what protection adds"},
    {"auth_failed", "the authentication tag is wrong"},
    {"replayed", "a packet with this index has been seen"},
    {"too_old", "the packet is behind the replay window"},
    {"key_expired", "the master key has come to the end of its lifetime"},
    {"no_key", "the MKI names no master key"},
    {"no_stream", "more SSRCs than there is capacity for"},
    {"too_many_in_flight", "too many packets of the stream are under way"},
}};

}  // namespace

std::string_view status_name(Status status) {
  return words[static_cast<std::size_t>(status)].name;
}
std::string_view status_text(Status status) {
  return words[static_cast<std::size_t>(status)].text;
}

}  // namespace sluice::srtp
