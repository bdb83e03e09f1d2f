// A tunnel's packets by OpenSSL: ESP (RFC 4303, with RFC 3602, 3686, 4106, 7634, 2404, 4868) and AH (RFC 4302) in
// tunnel mode over IPv4 without options, with sequence numbers of 32 bits. It shares no code with ipsec/ and crypto/:
// what it seals and opens says whether theirs is right.
//
// Thread-safety: any thread; constant. Cost: some microseconds for a packet. Errors: OpenSSL's, and of open() what is
// wrong with the packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "ipsec/security_association.h"

namespace sluice::cli::bench {

class TunnelByOpenssl {
 public:
  using Bytes = std::vector<std::uint8_t>;

  // Both ends and the keys are the SA's, whatever its direction.
  explicit TunnelByOpenssl(const ipsec::SaSettings& sa) : sa_(sa) {}

  // `inner`: an IPv4 packet. The IPv4 packet that protects it; its IV follows from the number.
  Expected<Bytes> seal(std::span<const std::uint8_t> inner, std::uint32_t sequence) const;

  struct Opened {
    Bytes inner;
    std::uint32_t sequence = 0;
  };
  // `packet`: an IPv4 packet, all of it. Outer header, SPI, ICV, padding and next header are looked at.
  Expected<Opened> open(std::span<const std::uint8_t> packet) const;

  // Of ESP, for a packet that is to be opened in place again and again. Each time its headers, its IV, and the first
  // `head` and last `tail` bytes of its text are written as they were. Between them stays the plain text that opening
  // has left. So it is another packet each time, with an ICV of its own. The ICVs of `rounds` such packets: the first
  // is the packet's own. The text is as long as head and tail together at least.
  Expected<std::vector<Bytes>> icvs_in_place(std::span<const std::uint8_t> packet, std::size_t head, std::size_t tail,
                                             unsigned rounds) const;
  // Bytes of the ESP header and the IV.
  std::size_t clear_bytes() const;

 private:
  Expected<Opened> open_esp(std::span<const std::uint8_t> packet) const;
  Expected<Opened> open_ah(std::span<const std::uint8_t> packet) const;
  Bytes seal_ah(std::span<const std::uint8_t> inner, std::uint32_t sequence) const;
  Bytes outer_header(std::size_t payload, std::uint8_t protocol) const;
  bool is_aead() const;
  std::size_t iv_bytes() const;
  // Of ESP's `clear` part with the IV and the text behind it: enciphers or deciphers the text, an AEAD's ICV included.
  bool cipher(Bytes& packet, std::size_t clear, bool seals, bool authenticates = true) const;
  Bytes icv(std::span<const std::uint8_t> authenticated) const;

  ipsec::SaSettings sa_;
};

}  // namespace sluice::cli::bench
