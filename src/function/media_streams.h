// The trait of the element "srtp": its streams, for what adds and removes them while lanes run, the RTSP proxy and the
// API.
//
// Thread-safety: any thread; calls wait for each other, and lanes for none of them. Errors name no key.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/stream_admission.h"
#include "function/srtp/media_stream.h"
#include "function/srtp/rtsp_options.h"

namespace sluice::function {

struct MediaStreamRow {
  std::string name;    // "10.0.0.1:5004 -> 10.0.0.2:6000"
  std::string action;  // "protect", "unprotect", "pass", "drop", "ended"
  std::string carries;
  std::string suite;  // empty: there is no key
  std::string origin;
  std::string ingress;      // the port that it comes in by; empty: any
  std::uint64_t noted = 0;  // MediaStream::noted()
  std::uint64_t rate = 0;   // v, bits a second that it may bring; 0: anything
  std::string measured;     // "no", "not yet", "yes"
  struct Left {
    std::uint64_t packets = 0, bytes = 0;
  };
  Left rtp, rtcp;                                   // that left protected or unprotected, in bytes of frames
  std::uint64_t passed = 0;                         // packets that left as they came
  std::array<std::uint64_t, stream_losses> lost{};  // by StreamLoss: packets of it that the element has dropped
  std::uint32_t ssrcs = 0;                          // MediaStream::ssrcs()
  std::optional<std::chrono::milliseconds> age;     // since the last packet came; absent: none has come
};

// What a change of the API's has done, and what surprises about it, which the log has, too: sentences without a key.
struct StreamChange {
  std::string done;
  std::vector<std::string> warnings{};
};

class MediaStreams {
 public:
  static constexpr std::string_view trait_name = "media_streams";
  virtual ~MediaStreams() = default;

  // All or none. An Error when a 5-tuple has a stream already, or keys or the table are full. One that has ended gives
  // its place. From then on the next frame of it is protected or unprotected: seldom it waits for batches that lanes
  // have begun, up to 0.2 s.
  virtual Expected<void> add(std::vector<MediaStreamSettings> streams) = 0;
  // Those of these 5-tuples that came from `origin`; how many. `guarded`: what still comes in clear of those that were
  // protected is dropped until nothing has come for `guard_time`, of those that carried RTCP `rtcp_guard_time`, or
  // longer ago ended streams have to give way (srtp/streams.h); all else passes as it comes.
  virtual std::size_t remove(std::span<const MediaKey> keys, MediaOrigin origin, bool guarded) = 0;
  static constexpr std::chrono::seconds guard_time{5};
  // RTCP comes every five seconds, and of many members less often (RFC 3550 section 6.2).
  static constexpr std::chrono::seconds rtcp_guard_time{30};
  // Frees what lanes have left and ends guards: about once a second, whoever adds and removes streams.
  virtual void tidy(std::chrono::steady_clock::time_point now) = 0;
  // Gives streams that are measured what they were found to bring: about once a second, on one thread. A sentence on
  // the last one whose v could not be raised for the first time; empty: there is none.
  virtual std::string measure() = 0;
  // Sentences for the log that have come up since the last call; none has a key in it.
  virtual std::vector<std::string> take_warnings() = 0;
  // MediaStream::noted() of the stream; 0 when there is none.
  virtual std::uint64_t noted(const MediaKey& key) const = 0;

  // The first `limit`, in no order, and how many there are: of all, or of those with this address at one of their ends.
  virtual std::vector<MediaStreamRow> list(std::size_t limit, const packet::IpAddress& of,
                                           std::size_t& count) const = 0;
  // Of a [[srtp.stream]] section's keys as TOML: one stream of the API's, and with RTCP's own ports two. `what` it is
  // called in errors. Nothing is put in force that admit_by() has no capacity for.
  virtual Expected<StreamChange> add_text(std::string_view text, const std::string& what) = 0;
  // The same, but in place of the API's streams of these 5-tuples, if they are there: between two frames, with no
  // moment in which there is none. One that is the same in all but rate, deadline, ingress and others keeps its
  // indexes; one that is not, and keeps its key, is an Error.
  virtual Expected<StreamChange> replace_text(std::string_view text, const std::string& what) = 0;
  // Of these keys only the ends count. remove: guarded; release: not, and guards of the API's and the file's are
  // lifted.
  virtual Expected<StreamChange> remove_text(std::string_view text, const std::string& what) = 0;
  virtual Expected<StreamChange> release_text(std::string_view text, const std::string& what) = 0;

  // From now on streams of the API have to fit there, each 5-tuple by its rate and its deadline or, where it has none,
  // this one; and all that are measured have their shares there. It outlives the last call with a text and of
  // measure(). Before the first of these.
  virtual void admit_by(engine::StreamAdmission& admission, std::chrono::nanoseconds deadline) = 0;

  // Of any port, in bytes.
  virtual std::uint32_t largest_frame() const = 0;
  // [srtp.rtsp]; null: there is to be no proxy.
  virtual const RtspOptions* rtsp() const = 0;
};

}  // namespace sluice::function
