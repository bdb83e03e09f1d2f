// SRTP and SRTCP (RFC 3711, 6188, 7714) for one direction of RTP or of RTCP of a session: a cryptographic context for
// each SSRC, the keys shared by all of them. In three steps, so that any device may do the cryptography in between:
//
//   collector  prepare()  parse, find the stream, guess the index, refuse what is replayed; make Job and Pending
//   device                crypto::Job to crypto::Verdict, for whole batches (crypto/cpu.h, or a GPU)
//   forwarder  finish()   the verdict; only now a packet that was authenticated, or is found right to be protected,
//                         moves the index and the replay window
//
// Packets in flight. Several packets of a stream may be between prepare() and finish(), in one batch and in many:
//   - unprotect guesses every index from the highest *authenticated* one, so a forged packet moves nothing, and every
//     packet less than 2^15 ahead of it or behind it is guessed right, however many of those are in flight. That needs
//     fewer than 2^15 under way: from `max_in_flight` of a stream on, prepare() refuses (too_many_in_flight).
//   - a packet that is there twice in flight passes prepare() twice; the second finish() finds its index taken and
//     says `replayed`. finish() may come in any order; out of order it counts as reordering within the window.
//   - an SSRC that is new to unprotect becomes a stream with its first authenticated packet. Until then its packets are
//     guessed with rollover counter 0 (open_stream() sets another): a sequence that wraps while the first packets are
//     still in flight loses those behind the wrap to auth_failed. Forged SSRCs leave nothing behind.
//   - protect guesses and marks in the same way, so that a packet that a device finds damaged moves nothing either
//     (withdraw()). No two packets come out under one index, and with it one keystream: the second is `replayed`, by
//     prepare() or, with the first still in flight, by finish(). What is dropped for any other reason has used its
//     index (abandon()). A source that begins anew with lower numbers under its old SSRC is `too_old` or `replayed`
//     until it has passed the highest. What was overtaken by the first packet of an SSRC, from behind a wrap, is
//     `too_old`, too: before rollover counter 0 there is none, and under 0 it would be ahead, where no receiver is.
//   - the first packet of an SSRC that protect sees, and all SRTCP, are marked when they are prepared: their index
//     follows from none before, or is counted from 0 for each SSRC. They must be known to be right by then
//     (marks_at_once()).
//   - SRTCP carries its index.
//   - before anything was authenticated it may not be known yet which lane the channel will be of. prepare_unowned()
//     needs none: a packet that it has prepared has moved nothing, and is in no count, whatever becomes of it.
//
// Streams are never evicted for others: a stream that came back would lose what its window knows, and its index would
// begin again at 0 under the same key. An SSRC too many is refused (no_stream); a channel's end returns all. To
// protect, anyone who can send in clear can use up the channel's `max_streams`; to unprotect, only who has the key.
//
// Lifetime: a master key protects at most 2^48 SRTP and 2^31 SRTCP packets (RFC 3711 section 9.2), or `lifetime`, over
// all its SSRCs; then protect goes on with the next master key, unprotect and the last key refuse (key_expired).
// Packets are counted when prepared (protect) or authenticated (unprotect).
//
// Key derivation rate: 0, or a power of two up to 2^24 (section 4.3.1). Where it is not 0, prepare() derives keys and
// changes slots of the key table, so that devices must read the table itself, not a copy. `key_periods` periods of a
// master key are kept, of all SSRCs together, and a packet of another while those are all in flight is refused
// (too_many_in_flight). Whose period is kept when forged packets ask for others: master_keys.h.
//
// Thread-safety: a channel, its pool and its packets belong to one lane, but for prepare_unowned(). RTP and RTCP of a
// session share nothing, so they may be on different lanes. make() and the end of a channel change the key table and
// may be on any thread, beside others (crypto/key_table.h), if the lane has called end_streams() before the end. None
// of its packets may be in flight then. Cost: no allocation and no lock in prepare() and finish(), but where a
// derivation rate lets prepare() derive keys; figures in docs/srtp.md.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "crypto/job.h"
#include "crypto/key_table.h"
#include "media/srtp/master_keys.h"
#include "media/srtp/packet_format.h"
#include "media/srtp/status.h"
#include "media/srtp/stream_list.h"
#include "media/srtp/stream_pool.h"
#include "media/srtp/suite.h"

