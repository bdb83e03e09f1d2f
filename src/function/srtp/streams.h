// Who writes the element's table of streams: the configuration and its reloads, the RTSP proxy, the API.
//
// Lanes hold a MediaStreamTable for as long as a batch is under way. add() writes into the slots below it, beside them;
// what is taken out is kept with the table that was current then, until no lane holds that one or an older one: see
// Published. So to add or to remove a stream costs the same however many there are, and lanes wait for nothing.
//
// Guards (guards.h) have the capacity that streams leave: the oldest goes for a stream that needs it, and a client has
// a sixteenth of the capacity at most.
//
// Thread-safety: as of MediaStreams. Cost: docs/srtp.md.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/published.h"
#include "crypto/key_table.h"
#include "engine/port_table.h"
#include "function/media_streams.h"
#include "function/srtp/guards.h"
#include "function/srtp/shared_keys.h"
#include "function/srtp/spent_keys.h"

namespace sluice::function {

class Streams final : public MediaStreams {
 public:
  using Current = Published<const MediaStreamTable>;
  // These outlive it. `capacity`: streams, with those that have ended and are guarded; `largest_frame`: of any port.
  Streams(crypto::KeyTable& keys, Current& current, std::size_t capacity, std::uint32_t largest_frame,
          const engine::PortTable& ports, const RtspOptions* rtsp, SpentKeys spent);

  Expected<void> add(std::vector<MediaStreamSettings> streams) override;
  std::size_t remove(std::span<const MediaKey> keys, MediaOrigin origin, bool guarded) override;
  void tidy(std::chrono::steady_clock::time_point now) override;
  std::string measure() override;
  std::vector<std::string> take_warnings() override;
  std::uint64_t noted(const MediaKey& key) const override;
  std::vector<MediaStreamRow> list(std::size_t limit, const packet::IpAddress& of, std::size_t& count) const override;
  Expected<StreamChange> add_text(std::string_view text, const std::string& what) override;
  Expected<StreamChange> replace_text(std::string_view text, const std::string& what) override;
  Expected<StreamChange> remove_text(std::string_view text, const std::string& what) override;
  Expected<StreamChange> release_text(std::string_view text, const std::string& what) override;
  void admit_by(engine::StreamAdmission& admission, std::chrono::nanoseconds deadline) override;
  std::uint32_t largest_frame() const override { return largest_frame_; }
  const RtspOptions* rtsp() const override { return rtsp_; }

  // What forwards is a router: a text to many hosts is an Error (address_settings.h). Before the first call with a
  // text.
  void stand_before_router() { before_router_ = true; }

  // One that stays in the table, and what it is held to from then on.
  struct Kept {
    std::shared_ptr<MediaStream> stream;
    MediaStreamSettings::Limits limits;
  };

  // The streams of a configuration in place of those of the last one: worked out, and then put in force, which cannot
  // fail. One whose settings stay the same stays as it is, but for its limits(). One that keeps its key and changes
  // otherwise is an Error: its indexes would begin anew. One that is not put in force takes its
  // keys with it where it ends, on any thread, beside all calls (crypto/key_table.h).
  struct Replacement {
    std::vector<std::shared_ptr<MediaStream>> fresh;
    std::vector<Kept> kept;
    std::vector<MediaKey> gone;
    std::size_t configured = 0;
  };
  Expected<Replacement> prepare(const std::vector<MediaStreamSettings>& configured);
  void commit(const Replacement& replacement);
  // At the start, of the file's: a warning that keys must be new, if any of them protects.
  void warn_of_the_files_keys(const std::vector<MediaStreamSettings>& configured);

