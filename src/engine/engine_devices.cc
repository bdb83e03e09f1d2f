// The engine's GPUs: their memory, what elements have on them, their workers, and the way back of a lost one.
#include <chrono>
#include <memory>
#include <thread>

#include "device/name.h"
#include "engine/engine.h"

namespace sluice::engine {
namespace {

// Of lanes: until they have sealed what they collected before, and what they sealed for a device that takes no more is
// handed back.
constexpr std::chrono::milliseconds settling(20);
constexpr std::chrono::seconds longest_leaving(3);

}  // namespace

Expected<void> Engine::pin_frames(device::Gpu& gpu) {
  for (const auto& port : ports_) {
    for (rte_mempool* pool : port->pools()) {
      Expected<void> pinned;
      port::for_each_area(pool, [&](void* base, std::size_t size) {
        if (pinned) {
          pinned = gpu.register_host(base, size);
        }
      });
      if (!pinned) {
        return make_error("port '" + port->name() +
                          "': its frames cannot be pinned for the GPU: " + pinned.error().message);
      }
    }
  }
  return {};
}

DevicePlan Engine::device_plan(std::uint32_t device) const {
  return {static_cast<std::uint32_t>(lanes_.size()),
          options_.batches,
          options_.batch,
          options_.memory.frame_bytes,
          options_.mode == Mode::full,
          device};
}

// Memory that one GPU has pinned is every GPU's.
Expected<void> Engine::attach_devices() {
  if (gpus_.empty()) {
    return {};
  }
  if (auto pinned = pin_frames(*gpus_.front()); !pinned) {
    return pinned;
  }
  const std::vector<int> worker_cores = placement_.worker_cores();
  for (std::uint32_t device = 0; device < gpus_.size(); ++device) {
    if (auto attached = pipeline_->attach(*gpus_[device], device_plan(device)); !attached) {
      return attached;
    }
    Worker::Parts parts{.gpu = gpus_[device].get(),
                        .device = device,
                        .pipeline = pipeline_.get(),
                        .lanes = {},
                        .clock = clocks_[device].get(),
                        .timing = timing_,
                        .mode = options_.mode,
                        .core = worker_cores[device],
                        .busy = placement_.busy,
                        .scheduling = placement_.scheduling,
                        .jobs = jobs_ ? &jobs_->device(device) : nullptr,
                        .silence = options_.device_silence};
    for (const auto& lane : lanes_) {
      parts.lanes.push_back(lane.get());
    }
    workers_.push_back(std::make_unique<Worker>(std::move(parts)));
  }
  return {};
}

bool Engine::gpu_up(std::size_t gpu) const {
  const Clock& clock = *clocks_[gpu];
  return clock.device_up.load(std::memory_order_relaxed) || clock.ended_up.load(std::memory_order_relaxed);
}

bool Engine::gpu_up() const {
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    if (!gpu_up(gpu)) return false;
  }
  return !gpus_.empty();
}

void Engine::look_at_devices() {
  for (std::uint32_t g = 0; g < gpus_.size(); ++g) {
    if (clocks_[g]->loss.how() != Loss::hung || gpus_[g]->lost()) continue;
    log_loss(*gpus_[g], clocks_[g]->loss);
    gpus_[g]->lose(clocks_[g]->loss.why(), device::Gone::hangs);
    if (jobs_) jobs_->device(g).take_away();
  }
}

Expected<void> Engine::why_not_reset(std::size_t gpu) const {
  if (!running_) return make_error("the engine does not run");
  if (is_stuck_) return make_error("a GPU's work was left behind: restart the gateway");
  if (clocks_[gpu]->loss.how() == Loss::none) return make_error("it is not lost");
  if (const auto slot = pipeline_->without_detach()) {
    return make_error("an element of the chain, number " + std::to_string(*slot + 1) +
                      ", cannot begin anew on a device (Element::can_detach()): restart the gateway");
  }
  if (clocks_[gpu]->loss.how() == Loss::hung) {
    return make_error("a call of its driver hung, and may hang still: restart the gateway");
  }
  // A driver takes its time to tell of a fault, for each mark.
  for (const auto until = std::chrono::steady_clock::now() + longest_leaving; !workers_[gpu]->has_left();) {
    if (std::chrono::steady_clock::now() >= until) return make_error("its batches are not back yet: try again later");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!gpus_[gpu]->has_ended()) {
    return make_error(
        "work that it was given has not ended, and only the end of the process ends it: restart the gateway");
  }
  return {};
}