namespace sluice::srtp {

enum class Direction : std::uint8_t { protect, unprotect };

struct ChannelSettings {
  Suite suite = Suite::aes_cm_128_hmac_sha1_80;
  Protocol protocol = Protocol::rtp;
  Direction direction = Direction::protect;
  std::uint32_t key_derivation_rate = 0;
  std::uint32_t max_streams = 16;
};

// A packet where it lies: from RTP's or RTCP's first byte on. `capacity`: bytes from `data` that the frame can hold.
struct Packet {
  std::uint8_t* data;
  std::uint32_t length;
  std::uint32_t capacity;
};

// The rollover counter that was signalled for an SSRC; every other begins with 0.
struct FirstRoc {
  std::uint32_t ssrc = 0, roc = 0;
};

// What finish() must know of a packet. To be kept beside its job.
struct Pending {
  std::uint64_t index;
  std::uint32_t ssrc;
  std::uint32_t stream;  // slot in the pool; no_stream_slot for one that is not known yet
  std::uint16_t length;  // of the packet once it is done
  std::uint8_t master;
  std::uint8_t period;
  std::uint8_t behind_tag;  // of the packet, bytes behind its tag: with AES-GCM, SRTCP's index and the MKI
  bool marked;              // its index, by prepare()
};

class Channel {
 public:
  // `keys` and `pool` must outlive the channel. The error says which setting or length is wrong, or what is full.
  static Expected<Channel> make(const ChannelSettings& settings, std::span<const MasterKey> masters,
                                crypto::KeyTable& keys, StreamPool& pool);

  // Makes an SSRC known with the rollover counter that was signalled for it (MIKEY). no_stream, or replayed if it is
  // known.
  Status open_stream(std::uint32_t ssrc, std::uint32_t roc);

  // What protection adds to a packet at most: tag, MKI, SRTCP's index.
  std::uint32_t overhead() const;

  // `ok`: `job` and `pending` are made, and finish() or abandon() must follow once. Else the packet is to be dropped,
  // and nothing has changed. The packet's bytes are left as they are but for those behind its end.
  Status prepare(const Packet& packet, crypto::Job& job, Pending& pending);
  // As prepare(), to unprotect without a key derivation rate and as if nothing had been authenticated yet. Any thread,
  // beside all other calls: it reads nothing that changes. Then abandon() is any thread's, too, and finish() is called
  // by the one lane that the channel is of from then on; the others abandon(). `first`: what open_stream() was given.
  Status prepare_unowned(const Packet& packet, FirstRoc first, crypto::Job& job, Pending& pending) const;
  // Whether prepare() would mark this packet's index, if it is one: it can not be withdrawn.
  bool marks_at_once(const Packet& packet);

  // `ok`: the packet is now `pending.length` bytes long. auth_failed, replayed, too_old, no_stream, key_expired: drop
  // it.
  Status finish(const Pending& pending, crypto::Verdict verdict);
  // In place of finish() for a packet that was dropped on the way. Of one to be protected the index is used.
  void abandon(const Pending& pending);
  // In place of finish() for a packet that was prepared, not marked at once, and should not have been: as if it had
  // never come. What became of it must go nowhere.
  void withdraw(const Pending& pending);

  // Some time before prepare(), and before finish(): fetches what they need besides the channel itself.
  void prefetch_state() const;
  void prefetch_finish(const Pending& pending) const;

  // Gives its streams back to the pool; a channel's end does, too. No packet may be prepared afterwards.
  void end_streams();

  // SSRCs that it knows. Any thread.
  std::uint32_t streams() const { return streams_.size(); }

 private:
  Channel(const ChannelSettings& settings, MasterKeys masters, StreamPool& pool);

  Status parse(const Packet& packet, PacketParts& parts) const;
  Status protect(const Packet& packet, PacketParts& parts, crypto::Job& job, Pending& pending);
  Status unprotect(const Packet& packet, PacketParts& parts, crypto::Job& job, Pending& pending);
  Status read_protected(const Packet& packet, PacketParts& parts, Pending& pending) const;
  void leave_flight(const Pending& pending);

  MasterKeys masters_;
  StreamList streams_;
  PacketFormat format_;
  Direction direction_;
};

}  // namespace sluice::srtp