  // In force, without those that have ended. Any thread.
  std::uint64_t size() const { return size_.load(std::memory_order_relaxed); }
  std::uint64_t guarded() const { return guards_count_.load(std::memory_order_relaxed); }
  // Guards that went before their time, since the start: for a stream, or because their client had its share.
  std::uint64_t guards_cut_short() const { return cut_short_.load(std::memory_order_relaxed); }
  // Whose v is not known yet, of those that are measured.
  std::uint64_t measuring() const { return measuring_.load(std::memory_order_relaxed); }
  // Those that brought more than before and were refused it, since the start; each time that it was more.
  std::uint64_t raises_refused() const { return raises_refused_.load(std::memory_order_relaxed); }
  // Streams that came back to a key that they had left (spent_keys.h).
  std::uint64_t keys_again() const { return keys_again_.load(std::memory_order_relaxed); }
  // Streams that came with a key that another protects with (shared_keys.h).
  std::uint64_t keys_shared() const { return keys_shared_.load(std::memory_order_relaxed); }
  // Taken out, and not yet left by all lanes.
  std::uint64_t leaving() const { return leaving_->load(std::memory_order_relaxed); }

 private:
  using Clock = std::chrono::steady_clock;
  using Warnings = std::vector<std::string>;

  struct Exchange {
    std::vector<engine::StreamDemand> gone, come;
    std::vector<std::shared_ptr<MediaStream>> fresh;
    std::vector<Kept> kept;
  };
  Expected<std::vector<MediaStreamSettings>> read(std::string_view text, const std::string& what) const;
  Expected<Exchange> prepare_exchange(std::vector<MediaStreamSettings> streams);
  void put_limits(const std::vector<Kept>& kept);
  Expected<Warnings> put(const std::vector<std::shared_ptr<MediaStream>>& fresh);
  Warnings put_all(const std::vector<std::shared_ptr<MediaStream>>& fresh);
  void put_one(std::shared_ptr<MediaStream> stream);
  void take_one(const MediaKey& key);
  void retire(std::shared_ptr<MediaStream> stream);
  void look_at_keys(const MediaStreamSettings& stream, Warnings& warnings);
  void look_at_shared_keys(const std::vector<std::shared_ptr<MediaStream>>& fresh, Warnings& warnings);
  Expected<Warnings> add_all(std::vector<MediaStreamSettings> streams);
  void hash_keys(MediaStreamSettings& stream) const;
  void guard_one(const MediaKey& key);
  void end_one(const MediaKey& key, bool guarded);
  void give_back_apis(const MediaKey& key);
  void cut_short(const MediaKey& guarded);
  void make_slots();
  Expected<void> keeps_no_key(const MediaStream& before, const MediaStreamSettings& wanted) const;
  void publish();
  void await_lanes();
  void look_at_guards(Clock::time_point now);
  void count();
  engine::StreamDemand demand_of(const MediaStreamSettings& settings) const;

  // streams_measure.cc
  void police(MediaStream& stream, const std::shared_ptr<MeasuredRate>& before);
  std::shared_ptr<MeasuredRate> measured_rate(const MediaStreamSettings& settings,
                                              const std::shared_ptr<MeasuredRate>& before) const;
  std::optional<engine::StreamAnswer> refusal_of(MediaStream& stream, std::uint64_t bits);
  void name_shares(std::vector<MediaStreamSettings>& streams);

  crypto::KeyTable& keys_;
  Current& current_;
  const engine::PortTable& ports_;
  const RtspOptions* rtsp_;
  mutable std::mutex mutex_;
  const std::size_t capacity_;
  const std::uint32_t largest_frame_;
  engine::StreamAdmission* admission_ = nullptr;  // of the API's streams; null: all are admitted
  std::chrono::nanoseconds deadline_{0};          // of those that name none
  std::shared_ptr<MediaStreamSlots> slots_;
  bool slots_made_ = false;  // anew, since lanes were awaited
  bool before_router_ = false;
  std::unordered_map<MediaKey, std::shared_ptr<MediaStream>, MediaKeyHash> streams_;
  Guards guards_;
  SpentKeys spent_;
  SharedKeys shared_;
  Warnings warnings_;                                    // for the log
  MediaStreamTable::Retired* retired_ = nullptr;         // the current table's
  std::unordered_set<MediaKey, MediaKeyHash> measured_;  // of streams_, those that are
  std::atomic<std::uint64_t> shares_named_{0};
  std::atomic<std::uint64_t> size_{0}, guards_count_{0}, cut_short_{0}, measuring_{0}, raises_refused_{0},
      keys_again_{0}, keys_shared_{0};
  std::shared_ptr<std::atomic<std::uint64_t>> leaving_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace sluice::function
