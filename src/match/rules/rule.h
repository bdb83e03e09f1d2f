// What a Snort 2 or Suricata rule says, after reading: nothing of its text is left to interpret.
//
// Where Snort 2 and Suricata differ, the meaning is Suricata's:
//  - a range A<>B of a number (dsize, ttl, itype, urilen, ...) excludes both ends; Snort 2 includes them
//  - `flags:!SF` is true unless all named flags are set; Snort 2: when none is
//  - `urilen` without a buffer's name is about the normalised URI; Snort 2: the raw one
//  - offset, depth, distance and within count in the check's own buffer, and "the previous match" is that of the check
//    before it in the same buffer (its beginning, when there is none); Snort 2 keeps one cursor for all buffers
//  - a relative byte_test, byte_jump, byte_extract, byte_math or isdataat, and any base64_decode, that no sticky buffer
//    is in force for is in the buffer of the check before it; a pcre without a buffer's flag is in the payload
//  - `rawbytes` changes nothing: the payload buffer is what was sent
// One thing is Snort 2's, which Suricata refuses: after a sticky buffer (`file_data;`) a modifier (`http_uri;`, pcre's
// `U`) still moves its own content or pcre, and only that one, to another buffer.
//
// Values only: copies are independent, thread-safety is that of const data.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "match/rules/address_set.h"
#include "match/rules/buffer.h"
#include "match/rules/port_set.h"

