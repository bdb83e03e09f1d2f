// A table in device memory that is exchanged for another while kernels read it. For .cu files only.
//
//     TableExchange<Layout> exchange(gpu, max_sync_bytes, most_bytes);
//     exchange.create({words, layout});                      // the first table, there when it returns
//     auto next = exchange.prepare({words, layout});         // the thread that reloads: all that can fail
//     exchange.commit(std::move(*next));
//     exchange.sync(stream);                                 // the driving thread: once a cycle
//     kernel<<<...>>>(exchange.words(), exchange.layout());  // all of one table, until the next sync()
//
// `Layout` says where the parts lie in the words; it is moved, never looked at. The new table lies beside the old one:
// sync() carries it over a piece at a time, and then it is the one that launches use. Memory of an old table is written
// again only when all kernels that were enqueued before the change have ended, and after that all that were enqueued
// meanwhile (one of these may share an SM with one of those, and its L1). A kernel that stays resident for ever would
// hold it for ever.
//
// Threads: create(), prepare(), commit() and destruction on the control thread; all else on the one thread that drives
// the GPU's streams. commit() never makes that thread wait, but for the moment in which tables change hands.
// Errors: a CUDA error, or the GPU is lost; the old table stays. Cost of sync(): a few loads when nothing changes; else
// a copy of `max_sync_bytes` at most into pinned memory. Device memory: of two tables while one takes the other's
// place; it is kept for the next change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/copy.h"
#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/gpu.h"

namespace sluice::device {

template <typename Layout>
class TableExchange {
  struct Memory {
    std::uint32_t* words = nullptr;
    std::size_t bytes = 0;
  };

 public:
  struct Table {
    std::vector<std::uint32_t> words;
    Layout layout;
  };

  // A table with its memory, which goes back where it came from unless it is committed. None may outlive the exchange.
  class Prepared {
   public:
    Prepared(TableExchange& of, Table table, Memory memory) : of_(&of), table_(std::move(table)), memory_(memory) {}
    Prepared(Prepared&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), table_(std::move(other.table_)), memory_(other.memory_) {}
    Prepared& operator=(Prepared&&) = delete;
    ~Prepared() {
      if (of_ != nullptr) of_->give_back(memory_);
    }

   private:
    friend class TableExchange;
    TableExchange* of_;
    Table table_;
    Memory memory_;
  };

  // `most_bytes`: no table is larger; memory is taken with room to grow, up to that.
  TableExchange(Gpu& gpu, std::size_t max_sync_bytes, std::size_t most_bytes)
      : gpu_(gpu), max_sync_bytes_(max_sync_bytes), most_bytes_(most_bytes), enqueued_(gpu.stream_count()) {}

  // Kernels may still read the tables; the Gpu, which owns their memory, waits for them before it frees it.
  Expected<void> create(Table table) {
    auto staging = gpu_.allocate_host(max_sync_bytes_);
    if (!staging) return tl::unexpected(staging.error());
    staging_ = static_cast<std::byte*>(*staging);
    if (auto ok = copied_.create(); !ok) return ok;
    for (Event& event : enqueued_) {
      if (auto ok = event.create(); !ok) return ok;
    }
    auto first = prepare(std::move(table));
    if (!first) return tl::unexpected(first.error());
    List list = take(*first);
    if (auto ok = copy(gpu_, list.memory.words, list.table.words.data(), list.bytes()); !ok) return ok;
    current_ = arrived(std::move(list));
    return {};
  }

  Expected<Prepared> prepare(Table table) {
    table.words.resize(std::max<std::size_t>(table.words.size(), 4));  // an empty one has none
    auto memory = memory_of(table.words.size() * sizeof(std::uint32_t));
    if (!memory) return tl::unexpected(memory.error());
    return Prepared(*this, std::move(table), *memory);
  }

  // One that no sync() has begun with is forgotten when the next is committed.
  void commit(Prepared prepared) {
    List list = take(prepared);
    std::optional<List> forgotten;  // destroyed when the lock is released
    const std::lock_guard lock(mutex_);
    forgotten = std::exchange(waiting_, std::move(list));
    if (forgotten) free_.push_back(forgotten->memory);
  }

  // One step of a change, if there is one.
  Expected<void> sync(GpuStream& stream) {
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

  // No change is on its way.
  bool up_to_date() const {
    const std::lock_guard lock(mutex_);
    return change_ == Change::none && !waiting_;
  }
  // 1 for the table of create(), one more for each commit(): that of the current one.
  std::uint64_t generation() const { return current_->generation; }
  const std::uint32_t* words() const { return current_->memory.words; }
  const Layout& layout() const { return current_->table.layout; }
  // All that is allocated, old and new.
  std::size_t device_bytes() const {
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
  struct List {
    Table table;
    Memory memory;
    std::uint64_t generation = 0;
    std::size_t bytes() const { return table.words.size() * sizeof(std::uint32_t); }
  };

  List take(Prepared& prepared) {
    prepared.of_ = nullptr;
    return List{std::move(prepared.table_), prepared.memory_, ++committed_};
  }

  void give_back(const Memory& memory) {
    const std::lock_guard lock(mutex_);
    free_.push_back(memory);
  }

  // A free one that is large enough, else a new one: half as large again as it must be, as long as the limit allows, so
  // that tables that grow do not each need another.
  Expected<Memory> memory_of(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(free_.begin(), free_.end(), [&](const Memory& m) { return m.bytes >= bytes; });
      if (at != free_.end()) {
        const Memory found = *at;
        free_.erase(at);
        return found;
      }
    }
    const std::size_t room = std::max(bytes, std::min(bytes + bytes / 2, most_bytes_));
    auto memory = gpu_.allocate_device(room);
    if (!memory) return tl::unexpected(memory.error());
    const std::lock_guard lock(mutex_);
    allocated_ += room;
    return Memory{static_cast<std::uint32_t*>(*memory), room};
  }

  static List arrived(List list) {
    list.table.words = {};
    return list;
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
    if (copied_bytes_ == coming_->bytes()) return change();
    const std::size_t now = std::min(max_sync_bytes_, coming_->bytes() - copied_bytes_);
    std::memcpy(staging_, reinterpret_cast<const std::byte*>(coming_->table.words.data()) + copied_bytes_, now);
    SLUICE_CUDA_TRY(cudaMemcpyAsync(reinterpret_cast<std::byte*>(coming_->memory.words) + copied_bytes_, staging_, now,
                                    cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream.raw())));
    copied_bytes_ += now;
    return copied_.record(stream);
  }

  Expected<void> change() {
    old_ = current_->memory;
    current_ = arrived(std::move(*coming_));
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
    const std::lock_guard lock(mutex_);
    free_.push_back(old_);
    change_ = Change::none;
    return {};
  }

  Gpu& gpu_;
  const std::size_t max_sync_bytes_, most_bytes_;
  std::vector<Event> enqueued_;  // by stream
  Event copied_;                 // the GPU has read the staging memory
  std::byte* staging_ = nullptr;
  std::uint64_t committed_ = 0;

  std::optional<List> current_, coming_;
  std::size_t copied_bytes_ = 0;
  Memory old_;
  Change change_ = Change::none;

  mutable std::mutex mutex_;  // what the control thread and the driving one hand each other
  std::optional<List> waiting_;
  std::vector<Memory> free_;
  std::size_t allocated_ = 0;
};

}  // namespace sluice::device
