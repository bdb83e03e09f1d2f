// A session description (SDP, RFC 8866 and RFC 4566) as servers of the field write it. Lines in their proper form keep
// their bytes and their end of line. Others are written in the one form that all readers take for the same:
//
//     byte order mark, what follows a NUL, empty lines           go
//     blanks around a line and its '=', "M="                     "m=..." (free text, as s=, keeps its blanks)
//     a CR that ends a line alone                                CRLF
//     m=: more than one blank, a port that is no port            one blank, port 0: SETUP names the ports
//     m=: RTP/AVP/UDP, TCP/RTP/AVP and the like                  RTP/AVP: SETUP names the lower transport
//     "a=control : x"                                            "a=control:x"
//
// A line without a type, and a medium that cannot be read, with all its lines, are left out alone (LeftOut). v= may be
// missing, if there is a medium. Taken apart are m= lines and, when asked for, attributes, c= and b=.
// Thread-safety: none. Cost: control path; linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/secret.h"
#include "packet/ip_address.h"

namespace sluice::media::sdp {

struct Limits {
  std::size_t bytes = 64U << 10;
  std::size_t lines = 2000;
  std::size_t line_bytes = 8000;
  std::size_t media = 32;
};

struct Line {
  SecretText text;       // "a=control:track1", without its end
  std::string_view end;  // "\r\n", "\n", or "" for a last line without one

  std::string_view view() const { return text.view(); }
  // 'a' of "a=..."; '\0' of a line that is not of that form.
  char type() const { return view().size() >= 2 && view()[1] == '=' ? view()[0] : '\0'; }
  std::string_view value() const { return type() == '\0' ? std::string_view{} : view().substr(2); }
};

// b=AS (kilobits of whole packets, lower layers' headers included), b=TIAS (bits of media alone) and a=maxprate
// (packets a second, RFC 3890).
struct Bandwidth {
  std::optional<std::uint64_t> as_bits;
  std::optional<std::uint64_t> tias_bits;
  std::optional<double> max_packet_rate;

  // Bits a second on the wire above the link layer: AS, or TIAS with 40 bytes (IPv6's 60) of headers a packet; of a
  // TIAS without maxprate the media alone. The larger of AS and TIAS when both are there. Nothing without either.
  std::optional<std::uint64_t> rate(bool ipv6) const;
};

// The lines of the session or of one medium.
struct Section {
  std::vector<Line> lines;

  // The value of the first a=NAME[:VALUE]; "" for a flag. Names are compared as they are written (RFC 8866 section 9).
  std::optional<std::string_view> attribute(std::string_view name) const;
  std::vector<std::string_view> attributes(std::string_view name) const;
  // Takes away every a=NAME; how many there were.
  std::size_t remove_attributes(std::string_view name);
  // Puts "a=NAME:VALUE" behind the last line, with the end that the section's first line has.
  void add_attribute(std::string_view name, std::string_view value);
  Bandwidth bandwidth() const;
  // c=IN IP4 or IP6 ADDRESS[/TTL][/COUNT]; nothing when absent or a name.
  std::optional<packet::IpAddress> connection() const;
};

enum class Profile : std::uint8_t { avp, avpf, savp, savpf, other };
// "RTP/AVP" and so on; other: anything else.
Profile profile_named(std::string_view protocol);
// "RTP/SAVP"; "" for other.
std::string_view profile_name(Profile profile);
// AVP to SAVP, AVPF to SAVPF, and back; others stay.
Profile secured(Profile profile);
Profile plain(Profile profile);

// A medium: lines[0] is its m= line.
struct Medium : Section {
  std::size_t line_number = 0;  // of that line in the text, from 1

  std::string_view kind() const;      // "video"
  std::string_view protocol() const;  // "RTP/AVP"
  std::string_view formats() const;   // "96 97", all behind the protocol
  std::uint16_t port() const;
  std::uint16_t port_count() const;  // 1 unless "49170/2"
  Profile profile() const { return profile_named(protocol()); }
  // Writes another protocol in the place of this one; everything else of the line stays as it is.
  void set_protocol(std::string_view protocol);
  // SSRCs of a=ssrc (RFC 5576), each once, in order.
  std::vector<std::uint32_t> ssrcs() const;
};

// What a reader of the description will not see.
struct LeftOut {
  bool medium = false;  // a medium with its lines; else one line
  std::string why;      // "line 12: ..."; without key material
};

struct Description {
  Section session;
  std::vector<Medium> media;
  std::vector<LeftOut> left_out;  // in the order of the lines

  // The error names the line ("line 12: ...").
  static Expected<Description> parse(std::string_view text, const Limits& limits = {});
  SecretText text() const;
  // What a medium may send in bits a second: its own b=, or the session's (which then stands for each medium: an upper
  // bound). Nothing when neither says.
  std::optional<std::uint64_t> rate(const Medium& medium, bool ipv6) const;

 private:
  Section* begin_medium(Line& line, std::size_t number, const Limits& limits);
};

}  // namespace sluice::media::sdp
