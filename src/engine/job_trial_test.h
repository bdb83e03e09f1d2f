// For tests of jobs: a kind whose answers are easily checked, a GPU that does what it is set to do, and a clock that a
// test sets.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/job_service.h"

namespace sluice::engine {

// Adds two numbers.
class AddingKind : public JobKind {
 public:
  struct Job {
    std::uint64_t a, b, sum;
    bool is_for_cores;
  };
  static Job& of(std::byte* job) { return *reinterpret_cast<Job*>(job); }
  static const Job& of(std::span<const std::byte> job) { return *reinterpret_cast<const Job*>(job.data()); }

  Shape shape() const override { return {.bytes = sizeof(Job), .most = 8, .slots = 32}; }
  Expected<bool> attach(device::Gpu&, std::uint32_t device) override {
    attached.push_back(device);
    return has_gpus;
  }
  bool on_device(const std::byte* job) const override { return !reinterpret_cast<const Job*>(job)->is_for_cores; }
  Expected<bool> ready(std::uint32_t, device::GpuStream&) override { return is_ready.load(); }
  // A GPU that fails may have done a part: the answers of all are wrong until finish().
  Expected<void> launch(JobBatch jobs, std::uint32_t device, device::GpuStream&) override {
    for (std::byte* const job : jobs) of(job).sum = 0xdead;
    {
      const std::lock_guard lock(launching_);
      launched.push_back({device, jobs.size()});
    }
    if (refuses_launches.load()) return make_error("refused for a test");
    return {};
  }
  void finish(JobBatch jobs, std::uint32_t) override {
    for (std::byte* const job : jobs) of(job).sum = of(job).a + of(job).b;
  }
  void compute(JobBatch jobs) override {
    if (while_computing) while_computing();
    for (std::byte* const job : jobs) of(job).sum = of(job).a + of(job).b;
  }

  struct Launched {
    std::uint32_t device;
    std::size_t jobs;
  };
  bool has_gpus = true;
  std::atomic<bool> is_ready{true}, refuses_launches{false};
  std::vector<Launched> launched;  // to be looked at when no device's thread runs
  std::vector<std::uint32_t> attached;
  std::function<void()> while_computing;

 private:
  std::mutex launching_;
};

inline JobKindType adding_kind(std::function<void(AddingKind&)> prepare = {}) {
  return {.name = "adding",
          .text = "adds two numbers",
          .make = [prepare = std::move(prepare)]() -> Expected<std::unique_ptr<JobKind>> {
            auto kind = std::make_unique<AddingKind>();
            if (prepare) prepare(*kind);
            return kind;
          }};
}

// What it is given is done when the test says so.
class ScriptedGpu : public device::Gpu {
 public:
  class Stream : public device::GpuStream {
   public:
    explicit Stream(ScriptedGpu& gpu) : gpu_(gpu) {}
    void* raw() const override { return nullptr; }
    Expected<void> mark() override {
      if (gpu_.refuses_marks) return make_error("no mark for a test");
      ++marks_;
      return {};
    }
    device::MarkState poll() override {
      if (marks_ == 0) return device::MarkState::done;
      if (!gpu_.lost() && gpu_.is_slow) return device::MarkState::pending;
      --marks_;
      return gpu_.lost() ? device::MarkState::failed : device::MarkState::done;
    }
    unsigned pending_marks() const override { return marks_; }

   private:
    ScriptedGpu& gpu_;
    unsigned marks_ = 0;
  };
  ScriptedGpu() : stream_(*this) {}
  const device::GpuInfo& info() const override { return info_; }
  unsigned stream_count() const override { return 1; }
  device::GpuStream& stream(unsigned) override { return stream_; }
  Expected<void> register_host(void*, std::size_t) override { return {}; }
  Expected<void*> allocate_host(std::size_t) override { return make_error("none for a test"); }
  Expected<device::DeviceMemory> allocate_device(std::size_t) override { return make_error("none for a test"); }
  bool lost() const override { return lost_; }
  std::string why() const override { return "made to fail"; }
  void lose(const std::string&, device::Gone = device::Gone::answers) override { lost_ = true; }
  bool has_ended() override { return true; }
  Expected<void> reset() override { return make_error("no reset for a test"); }
  bool is_slow = false, refuses_marks = false;

 private:
  device::GpuInfo info_;
  Stream stream_;
  bool lost_ = false;
};

// An element that only submits jobs.
class Submitter : public Element, public JobUser {
 public:
  explicit Submitter(JobKindType kind) : kind_(std::move(kind)) {}
  void apply(Batch&, Span, Emitter&) override {}
  void* find_trait(std::string_view name) override { return offer<JobUser>(name, this); }
  std::vector<JobKindType> job_kinds() const override { return {kind_}; }
  Expected<void> use_queues(std::span<JobQueue* const> queues) override {
    queue = queues[0];
    return {};
  }
  JobQueue* queue = nullptr;

 private:
  JobKindType kind_;
};

}  // namespace sluice::engine
