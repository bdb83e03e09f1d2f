// What mirrors are made of: a table in device memory that is replaced while kernels read it. For .cu files only.
//
//     class CudaClassifier final : public DeviceTable<GpuClassifier, Layout>   // GpuClassifier is a TableMirror
//     create_copy({words, layout}, of);                          // the first table, there when it returns
//     auto next = prepare_copy({words, layout});                 // the thread that reloads: all that can fail
//     publish(std::move(*next), of);
//     sync(stream);                                              // the driving thread: once a cycle
//     kernel<<<...>>>(words(), layout());                        // all of one table, until the next sync()
//
// `Layout` says where the parts lie in the words; it is moved, never looked at. The new table lies beside the old one:
// sync() carries it over a piece at a time, and then it is the one that launches use. Memory of an old table is written
// again only when all kernels that were enqueued before the change have ended, and after that all that were enqueued
// meanwhile (one of these may share an SM with one of those, and its L1). A kernel that stays resident for ever would
// hold it for ever.
//
// Threads: as of TableMirror; create_copy(), prepare_copy() and destruction as publish(). Errors: as of TableMirror.
// Cost of sync() while a table is on its way: a copy of `max_sync_bytes` at most into pinned memory. Device memory: of
// two tables while one takes the other's place; it is kept for the next change.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/copy.h"
#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/gpu.h"
#include "device/table_mirror.h"

namespace sluice::device {

template <typename Interface, typename Layout>
class DeviceTable : public Interface {
 public:
  struct Table {
    std::vector<std::uint32_t> words;
    Layout layout;
  };

  // `most_bytes`: no table is larger; memory is taken with spare capacity to grow, up to that.
  DeviceTable(Gpu& gpu, std::size_t max_sync_bytes, std::size_t most_bytes)
      : gpu_(gpu), max_sync_bytes_(max_sync_bytes), most_bytes_(most_bytes), enqueued_(gpu.stream_count()) {}

  Expected<void> create_copy(Table table, std::shared_ptr<const void> of) {
    auto staging = gpu_.allocate_host(max_sync_bytes_);
    if (!staging) return tl::unexpected(staging.error());
    staging_ = static_cast<std::byte*>(*staging);
    if (auto ok = copied_.create(); !ok) return ok;
    for (Event& event : enqueued_) {
      if (auto ok = event.create(); !ok) return ok;
    }
    auto taken = take(std::move(table));
    if (!taken) return tl::unexpected(taken.error());
    Copy first = hold(std::move(*taken), std::move(of));
    if (auto ok = copy(gpu_, first.bytes(), first.table.words.data(), first.size()); !ok) return ok;
    enter(std::move(first));
    return {};
  }

  Expected<std::unique_ptr<TableMirror::Prepared>> prepare_copy(Table table) {
    auto taken = take(std::move(table));
    if (!taken) return tl::unexpected(taken.error());
    return std::make_unique<PreparedCopy>(*this, std::move(*taken));
  }

  void publish(std::unique_ptr<TableMirror::Prepared> prepared, std::shared_ptr<const void> of) final {
    Copy next = hold(std::move(static_cast<PreparedCopy&>(*prepared).copy), std::move(of));
    std::optional<Copy> forgotten;  // destroyed when the lock is released
    {
      const std::lock_guard lock(mutex_);
      forgotten = std::exchange(waiting_, std::move(next));
      if (forgotten) free_.push_back(std::move(forgotten->memory));
    }
    if (forgotten) std::erase_if(held_, [&](const Held& held) { return held.generation == forgotten->generation; });
  }

  std::size_t reclaim() final {
    const std::uint64_t in_use = in_use_.load(std::memory_order_acquire);
    std::erase_if(held_, [&](const Held& held) { return lost() || held.generation < in_use; });
    return held_.empty() ? 0 : held_.size() - 1;
  }
  bool lost() const final { return gpu_.lost(); }

  Expected<void> sync(GpuStream& stream) final {
    if (gpu_.lost()) return make_error("GPU lost: " + gpu_.why());
    switch (change_) {
      case Change::none:
        return begin(stream);
      case Change::copying:
        return go_on(stream);
      case Change::leaving:
      case Change::fading:
        return follow_readers();
    }
    return {};
  }
  const void* of() const final { return current_->of; }
  std::uint64_t generation() const final { return current_->generation; }
  const std::uint32_t* words() const { return current_->memory.template as<const std::uint32_t>(); }
  const Layout& layout() const { return current_->table.layout; }

  bool up_to_date() const final {
    const std::lock_guard lock(mutex_);
    return change_ == Change::none && !waiting_;
  }
  std::size_t device_bytes() const final {
    const std::lock_guard lock(mutex_);
    return allocated_;
  }

 private:
  enum class Change {
    none,     // the current table is the only one, but for one that may be waiting
    copying,  // coming_ is on its way
    leaving,  // kernels that were enqueued before the change may still read the old one
    fading,   // kernels that ran beside those may still have lines of it in their L1
  };

