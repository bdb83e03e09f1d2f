#include "device/warp_schedule.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace sluice::device {

std::string_view warp_grouping_name(WarpGrouping grouping) {
  constexpr std::string_view names[] = {"none", "by kind", "by length", "by both", "by both, sorted"};
  return names[static_cast<std::size_t>(grouping)];
}

WarpSchedule::WarpSchedule(const WarpScheduleOptions& options, const WarpTimes& times)
    : options_(options),
      times_(times),
      range_shift_(static_cast<unsigned>(std::countr_zero(options.range_bytes))),
      kinds_(options.grouping == WarpGrouping::by_length ? 1 : options.kinds),
      ranges_(options.grouping == WarpGrouping::by_kind ? 1 : options.ranges),
      most_bins_(options.max_items / options.bin_items + (options.mixes_kinds ? 1 : kinds_)),
      waiting_((std::size_t{kinds_} * ranges_ + most_bins_) * options.bin_items),
      next_(std::size_t{kinds_} * ranges_),
      longest_(next_.size()),
      time_(next_.size()),
      place_(next_.size()) {
  active_.reserve(most_bins_);
  sorted_.resize(most_bins_);
  std::iota(longest_.begin(), longest_.end(), std::uint16_t{0});
  begin();
}

void WarpSchedule::begin() {
  count_ = 0;
  active_.clear();
  free_ = 0;
  for (std::uint32_t& next : next_) {
    next = free_;
    free_ += options_.bin_items;
  }
}

// Of one label behind the other, those with longer items first. Returns how many places they take.
std::uint32_t WarpSchedule::put_leftovers(std::span<std::uint16_t> items) const {
  std::uint32_t put = 0;
  const auto fill_up = [&] {
    while (put % options_.bin_items != 0) items[put++] = no_item;
  };
  for (std::size_t label = next_.size(); label-- > 0;) {
    const std::uint32_t left = next_[label] % options_.bin_items;
    std::copy_n(waiting_.data() + (next_[label] - left), left, items.data() + put);
    put += left;
    if (!options_.mixes_kinds && label % ranges_ == 0) fill_up();
  }
  fill_up();
  return put;
}

// From one batch to the next little moves among the labels, so sorting by insertion takes a step for each; bins are
// then put where their label's bins begin.
std::span<const WarpSchedule::Bin> WarpSchedule::sorted_active() {
  std::fill(place_.begin(), place_.end(), 0);
  for (const Bin& bin : active_) ++place_[bin.label];
  for (std::size_t label = 0; label < time_.size(); ++label) time_[label] = times_.of(static_cast<unsigned>(label));
  for (std::size_t i = 1; i < longest_.size(); ++i) {
    const std::uint16_t label = longest_[i];
    std::size_t to = i;
    for (; to > 0 && time_[longest_[to - 1]] < time_[label]; --to) longest_[to] = longest_[to - 1];
    longest_[to] = label;
  }
  std::uint32_t place = 0;
  for (const std::uint16_t label : longest_) place += std::exchange(place_[label], place);
  for (const Bin& bin : active_) sorted_[place_[bin.label]++] = bin;
  return std::span(sorted_).first(active_.size());
}

WarpOrder WarpSchedule::order(std::span<std::uint16_t> items, std::span<std::uint16_t> labels) {
  std::uint32_t put = 0;
  if (options_.grouping == WarpGrouping::none) {
    for (; put < count_; ++put) items[put] = static_cast<std::uint16_t>(put);
    while (put % options_.bin_items != 0) items[put++] = no_item;
    std::fill_n(labels.begin(), put / warp, mixed_label);
    begin();
    return {items.first(put), labels.first(put / warp)};
  }
  put = put_leftovers(items);
  std::fill_n(labels.begin(), put / warp, mixed_label);
  const bool told = options_.grouping >= WarpGrouping::by_both;
  for (const Bin& bin : options_.grouping == WarpGrouping::sorted ? sorted_active() : active_) {
    std::copy_n(waiting_.data() + bin.at, options_.bin_items, items.data() + put);
    std::fill_n(labels.begin() + put / warp, options_.bin_items / warp,
                told ? static_cast<std::uint16_t>(bin.label) : mixed_label);
    put += options_.bin_items;
  }
  begin();
  return {items.first(put), labels.first(put / warp)};
}

}  // namespace sluice::device
