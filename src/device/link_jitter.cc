#include "device/link_jitter.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "device/frame_copy.h"
#include "device/frame_sum.h"

namespace sluice::device {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t frame_bytes = 1408, frame_step = 2048;
constexpr double holdup_us = 50;
constexpr std::size_t most_under_way = 256;  // a link that is slower than asked for ends the measurement's honesty

double us_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

struct UnderWay {
  GpuStream* stream;
  Clock::time_point due;
};

class Measurement {
 public:
  Measurement(Gpu& gpu, const LinkJitterOptions& options) : gpu_(gpu), options_(options) {}
  Expected<LinkJitter> run();

 private:
  Expected<void> prepare();
  Expected<void> enqueue(std::uint64_t batch, GpuStream& stream, std::byte* staging);
  Expected<void> collect();
  // The thread was here; what lay between is a hold-up when it was long.
  void look() {
    const Clock::time_point now = Clock::now();
    if (const double gap = us_between(seen_, now); gap > holdup_us) {
      ++result_.holdups;
      result_.longest_holdup_us = std::max(result_.longest_holdup_us, gap);
      // What it delayed has left again by then, at a load of nine tenths.
      quiet_from_ = now + 10 * (now - seen_);
    }
    seen_ = now;
  }

  Gpu& gpu_;
  const LinkJitterOptions& options_;
  unsigned frames_ = 0;
  std::uint64_t places_ = 0;  // batches that the memory holds
  std::vector<DeviceMemory> staging_;
  std::uint64_t* address_ = nullptr;  // descriptors of all places
  std::uint16_t* length_ = nullptr;
  std::uint32_t* sum_ = nullptr;
  std::deque<UnderWay> under_way_;
  std::vector<float> us_;
  LinkJitter result_;
  Clock::time_point seen_, quiet_from_;
};

Expected<void> Measurement::prepare() {
  frames_ = static_cast<unsigned>(std::min<std::size_t>(options_.frames, options_.bytes / frame_step));
  if (frames_ < 2 || options_.gbytes <= 0) {
    return make_error("the link's jitter needs a rate and memory for at least two frames");
  }
  places_ = options_.bytes / frame_step / frames_;
  const std::size_t total = places_ * frames_;
  auto descriptors = gpu_.allocate_host(total * (sizeof *address_ + sizeof *length_ + sizeof *sum_));
  if (!descriptors) {
    return tl::unexpected(descriptors.error());
  }
  address_ = static_cast<std::uint64_t*>(*descriptors);
  sum_ = reinterpret_cast<std::uint32_t*>(address_ + total);
  length_ = reinterpret_cast<std::uint16_t*>(sum_ + total);
  for (std::size_t i = 0; i < total; ++i) {
    address_[i] = reinterpret_cast<std::uint64_t>(options_.memory) + i * frame_step;
    length_[i] = frame_bytes;
  }
  for (unsigned s = 0; s < gpu_.stream_count() && options_.way != LinkJitterOptions::reads; ++s) {
    auto memory = gpu_.allocate_device(staging_pitch(frame_bytes) * frames_);
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    staging_.push_back(std::move(*memory));
  }
  us_.reserve(static_cast<std::size_t>(1.1 * options_.seconds * options_.gbytes * 1e9 / frames_ / frame_bytes) + 64);
  return {};
}

Expected<void> Measurement::enqueue(std::uint64_t batch, GpuStream& stream, std::byte* staging) {
  const std::size_t first = batch % places_ * frames_;
  if (options_.way == LinkJitterOptions::reads) {
    return sum_frames(address_ + first, length_ + first, sum_ + first, frames_, stream.raw());
  }
  const FrameRun run{address_[first], 0, frames_, frame_step, frame_bytes, false};
  const std::size_t pitch = staging_pitch(frame_bytes);
  auto copied = copy_up(run, staging, pitch, stream.raw());
  if (copied && options_.way == LinkJitterOptions::both_ways) {
    copied = copy_down(run, staging, pitch, stream.raw());
  }
  return copied;
}

// In the order of the calls: a batch that is done behind one that is not is seen a little later.
Expected<void> Measurement::collect() {
  while (!under_way_.empty()) {
    const MarkState state = under_way_.front().stream->poll();
    if (state == MarkState::failed) {
      return make_error("the link's jitter: " + gpu_.why());
    }
    if (state == MarkState::pending) {
      return {};
    }
    look();
    const Clock::time_point due = under_way_.front().due;
    const auto us = static_cast<float>(us_between(due, seen_));
    us_.push_back(us);
    if (quiet_from_ < due) {
      result_.longest_link_us = std::max<double>(result_.longest_link_us, us);
    }
    under_way_.pop_front();
  }
  return {};
}

Expected<LinkJitter> Measurement::run() {
  if (auto ok = prepare(); !ok) {
    return tl::unexpected(ok.error());
  }
  const double batch_bytes = static_cast<double>(frames_) * frame_bytes;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(batch_bytes / options_.gbytes / 1e9));
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.seconds));
  Clock::time_point due = begin + interval;
  seen_ = begin;
  for (std::uint64_t batch = 0; seen_ < end || !under_way_.empty();) {
    if (seen_ >= due && seen_ < end && under_way_.size() < most_under_way) {
      const unsigned s = static_cast<unsigned>(batch % gpu_.stream_count());
      if (gpu_.stream(s).pending_marks() < GpuStream::max_marks) {
        auto enqueued = enqueue(batch, gpu_.stream(s), staging_.empty() ? nullptr : staging_[s].as<std::byte>());
        enqueued = enqueued ? gpu_.stream(s).mark() : enqueued;
        if (!enqueued) {
          return tl::unexpected(enqueued.error());
        }
        under_way_.push_back({&gpu_.stream(s), due});
        due += interval;
        ++batch;
      }
    }
    if (auto ok = collect(); !ok) {
      return tl::unexpected(ok.error());
    }
    look();
  }
  result_.gbytes = static_cast<double>(us_.size()) * batch_bytes / (us_between(begin, seen_) * 1e3);
  result_.batches = us_.size();
  if (us_.empty()) {
    return make_error("the link's jitter: no batch in " + std::to_string(options_.seconds) + " s");
  }
  std::sort(us_.begin(), us_.end());
  const auto quantile = [&](double q) {
    return us_[static_cast<std::size_t>(q * static_cast<double>(us_.size() - 1))];
  };
  result_.p50_us = quantile(0.5);
  result_.p999_us = quantile(0.999);
  result_.longest_us = us_.back();
  return result_;
}

}  // namespace

Expected<LinkJitter> measure_jitter(Gpu& gpu, const LinkJitterOptions& options) {
  return Measurement(gpu, options).run();
}

std::string jitter_text(const LinkJitterOptions& options, const LinkJitter& jitter) {
  constexpr const char* ways[] = {"copy engine both ways", "copy engine up", "direct reads"};
  char text[320];
  std::snprintf(
      text, sizeof text,
      "jitter, %s at %.1f GB/s for %.0f s: %lu batches, p50 %.0f, p99.9 %.0f, longest %.0f us; longest without a "
      "hold-up of the measuring thread %.0f us; hold-ups over 50 us: %lu, longest %.0f us",
      ways[options.way], jitter.gbytes, options.seconds, jitter.batches, jitter.p50_us, jitter.p999_us,
      jitter.longest_us, jitter.longest_link_us, jitter.holdups, jitter.longest_holdup_us);
  return text;
}

}  // namespace sluice::device
