// What the tests of channels share: a lane with keys, streams and a CPU; packets; a channel that does a packet at once;
// both ends of a direction.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "crypto/cpu.h"
#include "media/srtp/channel.h"

namespace sluice::srtp::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint32_t ssrc = 0xcafebabe;

inline Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

inline void store16(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}
inline void store32(std::uint8_t* at, std::uint32_t value) {
  store16(at, value >> 16);
  store16(at + 2, value);
}

inline Bytes rtp_packet(std::uint32_t ssrc, std::uint32_t sequence, Bytes payload) {
  Bytes packet(12);
  packet[0] = 0x80;
  packet[1] = 96;
  store16(&packet[2], sequence);
  store32(&packet[8], ssrc);
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

inline Bytes rtcp_packet(std::uint32_t ssrc, Bytes body) {
  Bytes packet(8);
  packet[0] = 0x80;
  packet[1] = 200;
  store16(&packet[2], static_cast<std::uint32_t>(1 + body.size() / 4));
  store32(&packet[4], ssrc);
  packet.insert(packet.end(), body.begin(), body.end());
  return packet;
}

struct Lane {
  explicit Lane(std::uint32_t streams = 64, std::uint32_t window = 128)
      : keys(*crypto::KeyTable::make(64, true)), pool(*StreamPool::make(streams, window)), cpu(*crypto::Cpu::make()) {}

  crypto::KeyTable keys;
  StreamPool pool;
  crypto::Cpu cpu;
};

// A packet between prepare() and finish().
struct Flight {
  Status prepared = Status::ok;
  crypto::Job job = {};
  Pending pending = {};
  crypto::Verdict verdict = crypto::Verdict::done;
  Bytes bytes;
};

inline Flight prepare(Channel& channel, const Bytes& packet) {
  Flight flight;
  flight.bytes = packet;
  flight.bytes.resize(packet.size() + 256);
  flight.prepared = channel.prepare({.data = flight.bytes.data(),
                                     .length = static_cast<std::uint32_t>(packet.size()),
                                     .capacity = static_cast<std::uint32_t>(flight.bytes.size())},
                                    flight.job, flight.pending);
  return flight;
}

inline void compute(Lane& lane, Flight& flight) {
  lane.cpu.run(lane.keys, {&flight.job, 1}, {&flight.verdict, 1});
}

// The packet is in `flight.bytes` if it is ok.
inline Status finish(Channel& channel, Flight& flight) {
  const Status status = channel.finish(flight.pending, flight.verdict);
  flight.bytes.resize(flight.pending.length);
  return status;
}

// All three steps; `packet` is what became of it.
inline Status pass(Lane& lane, Channel& channel, Bytes& packet) {
  Flight flight = prepare(channel, packet);
  if (flight.prepared != Status::ok) {
    return flight.prepared;
  }
  compute(lane, flight);
  const Status status = finish(channel, flight);
  packet = flight.bytes;
  return status;
}

// A master key of random bytes.
struct Secrets {
  Secrets(std::mt19937& random, Suite suite, std::size_t mki_length = 0)
      : key(random_bytes(random, facts(suite).key_length)),
        salt(random_bytes(random, facts(suite).salt_length)),
        mki(random_bytes(random, mki_length)) {}
  MasterKey view(std::uint64_t lifetime = 0) const { return {key, salt, mki, lifetime}; }

  Bytes key, salt, mki;
};

// Both ends of one direction.
struct Pair {
  explicit Pair(ChannelSettings settings = {}, std::size_t mki_length = 0, std::uint64_t lifetime = 0)
      : secrets(random, settings.suite, mki_length),
        sender(make(settings, Direction::protect, lifetime)),
        receiver(make(settings, Direction::unprotect, 0)) {}

  Channel make(ChannelSettings settings, Direction direction, std::uint64_t lifetime) {
    settings.direction = direction;
    const MasterKey master = secrets.view(lifetime);
    auto channel = Channel::make(settings, {&master, 1}, lane.keys, lane.pool);
    EXPECT_TRUE(channel) << channel.error().message;
    return std::move(*channel);
  }
  Bytes sealed(const Bytes& plain) {
    Bytes packet = plain;
    EXPECT_EQ(pass(lane, sender, packet), Status::ok);
    return packet;
  }
  Bytes sealed_rtp(std::uint32_t sequence, std::uint32_t of = ssrc) {
    return sealed(rtp_packet(of, sequence, {1, 2, 3}));
  }
  Status receive(Bytes packet) { return pass(lane, receiver, packet); }

  std::mt19937 random{1};
  Lane lane;
  Secrets secrets;
  Channel sender;
  Channel receiver;
};

}  // namespace sluice::srtp::test
