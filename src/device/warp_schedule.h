// The order in which a kernel's warps take the items of a batch: PIPSEA's scheduling (Park et al., 3.3), for any
// element. The items of a warp take the same way through the kernel, and about the same time. No item is moved. Results
// are written where the item is, so what leaves is in the order of the batch.
//
//     WarpTimes times(10, 6, 256);
//     WarpSchedule schedule({.max_items = 8192, .kinds = 10}, times);
//     for (each item of the batch, which count from 0) schedule.add(kind, length);
//     const WarpOrder order = schedule.order(items, labels);   // and it is as before the first add()
//     in the kernel: lane l of warp w takes items[32 * w + l], and nothing where that is no_item
//
// Labels: an item's label is its kind, such as its algorithm and direction, and the range of its length.
//
// Bins: an item goes to its label's wait bin. A full one becomes an active bin. What wait bins hold at the end are
// leftovers, which go into mixed bins. Items of a bin are in the order of the batch, and so are bins of one label.
//
// Order: mixed bins come first, then active ones, of which that with the longest expected time is the first (LPTF). The
// paper serves leftovers first, too, but in the next batch. Here they are of this one: nothing waits, and nothing is
// reordered. Leftovers stand label by label, those of a kind longest first.
//
// By default a mixed bin has one kind only, and no_item fills it up. A warp with two kinds takes as long as both
// together. One that is half empty takes no longer than a full one.
//
// Threads: one at a time. No allocation after the constructor. Cost on one core of 2.6 GHz: 2.5 to 3 ns an item in
// batches of 2,048 or more, 5 ns in batches of 256 (`sluice_device_bench`). Errors: none. More items than max_items are
// the caller's mistake; kinds from `kinds` on count as the last.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/warp_times.h"

namespace sluice::device {

// In an order where there is no item; the label of a warp whose items may have several.
inline constexpr std::uint16_t no_item = 0xFFFF, mixed_label = 0xFFFF;

// What items are grouped by. All but the last are there to compare with.
enum class WarpGrouping : std::uint8_t {
  none,       // the order of the batch
  by_kind,    // leftovers, then full bins in the order in which they became full
  by_length,  // the same
  by_both,    // the same
  sorted,     // by both, full bins longest first
};
std::string_view warp_grouping_name(WarpGrouping grouping);

struct WarpScheduleOptions {
  std::uint32_t max_items = 16384;  // of a batch, at most 65,535
  unsigned kinds = 1;
  std::uint32_t range_bytes = 256;  // of a length range, a power of two: the first begins at 0, the last has no end
  unsigned ranges = 6;
  std::uint32_t bin_items = 32;  // a power of two, of at least 32
  bool mixes_kinds = false;      // as the paper does: mixed bins are full but for the last
  WarpGrouping grouping = WarpGrouping::sorted;
};

struct WarpOrder {
  std::span<const std::uint16_t> items;   // 32 for each warp
  std::span<const std::uint16_t> labels;  // of each warp: kind * ranges + range, or mixed_label
};

class WarpSchedule {
 public:
  static constexpr std::uint32_t warp = 32;

  // `times` is of the same kinds and ranges and must outlive the schedule; others may learn meanwhile.
  WarpSchedule(const WarpScheduleOptions& options, const WarpTimes& times);

  // The next item.
  void add(unsigned kind, std::uint32_t length) {
    const std::uint32_t item = count_++;
    if (options_.grouping == WarpGrouping::none) return;
    const std::uint32_t range = length >> range_shift_;
    const std::uint32_t label = (kind < kinds_ ? kind : kinds_ - 1) * ranges_ + (range < ranges_ ? range : ranges_ - 1);
    const std::uint32_t at = next_[label]++;
    waiting_[at] = static_cast<std::uint16_t>(item);
    if ((at + 1) % options_.bin_items == 0) activate(label, at + 1 - options_.bin_items);
  }
  std::uint32_t count() const { return count_; }

  // What order() writes at most.
  std::size_t most_items() const { return most_bins_ * options_.bin_items; }
  std::size_t most_labels() const { return most_items() / warp; }

  // Of all items since the last call. `items` may be memory that a GPU reads; it is written once, from its begin on.
  WarpOrder order(std::span<std::uint16_t> items, std::span<std::uint16_t> labels);

 private:
  struct Bin {
    std::uint32_t at;     // in waiting_
    std::uint32_t label;  // as next_ counts them
  };

  void activate(std::uint32_t label, std::uint32_t at) {
    active_.push_back({at, label});
    next_[label] = free_;
    free_ += options_.bin_items;
  }
  std::uint32_t put_leftovers(std::span<std::uint16_t> items) const;
  std::span<const Bin> sorted_active();
  void begin();

  const WarpScheduleOptions options_;
  const WarpTimes& times_;
  const unsigned range_shift_;
  const unsigned kinds_, ranges_;  // that are told apart
  const std::size_t most_bins_;
  std::uint32_t count_ = 0, free_ = 0;  // free_: where the next wait bin begins
  std::vector<std::uint16_t> waiting_;  // bins' items
  std::vector<std::uint32_t> next_;     // by label: where its next item goes
  std::vector<Bin> active_, sorted_;
  std::vector<std::uint16_t> longest_;  // labels, as they were sorted last
  std::vector<float> time_;             // by label, for this batch
  std::vector<std::uint32_t> place_;    // by label: where its next bin goes in sorted_
};

}  // namespace sluice::device
