#include "media/srtp/master_keys.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "crypto/secret.h"
#include "media/srtp/key_derivation.h"

namespace sluice::srtp {
namespace {

constexpr std::uint64_t max_rtp_lifetime = std::uint64_t{1} << 48;
constexpr std::uint64_t max_rtcp_lifetime = std::uint64_t{1} << 31;
constexpr std::uint32_t max_key_derivation_rate = 1U << 24;

std::uint64_t max_lifetime(Protocol protocol) {
  return protocol == Protocol::rtp ? max_rtp_lifetime : max_rtcp_lifetime;
}

// What is wrong with the master key at `at`, beside those before it; empty if nothing.
std::string check(Protocol protocol, std::span<const MasterKey> masters, std::size_t at) {
  const MasterKey& master = masters[at];
  const std::size_t mki_length = masters[0].mki.size();
  if (master.mki.size() != mki_length) {
    return "MKIs of " + std::to_string(mki_length) + " and " + std::to_string(master.mki.size()) +
           " bytes: must have one length";
  }
  if (master.lifetime > max_lifetime(protocol)) {
    return "a lifetime of " + std::to_string(master.lifetime) + " packets: must be at most " +
           (protocol == Protocol::rtp ? "2^48" : "2^31");
  }
  for (const MasterKey& other : masters.first(at)) {
    if (std::equal(master.mki.begin(), master.mki.end(), other.mki.begin())) {
      return "two master keys with one MKI";
    }
  }
  return {};
}

std::string check(Protocol protocol, std::uint32_t rate, std::span<const MasterKey> masters) {
  if (masters.empty() || masters.size() > max_master_keys) {
    return std::to_string(masters.size()) + " master keys: must be 1 to " + std::to_string(max_master_keys);
  }
  if (rate > max_key_derivation_rate || (rate != 0 && !std::has_single_bit(rate))) {
    return "a key derivation rate of " + std::to_string(rate) + ": must be 0 or a power of two up to 2^24";
  }
  const std::size_t mki_length = masters[0].mki.size();
  if (mki_length > max_mki_length || (mki_length == 0 && masters.size() > 1)) {
    return std::to_string(masters.size()) + " master keys with an MKI of " + std::to_string(mki_length) +
           " bytes: must be at most 128, and more than one master key need one";
  }
  for (std::size_t i = 0; i < masters.size(); ++i) {
    if (std::string wrong = check(protocol, masters, i); !wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

}  // namespace

// The master key, and the session keys of a few periods.
struct MasterKeys::Derivation {
  struct Period {
    std::uint64_t number;
    std::uint32_t slot;
    std::uint32_t in_flight;
    bool established = false;  // of a packet that was authentic, or near one when it was taken last
  };
  bool any_established() const { return std::ranges::any_of(periods, &Period::established); }
  bool stranger_in_flight() const {
    return std::ranges::any_of(periods, [](const Period& one) { return !one.established && one.in_flight != 0; });
  }
  Period* to_give_up(std::uint64_t here, bool near);
  crypto::Secret<max_key_length> key;
  crypto::Secret<max_salt_length> salt;
  std::array<Period, key_periods> periods = {};
};

MasterKeys::MasterKeys(Suite suite, Protocol protocol, std::uint32_t rate, crypto::KeyTable& table)
    : table_(&table), rate_(rate), suite_(suite), protocol_(protocol) {}

Expected<MasterKeys> MasterKeys::make(Suite suite, Protocol protocol, std::uint32_t rate,
                                      std::span<const MasterKey> masters, crypto::KeyTable& table) {
  if (const std::string wrong = check(protocol, rate, masters); !wrong.empty()) {
    return make_error(wrong);
  }
  MasterKeys keys(suite, protocol, rate, table);
  keys.mki_length_ = static_cast<std::uint8_t>(masters[0].mki.size());
  keys.masters_.reserve(masters.size());
  for (const MasterKey& key : masters) {
    if (auto added = keys.add(key); !added) {
      return tl::unexpected(added.error());
    }
  }
  return keys;
}

Expected<std::uint32_t> MasterKeys::install(const MasterKey& key, std::uint64_t period) {
  const auto keys = derive(suite_, protocol_, key.key, key.salt, period);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  return table_->install(keys->material(suite_, protocol_));
}

Expected<void> MasterKeys::add(const MasterKey& key) {
  Master master;
  master.left = key.lifetime != 0 ? key.lifetime : max_lifetime(protocol_);
  master.mki.assign(key.mki.begin(), key.mki.end());
  if (rate_ == 0) {
    const auto slot = install(key, 0);
    if (!slot) {
      return tl::unexpected(slot.error());
    }
    master.slot = *slot;
  } else {
    auto derivation = derive_first(key);
    if (!derivation) {
      return tl::unexpected(derivation.error());
    }
    master.derivation = std::move(*derivation);
  }
  masters_.push_back(std::move(master));
  return {};
}

Expected<std::unique_ptr<MasterKeys::Derivation>> MasterKeys::derive_first(const MasterKey& key) {
  auto derivation = std::make_unique<Derivation>();
  for (std::uint64_t number = 0; number < key_periods; ++number) {
    const auto slot = install(key, number);
    if (!slot) {
      for (const Derivation::Period& made : std::span(derivation->periods).first(number)) {
        table_->release(made.slot);
      }
      return tl::unexpected(slot.error());
    }
    derivation->periods[number] = {.number = number, .slot = *slot, .in_flight = 0};
  }
  std::copy(key.key.begin(), key.key.end(), derivation->key.bytes);
  std::copy(key.salt.begin(), key.salt.end(), derivation->salt.bytes);
  return derivation;
}

MasterKeys::MasterKeys(MasterKeys&& other) noexcept
    : table_(other.table_),
      masters_(std::exchange(other.masters_, {})),
      rate_(other.rate_),
      suite_(other.suite_),
      protocol_(other.protocol_),
      mki_length_(other.mki_length_),
      current_(other.current_) {}

MasterKeys& MasterKeys::operator=(MasterKeys&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    std::construct_at(this, std::move(other));
  }
  return *this;
}

MasterKeys::~MasterKeys() {
  release();
}

void MasterKeys::release() {
  for (const Master& master : masters_) {
    if (!master.derivation) {
      table_->release(master.slot);
      continue;
    }
    for (const Derivation::Period& period : master.derivation->periods) {
      table_->release(period.slot);
    }
  }
}

Status MasterKeys::find(const std::uint8_t* mki, std::uint8_t& master) const {
  if (mki_length_ == 0) {
    master = 0;
    return Status::ok;
  }
  for (std::size_t i = 0; i < masters_.size(); ++i) {
    if (std::memcmp(masters_[i].mki.data(), mki, mki_length_) == 0) {
      master = static_cast<std::uint8_t>(i);
      return Status::ok;
    }
  }
  return Status::no_key;
}

namespace {

// From the one of the highest authenticated index on, so many periods have a place whatever else comes.
constexpr std::uint64_t near_periods = key_periods - 1;
// As far ahead as a sequence number can be guessed; SRTCP's explicit index could name any.
constexpr std::uint64_t most_ahead = std::uint64_t{1} << 15;

bool is_near(std::uint64_t number, std::uint64_t here) {
  return number >= here && number - here < near_periods;
}

}  // namespace

// That nothing in flight needs: those of strangers before others, and of either the oldest. Null: there is none.
MasterKeys::Derivation::Period* MasterKeys::Derivation::to_give_up(std::uint64_t here, bool near) {
  Period* found = nullptr;
  for (Period& one : periods) {
    if (one.in_flight != 0 || one.number == here || (!near && one.established && is_near(one.number, here))) continue;
    const auto rank = [](const Period& of) { return std::pair(of.established, of.number); };
    if (found == nullptr || rank(one) < rank(*found)) found = &one;
  }
  return found;
}

Status MasterKeys::take_period(std::uint8_t master, std::uint64_t index, std::uint64_t highest, std::uint8_t& period,
                               std::uint32_t& slot) {
  if (highest != no_highest && index > highest + most_ahead) return Status::no_key;
  Derivation& derivation = *masters_[master].derivation;
  auto& periods = derivation.periods;
  const std::uint64_t number = index / rate_;
  const std::uint64_t here = highest == no_highest ? no_highest : highest / rate_;
  const bool near = highest != no_highest && is_near(number, here);
  auto* found = std::ranges::find(periods, number, &Derivation::Period::number);
  const bool is_there = found != periods.end();
  // What may be forged has one place among those of what was found authentic.
  const bool has_place = is_there && (found->established || found->in_flight != 0);
  if (!near && !has_place && derivation.any_established() && derivation.stranger_in_flight()) {
    return Status::too_many_in_flight;
  }
  if (!is_there) {
    found = derivation.to_give_up(here, near);
    if (found == nullptr) {
      return Status::too_many_in_flight;
    }
    const SuiteFacts& of = facts(suite_);
    const auto keys =
        derive(suite_, protocol_, derivation.key.first(of.key_length), derivation.salt.first(of.salt_length), number);
    if (!keys || !table_->replace(found->slot, keys->material(suite_, protocol_))) {
      return Status::no_key;
    }
    found->number = number;
    found->established = false;
  }
  found->established = found->established || near;
  ++found->in_flight;
  period = static_cast<std::uint8_t>(found - periods.begin());
  slot = found->slot;
  return Status::ok;
}

void MasterKeys::establish_period(std::uint8_t master, std::uint8_t period) {
  masters_[master].derivation->periods[period].established = true;
}

void MasterKeys::put_back_period(std::uint8_t master, std::uint8_t period) {
  --masters_[master].derivation->periods[period].in_flight;
}

}  // namespace sluice::srtp
