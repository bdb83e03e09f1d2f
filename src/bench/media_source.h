// The streams of `bench media`: makes what a memory replay port hands out RTP of many streams, each time anew,
// before any other element looks at it. So no packet comes twice, though the frames do: each has its stream's next
// sequence number, and as payload what the element srtp has made of the one before, which is as random as any.
//
// protects: every frame comes in clear and leaves protected. Both: a frame that left protected comes in as it left, to
// another UDP port, where a stream with the same key unprotects it; every second packet is one and every second the
// other, at every load. (What is unprotected cannot be all that comes: somebody must protect it first, and a core is no
// match for a GPU.)
//
// Each lane has streams of its own, in turn. UDP checksums are there and right, or absent (`checksums`): a right one is
// the one that the element has left, less the tag, so the source does not read payloads.
//
// check(): each frame that leaves is opened on its lane's core by a Channel of the other direction and intel-ipsec-mb,
// or, where it was unprotected, compared as it is. Compared are lengths, checksums and every byte of the payload
// against the frame that went in.
//
// Threads: as of engine::Element; check() before lanes run. Cost, in `collecting` of the lane: estimated, 15 ns a
// frame; the line with a frame's tag is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/cpu.h"
#include "engine/element.h"
#include "engine/traits.h"
#include "function/srtp/media_stream.h"
#include "port/replay_port.h"

namespace sluice::cli::bench {

struct RtpStreams {
  unsigned lanes = 1;
  unsigned frames = 16384;  // of each lane
  unsigned streams = 1000;  // in all; a lane has at least one
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  bool both = false;
  bool checksums = true;
  std::uint32_t spare_keys = 0;  // capacity of the element's for more than the streams have

  // Of a stream to protect, in all of its generations; those of settings() are 0.
  media::sdp::CryptoAttribute crypto(std::uint32_t stream, std::uint64_t generation) const;
  // What the element's table must have.
  std::vector<function::MediaStreamSettings> settings() const;
  std::uint32_t keys() const;
  std::uint32_t overhead() const { return srtp::facts(suite).rtp_tag_length; }
};

// An element in front of all others.
class MediaSource final : public engine::Element, public engine::Ingress {
 public:
  // `frames_return`: they come back as they went in, for nothing is done to them (collector-only mode).
  explicit MediaSource(const RtpStreams& streams, bool frames_return = false);
  ~MediaSource() override;

  // Of a port whose frames these are.
  Expected<void> check(port::ReplayPort& port);
  std::atomic<std::uint64_t> checked{0};  // that left, and
  std::atomic<std::uint64_t> opened{0};   // of these, those that came unprotected out of the element
  std::atomic<std::uint64_t> opened_by_libsrtp{0};
  // Why libsrtp opens none; empty: it does.
  std::string why_no_libsrtp() const;
  // What is wrong with the first that was not right; empty: all were.
  std::string wrong() const;

  void* find_trait(std::string_view name) override { return engine::offer<engine::Ingress>(name, this); }
  void admit(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}

 private:
  struct Lane;
  struct Checker;

  void renew(Lane& lane, std::uint32_t lane_index, rte_mbuf* frame);
  void begin(Lane& lane, std::uint32_t lane_index, std::uint32_t index, rte_mbuf* frame);
  void cut_tag(std::uint8_t* frame, std::uint32_t length) const;
  void next_packet(Lane& lane, std::uint32_t index, std::uint8_t* frame) const;

  const RtpStreams streams_;
  const bool frames_return_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Checker> checker_;
};

}  // namespace sluice::cli::bench
