// Copies frames for `sluice capture`: as they come in, as they leave, or as they are dropped, with what became of each.
// While no session is open a burst costs one relaxed load.
//
//   auto session = tap.open({.ports = ...});          // lanes copy from now on
//   while (...) session->take(record) ...             // one reader
//   session.reset();                                  // lanes copy no more, and no longer use the session
//
// A lane copies into a free record. If there is none it counts the frame as lost; it never waits for the reader. What
// became of a received frame is a later record with the same id: the lane follows the frame's mbuf until it leaves.
//
// Thread-safety: lane threads call on() and the lanes' side; other threads open and use sessions, one thread at a time
// each. Cost while a session is open: its filter for each frame, and a copy of each frame that the filter takes.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/reason.h"

struct rte_mbuf;

namespace sluice::engine {

enum class TapEvent : std::uint8_t { received, sent, dropped, settled };  // settled: of one that was received
// answered: the frame was replaced by an answer; `reason` is its cause.
enum class TapVerdict : std::uint8_t { none, forwarded, to_host, dropped, answered };

struct TapRecord {
  std::uint64_t id = 0;
  std::uint64_t tsc = 0;
  std::uint32_t length = 0;  // of the frame
  std::uint32_t lane = 0;
  std::uint16_t port = 0;          // that the frame came in by; of `sent`: that it left by
  std::uint16_t verdict_port = 0;  // of `forwarded`: that it left by
  TapEvent event = TapEvent::received;
  TapVerdict verdict = TapVerdict::none;
  packet::Reason reason = packet::no_reason;
  std::vector<std::uint8_t> bytes;  // at most the snapshot length; none of `settled`
};

struct TapRequest {
  static constexpr unsigned most_ports = 256;
  std::bitset<most_ports> ports;              // any of these
  std::optional<std::uint32_t> lane = {};     // this lane alone
  bool drops = false;                         // true: dropped frames; false: frames that come in and leave
  packet::Reason reason = packet::no_reason;  // with drops: this reason alone; no_reason: any
  bool in = true, out = true;
  std::string filter = {};  // as tcpdump's; empty: all
  std::uint32_t snapshot = 16384;
  std::uint32_t records = 4096;  // that may wait for the reader
};

class FrameTap;

class TapSession {
 public:
  ~TapSession();
  TapSession(const TapSession&) = delete;
  TapSession& operator=(const TapSession&) = delete;
  // The oldest event, swapped into `record`; false: there is none.
  bool take(TapRecord& record);
  // Frames for which there was no free record, since the session was opened.
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  friend class FrameTap;
  struct State;
  TapSession(FrameTap& tap, unsigned slot, std::uint64_t born, std::unique_ptr<State> state);
  bool wants(std::uint16_t port, std::uint32_t lane) const;
  TapRecord* copy(const rte_mbuf* frame, TapEvent event, std::uint16_t port, std::uint32_t lane, std::uint64_t tsc);
  // Whether an id is of this session, and not of one before it in its slot.
  bool gave(std::uint64_t id) const { return id > born_; }
  void publish(TapRecord* record);
  void follow(const rte_mbuf* frame, std::uint64_t id);
  std::uint64_t claim(const rte_mbuf* frame);
  void settle(std::uint64_t id, TapVerdict verdict, std::uint16_t port, packet::Reason reason);

  FrameTap& tap_;
  const unsigned slot_;
  const std::uint64_t born_;  // the last id that was given before it was opened
  std::atomic<std::uint64_t> lost_{0};
  std::unique_ptr<State> state_;
};

class FrameTap {
 public:
  static constexpr unsigned most_sessions = 3;
  // An Error is a sentence: the filter is none (libpcap's words), or there are as many sessions as may be.
  Expected<std::unique_ptr<TapSession>> open(const TapRequest& request);

  // The lanes' side.
  bool on() const { return open_.load(std::memory_order_relaxed) != 0; }
  // Before the lane looks at the frames of a burst.
  void received(std::uint32_t lane, std::uint16_t port, std::span<rte_mbuf* const> frames, std::uint64_t tsc);
  // Before the frame is freed.
  void dropped(std::uint32_t lane, std::uint16_t port, const rte_mbuf* frame, packet::Reason reason);
  // Of a frame that has been made the answer to itself.
  void answered(const rte_mbuf* frame, packet::Reason reason);
  // Before a frame is given away, maybe, and after: then `frame` is no more than its address.
  using Claim = std::array<std::uint64_t, most_sessions>;  // ids, by session
  Claim claim(const rte_mbuf* frame);
  void punted(const Claim& claim, const rte_mbuf* frame, bool taken);
  // Around a transmit burst: what is copied and claimed before it, and reported once it is known which frames were
  // taken.
  class Sending {
   public:
    void begin(FrameTap& tap, std::uint32_t lane, std::uint16_t port, std::span<rte_mbuf* const> frames);
    // The first `sent` have left; the others are given back to be dropped.
    void end(unsigned sent);

   private:
    static constexpr unsigned most = 64;
    struct Copy {
      TapRecord* record;
      std::uint64_t id;  // the record's, which may be gone with its session
    };
    struct Frame {
      const rte_mbuf* frame;
      Claim claim;
      std::array<Copy, most_sessions> copies;
    };
    FrameTap* tap_ = nullptr;
    std::uint16_t port_ = 0;
    unsigned count_ = 0;
    std::array<Frame, most> frames_{};
  };

 private:
  friend class TapSession;
  void settle(const Claim& claim, TapVerdict verdict, std::uint16_t port);
  void unclaim(const Claim& claim, const rte_mbuf* frame);
  // Calls `f` with each session that is open, which stays so meanwhile.
  template <typename F>
  void each(const F& f);
  void close(unsigned slot);

  struct Slot {
    std::atomic<TapSession*> session{nullptr};
    std::atomic<std::uint32_t> inside{0};  // lanes that use it, or look whether it is there
  };
  std::mutex opening_;
  std::atomic<std::uint32_t> open_{0};  // a bit for each session
  std::atomic<std::uint64_t> last_id_{0};
  std::array<Slot, most_sessions> slots_{};
};

}  // namespace sluice::engine
