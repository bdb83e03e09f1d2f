// What the tags of keys say for one list of rules: each bit whether an address or a port of the frame is in a named
// set. Some bits together say by which port it came in, and by which it leaves. The reader of rules hands out bits as
// rules ask for them (acl_settings.h); who makes keys sets them (set_tables.h).
//
// Plain values. Thread-safety: none while it is made, then any thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

enum class Side : std::uint8_t { source, destination };

class TagPlan {
 public:
  static constexpr unsigned bits = 16;

  // A set, and whether the source's or the destination's address (or port) is asked for. Its bit is its place here.
  struct Use {
    std::uint32_t set = 0;
    Side side = Side::source;
    std::uint16_t bit = 0;  // its mask
  };
  // A number in some bits, next to one another: of ports, 0 to `most`.
  struct Field {
    std::uint16_t mask = 0;  // 0: no rule asks
    std::uint8_t shift = 0;
    std::uint16_t tags(std::uint16_t number) const { return static_cast<std::uint16_t>(number << shift & mask); }
  };

  // The bit of a use, made when it is new; nothing: all are taken.
  std::optional<std::uint16_t> bit_of(std::uint32_t set, Side side) {
    for (const Use& use : uses_) {
      if (use.set == set && use.side == side) return use.bit;
    }
    if (taken_ == bits) return std::nullopt;
    uses_.push_back({set, side, static_cast<std::uint16_t>(1U << taken_++)});
    return uses_.back().bit;
  }
  // The fields of `ports` ports. The egress has one number more, of frames that leave by none; they have 0.
  std::optional<MaskedTags> ingress(std::uint16_t port, std::size_t ports) { return number(ingress_, port, ports - 1); }
  std::optional<MaskedTags> egress(std::uint16_t port, std::size_t ports) {
    return number(egress_, static_cast<std::uint16_t>(port + 1), ports);
  }

  bool empty() const { return taken_ == 0; }
  const std::vector<Use>& uses() const { return uses_; }
  std::uint16_t ingress_tags(std::uint16_t port) const { return ingress_.tags(port); }
  // `port` 0xffff: none.
  std::uint16_t egress_tags(std::uint16_t port) const { return egress_.tags(static_cast<std::uint16_t>(port + 1)); }
  std::uint16_t egress_mask() const { return egress_.mask; }

 private:
  // Of a field that is made when it is new, wide enough for `most`.
  std::optional<MaskedTags> number(Field& field, std::uint16_t value, std::size_t most) {
    if (field.mask == 0) {
      const auto width = std::max(static_cast<unsigned>(std::bit_width(most)), 1U);
      if (taken_ + width > bits) return std::nullopt;
      field = {static_cast<std::uint16_t>(((1U << width) - 1) << taken_), static_cast<std::uint8_t>(taken_)};
      taken_ += width;
    }
    return MaskedTags{field.tags(value), field.mask};
  }

  std::vector<Use> uses_;
  Field ingress_, egress_;
  unsigned taken_ = 0;
};

}  // namespace sluice::lookup::acl
