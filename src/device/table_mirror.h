// A table's copy on a device, and the copies of one table on all devices: what base/published.h is for readers on the
// host, with the same words.
//
//     prepare   all that can fail: the table as the device has it, and memory beside that of the one in force. Of the
//               class that knows the table (lookup/acl/gpu_classifier.h, match/automaton/gpu_matcher.h)
//     publish   cannot fail. A sync() soon after begins to carry the table over, a piece at a time
//     read      of() and generation(), and the class's view(): the same table from one sync() to the next
//     reclaim   lets go of the tables on the host whose copies no further launch uses
//
// A launch uses all of one table or all of the next. A published table that no sync() has begun with is forgotten when
// the next is published; a prepared one that is not published leaves no trace.
//
// The publisher knows a copy by a pointer, `of`: to the table on the host that answers of the device are looked up in.
// The mirror holds it as long as launches may use the copy. A batch in flight holds it by itself, by
// Published::pin(reader, table).
//
// Threads: publish() and reclaim() by the thread that publishes, beside all else; sync(), of() and generation() by the
// one that drives the device; up_to_date() and device_bytes() any. Nobody waits, but for the moment in which a table
// changes hands.
// Errors: a CUDA error, or the GPU is lost; the old table stays. A lost GPU holds no table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device/gpu.h"

namespace sluice::device {

class TableMirror {
 public:
  // None may outlive its mirror.
  class Prepared {
   public:
    virtual ~Prepared() = default;
  };
  virtual ~TableMirror() = default;

  virtual void publish(std::unique_ptr<Prepared> prepared, std::shared_ptr<const void> of) = 0;
  // How many tables on the host it still holds, besides the newest.
  virtual std::size_t reclaim() = 0;
  virtual bool lost() const = 0;

  // One step of a change, if there is one. Cost: a few loads when nothing changes.
  virtual Expected<void> sync(GpuStream& stream) = 0;
  virtual const void* of() const = 0;
  // 1 for the first table, one more for each that is published.
  virtual std::uint64_t generation() const = 0;

  // No change is on its way.
  virtual bool up_to_date() const = 0;
  // All that is allocated, old and new.
  virtual std::size_t device_bytes() const = 0;
};

// One table's mirrors, by Batch::device. Threads: as of one; set() on the control path, of a device that nothing
// drives. A lock orders the control path, which none of the others takes.
template <typename Mirror>
class TableMirrors {
 public:
  // By device; null: it is lost, and gets nothing more.
  using Prepared = std::vector<std::unique_ptr<TableMirror::Prepared>>;

  // Null: the device is gone. Devices come first in the order of their numbers.
  void set(std::size_t device, std::unique_ptr<Mirror> mirror) {
    std::unique_ptr<Mirror> before;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    if (device == mirrors_.size()) mirrors_.emplace_back();
    before = std::exchange(mirrors_[device], std::move(mirror));
  }
  bool empty() const { return mirrors_.empty(); }
  Mirror& operator[](std::size_t device) const { return *mirrors_[device]; }

  // `prepare(mirror)`: its Expected<std::unique_ptr<TableMirror::Prepared>>.
  template <typename Prepare>
  Expected<Prepared> prepare(const Prepare& prepare) {
    Prepared all;
    const std::lock_guard lock(mutex_);
    for (const auto& mirror : mirrors_) {
      all.emplace_back();
      if (!mirror || mirror->lost()) continue;
      auto one = prepare(*mirror);
      if (!one) return tl::unexpected(one.error());
      all.back() = std::move(*one);
    }
    return all;
  }
  void publish(Prepared all, const std::shared_ptr<const void>& of) {
    const std::lock_guard lock(mutex_);
    for (std::size_t d = 0; d < mirrors_.size(); ++d) {
      if (all[d]) mirrors_[d]->publish(std::move(all[d]), of);
    }
  }
  std::size_t reclaim() {
    std::size_t held = 0;
    const std::lock_guard lock(mutex_);
    for (const auto& mirror : mirrors_) held += mirror ? mirror->reclaim() : 0;
    return held;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Mirror>> mirrors_;
};

}  // namespace sluice::device
