// What became of a packet, by name: `ok`, or the one reason why it must be dropped.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::srtp {

enum class Status : std::uint8_t {
  ok,
  too_short,          // not all of the header, tag, MKI or SRTCP index is there
  bad_version,        // not version 2
  bad_header,         // CSRCs or the extension do not fit; not an RTCP packet type; longer than 65,535 bytes
  no_capacity,        // the frame can not hold what protection adds
  auth_failed,        // the tag is not right
  replayed,           // its index has been seen
  too_old,            // its index is behind the replay window
  key_expired,        // the master key has protected as many packets as it may, or the index has come to its end
  no_key,             // its MKI names no key
  no_stream,          // one SSRC more than the channel or the pool has capacity for
  too_many_in_flight  // more packets of the stream, or key periods, under way than can be distinguished
};
inline constexpr unsigned status_count = 12;

// snake_case, as above; and one phrase for people.
std::string_view status_name(Status status);
std::string_view status_text(Status status);

}  // namespace sluice::srtp