namespace sluice::match {

enum class Action : std::uint8_t { alert, drop, reject, pass };
// What matches is dropped.
constexpr bool blocks(Action action) {
  return action == Action::drop || action == Action::reject;
}
// Of Action::reject: whom an answer ends the conversation for.
enum class Notified : std::uint8_t { source, destination, both };

// tcp: segments and the reassembled stream; tcp_pkt: segments only; tcp_stream: the stream only. http is
// recognised in the flow, whatever its ports.
enum class Protocol : std::uint8_t { ip, ipv4, ipv6, tcp, tcp_pkt, tcp_stream, udp, icmp, icmpv4, icmpv6, sctp, http };

// One end of a rule. Ports other than `any` match TCP, UDP and SCTP only; ICMP rules have none.
struct Endpoint {
  AddressSet addresses;
  PortSet ports;
  bool by_variable = false;  // a variable says the addresses, or some of them
};

// A number that a check of the payload uses: a constant, or what an earlier byte_extract or byte_math of the rule made.
struct Operand {
  std::int64_t value = 0;
  std::int16_t variable = -1;  // index into Rule::variables; -1: `value`
  bool operator==(const Operand&) const = default;
};

// ---- checks of the headers: all must hold ----

enum class HeaderField : std::uint8_t {
  payload_size,  // dsize: bytes of the transport's payload in this packet
  ttl,           // or IPv6 hop limit
  ip_id,
  ip_proto,
  tos,
  fragment_offset,
  icmp_type,
  icmp_code,
  icmp_id,
  icmp_sequence,
  tcp_sequence,
  tcp_acknowledgement,
  tcp_window
};

// True when the field is there and (first <= value <= last) != negated.
struct NumberCheck {
  HeaderField field = HeaderField::payload_size;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool negated = false;
  bool operator==(const NumberCheck&) const = default;
};

enum class BitMode : std::uint8_t { exactly, all, any, not_all };

// tcp_flags: bits as in byte 13 of the TCP header, those of `ignored` read as 0. fragment_bits: 4 = reserved, 2 = don't
// fragment, 1 = more fragments.
struct BitCheck {
  enum class Field : std::uint8_t { tcp_flags, fragment_bits };
  Field field = Field::tcp_flags;
  BitMode mode = BitMode::exactly;
  std::uint8_t bits = 0;
  std::uint8_t ignored = 0;
  bool operator==(const BitCheck&) const = default;
};

constexpr std::uint8_t any_ip_option = 0xff;

// Of a TCP flow: bytes of the stream seen so far in a direction.
struct StreamSizeCheck {
  enum class Side : std::uint8_t { server, client, both, either };
  enum class Comparison : std::uint8_t { less, less_equal, equal, not_equal, greater_equal, greater };
  Side side = Side::both;
  Comparison comparison = Comparison::equal;
  std::uint32_t bytes = 0;
};

// ---- checks of the flow ----

enum class FlowDirection : std::uint8_t { any, to_server, to_client };
// stateless: with or without a flow; established: both sides have spoken (TCP: after the handshake).
enum class FlowState : std::uint8_t { any, established, not_established, stateless };
enum class FlowData : std::uint8_t { any, only_stream, no_stream, only_frag, no_frag };

struct FlowCheck {
  FlowDirection direction = FlowDirection::any;
  FlowState state = FlowState::any;
  FlowData data = FlowData::any;
  bool operator==(const FlowCheck&) const = default;
};

// isset and isnotset are conditions, `set`, `unset` and `toggle` are done when all else of the rule has matched.
// A condition holds when it holds for any (names joined by |) or for all (&) of the names.
struct Flowbits {
  enum class Operation : std::uint8_t { set, unset, toggle, isset, isnotset };
  Operation operation = Operation::set;
  bool any = false;
  std::vector<std::string> names;
};

enum class Track : std::uint8_t { by_src, by_dst, by_rule, by_both, by_flow };

// Rates: what is counted, and what becomes of a match: detect/rate_filter.h.
struct Threshold {
  enum class Type : std::uint8_t { limit, threshold, both };
  Type type = Type::limit;
  Track track = Track::by_src;
  std::uint32_t count = 0;
  std::uint32_t seconds = 0;
};

// The rule matches only after `count` matches within `seconds`; `unique`: only matches with distinct ports count.
struct DetectionFilter {
  enum class Unique : std::uint8_t { none, src_port, dst_port };
  Track track = Track::by_src;
  std::uint32_t count = 0;
  std::uint32_t seconds = 0;
  Unique unique = Unique::none;
};

// ---- checks of the payload: in order within each buffer, all must hold ----

// Where a content may lie. Absolute: it begins at `offset` or later and ends by offset + depth. Relative: it begins
// `distance` bytes or more after the end of the previous match and ends within `distance` + `within` bytes after it.
struct Placement {
  bool relative = false;
  bool has_end = false;  // depth or within is given
  Operand start;         // offset or distance
  Operand length;        // depth or within
  bool at_end = false;   // endswith: it ends where the buffer ends
};

enum class FastPattern : std::uint8_t { no, yes, only };

struct Content {
  Buffer buffer = Buffer::payload;
  std::string bytes;  // as they are in the rule; 1 to 65,535 of them
  bool negated = false;
  bool nocase = false;
  Placement place;
  FastPattern fast_pattern = FastPattern::no;
  // fast_pattern:OFFSET,LENGTH, the part for the matcher; length 0: the whole content.
  std::uint16_t fast_offset = 0;
  std::uint16_t fast_length = 0;
};

// A regular expression that PCRE2 compiles (pcre.h). `relative`: it is searched from the end of the previous match.
struct Pcre {
  Buffer buffer = Buffer::payload;
  std::string pattern;        // between the slashes, as it is in the rule
  std::uint32_t options = 0;  // PCRE2_CASELESS, PCRE2_DOTALL, ...
  bool negated = false;
  bool relative = false;
  bool larger_limit = false;  // flag O (confirm/payload_matcher.h)
};

// How bytes of the payload become a number: 1 to 8 bytes binary, or digits of a text.
struct ByteNumber {
  enum class Base : std::uint8_t { binary, automatic, dec, hex, oct };  // automatic: as strtoul(…, 0) reads it
  Buffer buffer = Buffer::payload;
  Operand count;   // bytes
  Operand offset;  // from the buffer's beginning or, if relative, from the end of the previous match
  bool relative = false;
  bool little_endian = false;
  Base base = Base::binary;
  std::uint32_t bitmask =
      0;  // 0: none; else the number (byte_math: the result) is ANDed, then shifted right by its trailing 0s
};

struct ByteTest {
  enum class Comparison : std::uint8_t {
    less,
    less_equal,
    equal,
    greater_equal,
    greater,
    bit_and,
    bit_xor
  };  // the last two: not 0
  ByteNumber number;
  Comparison comparison = Comparison::equal;
  bool negated = false;
  Operand value;
};

// Moves the end of "the previous match": forward from the number's end, or from an end of the buffer. A number of 0
// bytes is 0: the jump is post_offset.
struct ByteJump {
  enum class From : std::uint8_t { number, beginning, end };
  ByteNumber number;
  From from = From::number;
  std::uint32_t multiplier = 1;
  bool align = false;  // the jump is rounded up to a multiple of 4
  Operand post_offset;
};

struct ByteExtract {
  ByteNumber number;
  std::uint32_t multiplier = 1;
  std::uint8_t align = 0;  // 0, 2 or 4: rounded up to a multiple
  std::int16_t variable = 0;
};

struct ByteMath {
  enum class Operator : std::uint8_t { add, subtract, multiply, divide, shift_left, shift_right };
  ByteNumber number;
  Operator operation = Operator::add;
  Operand right;
  std::int16_t variable = 0;
};

// At least `count` bytes (negated: fewer) are in the buffer, or after the end of the previous match.
struct IsDataAt {
  Buffer buffer = Buffer::payload;
  Operand count;
  bool negated = false;
  bool relative = false;
};

// Decodes base64 from here on into Buffer::base64_data; false when nothing decodes. bytes 0: all there are.
struct Base64Decode {
  Buffer buffer = Buffer::payload;
  std::uint32_t bytes = 0;
  std::uint32_t offset = 0;
  bool relative = false;
};

// urilen, bsize: the buffer's length, as NumberCheck.
struct BufferSize {
  Buffer buffer = Buffer::payload;
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool negated = false;
  bool by_urilen = false;
};

using Check =
    std::variant<Content, Pcre, ByteTest, ByteJump, ByteExtract, ByteMath, IsDataAt, Base64Decode, BufferSize>;

struct Reference {
  std::string system;  // cve, url, bugtraq, ...
  std::string id;
};

struct Rule {
  Action action = Action::alert;
  Notified notified = Notified::source;
  Protocol protocol = Protocol::ip;
  Endpoint source;
  Endpoint destination;
  bool both_ways = false;  // <>: the two ends may be swapped

