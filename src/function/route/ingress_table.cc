#include "function/route/ingress_table.h"

#include <algorithm>
#include <utility>

namespace sluice::function {

const Ingress* IngressTable::Port::find(std::uint64_t mac_word) const {
  const auto found = std::ranges::lower_bound(more, mac_word, {}, &std::pair<std::uint64_t, Ingress>::first);
  return found != more.end() && found->first == mac_word ? &found->second : nullptr;
}

IngressTable::IngressTable(const std::vector<std::uint64_t>& macs)
    : own_macs_(macs), macs_(macs.size()), plain_(macs.size()), ports_(macs.size()) {
  for (std::size_t port = 0; port < macs.size(); ++port) {
    macs_[port].store(macs[port]);
    plain_[port].store(true);
  }
  set_readers(1);
}

void IngressTable::set_readers(std::size_t readers) {
  published_ = std::make_unique<Published<const Ports>>(readers);
  publish();
}

void IngressTable::publish() {
  published_->publish(std::make_unique<const Ports>(ports_));
  published_->reclaim();
}

void IngressTable::set(PortIndex port, const PortIngress& ingress) {
  const auto filters = [](const Ingress& one) { return one.reverse_path != ReversePath::off; };
  Port& now = ports_[port];
  now = {ingress.twin, ingress.everything, ingress.other_hosts, filters(ingress.twin), {}};
  const std::uint64_t mac = ingress.mac ? ingress.mac->word() : own_macs_[port];
  for (const auto& [address, one] : ingress.more) {
    now.checks_sources |= one.routes_ipv4 && filters(one);
    if (address.word() != mac) now.more.emplace_back(address.word(), one);
  }
  std::ranges::sort(now.more, {}, &std::pair<std::uint64_t, Ingress>::first);
  // Of several interfaces with one link address the kernel decides.
  std::vector<std::pair<std::uint64_t, Ingress>> unique;
  for (const auto& entry : now.more) {
    if (unique.empty() || unique.back().first != entry.first) {
      unique.push_back(entry);
    } else {
      unique.back().second.routes_ipv4 = unique.back().second.routes_ipv6 = false;
    }
  }
  now.more = std::move(unique);
  publish();
  macs_[port].store(mac, std::memory_order_relaxed);
  const bool plain = !now.everything && !now.other_hosts && !now.checks_sources && now.more.empty();
  plain_[port].store(plain, std::memory_order_release);
}

}  // namespace sluice::function
