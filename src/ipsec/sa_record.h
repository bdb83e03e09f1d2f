// What the control side keeps of an SA, beside what lanes look at (sa.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "crypto/key_table.h"
#include "ipsec/packet_key.h"
#include "ipsec/sa.h"
#include "ipsec/security_association.h"

namespace sluice::ipsec {

// A slot of the table of keys, which is wiped and given back at its end.
class KeyHold {
 public:
  KeyHold() = default;
  KeyHold(crypto::KeyTable& keys, std::uint32_t slot) : keys_(&keys), slot_(slot) {}
  KeyHold(KeyHold&& other) noexcept : keys_(std::exchange(other.keys_, nullptr)), slot_(other.slot_) {}
  KeyHold& operator=(KeyHold&& other) noexcept {
    std::swap(keys_, other.keys_);
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~KeyHold() {
    if (keys_ != nullptr) keys_->release(slot_);
  }
  std::uint32_t slot() const { return slot_; }

 private:
  crypto::KeyTable* keys_ = nullptr;
  std::uint32_t slot_ = 0;
};

struct SaRecord {
  SaSettings settings;  // without keys
  std::uint64_t serial = 0;
  std::chrono::steady_clock::time_point added{};
  bool soft_said = false, hard_said = false;
  // Where packets came from that were said to have moved, and when.
  packet::IpAddress moved_to{};
  std::uint16_t moved_port = 0;
  std::chrono::steady_clock::time_point moved_said{};
  KeyHold key;
  // What Sa::outer and Sa::inner show; null: Sa::first_outer, and nothing.
  std::shared_ptr<const Outer> outer;
  std::shared_ptr<const MaskedKey> inner;
};

}  // namespace sluice::ipsec