  std::string msg;  // bytes as in the file, which may be no UTF-8
  std::uint32_t gid = 1;
  std::uint32_t sid = 0;
  std::uint32_t rev = 0;
  std::string classtype;      // empty: none
  std::uint8_t priority = 3;  // 1 is the most urgent: from `priority`, else of the classtype, else 3
  std::vector<Reference> references;
  std::vector<std::string> metadata;  // "key value", as written
  enum class Target : std::uint8_t { none, source, destination };
  Target target = Target::none;  // which of the packet's ends is attacked: for whoever reads the alert
  bool noalert = false;          // its flowbits and action are done without an alert; sdrop, too

  std::vector<NumberCheck> numbers;
  std::vector<BitCheck> bits;
  std::vector<std::uint8_t> ip_options;  // each must be there: the option's type byte, or any_ip_option
  std::vector<StreamSizeCheck> stream_sizes;
  bool same_ip = false;

  FlowCheck flow;
  std::vector<Flowbits> flowbits;
  std::vector<Threshold> thresholds;               // one at most
  std::vector<DetectionFilter> detection_filters;  // one at most

  std::vector<Check> checks;
  std::vector<std::string> variables;  // names that byte_extract and byte_math made, maybe one twice

  std::uint32_t file = 0;  // index into RuleSet::files
  std::uint32_t line = 0;  // its first one
  bool commented_out = false;
};

const char* name_of(Action action);
const char* name_of(Protocol protocol);

}  // namespace sluice::match
