// Any bytes as a packet in clear: the headers' parsers stay inside it, and what protect accepts, under every suite,
// unprotect gives back, once. Nothing is written behind the capacity that a packet has.
//
// Input: a packet.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "crypto/cpu.h"
#include "media/srtp/channel.h"
#include "media/srtp/header.h"
#include "require.h"

using namespace sluice;
using namespace sluice::srtp;

namespace {

constexpr std::size_t guard = 64;
constexpr std::uint8_t guard_byte = 0x5a;

struct Ends {
  Ends(const SuiteFacts& suite, Protocol protocol, crypto::KeyTable& keys, StreamPool& pool)
      : sender(make(suite, protocol, Direction::protect, keys, pool)),
        receiver(make(suite, protocol, Direction::unprotect, keys, pool)) {}

  static Channel make(const SuiteFacts& suite, Protocol protocol, Direction direction, crypto::KeyTable& keys,
                      StreamPool& pool) {
    static constexpr std::uint8_t secret[64] = {1, 2, 3};
    const MasterKey master{.key = std::span(secret).first(suite.key_length),
                           .salt = std::span(secret).first(suite.salt_length),
                           .mki = std::span(secret).first(3)};
    auto channel =
        Channel::make({.suite = suite.suite, .protocol = protocol, .direction = direction}, {&master, 1}, keys, pool);
    REQUIRE(channel);
    return std::move(*channel);
  }

  Channel sender, receiver;
};

// Prepares, computes, finishes; the capacity of the packet ends where the guard begins.
Status pass(crypto::Cpu& cpu, const crypto::KeyTable& keys, Channel& channel, std::vector<std::uint8_t>& packet,
            std::size_t capacity) {
  const auto length = static_cast<std::uint32_t>(packet.size());
  packet.resize(capacity);
  packet.resize(capacity + guard, guard_byte);
  crypto::Job job{};
  Pending pending{};
  crypto::Verdict verdict{};
  Status status = channel.prepare({packet.data(), length, static_cast<std::uint32_t>(capacity)}, job, pending);
  if (status == Status::ok) {
    REQUIRE(job.data == reinterpret_cast<std::uint64_t>(packet.data()));
    REQUIRE(std::size_t{job.cipher_offset} + job.cipher_length <= capacity && pending.length <= capacity);
    cpu.run(keys, {&job, 1}, {&verdict, 1});
    status = channel.finish(pending, verdict);
  }
  REQUIRE(std::all_of(packet.end() - guard, packet.end(), [](std::uint8_t byte) { return byte == guard_byte; }));
  packet.resize(status == Status::ok ? pending.length : length);
  return status;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static crypto::KeyTable keys = *crypto::KeyTable::make(4, true);
  static StreamPool pool = *StreamPool::make(4, 64);
  static crypto::Cpu cpu = *crypto::Cpu::make();
  const std::vector<std::uint8_t> plain(data, data + size);
  RtpHeader header{};
  if (parse_rtp(plain, header) == Status::ok) {
    REQUIRE(header.length >= rtp_fixed_length && header.length <= size);
    REQUIRE(kind_of(plain) != PacketKind::other);
  }
  std::uint32_t ssrc = 0;
  if (parse_rtcp(plain, ssrc) == Status::ok) {
    REQUIRE(size >= rtcp_fixed_length && kind_of(plain) == PacketKind::rtcp);
  }
  for (const SuiteFacts& suite : suites) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      Ends ends(suite, protocol, keys, pool);
      std::vector<std::uint8_t> packet = plain;
      if (pass(cpu, keys, ends.sender, packet, size + ends.sender.overhead()) != Status::ok) {
        continue;
      }
      const std::vector<std::uint8_t> sealed = packet;
      REQUIRE(pass(cpu, keys, ends.receiver, packet, sealed.size()) == Status::ok && packet == plain);
      packet = sealed;
      REQUIRE(pass(cpu, keys, ends.receiver, packet, sealed.size()) == Status::replayed);
    }
  }
  REQUIRE(keys.used() == 0 && pool.used() == 0);
  return 0;
}
