// Admits streams only while all their frames can be on time: section 4.4 of Zhang, Hu and Hua (bound.h).
//
// A new stream <w, d, v> (largest packet, deadline, rate) is accepted if
//     beta + v <= B_I   and   min(theta, d) > bound   and   w <= omega
//   beta   sum of the accepted rates
//   theta  shortest accepted deadline
//   B_I    rate that the device carries in cycles of I, with no batch on it longer than the bound allows
//   omega  bytes of the packets with which B_I was measured (`sluice calibrate`, profile.h)
//   bound  as in bound.h
// Rates are whole bits per second, and deadlines are kept as a multiset. So a stream that ends gives back exactly what
// it took.
//
// A policed stream may bring its bucket b at once besides v·t. The work of a cycle is then at most B_I·I only if also
//     (beta + v)·I + (sum of b) <= B_I·I
// With `counts_bursts` this is a condition, too. Without it the promise holds as long as no more comes together; State
// says how much may come, and how much fits.
//
// A stream that is measured (RateMeter) is accepted with its stated rate. Later change() sets the rate that it was
// found to have.
//
// `enforced` = false is the paper's system without admission: every stream is accepted, and counted.
//
// Thread-safety: any thread, by a lock that no lane takes. Cost: control path, O(log deadlines).
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
  // A unique name for a stream whose rate may change() later. Empty: its rate is fixed.
  std::string share{};
  // b: the sum of its buckets, in bytes; 0: it is not policed. It must stay the last member, because replace() looks
  // for a stream that differs only in it.
  std::uint64_t burst = 0;
  auto operator<=>(const StreamDemand&) const = default;
};

struct StreamCapacity {
  std::uint64_t rate = 0;             // B_I, in bits of frames per second
  std::chrono::nanoseconds bound{0};  // of the running configuration (Timing)
  std::uint32_t largest_packet = 0;   // omega; 0: any
  bool measured = true;               // false: another device computes than was measured, and nothing is accepted
  std::chrono::nanoseconds cycle{0};  // I, of the running configuration; 0: there is none, and bursts are not judged
  bool counts_bursts = false;
};

// accepted, or the condition that is not met.
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
  std::uint64_t rate_before = 0;   // beta without this stream, plus reserved rates
  std::uint64_t burst_before = 0;  // sum of b without this stream, plus reserved bursts
  bool accepted() const { return verdict == StreamVerdict::accepted; }
  // "12 Mbit/s more than 9.99 Gbit/s would exceed the 10 Gbit/s that the device carries in time": for logs and RTSP's
  // 453. Of an accepted one: what is left.
  std::string text() const;
};

class StreamAdmission {
 public:
  explicit StreamAdmission(const StreamCapacity& capacity, bool enforced = true)
      : capacity_(capacity), enforced_(enforced) {}

  // Judges a stream, and counts it if it is accepted. A rate of 0 means that the rate is unknown; such a stream is
  // refused if admission is enforced.
  StreamAnswer add(const StreamDemand& demand);
  // Removes a stream that was accepted with the same numbers. False: there is none. A stream with a share gives back
  // what the share holds now.
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
  // Replaces all of `gone` by all of `come`. If one of `come` is refused, nothing changes, and the answer says which
  // and why. Streams in both stay as they are and are not judged again. If only the burst of a share differs, only that
  // is judged.
  struct Refused {
    std::size_t index;
    StreamAnswer answer;
  };
  std::optional<Refused> replace(const std::vector<StreamDemand>& gone, const std::vector<StreamDemand>& come,
                                 Replaced* replaced = nullptr);
  // The replacement stays. Until this call nobody else gets what it has given back, though beta is without it.
  void settle(const Replaced& replaced);
  // Undoes a replacement, shares included. Nothing is judged.
  void undo(const Replaced& replaced);

  // The share with that name; null: there is no such stream.
  std::shared_ptr<Share> share(const std::string& name) const;
  // Changes a share, or a part of it, from `before` to `after` bits per second. Less is never refused; more is refused
  // if beta + after - before > B_I. A refusal is not counted. Empty: the share's stream has ended.
  std::optional<StreamAnswer> change(const std::shared_ptr<Share>& share, std::uint64_t before, std::uint64_t after);

  // Whether it refuses what does not fit.
  bool enforced() const { return enforced_; }
  // Sets the capacity from now on: another cycle, or the device has failed. Accepted streams stay.
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
  // For logs: that the bursts may exceed the capacity, and what to do about it. Empty: they fit.
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
