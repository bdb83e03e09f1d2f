// A security association (SA, RFC 4301 section 4.1): what one direction of ESP or AH between two hosts is protected
// with, as configuration files, the API and IKE daemons give it. Values only; the database of them is database.h.
//
// Sources: RFC 4301 (architecture), RFC 4302 (AH), RFC 4303 (ESP), RFC 3948 (UDP encapsulation), RFC 6040 (ECN).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "crypto/key.h"
#include "crypto/secret.h"
#include "ipsec/selector.h"
#include "packet/ip_address.h"

namespace sluice::ipsec {

// IANA protocol numbers.
enum class Protocol : std::uint8_t { esp = 50, ah = 51 };
enum class Mode : std::uint8_t { transport, tunnel };
enum class Direction : std::uint8_t { in, out };

// Of an inbound SA what its packets are found by; of an outbound one what they say.
struct SaId {
  packet::IpAddress destination;
  std::uint32_t spi = 0;  // host order; below 256 is reserved (RFC 4303 2.1)
  Protocol protocol = Protocol::esp;
  std::string str() const;  // "esp 0xc1234567 to 192.0.2.1"
  auto operator<=>(const SaId&) const = default;
};

// A key, wiped at its end. Never printed.
struct SecretKey {
  crypto::Secret<64> bytes;
  std::uint8_t length = 0;
  std::span<const std::uint8_t> view() const { return bytes.first(length); }
};

// Of an AH SA the cipher is null.
struct Transform {
  crypto::Cipher cipher = crypto::Cipher::null;
  crypto::Hash hash = crypto::Hash::none;
  SecretKey cipher_key = {};
  SecretKey salt = {};          // of counter modes: RFC 3686's nonce, RFC 4106's and 7634's salt, 4 bytes
  SecretKey auth_key = {};      // of `hash`
  std::uint8_t icv_length = 0;  // bytes
};

// UDP encapsulation (RFC 3948), host order.
struct UdpPorts {
  std::uint16_t source = 4500, destination = 4500;
  bool operator==(const UdpPorts&) const = default;
};

// 0: no limit. At the soft limit an event says so, once; at the hard one the SA is dead and its packets are dropped as
// `ipsec_expired`.
struct Limit {
  std::uint64_t soft = 0, hard = 0;
  bool operator==(const Limit&) const = default;
};
struct Lifetime {
  Limit bytes;  // of inner packets, as RFC 4301 4.4.2.1 counts them
  Limit packets;
  Limit seconds;      // since the SA was added
  Limit use_seconds;  // since its first packet
  bool operator==(const Lifetime&) const = default;
};

enum class DontFragment : std::uint8_t { copy, set, clear };

struct SaSettings {
  SaId id;
  packet::IpAddress source;  // outer
  Direction direction = Direction::in;
  Mode mode = Mode::tunnel;
  std::uint32_t reqid = 0;  // policies find outbound SAs by it; 0: by addresses alone
  std::string name = {};    // of the configuration; empty: from elsewhere
  Transform transform = {};
  bool esn = false;                  // extended sequence numbers
  std::uint32_t replay_window = 64;  // packets; 0: replay is not looked for; at most most_replay_window
  std::uint64_t sequence = 0;        // out: of the last packet sent; in: the highest one received. Usually 0
  std::optional<UdpPorts> udp = {};
  Lifetime lifetime = {};
  // Of the traffic inside. In: what comes out of the SA and does not fit is dropped as `ipsec_policy`.
  std::optional<Selector> selector = {};
  // Outer header of tunnel mode.
  DontFragment dont_fragment = DontFragment::copy;
  bool copy_dscp = true;     // else 0
  bool ecn = true;           // RFC 6040's normal mode, both ways; false: not copied, and not looked at
  std::uint16_t pad_to = 0;  // traffic flow confidentiality: inner packets are padded to so many bytes (RFC 4303 2.7)
};
inline constexpr std::uint32_t most_replay_window = 4096;

// What it has done so far. `bytes` as in Lifetime.
struct SaCounters {
  std::uint64_t packets = 0, bytes = 0;
  std::uint64_t bad_icv = 0, replay = 0, policy = 0, expired = 0, malformed = 0;
  std::uint64_t sequence = 0;                                       // out: the last one sent; in: the highest received
  std::uint64_t added_at = 0, first_used_at = 0, last_used_at = 0;  // seconds since the epoch; 0: never
};

enum class SaState : std::uint8_t {
  larval,  // an SPI that is reserved for an inbound SA, no more
  valid,
  dying,  // the soft limit is reached
  dead,   // the hard one is
};

struct SaStatus {
  SaSettings settings;  // without keys
  SaState state = SaState::valid;
  SaCounters counters = {};
  std::uint16_t path_mtu = 0;  // out: learnt of the way between its ends; 0: none
};

}  // namespace sluice::ipsec
