// Which streams may be there, so that every frame of theirs is on time: section 4.4 of Zhang, Hu and Hua (bound.h).
//
// A stream <w, d, v> (its largest packet, its deadline, its rate) is accepted beside those that are there when
//     beta + v <= B_I   and   min(theta, d) > bound   and   w <= omega
// beta is the sum of the accepted rates, theta the shortest of the accepted deadlines; B_I, what the device carries in
// cycles of I with no batch longer there than the bound allows, is measured with packets of omega bytes (`sluice
// calibrate`, profile.h), and the bound is bound.h's. Both are kept exactly: rates are whole bits per second, and
// deadlines a multiset, so that a stream that ends gives back what it took and nothing else.
//
// A stream that is policed may bring its bucket b at once besides v·t, so that a cycle's work is B_I·I at most,
// whatever admitted streams do within their buckets, only where also
//     (beta + v)·I + (sum of b) <= B_I·I
// With `counts_bursts` that is a condition; without, what is promised holds as long as no more comes together, and
// State says how much may and how much fits.
//
// A stream that is measured (RateMeter) is accepted with the rate that is said of it, and later holds what it was found
// to bring: change().
//
// `enforced` = false is the paper's system without admission: everything is accepted, and counted all the same.
//
// Thread-safety: any thread; a lock that no lane ever takes. Cost: control path, O(log deadlines).
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::engine {

struct StreamDemand {
  std::uint32_t largest_packet = 0;      // w, in bytes of the frame in clear; 0: not known, and not judged
  std::chrono::nanoseconds deadline{0};  // d
  std::uint64_t rate = 0;                // v, in bits of frames per second
  // Of one whose rate may change() later, of all such that are there each its own. Empty: its rate stays.
  std::string share{};
  // b, of all its buckets, in bytes; 0: nobody holds it to one. The last that they are ordered by: replace() looks for
  // one that differs in nothing else.
  std::uint64_t burst = 0;
  auto operator<=>(const StreamDemand&) const = default;
};

struct StreamCapacity {
  std::uint64_t rate = 0;             // B_I, in bits of frames per second
  std::chrono::nanoseconds bound{0};  // of the running configuration (Timing)
  std::uint32_t largest_packet = 0;   // omega; 0: any
  bool measured = true;               // no: what computes now is not what was measured, and nothing is accepted
  std::chrono::nanoseconds cycle{0};  // I, of the running configuration; 0: there is none, and bursts are not judged
  bool counts_bursts = false;
};

// accepted, or the condition that does not hold.
enum class StreamVerdict : std::uint8_t {
  accepted,
  rate_unknown,
  too_much,
  too_soon,
  too_large,
  not_measured,
  too_bursty
};
const char* stream_verdict_name(StreamVerdict verdict);  // "too_much"

struct StreamAnswer {
  StreamVerdict verdict = StreamVerdict::accepted;
  StreamDemand demand;
  StreamCapacity capacity;
  std::uint64_t rate_before = 0;   // beta without this stream, and what is reserved
  std::uint64_t burst_before = 0;  // of bursts likewise
  bool accepted() const { return verdict == StreamVerdict::accepted; }
  // "12 Mbit/s more than 9.99 Gbit/s would exceed the 10 Gbit/s that the device carries in time": for logs and RTSP's
  // 453. Of an accepted one: what is left.
  std::string text() const;
};

class StreamAdmission {
 public:
  explicit StreamAdmission(const StreamCapacity& capacity, bool enforced = true)
      : capacity_(capacity), enforced_(enforced) {}

  // Judges, and if it is accepted counts it. A rate of 0 is not known, and refused where admission is enforced.
  StreamAnswer add(const StreamDemand& demand);
  // Of one that was accepted, with the same numbers; whether there was such a one. One with a share gives back what it
  // holds by then.
  bool remove(const StreamDemand& demand);

  // What a stream with a share holds. A stream that leaves and comes back has another one.
  class Share;
  // For settle() or undo(), one of which follows: what a replacement has taken, and what it has given back.
  struct Replaced {
    std::uint64_t reserved = 0, reserved_burst = 0;  // bits per second of `gone`, and bytes
    std::vector<StreamDemand> come;
    std::vector<std::pair<StreamDemand, std::shared_ptr<Share>>> gone;
    std::vector<std::pair<std::shared_ptr<Share>, std::uint64_t>> bursts;  // those that shares had before
  };
  // All of `gone` for all of `come`, or, where one of those is refused, nothing: then it answers which and why. What is
  // in both stays as it is, and is not judged again; of a share that has another burst this alone is.
  struct Refused {
    std::size_t index;
    StreamAnswer answer;
  };
  std::optional<Refused> replace(const std::vector<StreamDemand>& gone, const std::vector<StreamDemand>& come,
                                 Replaced* replaced = nullptr);
  // A replacement that holds: until then nobody else gets what it has given back, though beta is without it.
  void settle(const Replaced& replaced);
  // Everything as it was before a replacement, shares included; nothing of it is judged.
  void undo(const Replaced& replaced);

  // Null: no stream of that share is there.
  std::shared_ptr<Share> share(const std::string& name) const;
  // Of what a share holds `before` bits per second become `after`, which are its whole or a part of it. Less is never
  // refused, and more is when beta + after - before > B_I; a refusal is not counted. Empty: the share's stream is not
  // there any more.
  std::optional<StreamAnswer> change(const std::shared_ptr<Share>& share, std::uint64_t before, std::uint64_t after);

  // Whether it refuses what does not fit.
  bool enforced() const { return enforced_; }
  // From now on: another cycle, or a device that is gone. Streams that are there stay.
  void set_capacity(const StreamCapacity& capacity);

  struct State {
    StreamCapacity capacity;
    std::uint64_t rate = 0;                         // beta
    std::chrono::nanoseconds shortest_deadline{0};  // theta; 0: there is no stream
    std::uint64_t streams = 0;
    std::uint64_t bursts = 0;                // sum of b
    std::uint64_t burst_capacity = 0;        // of B_I·I, what beta·I leaves for them; 0: there is no cycle
    std::uint64_t refused = 0;               // since the start
    std::uint64_t refused_not_measured = 0;  // of these, while what computed was not what was measured
  };
  State state() const;
  std::string text() const;  // "3 streams of 12 Mbit/s, of 10 Gbit/s that the device carries in time; ..."
  // For logs: that more may come at once than there is capacity for, and what can be done about it. Empty: it fits.
  std::string burst_note() const;

 private:
  struct Key {
    std::int64_t deadline;
    std::uint64_t rate, burst;
    auto operator<=>(const Key&) const = default;
  };
  StreamVerdict judge(const StreamDemand& demand) const;
  std::uint64_t taken() const { return rate_ + reserved_; }
  std::uint64_t taken_burst() const { return bursts_ + reserved_burst_; }
  StreamVerdict judge_capacity(std::uint64_t rate, std::uint64_t burst) const;
  void take(const StreamDemand& demand);
  void count(const Key& key);
  bool discount(const Key& key);
  void count_refusal(StreamVerdict verdict);
  bool give_back(const StreamDemand& demand, std::shared_ptr<Share>* share = nullptr);
  std::optional<Refused> take_all(const std::vector<StreamDemand>& come, std::multiset<StreamDemand>& before,
                                  Replaced& change);
  void set_burst(Share& share, std::uint64_t burst);
  void restore(const Replaced& replaced);

  mutable std::mutex mutex_;
  StreamCapacity capacity_;
  const bool enforced_;
  std::uint64_t rate_ = 0, bursts_ = 0;
  std::uint64_t reserved_ = 0, reserved_burst_ = 0;  // of replacements that are not settled
  // How many streams are alike. The first key has theta.
  std::map<Key, std::uint64_t> streams_;
  std::unordered_map<std::string, std::shared_ptr<Share>> shares_;
  std::uint64_t count_ = 0, refused_ = 0, refused_not_measured_ = 0;
};

}  // namespace sluice::engine
