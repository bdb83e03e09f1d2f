#include "ipsec/databases.h"

#include <iterator>
#include <utility>

#include "base/random_seed.h"
#include "ipsec/sa_record.h"

namespace sluice::ipsec {
namespace {

// So many views may wait for their end until somebody looks whether lanes have left them.
constexpr unsigned most_published = 256;

template <class T>
void move_to(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

}  // namespace

Databases::Databases(crypto::KeyTable& keys, const DatabasesSettings& settings, Time now)
    : keys_(keys),
      start_(now),
      epoch_start_(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
              .count())),
      tables_(std::make_unique<Tables>(settings.sas, settings.policies, settings.lanes)),
      current_(settings.readers),
      now_(now),
      by_index_(settings.sas),
      random_(random_seed()) {
  publish();
}

Databases::~Databases() = default;

void Databases::publish() {
  move_to(tables_->ways.gone(), retired_.ways);
  auto view = std::make_shared<const View>(*tables_);
  if (newest_ != nullptr) {
    View::Retired& retired = newest_->retired();
    move_to(retired_.policies, retired.policies);
    move_to(retired_.sas, retired.sas);
    move_to(retired_.ways, retired.ways);
    move_to(retired_.others, retired.others);
  }
  newest_ = view.get();
  current_.publish(std::move(view));
  if (++published_ >= most_published) reclaim();
}

void Databases::reclaim() {
  published_ = 0;
  current_.reclaim_in_order();
}

std::size_t Databases::leaving() const {
  const std::lock_guard lock(mutex_);
  return tables_->pool.used() - sas_[0].size() - sas_[1].size();
}

Expected<void> Databases::add(const Policy& policy, bool replaces) {
  const std::lock_guard lock(mutex_);
  Spd& spd = this->spd(policy.direction);
  if (!spd.has_capacity() || !tables_->ways.has_capacity()) reclaim();
  if (!tables_->ways.has_capacity()) return make_error("no capacity for a policy: too many removed ones are in use");
  auto made = spd.make(policy, replaces);
  if (!made) return tl::unexpected(made.error());
  PolicyEntry& entry = **made;
  policy_counts(policy.direction).clear(entry.index);
  if (policy.direction == Direction::out) tables_->ways.attach(entry);
  Spd::Handle replaced = spd.put(std::move(*made));
  if (replaced != nullptr) {
    if (policy.direction == Direction::out) tables_->ways.detach(*replaced);
    retired_.policies.push_back(std::move(replaced));
  }
  publish();
  return {};
}

bool Databases::take_policy(Direction direction, const Selector& selector) {
  Spd::Handle gone = spd(direction).take(selector);
  if (gone == nullptr) return false;
  if (direction == Direction::out) tables_->ways.detach(*gone);
  retired_.policies.push_back(std::move(gone));
  return true;
}

bool Databases::remove_policy(Direction direction, const Selector& selector) {
  const std::lock_guard lock(mutex_);
  if (!take_policy(direction, selector)) return false;
  publish();
  return true;
}

std::optional<Policy> Databases::policy(Direction direction, const Selector& selector) const {
  const std::lock_guard lock(mutex_);
  const PolicyEntry* const entry = spd(direction).entry(selector);
  return entry == nullptr ? std::nullopt : std::optional(entry->policy);
}

std::vector<Policy> Databases::policies(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  std::vector<Policy> all = tables_->in.policies(most);
  std::vector<Policy> out = tables_->out.policies(most - all.size());
  move_to(out, all);
  return all;
}

std::size_t Databases::policy_count() const {
  const std::lock_guard lock(mutex_);
  return tables_->in.size() + tables_->out.size();
}

void Databases::flush_policies() {
  const std::lock_guard lock(mutex_);
  for (const Direction direction : {Direction::in, Direction::out}) {
    for (const Policy& policy : spd(direction).policies(spd(direction).size())) take_policy(direction, policy.selector);
  }
  publish();
}

std::optional<Count> Databases::counts(Direction direction, const Selector& selector) const {
  const std::lock_guard lock(mutex_);
  const PolicyEntry* const entry = spd(direction).entry(selector);
  return entry == nullptr ? std::nullopt : std::optional(policy_counts(direction).sum(entry->index));
}

void Databases::set_events(Events* events) {
  const std::lock_guard lock(telling_);
  events_ = events;
}

}  // namespace sluice::ipsec
