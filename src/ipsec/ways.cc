#include "ipsec/ways.h"

#include "base/random_seed.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

constexpr std::uint64_t all = ~std::uint64_t{0};
constexpr PacketKey every{{all, all, all, all, all}};
constexpr unsigned mode_shift = 40;  // in a Way's first word; the reqid is below 32, the protocol at protocol_shift

PacketKey way_key(Protocol protocol, Mode mode, std::uint32_t reqid, const PacketKey& addresses) {
  PacketKey key = addresses;
  key.word[0] = std::uint64_t{addresses.family()} << family_shift |
                std::uint64_t{static_cast<std::uint8_t>(mode)} << mode_shift |
                std::uint64_t{static_cast<std::uint8_t>(protocol)} << protocol_shift | reqid;
  return key;
}

PacketKey between(const packet::IpAddress& source, const packet::IpAddress& destination) {
  return packet_key({.source = source, .destination = destination});
}

// The way of template `index`, where it does not depend on the packet.
PacketKey key_of(const PolicyEntry& entry, unsigned index) {
  const Template& wanted = entry.policy.templates[index];
  const Template* tunnel = wanted.mode == Mode::tunnel ? &wanted : nullptr;
  if (tunnel == nullptr && index > 0 && entry.policy.templates[index - 1].mode == Mode::tunnel) {
    tunnel = &entry.policy.templates[index - 1];
  }
  const Selector& selector = entry.policy.selector;
  return way_key(wanted.protocol, wanted.mode, wanted.reqid,
                 tunnel != nullptr ? between(tunnel->source, tunnel->destination)
                                   : between(selector.source.address, selector.destination.address));
}

bool is_usable(const Sa& sa) {
  return sa.state.load(std::memory_order_relaxed) != SaState::dead;
}

// Those that policies find the SA by: with its reqid, and with none.
template <class Do>
void for_each_key(const Sa& sa, const Do& act) {
  const SaSettings& settings = sa.record->settings;
  const PacketKey addresses = between(settings.source, settings.id.destination);
  if (settings.reqid != 0) act(way_key(sa.protocol, sa.mode, settings.reqid, addresses));
  act(way_key(sa.protocol, sa.mode, 0, addresses));
}

}  // namespace

Ways::Ways(std::size_t sas, std::size_t policies)
    : pool_(2 * (2 * sas + most_templates * policies) + 2 * most_templates), table_(2 * sas), seed_(random_seed()) {}

std::uint64_t Ways::hash_of(const PacketKey& key) const {
  return masked_hash(key, every, seed_);
}

std::size_t Ways::KeyHash::operator()(const PacketKey& key) const {
  return masked_hash(key, every, 0xe7037ed1a0b428dbU);
}

Sa* Ways::find(const PolicyEntry& entry, unsigned index, const PacketKey& packet) const {
  const EntryTemplate& wanted = entry.with[index];
  const PacketKey key = way_key(wanted.protocol, wanted.mode, wanted.reqid, packet);
  const std::uint32_t at = table_.find(hash_of(key), [&](std::uint32_t i) { return pool_.at(i)->key == key; });
  if (at == LineTable::none) return nullptr;
  Sa* const sa = pool_.at(at)->current.load(std::memory_order_acquire);
  return sa != nullptr && (wanted.spi == 0 || packet::be32(sa->spi) == wanted.spi) ? sa : nullptr;
}

Ways::Way& Ways::way(const PacketKey& key) {
  Handle& handle = ways_[key];
  if (handle == nullptr) {
    handle = pool_.make();
    handle->key = key;
    const bool transport = (key.word[0] >> mode_shift & 1) == static_cast<std::uint8_t>(Mode::transport);
    if (transport) table_.insert(hash_of(key), pool_.index_of(handle.get()));
  }
  return *handle;
}

void Ways::forget_if_unused(Way& way) {
  if (!way.sas.empty() || !way.policies.empty()) return;
  table_.erase(hash_of(way.key), pool_.index_of(&way));
  const auto at = ways_.find(way.key);
  gone_.push_back(std::move(at->second));
  ways_.erase(at);
}

Sa* Ways::choose(const Way& way, std::uint32_t spi) {
  Sa* dying = nullptr;
  for (auto at = way.sas.rbegin(); at != way.sas.rend(); ++at) {
    Sa* const sa = at->second;
    if (!is_usable(*sa) || (spi != 0 && sa->record->settings.id.spi != spi)) continue;
    if (sa->state.load(std::memory_order_relaxed) == SaState::valid) return sa;
    if (dying == nullptr) dying = sa;
  }
  return dying;
}

void Ways::resolve(Way& way) {
  Sa* const current = choose(way, 0);
  way.current.store(current, std::memory_order_release);
  for (const auto& [entry, index] : way.policies) {
    const std::uint32_t spi = entry->policy.templates[index].spi;
    entry->sa[index].store(spi == 0 ? current : choose(way, spi), std::memory_order_release);
  }
}

void Ways::add(Sa& sa) {
  for_each_key(sa, [&](const PacketKey& key) {
    Way& one = way(key);
    one.sas.emplace(sa.record->serial, &sa);
    resolve(one);
  });
}

void Ways::remove(Sa& sa) {
  for_each_key(sa, [&](const PacketKey& key) {
    Way& one = way(key);
    one.sas.erase(sa.record->serial);
    resolve(one);
    forget_if_unused(one);
  });
}

void Ways::look_again(Sa& sa) {
  for_each_key(sa, [&](const PacketKey& key) { resolve(way(key)); });
}

void Ways::attach(PolicyEntry& entry) {
  for (unsigned i = 0; i < entry.templates; ++i) {
    if ((entry.per_packet >> i & 1) != 0) continue;
    Way& one = way(key_of(entry, i));
    one.policies.emplace(&entry, i);
    entry.sa[i].store(choose(one, entry.policy.templates[i].spi), std::memory_order_release);
  }
}

void Ways::detach(PolicyEntry& entry) {
  for (unsigned i = 0; i < entry.templates; ++i) {
    if ((entry.per_packet >> i & 1) != 0) continue;
    Way& one = way(key_of(entry, i));
    one.policies.erase({&entry, i});
    forget_if_unused(one);
  }
}

}  // namespace sluice::ipsec