// Its thread has ended, and no lane has anything there.
Expected<void> Engine::pause_device(std::size_t gpu) {
  Clock& clock = *clocks_[gpu];
  clock.pauses.store(true);
  if (!workers_[gpu]->stop()) {
    is_stuck_ = true;
    clock.loss.report(Loss::hung);
    clock.takes_back.store(true);
    return make_error(device::gpu_name(gpus_[gpu]->info().index) + ": a call of its driver does not return");
  }
  const auto until = std::chrono::steady_clock::now() + settling;
  bool settled = false;
  do {
    settled = workers_[gpu]->settle();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (std::chrono::steady_clock::now() < until);
  if (!settled) return make_error("it has not answered for all that it was given: restart the gateway");
  return {};
}

void Engine::resume_device(std::size_t gpu) {
  clocks_[gpu]->pauses.store(false);
  workers_[gpu]->resume();
  workers_[gpu]->start();
}

// With a GPU for all, while no other one has it registered.
Expected<void> Engine::pin_memory(device::Gpu& gpu) {
  auto pinned = pin_frames(gpu);
  pinned = pinned && batch_memory_ ? batch_memory_->register_again(gpu) : pinned;
  return pinned && spare_memory_ ? spare_memory_->register_again(gpu) : pinned;
}

Expected<void> Engine::renew_device(std::uint32_t device) {
  device::Gpu& gpu = *gpus_[device];
  pipeline_->detach(device);
  if (jobs_) jobs_->device(device).detach();
  if (pinned_by_ == device) pinned_by_ = gpus_.size();
  auto done = gpu.reset();
  if (done && !running_) done = make_error("the gateway ends");
  if (done && pinned_by_ == gpus_.size()) {
    done = pin_memory(gpu);
    if (done) pinned_by_ = device;
  }
  done = done ? pipeline_->attach(gpu, device_plan(device)) : done;
  done = done && jobs_ ? jobs_->device(device).attach() : done;
  if (!done) {
    pipeline_->detach(device);
    if (jobs_) jobs_->device(device).detach();
    gpu.lose(done.error().message);
    return done;
  }
  // Keys that come meanwhile, for one, are known to be missing there.
  std::this_thread::sleep_for(settling);
  clocks_[device]->begin_again();
  workers_[device]->begin_again();
  workers_[device]->start();
  return {};
}

Expected<void> Engine::reset_device(std::size_t gpu) {
  const std::lock_guard lock(device_mutex_);
  if (auto possible = why_not_reset(gpu); !possible) return possible;
  std::vector<std::size_t> paused;
  // However it ends: memory may run out.
  const std::shared_ptr<void> resume(nullptr, [&](std::nullptr_t) {
    clocks_[gpu]->pauses.store(false);
    for (const std::size_t other : paused) {
      if (pinned_by_ == gpus_.size()) {
        if (auto pinned = pin_memory(*gpus_[other]); pinned) {
          pinned_by_ = other;
        } else {
          gpus_[other]->lose(pinned.error().message);
        }
      }
      resume_device(other);
    }
  });
  Expected<void> done = pause_device(gpu);
  for (std::size_t other = 0; pinned_by_ == gpu && done && other < gpus_.size(); ++other) {
    if (other == gpu || clocks_[other]->loss.how() != Loss::none) continue;
    done = pause_device(other);
    if (clocks_[other]->loss.how() != Loss::hung) paused.push_back(other);
  }
  return done ? renew_device(static_cast<std::uint32_t>(gpu)) : done;
}

}  // namespace sluice::engine
