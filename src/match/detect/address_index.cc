#include "match/detect/address_index.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace sluice::match {
namespace {

using packet::IpAddress;

// The address behind it; nothing behind the family's last one.
std::optional<IpAddress> next_of(IpAddress address) {
  for (std::size_t i = address.bits() / 8; i-- > 0;) {
    if (++address.bytes[i] != 0) return address;
  }
  return std::nullopt;
}

struct Change {
  IpAddress at;
  bool begins;
  std::uint32_t number;
};

std::vector<Change> changes_of(std::span<const AddressIndex::Entry> entries) {
  std::vector<Change> changes;
  for (const AddressIndex::Entry& entry : entries) {
    for (const AddressRange& range : entry.addresses->ranges()) {
      changes.push_back({range.first, true, entry.number});
      if (const auto end = next_of(range.last)) changes.push_back({*end, false, entry.number});
    }
  }
  std::ranges::sort(changes, {}, &Change::at);
  return changes;
}

}  // namespace

AddressIndex::AddressIndex(std::vector<Entry> entries, std::size_t most) {
  std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return entry.addresses->share(); });
  std::size_t taken = entries.size();
  while (!build(std::span(entries).first(taken), most)) {
    const std::size_t fewer = taken - (taken + 7) / 8;
    for (std::size_t i = fewer; i < taken; ++i) left_out_.push_back(entries[i].number);
    taken = fewer;
  }
}

// False: they need more entries.
bool AddressIndex::build(std::span<const Entry> entries, std::size_t most) {
  lists_.assign(1, List{});
  listed_.clear();
  begin_v4_.assign(1, 0);
  begin_v6_.assign(1, Address6{});
  list_v4_.assign(1, 0);
  list_v6_.assign(1, 0);
  std::map<std::vector<std::uint32_t>, std::uint32_t> known{{{}, 0}};
  const std::vector<Change> changes = changes_of(entries);
  std::set<std::uint32_t> active;
  for (std::size_t i = 0; i < changes.size();) {
    const IpAddress& at = changes[i].at;
    if (i != 0 && changes[i - 1].at.family != at.family) active.clear();  // what goes up to the last IPv4 address
    // One set's ranges are apart: what begins here and ends here is of two.
    for (; i < changes.size() && changes[i].at == at; ++i) {
      if (changes[i].begins) {
        active.insert(changes[i].number);
      } else {
        active.erase(changes[i].number);
      }
    }
    const std::vector<std::uint32_t> numbers(active.begin(), active.end());
    const auto [list, is_new] = known.try_emplace(numbers, static_cast<std::uint32_t>(lists_.size()));
    if (is_new) {
      if (listed_.size() + numbers.size() > most) return false;
      lists_.push_back({static_cast<std::uint32_t>(listed_.size()), static_cast<std::uint32_t>(numbers.size())});
      listed_.insert(listed_.end(), numbers.begin(), numbers.end());
    }
    const bool is_first = at.family == 4 ? at.v4_host_order() == 0 : at.bytes == Address6{};
    if (at.family == 4) {
      if (!is_first) begin_v4_.push_back(at.v4_host_order());
      list_v4_.resize(begin_v4_.size());
      list_v4_.back() = list->second;
    } else {
      if (!is_first) begin_v6_.push_back(at.bytes);
      list_v6_.resize(begin_v6_.size());
      list_v6_.back() = list->second;
    }
  }
  if (lists_.size() == 1) return true;
  first_v4_.resize((1 << 16) + 1);
  for (std::uint32_t block = 0; block < first_v4_.size(); ++block) {
    const auto at = block == 1 << 16 ? begin_v4_.end() : std::ranges::lower_bound(begin_v4_, block << 16);
    first_v4_[block] = static_cast<std::uint32_t>(at - begin_v4_.begin());
  }
  return true;
}

std::uint32_t AddressIndex::list_of_v6(const std::uint8_t* address) const {
  Address6 bytes;
  std::memcpy(bytes.data(), address, bytes.size());
  const auto after = std::ranges::upper_bound(begin_v6_, bytes);
  return list_v6_[static_cast<std::size_t>(after - begin_v6_.begin()) - 1];
}

}  // namespace sluice::match
