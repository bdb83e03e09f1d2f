// One packet's cryptography as a job of 32 bytes that any device can do: seal (encipher, then authenticate) or open
// (verify, then decipher) in place, in a frame that stays where it is in host memory. SRTP and SRTCP (RFC 3711, 6188,
// 7714), ESP and AH (RFC 4303, 4302).
//
//   data             + cipher_offset    + cipher_length   + tag_gap   + the key's tag_length
//    |---- clear ----|--- enciphered ---|--- untouched ---|--- tag ---|
//
// What is authenticated, `suffix` being four bytes that are not in the frame, or not in this place. It is there if
// job_has_suffix is set. Of each kind of cipher:
//   with a hash  clear || enciphered (the ciphertext) || suffix; the tag is the digest's first bytes. With Cipher::null
//                "enciphered" stays as it is
//   aes_gcm      clear || suffix as additional data, and the ciphertext
//   AEAD of ESP  the clear part without the IV as additional data, and the ciphertext. With a suffix (the upper half of
//                an extended sequence number) the clear part has 8 bytes in front of the IV: the additional data is
//                then the first 4, the suffix, the other 4 (RFC 4106 5, RFC 4303 2.2.1)
//
// Ciphers of SRTP. The counter block that a job begins with is the key's `salt_block` XOR `nonce`, whose ten bytes end
// where the counter begins. That is at bytes 4 to 13 for aes_ctr (a counter of 2 bytes from 0), at bytes 2 to 11 for
// aes_gcm (a counter of 4 bytes: 1 for the tag, from 2 for the text).
//
// Ciphers of ESP. The IV is in the packet, at the end of the clear part, right in front of what is enciphered; `nonce`
// is not looked at. Its length and use:
//   aes_ctr_esp            8 bytes. The counter block is salt (4) || IV (8) || a counter of 4 bytes from 1
//   aes_gcm_esp            8 bytes. The nonce is salt (4) || IV (8), the counter as for aes_gcm
//   chacha20_poly1305_esp  8 bytes. The nonce is salt (4) || IV (8)
//   aes_cbc                16 bytes, and "enciphered" has a multiple of 16, 16 at least
// Where a job seals by aes_cbc, a block that no other job has under this key stands in the IV's place. The device
// enciphers it, and this makes the IV that leaves, which nobody could foretell (SP 800-38A, appendix C). A slot of
// aes_cbc seals or opens: Key::opens is as the job's job_opens.
//
// A nonce must seal once only under a key, and so must an IV: that is the caller's duty.
//
// Who checks: whoever makes a job has checked that the frame holds all of it, tag included, that clear + enciphered are
// 1 to 65,535 bytes (of none, intel-ipsec-mb 1.3 makes wrong tags from then on) and that the key is installed; a device
// checks nothing. A device may write the enciphered part and, where it seals, aes_cbc's IV and the tag, at any time,
// and nothing else that can be seen afterwards. The CPU borrows the four bytes behind the enciphered part for the
// suffix and puts them back, so with a suffix the frame must hold these, too. Jobs of a batch must not overlap in
// memory and may be done in any order. Nothing depends on alignment of `data`; sectors are read best from 16.
//
// What is in a packet a device has to read anyhow, so it can sum it up for a checksum of the packet around it (Sums).
//
// A job that a device has begun can not be done again from the same frame: its bytes may be half enciphered. A device
// that may fail half-way must write elsewhere first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::crypto {

// A bit each.
inline constexpr std::uint8_t job_opens = 1;        // verify and decipher; else encipher and write the tag
inline constexpr std::uint8_t job_has_suffix = 2;   // `suffix` is authenticated
inline constexpr std::uint8_t job_sums_before = 4;  // asks for Sums::before
inline constexpr std::uint8_t job_sums_after = 8;   // asks for Sums::after

struct alignas(32) Job {
  std::uint64_t data;           // the address of the packet's first byte
  std::uint32_t key;            // slot in the KeyTable
  std::uint8_t suffix[4];       // as authenticated: the rollover counter, E and the SRTCP index, or ESN's upper half
  std::uint8_t nonce[10];       // as XORed: for SRTP the SSRC and the 48-bit index, big-endian
  std::uint16_t cipher_offset;  // bytes from `data` that are authenticated only
  std::uint16_t cipher_length;  // bytes behind these that are enciphered; may be 0
  std::uint8_t tag_gap;         // bytes between the enciphered part and the tag (SRTCP's index, MKI)
  std::uint8_t flags;
};
static_assert(sizeof(Job) == 32 && std::is_trivially_copyable_v<Job>);
static_assert(offsetof(Job, nonce) == 16);  // a GPU thread reads two halves

// The result of a job, one byte each in an array of its own beside the jobs.
enum class Verdict : std::uint8_t {
  done,          // sealed, or opened and verified
  tag_mismatch,  // opened: the tag is not right. What is enciphered may be in any state; the packet must be dropped.
};

// Ones' complement sums of a packet as it was and as it is, in an array of their own beside the jobs. They are of
// 16-bit words as they lie in memory, the first at `data`, whatever its address. Of an odd number of bytes the last is
// followed by a zero; folded to 16 bits, 0 only if all bytes are 0 (packet/checksum.h). In clear a packet goes from
// `data` to the end of the enciphered part, sealed to the end of the tag, with what lies between. What no job asked
// for, and `after` of a tag_mismatch, may be anything.
struct alignas(4) Sums {
  std::uint16_t before, after;
};

}  // namespace sluice::crypto
