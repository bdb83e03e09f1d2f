// What protection adds to a packet, where that lies, and the job that seals or opens the packet (RFC 3711 sections 3.1,
// 3.4 and 4.1, RFC 7714 sections 8 and 9):
//
//   counter mode   header | enciphered | E and SRTCP's index | MKI | tag
//   AES-GCM        header | enciphered | tag | E and SRTCP's index | MKI
//
// Nothing here keeps a state or checks a length: that is the channel's (channel.h).
#pragma once

#include <cstdint>
#include <cstring>

#include "crypto/job.h"
#include "media/srtp/big_endian.h"
#include "media/srtp/index.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {

// SRTCP's E and index, on the wire.
inline constexpr std::uint32_t e_and_index_length = 4;
inline constexpr std::uint8_t e_bit = 0x80;

// Of a packet that has been parsed.
struct PacketParts {
  std::uint8_t* data;
  std::uint32_t ssrc;
  std::uint16_t sequence;       // RTP
  std::uint16_t cipher_offset;  // the header's length
  std::uint16_t cipher_length;
  std::uint8_t e_and_index[e_and_index_length];  // SRTCP
};

class PacketFormat {
 public:
  PacketFormat(Suite suite, Protocol protocol, std::uint8_t mki_length)
      : protocol_(protocol),
        gcm_(facts(suite).gcm()),
        tag_length_(facts(suite).tag_length(protocol)),
        mki_length_(mki_length) {}

  Protocol protocol() const { return protocol_; }
  // Bytes that a packet gets at most: tag, MKI, SRTCP's index.
  std::uint32_t overhead() const {
    return std::uint32_t{tag_length_} + mki_length_ + (protocol_ == Protocol::rtcp ? e_and_index_length : 0);
  }
  // Of these, behind the tag.
  std::uint8_t behind_tag() const { return static_cast<std::uint8_t>(gcm_ ? overhead() - tag_length_ : 0); }

  // Completes the parts of a packet that is `length` bytes long in clear, and writes all but the tag behind it.
  void add_trailer(PacketParts& parts, std::uint32_t length, std::uint64_t index, const std::uint8_t* mki) const;
  // Completes the parts of a packet that will be `length` bytes long in clear, and reads SRTCP's index. Where the MKI
  // lies.
  const std::uint8_t* read_trailer(PacketParts& parts, std::uint32_t length, std::uint64_t& index) const;

  // All of the job but its key. Of SRTP the index's upper bits are the rollover counter that is authenticated.
  void make_job(const PacketParts& parts, std::uint64_t index, bool opens, crypto::Job& job) const;

 private:
  Protocol protocol_;
  bool gcm_;
  std::uint8_t tag_length_;
  std::uint8_t mki_length_;
};

inline void PacketFormat::add_trailer(PacketParts& parts, std::uint32_t length, std::uint64_t index,
                                      const std::uint8_t* mki) const {
  parts.cipher_length = static_cast<std::uint16_t>(length - parts.cipher_offset);
  std::uint8_t* behind = parts.data + length + (gcm_ ? tag_length_ : 0);
  if (protocol_ == Protocol::rtcp) {
    store<e_and_index_length>(parts.e_and_index, index);
    parts.e_and_index[0] |= e_bit;
    std::memcpy(behind, parts.e_and_index, e_and_index_length);
    behind += e_and_index_length;
  }
  if (mki_length_ != 0) {
    std::memcpy(behind, mki, mki_length_);
  }
}

inline const std::uint8_t* PacketFormat::read_trailer(PacketParts& parts, std::uint32_t length,
                                                      std::uint64_t& index) const {
  parts.cipher_length = static_cast<std::uint16_t>(length - parts.cipher_offset);
  const std::uint8_t* const behind = parts.data + length + (gcm_ ? tag_length_ : 0);
  if (protocol_ == Protocol::rtp) {
    return behind;
  }
  std::memcpy(parts.e_and_index, behind, e_and_index_length);
  index = load32(behind) & max_rtcp_index;
  if ((behind[0] & e_bit) == 0) {  // in clear, and authenticated all the same
    parts.cipher_offset = static_cast<std::uint16_t>(length);
    parts.cipher_length = 0;
  }
  return behind + e_and_index_length;
}

inline void PacketFormat::make_job(const PacketParts& parts, std::uint64_t index, bool opens, crypto::Job& job) const {
  job.data = reinterpret_cast<std::uint64_t>(parts.data);
  job.cipher_offset = parts.cipher_offset;
  job.cipher_length = parts.cipher_length;
  job.tag_gap = static_cast<std::uint8_t>(gcm_ ? 0 : overhead() - tag_length_);
  store<4>(job.nonce, parts.ssrc);
  store<6>(job.nonce + 4, index);
  job.flags = opens ? crypto::job_opens : std::uint8_t{0};
  if (protocol_ == Protocol::rtcp) {
    std::memcpy(job.suffix, parts.e_and_index, e_and_index_length);
    job.flags |= crypto::job_has_suffix;
  } else if (!gcm_) {
    store<4>(job.suffix, index >> 16);
    job.flags |= crypto::job_has_suffix;
  }
}

}  // namespace sluice::srtp
