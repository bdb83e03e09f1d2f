#include "match/rules/address_set.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/quote.h"
#include "match/rules/words.h"

namespace sluice::match {
namespace {

using packet::IpAddress;

IpAddress lowest(int family) {
  IpAddress address;
  address.family = static_cast<std::uint8_t>(family);
  return address;
}

// All of the prefix's host bits set.
IpAddress filled(IpAddress address, unsigned length) {
  for (unsigned bit = length; bit < address.bits(); ++bit) {
    address.bytes[bit / 8] = static_cast<std::uint8_t>(address.bytes[bit / 8] | (0x80U >> (bit % 8)));
  }
  return address;
}

IpAddress highest(int family) {
  return filled(lowest(family), 0);
}

// The address after (step 1) or before (step -1); nothing past the family's ends.
std::optional<IpAddress> neighbour(IpAddress address, int step) {
  const std::uint8_t wraps_at = step > 0 ? 0xff : 0;
  for (std::size_t i = address.bits() / 8; i-- > 0;) {
    const bool carries = address.bytes[i] == wraps_at;
    address.bytes[i] = static_cast<std::uint8_t>(address.bytes[i] + step);
    if (!carries) return address;
  }
  return std::nullopt;
}

// Where it is in its family, 0 the first one, 1 behind the last: near enough to compare widths.
double as_share(const IpAddress& address) {
  double share = 0;
  for (std::size_t i = address.bits() / 8; i-- > 0;) share = (share + address.bytes[i]) / 256;
  return share;
}

bool touches(const AddressRange& before, const AddressRange& after) {
  if (before.last.family != after.first.family) return false;
  if (after.first <= before.last) return true;
  const auto next = neighbour(before.last, 1);
  return next && *next == after.first;
}

Expected<unsigned> prefix_length(std::string_view text, const IpAddress& address) {
  const auto bits = number_of(text);
  if (bits && *bits >= 0 && *bits <= static_cast<std::int64_t>(address.bits())) {
    return static_cast<unsigned>(*bits);
  }
  const auto mask = IpAddress::parse(text);
  if (mask && mask->family == 4 && address.family == 4) {
    const std::uint32_t inverse = ~mask->v4_host_order();
    if ((inverse & (inverse + 1)) == 0) {
      return 32U - static_cast<unsigned>(__builtin_popcount(inverse));
    }
  }
  return make_error(in_quotes(text) + " is neither a prefix length nor a netmask");
}

}  // namespace

AddressSet::AddressSet(std::vector<AddressRange> ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const AddressRange& range : ranges) {
    if (!ranges_.empty() && touches(ranges_.back(), range)) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
  note_any();
}

void AddressSet::note_any() {
  any_ = ranges_.size() == 2 && ranges_[0] == AddressRange{lowest(4), highest(4)} &&
         ranges_[1] == AddressRange{lowest(6), highest(6)};
}

AddressSet AddressSet::any() {
  return AddressSet({{lowest(4), highest(4)}, {lowest(6), highest(6)}});
}

bool AddressSet::contains(const IpAddress& address) const {
  if (any_) return address.family != 0;
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](const IpAddress& a, const AddressRange& range) { return a < range.first; });
  return after != ranges_.begin() && std::prev(after)->last.family == address.family &&
         address <= std::prev(after)->last;
}

double AddressSet::share() const {
  double v4 = 0, v6 = 0;
  for (const AddressRange& range : ranges_) {
    const bool is_v4 = range.first.family == 4;
    (is_v4 ? v4 : v6) += as_share(range.last) - as_share(range.first) + (is_v4 ? 0x1p-32 : 0x1p-128);
  }
  return std::max(v4, v6);
}

AddressSet AddressSet::complement() const {
  AddressSet others;
  for (const int family : {4, 6}) {
    std::optional<IpAddress> next = lowest(family);
    for (const AddressRange& range : ranges_) {
      if (range.first.family != family) continue;
      if (next && range.first > *next) others.ranges_.push_back({*next, *neighbour(range.first, -1)});
      next = neighbour(range.last, 1);
    }
    if (next) others.ranges_.push_back({*next, highest(family)});
  }
  others.note_any();
  return others;
}

AddressSet AddressSet::intersection(const AddressSet& other) const {
  AddressSet outside = complement();
  outside.add(other.complement());
  return outside.complement();
}

void AddressSet::add(const AddressSet& other) {
  std::vector<AddressRange> all = ranges_;
  all.insert(all.end(), other.ranges_.begin(), other.ranges_.end());
  *this = AddressSet(std::move(all));
}

Expected<AddressSet> parse_address(std::string_view text) {
  if (lower_case(text) == "any") return AddressSet::any();
  const std::size_t end = std::min(text.find_first_of("/-"), text.size());
  const auto first = IpAddress::parse(trimmed(text.substr(0, end)));
  if (!first) {
    return make_error(in_quotes(text) + " is no address: write one, a prefix, a range A-B, a group [A,B] or any");
  }
  if (end == text.size()) {
    return AddressSet({{*first, *first}});
  }
  const std::string_view rest = trimmed(text.substr(end + 1));
  if (text[end] == '-') {
    const auto last = IpAddress::parse(rest);
    if (!last || last->family != first->family || *last < *first) {
      return make_error(in_quotes(text) + " is no range of addresses: it needs an end, of the same family, not below");
    }
    return AddressSet({{*first, *last}});
  }
  const auto length = prefix_length(rest, *first);
  if (!length) return make_error(in_quotes(text) + ": " + length.error().message);
  const IpAddress base = packet::IpPrefix::of(*first, *length).address;
  return AddressSet({{base, filled(base, *length)}});
}

}  // namespace sluice::match