  // A table on its way to the GPU, or there; of one that has arrived only the layout.
  struct Copy {
    Table table;
    DeviceMemory memory;
    std::uint64_t generation = 0;
    const void* of = nullptr;
    std::byte* bytes() const { return memory.template as<std::byte>(); }
    std::size_t size() const { return table.words.size() * sizeof(std::uint32_t); }
  };

  // Its memory goes back where it came from unless it is published.
  struct PreparedCopy final : TableMirror::Prepared {
    PreparedCopy(DeviceTable& prepared_by, Copy prepared) : by(prepared_by), copy(std::move(prepared)) {}
    ~PreparedCopy() override {
      if (copy.memory) by.give_back(std::move(copy.memory));
    }
    DeviceTable& by;
    Copy copy;
  };

  // A table on the host whose copy launches may use, or may use soon.
  struct Held {
    std::uint64_t generation;
    std::shared_ptr<const void> of;
  };

  // With memory: a free one that is large enough, else a new one. That is half as large again as it must be, as long as
  // the limit allows, so that tables that grow do not each need another.
  Expected<Copy> take(Table table) {
    table.words.resize(std::max<std::size_t>(table.words.size(), 4));  // an empty one has none
    Copy copy{.table = std::move(table), .memory = {}};
    const std::size_t bytes = copy.size();
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::ranges::find_if(free_, [&](const DeviceMemory& one) { return one.bytes() >= bytes; });
      if (at != free_.end()) {
        copy.memory = std::move(*at);
        free_.erase(at);
        return copy;
      }
    }
    auto memory = gpu_.allocate_device(std::max(bytes, std::min(bytes + bytes / 2, most_bytes_)));
    if (!memory) return tl::unexpected(memory.error());
    copy.memory = std::move(*memory);
    const std::lock_guard lock(mutex_);
    allocated_ += copy.memory.bytes();
    return copy;
  }

  void give_back(DeviceMemory memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(memory));
  }

  Copy hold(Copy copy, std::shared_ptr<const void> of) {
    copy.generation = ++published_;
    copy.of = of.get();
    held_.push_back({copy.generation, std::move(of)});
    return copy;
  }

  // The one that launches use from now on.
  void enter(Copy copy) {
    copy.table.words = {};
    current_ = std::move(copy);
    in_use_.store(current_->generation, std::memory_order_release);
  }

  Expected<void> begin(GpuStream& stream) {
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || !waiting_) return {};
      coming_ = std::move(*waiting_);
      waiting_.reset();
    }
    copied_bytes_ = 0;
    change_ = Change::copying;
    return go_on(stream);
  }

  // The next piece, or, when the last one has arrived, the change.
  Expected<void> go_on(GpuStream& stream) {
    const auto passed = copied_.passed();
    if (!passed) return tl::unexpected(passed.error());
    if (!*passed) return {};
    if (copied_bytes_ == coming_->size()) return change();
    const std::size_t now = std::min(max_sync_bytes_, coming_->size() - copied_bytes_);
    std::memcpy(staging_, reinterpret_cast<const std::byte*>(coming_->table.words.data()) + copied_bytes_, now);
    SLUICE_CUDA_TRY(cudaMemcpyAsync(coming_->bytes() + copied_bytes_, staging_, now, cudaMemcpyHostToDevice,
                                    static_cast<cudaStream_t>(stream.raw())));
    copied_bytes_ += now;
    return copied_.record(stream);
  }

  Expected<void> change() {
    old_ = std::move(current_->memory);
    enter(std::move(*coming_));
    coming_.reset();
    change_ = Change::leaving;
    return mark_streams();
  }

  // Marks what is enqueued on each stream now.
  Expected<void> mark_streams() {
    for (unsigned i = 0; i < gpu_.stream_count(); ++i) {
      if (auto ok = enqueued_[i].record(gpu_.stream(i)); !ok) return ok;
    }
    return {};
  }

  Expected<void> follow_readers() {
    for (const Event& event : enqueued_) {
      const auto passed = event.passed();
      if (!passed) return tl::unexpected(passed.error());
      if (!*passed) return {};
    }
    if (change_ == Change::leaving) {
      change_ = Change::fading;
      return mark_streams();
    }
    give_back(std::move(old_));
    change_ = Change::none;
    return {};
  }

  Gpu& gpu_;
  const std::size_t max_sync_bytes_, most_bytes_;
  std::vector<Event> enqueued_;  // by stream
  Event copied_;                 // the GPU has read the staging memory
  std::byte* staging_ = nullptr;

  // The publishing thread's.
  std::uint64_t published_ = 0;
  std::vector<Held> held_;  // by generation

  // The driving thread's.
  std::optional<Copy> current_, coming_;
  std::size_t copied_bytes_ = 0;
  DeviceMemory old_;
  Change change_ = Change::none;

  std::atomic<std::uint64_t> in_use_{0};  // generation of current_
  mutable std::mutex mutex_;              // what the two threads hand each other
  std::optional<Copy> waiting_;
  std::vector<DeviceMemory> free_;
  std::size_t allocated_ = 0;
};

}  // namespace sluice::device
