// Conversations of the replay port for tests and benches of other rooms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>

#include "packet/frame_mix.h"
#include "port/replay_conversations.h"

namespace sluice::port::test {

// Of any clients and servers, payloads of any bytes. `mix` and `random` outlive it.
inline ConversationSource random_conversations(packet::FrameMix& mix, std::mt19937_64& random, unsigned frames) {
  ConversationSource source;
  source.frames = frames;
  source.own_mac = "02:00:00:00:00:09";
  source.mix = &mix;
  source.address = [&random] {
    const std::uint64_t bytes = random();
    return packet::IpAddress::from_bytes(4, reinterpret_cast<const std::uint8_t*>(&bytes));
  };
  source.fill = [&random](std::span<std::uint8_t> bytes) {
    std::ranges::generate(bytes, [&random] { return static_cast<std::uint8_t>(random()); });
  };
  return source;
}

}  // namespace sluice::port::test
