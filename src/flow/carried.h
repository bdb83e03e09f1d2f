// What a rule engine remembers of one direction of a stream from piece to piece: rules of which a part is in the
// window, which are tried again with the next piece, and those that have held, which are not found anew in the same
// bytes. Rules that have begun, of whose pattern a part is what the window ends with, are tried where the rest of it
// comes.
//
// Rules go by numbers that hold for one generation of them; those of others are forgotten. At most eight are open: of
// more it is known only that there are (`lost`), and the whole window has to be searched for them. Those that have
// begun have the capacity that is left: of more the keys are not known any more (`by_keys`), and the window's end has
// to be searched for them. Of those that have held the last four are known.
//
// Besides, for how many bytes a stream has been ordinary: nothing that the rule engine takes note of was in its pieces.
//
// Thread-safety: none, one lane. 64 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace sluice::flow {

class Carried {
 public:
  static constexpr unsigned most_open = 8, most_held = 4;

  void use(std::uint64_t generation) {
    if (generation_ == static_cast<std::uint32_t>(generation)) return;
    *this = {};
    generation_ = static_cast<std::uint32_t>(generation);
  }

  std::span<const std::uint32_t> open() const { return {open_.data(), open_count_}; }
  std::span<const std::uint32_t> begun() const { return {open_.data() + most_open - begun_count_, begun_count_}; }
  bool lost() const { return lost_; }
  // Nothing is open, begun or held.
  bool empty() const { return (open_count_ | begun_count_ | held_count_) == 0 && !lost_; }
  // `all`: these are all that are open or begun; else those known so far stay.
  void keep(std::span<const std::uint32_t> open, std::span<const std::uint32_t> begun, bool all) {
    if (all) {
      open_count_ = begun_count_ = 0;
      lost_ = false;
    }
    for (const std::uint32_t rule : open) {
      renew(rule);
      if (!has(this->open(), rule)) add_open(rule);
    }
    for (const std::uint32_t rule : begun) {
      if (!has(this->open(), rule) && !has(this->begun(), rule)) add_begun(rule);
    }
  }

  std::span<const std::uint32_t> held() const { return {held_.data(), held_count_}; }
  // It is not open any more.
  void hold(std::uint32_t rule) {
    remove(open_, open_count_, rule);
    remove(held_, held_count_, rule);
    if (held_count_ == most_held) remove(held_, held_count_, held_[0]);
    held_[held_count_++] = rule;
  }
  // New bytes may make it hold again.
  void renew(std::uint32_t rule) { remove(held_, held_count_, rule); }

  // A piece of so many bytes, behind as many of the window's; `ordinary`: nothing is in it of which note is taken.
  void pass(std::size_t history, std::size_t piece, bool ordinary) {
    const std::uint64_t before = history == 0 ? most_bytes : ordinary_bytes_;
    ordinary_bytes_ = ordinary ? static_cast<std::uint32_t>(std::min<std::uint64_t>(before + piece, most_bytes)) : 0;
  }
  // By the rules of that generation, nothing is in the last so many bytes of which note is taken.
  bool is_ordinary(std::uint64_t generation, std::size_t bytes) const {
    return generation_ == static_cast<std::uint32_t>(generation) && bytes <= ordinary_bytes_;
  }

  bool by_keys = false;  // the last piece was searched by a device, and all rules that begun() in it are known

 private:
  void add_open(std::uint32_t rule) {
    if (open_count_ == most_open) {
      lost_ = true;
      return;
    }
    if (is_full()) {
      --begun_count_;
      by_keys = false;
    }
    open_[open_count_++] = rule;
  }
  void add_begun(std::uint32_t rule) {
    if (is_full()) {
      by_keys = false;
      return;
    }
    open_[most_open - ++begun_count_] = rule;
  }
  bool is_full() const { return open_count_ + begun_count_ == most_open; }
  static bool has(std::span<const std::uint32_t> rules, std::uint32_t rule) {
    return std::find(rules.begin(), rules.end(), rule) != rules.end();
  }
  template <std::size_t Most>
  static void remove(std::array<std::uint32_t, Most>& rules, std::uint8_t& count, std::uint32_t rule) {
    const auto end = rules.begin() + count;
    count = static_cast<std::uint8_t>(std::remove(rules.begin(), end, rule) - rules.begin());
  }

  static constexpr std::uint32_t most_bytes = UINT32_MAX;

  std::uint8_t open_count_ = 0, begun_count_ = 0, held_count_ = 0;
  bool lost_ = false;
  std::uint32_t generation_ = 0;
  std::uint32_t ordinary_bytes_ = 0;             // since something of which note is taken, or what is not known
  std::array<std::uint32_t, most_open> open_{};  // from its end on: begun
  std::array<std::uint32_t, most_held> held_{};
};

}  // namespace sluice::flow
