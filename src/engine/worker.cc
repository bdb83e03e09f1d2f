#include "engine/worker.h"

#include <poll.h>
#include <rte_cycles.h>
#include <rte_pause.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"
#include "device/name.h"
#include "engine/placement.h"

namespace sluice::engine {
namespace {
std::chrono::microseconds to_time(std::uint64_t ticks) {
  return std::chrono::microseconds(ticks * 1'000'000 / rte_get_tsc_hz());
}

std::uint64_t to_tsc(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(static_cast<double>(time.count()) * static_cast<double>(rte_get_tsc_hz()) / 1e9);
}

// Launches under way in a stream where a launch is of several batches: the next is there when one is done.
constexpr unsigned depth_together = 2, depth_of_one_lane = 1;
constexpr unsigned silent_overruns = 4;   // times what a batch may take: for which a device may be silent at least
constexpr unsigned cycles_of_a_call = 4;  // for which a call may last at least
constexpr std::chrono::seconds patience_of_stopping{1};  // with a worker that is not heard of
// While no lane sends to the device: how often routes that changed are sent there all the same.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(20);
}  // namespace

void log_loss(const device::Gpu& gpu, LossReport& loss) {
  if (!loss.is_to_be_logged()) return;
  spdlog::error("{} ({}) is lost: {}. Its lanes go to another GPU, or compute on their own cores",
                device::gpu_name(gpu.info().index), gpu.info().name, loss.why());
}

Worker::Worker(Parts parts)
    : parts_(std::move(parts)),
      streams_(parts_.gpu->stream_count() - (parts_.jobs != nullptr ? 1 : 0)),
      silence_limit_(parts_.silence.count() != 0
                         ? SilenceLimit::fixed(to_tsc(parts_.silence))
                         : SilenceLimit::learned(
                               std::max(to_tsc(least_silence), to_tsc(parts_.timing.on_device()) * silent_overruns),
                               to_tsc(most_silence))),
      call_limit_(parts_.silence.count() != 0
                      ? SilenceLimit::fixed(to_tsc(parts_.silence) * call_factor)
                      : SilenceLimit::learned(to_tsc(least_silence) * call_factor, to_tsc(most_silence))) {
  for (Stream& stream : streams_) {
    stream.pending.resize(device::GpuStream::max_marks);
  }
  overrun_tsc_ = to_tsc(parts_.timing.on_device());
  slow_launch_tsc_ = to_tsc(std::chrono::microseconds(stall_gap_us));
  for (unsigned pass = 0; pass < parts_.pipeline->passes(); ++pass) {
    const Together together = parts_.pipeline->together(pass);
    passes_.push_back({.of_one_lane = together == Together::of_one_lane});
    if (together == Together::no) continue;
    passes_.back().together = passes_.back().of_one_lane ? most_of_one_lane : most_together;
    depth_ = std::min(depth_, passes_.back().of_one_lane ? depth_of_one_lane : depth_together);
  }
}

void Worker::start() {
  parts_.clock->looked_tsc.set(rte_rdtsc());
  parts_.clock->longest_call.store(longest_call(), std::memory_order_relaxed);
  if (!given_up_) {
    parts_.clock->device_up.store(parts_.mode != Mode::full || parts_.pipeline->device_ready(parts_.device));
    if (parts_.jobs != nullptr && parts_.mode == Mode::full) parts_.jobs->join();
  }
  thread_ = std::thread([this] { run(); });
}

bool Worker::stop() {
  stopping_.store(true);
  if (!thread_.joinable()) return !left_behind_;
  parts_.clock->bell.ring();
  if (!has_ended()) {
    thread_.detach();
    left_behind_ = true;
    return false;
  }
  thread_.join();
  return true;
}

// False: it has not looked at its clock for a long time.
bool Worker::has_ended() {
  SilenceWatch silence;
  const std::uint64_t patience =
      to_tsc(patience_of_stopping) + (parts_.clock->takes_back.load() ? 0 : parts_.clock->longest_call.load());
  std::uint64_t looked = 0;
  while (!ended_.load(std::memory_order_acquire)) {
    const std::uint64_t now = rte_rdtsc();
    if (const std::uint64_t last = parts_.clock->looked_tsc.get(); last != std::exchange(looked, last)) {
      silence.heard(now, patience / steps_of_silence);
    } else if (silence.look(now) > patience) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

bool Worker::settle() {
  if (given_up_) reap_lost();
  fail_sealed();
  return !has_pending();
}

void Worker::resume() {
  if (parts_.gpu->lost()) lose_device(parts_.gpu->why());
  stopping_.store(false);
  ended_.store(false);
  parts_.clock->ended_up.store(false);
}

void Worker::begin_again() {
  for (Stream& stream : streams_) stream = Stream{.pending = std::move(stream.pending)};
  given_up_ = false;
  left_.store(false);
  silence_limit_.forget();
  call_limit_.forget();
  stopping_.store(false);
  ended_.store(false);
}

std::uint64_t Worker::longest_call() const {
  return std::max(call_limit_.get(), to_tsc(parts_.timing.cycle) * cycles_of_a_call);
}

void Worker::run() {
  pin_this_thread(parts_.core, "sluice-worker");
  schedule_this_thread(parts_.scheduling);
  prctl(PR_SET_TIMERSLACK, 1000UL);
  const std::uint64_t cycle = to_tsc(parts_.timing.cycle);
  TimePoints points(rte_rdtsc(), cycle, parts_.lanes.size(), parts_.timing.stagger);
  std::uint64_t idle_since = 0;
  bool slept = false;
  parts_.clock->stalls.resume(rte_rdtsc());
  for (;;) {
    const std::uint64_t now = rte_rdtsc();
    parts_.clock->looked_tsc.set(now);
    parts_.clock->stalls.look(now);
    if (parts_.clock->takes_back.load(std::memory_order_relaxed) && !given_up_) [[unlikely]] {
      lose_device(parts_.clock->loss.why(), Loss::hung);
    }
    if (now >= points.next()) {
      if (now - points.next() > cycle / 2 && !slept) {
        counters_.late_cycles.add(1);
      }
      pass_time_points(points, now);
      slept = false;
    }
    const unsigned work = submit() + reap() + work_on_jobs();
    if (work != 0) {
      counters_.busy.add(rte_rdtsc() - now);
    }
    const bool on_device =
        (parts_.jobs != nullptr && parts_.jobs->under_way()) || (has_pending() && !(left_ && stopping_.load()));
    if (stopping_.load(std::memory_order_relaxed) && !on_device) {
      break;
    }
    if (work != 0 || on_device) {
      idle_since = 0;
    } else if (idle_since == 0) {
      idle_since = now;
    } else if (!parts_.busy && now - idle_since > cycle / 4) {
      slept = sleep_until(points.next());
      parts_.clock->stalls.resume(rte_rdtsc());
    }
    rte_pause();
  }
  parts_.clock->ended_up.store(parts_.clock->device_up.exchange(false));
  if (parts_.jobs != nullptr) parts_.jobs->leave(rte_rdtsc() + silence_limit_.get());
  fail_sealed();  // lanes may have sealed for the device in the last moment
  ended_.store(true, std::memory_order_release);
}

unsigned Worker::fail_sealed() {
  unsigned failed = 0;
  for (Lane* lane : parts_.lanes) {
    if (!serves(*lane)) continue;
    for (unsigned pass = 0; pass < passes_.size(); ++pass) {
      while (Batch* batch = lane->ring(pass).next_sealed(parts_.device)) {
        finish(*batch, BatchState::failed);
        ++failed;
      }
    }
  }
  return failed;
}

bool Worker::has_pending() const {
  return std::ranges::any_of(streams_, [](const Stream& stream) { return stream.count != 0; });
}

// A cycle begins with the first lane's. All time points that were slept through are over: a lane's frames are counted
// per cycle.
void Worker::pass_time_points(TimePoints& points, std::uint64_t now) {
  bool begins = false;
  points.pass(now, [&](std::size_t lane, std::uint64_t count) {
    if (serves(*parts_.lanes[lane])) parts_.lanes[lane]->pass_time_points(count);
    begins |= lane == 0;
  });
  if (!begins) return;
  counters_.cycles.add(1);
  parts_.clock->longest_call.store(longest_call(), std::memory_order_relaxed);
  if (parts_.mode == Mode::full && !given_up_) {
    begin_cycle();
  }
}

// The device takes batches from the first cycle on in which it is ready.
void Worker::begin_cycle() {
  if (auto begun = parts_.pipeline->begin_cycle(parts_.device, parts_.gpu->stream(0)); !begun) {
    lose_device(begun.error().message);
  } else if (!parts_.clock->device_up.load(std::memory_order_relaxed) && parts_.pipeline->device_ready(parts_.device)) {
    parts_.clock->device_up.store(true);
    // Lanes may have given it up while this call lasted.
    if (parts_.clock->takes_back.load()) parts_.clock->device_up.store(false);
    spdlog::info("{} takes part from now on", parts_.gpu->info().name);
  }
  parts_.clock->stalls.resume(rte_rdtsc());
}

bool Worker::sleep_until(std::uint64_t point) {
  Bell& bell = parts_.clock->bell;
  bell.arm();
  const bool getting_ready = !given_up_ && !parts_.clock->device_up.load(std::memory_order_relaxed);
  const bool awaited = stopping_.load(std::memory_order_relaxed) || getting_ready ||
                       (parts_.jobs != nullptr && parts_.jobs->has_waiting()) ||
                       std::any_of(parts_.lanes.begin(), parts_.lanes.end(), [this](const Lane* lane) {
                         return serves(*lane) && (lane->on_device() || lane->forwarder_holds_frames());
                       });
  const std::uint64_t now = rte_rdtsc();
  auto time = longest_sleep;
  if (awaited) {
    if (now >= point) {
      bell.disarm();
      return false;
    }
    time = std::chrono::nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(point - now) * 1e9 / static_cast<double>(rte_get_tsc_hz())));
  }
  pollfd scratch{};
  bell.wait({&scratch, 1}, time);
  return !awaited;
}

unsigned Worker::work_on_jobs() {
  if (parts_.jobs == nullptr) return 0;
  // Behind submit(): what is sealed is there, if streams have capacity for it, or they are full.
  auto work = parts_.jobs->work(has_pending());
  if (!work) lose_device(work.error().message);
  return work ? *work : 1;
}

unsigned Worker::submit() {
  if (given_up_) [[unlikely]]
    return fail_sealed();
  unsigned work = 0;
  for (std::size_t tried = 0; tried < streams_.size(); ++tried) {
    const unsigned s = idlest_stream();
    if (streams_[s].count >= depth_) {
      break;
    }
    Launch& launch = streams_[s].next();
    gather(launch);
    if (launch.count == 0) {
      break;
    }
    ++work;
    if (!parts_.clock->device_up.load(std::memory_order_relaxed)) {
      finish(launch, BatchState::failed);
    } else if (parts_.mode == Mode::zero_load) {
      for (Batch* const batch : launch.batches()) {
        parts_.pipeline->null_result(*batch);
        count_done(*batch);
      }
      finish(launch, BatchState::done);
    } else {
      submit(s);
    }
  }
  return work;
}

// Streams share the link, and batches of one wait for each other.
unsigned Worker::idlest_stream() const {
  const auto least = std::ranges::min_element(
      streams_, {}, [this](const Stream& stream) { return stream.count >= depth_ ? ~std::uint64_t{0} : stream.bytes; });
  return static_cast<unsigned>(least - streams_.begin());
}

// Of the passes in turn, the first one that has some.
void Worker::gather(Launch& launch) {
  launch.count = 0;
  launch.refused = false;
  launch.bytes = 0;
  for (std::size_t tried = 0; tried < passes_.size() && launch.count == 0; ++tried) {
    const unsigned pass = next_pass_;
    next_pass_ = next_pass_ + 1 == passes_.size() ? 0 : next_pass_ + 1;
    if (passes_[pass].of_one_lane) {
      gather_of_one_lane(pass, launch);
    } else {
      gather(pass, launch);
    }
  }
}

// What is sealed now, in turn of each lane one.
void Worker::gather(unsigned pass, Launch& launch) {
  Pass& of = passes_[pass];
  std::size_t without = 0;  // lanes in a row that have none
  while (without < parts_.lanes.size() && launch.count < of.together) {
    Lane& lane = *parts_.lanes[of.next_lane];
    Batch* const batch = serves(lane) ? lane.ring(pass).next_sealed(parts_.device) : nullptr;
    of.next_lane = (of.next_lane + 1) % parts_.lanes.size();
    if (batch == nullptr) {
      ++without;
      continue;
    }
    without = 0;
    take(batch, launch);
  }
}

// Of the next lane that has some.
void Worker::gather_of_one_lane(unsigned pass, Launch& launch) {
  Pass& of = passes_[pass];
  for (std::size_t tried = 0; tried < parts_.lanes.size() && launch.count == 0; ++tried) {
    Lane& lane = *parts_.lanes[of.next_lane];
    BatchRing& ring = lane.ring(pass);
    of.next_lane = (of.next_lane + 1) % parts_.lanes.size();
    if (!serves(lane)) continue;
    while (Batch* const batch = launch.count < of.together ? ring.next_sealed(parts_.device) : nullptr) {
      take(batch, launch);
    }
  }
}

void Worker::take(Batch* batch, Launch& launch) const {
  launch.batch[launch.count++] = batch;
  launch.bytes += batch->bytes;
}

void Worker::submit(unsigned s) {
  Launch& launch = streams_[s].next();
  device::GpuStream& gpu_stream = parts_.gpu->stream(s);
  launch.tsc = rte_rdtsc();
  parts_.clock->stalls.look(launch.tsc);
  Expected<void> launched = parts_.pipeline->launch(launch.batches(), gpu_stream);
  if (launched) {
    launched = gpu_stream.mark();
  }
  // What the driver takes is the engine's time and not the machine's, so it is not counted as a stall.
  const std::uint64_t after = rte_rdtsc();
  counters_.slow_launches.add(after - launch.tsc > slow_launch_tsc_ ? 1 : 0);
  call_limit_.took(after - launch.tsc);
  parts_.clock->stalls.resume(after);
  if (!launched) {
    // A part of it may have been launched.
    launch.refused = true;
    const bool answers = gpu_stream.mark().has_value();
    if (answers) streams_[s].push();
    lose_device(launched.error().message);
    if (!answers) finish(launch, BatchState::lost);
    return;
  }
  counters_.launches.add(1);
  if (streams_[s].count == 0) streams_[s].silence.heard(launch.tsc, step());
  streams_[s].push();
}

// To ask a stream is a call of the driver. The launch that has been there longest is the likeliest to be done; the
// others are asked in turn, one at a time.
unsigned Worker::reap() {
  if (given_up_) [[unlikely]] {
    reap_lost();
    return 0;
  }
  unsigned work = 0;
  for (;;) {
    const Stream* first = nullptr;
    for (const Stream& stream : streams_) {
      if (stream.count != 0 && (first == nullptr || stream.oldest().tsc < first->oldest().tsc)) {
        first = &stream;
      }
    }
    const unsigned done = first == nullptr ? 0 : reap(static_cast<unsigned>(first - streams_.data()));
    if (done == 0) {
      break;
    }
    work += done;
  }
  next_look_ = (next_look_ + 1) % streams_.size();
  return work + reap(next_look_);
}

unsigned Worker::reap(unsigned s) {
  Stream& stream = streams_[s];
  device::GpuStream& gpu_stream = parts_.gpu->stream(s);
  unsigned work = 0;
  for (; stream.count != 0 && !given_up_; ++work) {
    const Launch launch = stream.oldest();
    const device::MarkState state = gpu_stream.poll();
    const std::uint64_t now = rte_rdtsc();
    if (state == device::MarkState::pending) {
      if (stream.silence.look(now) > silence_limit_.get()) {
        lose_device("it has not finished a batch for " + duration_text(to_time(silence_limit_.get())), Loss::silent);
      }
      break;
    }
    stream.pop();
    if (state == device::MarkState::failed) {
      lose_device(parts_.gpu->why());
      finish(launch, BatchState::lost);
      return work + 1;
    }
    silence_limit_.took(now - launch.tsc);
    stream.silence.heard(now, step());
    hand_back(launch);
  }
  return work;
}

void Worker::hand_back(const Launch& launch) {
  const std::uint64_t now = rte_rdtsc();
  for (Batch* const batch : launch.batches()) {
    const std::uint64_t took = now - batch->sealed_tsc;
    device_time_.add(took, 1);
    count_done(*batch);
    counters_.overruns.add(took > overrun_tsc_ ? 1 : 0);
    finish(*batch, BatchState::done);
  }
}

void Worker::count_done(const Batch& batch) {
  counters_.batches.add(1);
  counters_.frames.add(batch.count);
}

void Worker::finish(const Launch& launch, BatchState state) {
  for (Batch* const batch : launch.batches()) {
    finish(*batch, state);
  }
}

void Worker::finish(Batch& batch, BatchState state) {
  batch.state.store(state, std::memory_order_release);
}

// What is on the device may still be worked on, so its batches are handed back one by one as their marks answer.
void Worker::lose_device(const std::string& why, Loss how) {
  if (std::exchange(given_up_, true)) return;
  parts_.clock->loss.report(how, why);
  parts_.clock->device_up.store(false);
  log_loss(*parts_.gpu, parts_.clock->loss);
  lost_silence_.heard(rte_rdtsc(), step());
  if (how != Loss::failed) parts_.clock->takes_back.store(true, std::memory_order_release);
  reap_lost();
}

// When nothing is on the device any more, or it has been silent for too long, it is left.
void Worker::reap_lost() {
  for (unsigned s = 0; s < streams_.size(); ++s) {
    for (Stream& stream = streams_[s]; stream.count != 0; stream.pop()) {
      const device::MarkState state = parts_.gpu->stream(s).poll();
      if (state == device::MarkState::pending) break;
      lost_silence_.heard(rte_rdtsc(), step());
      const bool done = state == device::MarkState::done && !stream.oldest().refused;
      finish(stream.oldest(), done ? BatchState::done : BatchState::lost);
    }
  }
  if (left_) return;
  const bool takes_back = parts_.clock->takes_back.load(std::memory_order_relaxed);
  if (!has_pending() || takes_back || lost_silence_.look(rte_rdtsc()) > silence_limit_.get()) leave_device();
}

void Worker::leave_device() {
  const bool answers = !has_pending() && !parts_.clock->takes_back.load();
  if (!answers) parts_.clock->takes_back.store(true, std::memory_order_release);
  if (parts_.jobs != nullptr) parts_.jobs->leave(answers ? rte_rdtsc() + silence_limit_.get() : 0);
  parts_.pipeline->device_gone(parts_.device);
  // Last, because a lost GPU answers every mark with a failure: what follows its tables gives up now.
  parts_.gpu->lose(parts_.clock->loss.why(), answers ? device::Gone::answers : device::Gone::silent);
  left_.store(true, std::memory_order_release);
}

}  // namespace sluice::engine
