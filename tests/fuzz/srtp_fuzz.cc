// Any bytes as SRTP or SRTCP on the way to a channel, between packets that were really protected, changed, repeated,
// held back and finished in any order. What comes out is what went in, each at most once, and memory is given back.
//
// The master key is made from the whole input: a packet of another input's, which libFuzzer finds where packets are
// compared and puts into this one, is forged here.
//
// Input: a byte for the suite (its lowest three bits, modulo 6) and, in the others, the protocol (8), MKI (16), a key
// derivation rate (32), a small window (64); then steps: a byte that says what, and its arguments.
//   0 SEQUENCE(2) LENGTH   protect a packet of that sequence and remember it
//   1 WHICH                the receiver gets a remembered one
//   2 WHICH AT BIT         the same with a bit changed
//   3 LENGTH BYTES         the receiver gets these
//   4 WHICH                the receiver prepares a remembered one and holds it back
//   5 WHICH                a held one is finished
//   6 WHICH                a held one is abandoned
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "crypto/cpu.h"
#include "media/srtp/channel.h"
#include "require.h"

using namespace sluice;
using namespace sluice::srtp;

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Input {
  std::uint8_t byte() {
    if (rest.empty()) {
      return 0;
    }
    const std::uint8_t first = rest[0];
    rest = rest.subspan(1);
    return first;
  }
  Bytes take(std::size_t length) {
    const auto part = rest.first(std::min(length, rest.size()));
    rest = rest.subspan(part.size());
    return {part.begin(), part.end()};
  }
  std::span<const std::uint8_t> rest;
};

struct Sent {
  Bytes plain, sealed;
  bool received = false;
};

struct Held {
  Bytes bytes;
  crypto::Job job{};
  Pending pending{};
  crypto::Verdict verdict{};
};

using Secret = std::array<std::uint8_t, 64>;

Secret secret_of(std::span<const std::uint8_t> input) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::uint8_t byte : input) {
    hash = (hash ^ byte) * 0x100000001b3;
  }
  Secret secret;
  std::mt19937_64 random(hash);
  std::ranges::generate(secret, [&random] { return static_cast<std::uint8_t>(random()); });
  return secret;
}

class Trial {
 public:
  Trial(std::uint8_t choice, const Secret& secret, StreamPool& pool)
      : protocol_((choice & 8) != 0 ? Protocol::rtcp : Protocol::rtp),
        sender_(make(choice, secret, Direction::protect, pool)),
        receiver_(make(choice, secret, Direction::unprotect, pool)) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    for (const Held& held : held_) {
      receiver_.abandon(held.pending);
    }
  }

  static crypto::KeyTable& keys() {
    static crypto::KeyTable table = *crypto::KeyTable::make(2 * key_periods, true);
    return table;
  }

  void step(Input& input) {
    switch (input.byte()) {
      case 0: {
        const unsigned sequence = input.byte() << 8U | input.byte();
        protect(sequence, input.byte());
        break;
      }
      case 1:
        if (const Sent* const sent = one_of(sent_, input.byte())) {
          receive(sent->sealed);
        }
        break;
      case 2:
        if (const Sent* const sent = one_of(sent_, input.byte())) {
          Bytes changed = sent->sealed;
          changed[input.byte() % changed.size()] ^= 1U << input.byte() % 8;
          receive(changed);
        }
        break;
      case 3:
        receive(input.take(input.byte()));
        break;
      case 4:
        if (const Sent* const sent = one_of(sent_, input.byte())) {
          hold(sent->sealed);
        }
        break;
      case 5:
        if (Held* const held = one_of(held_, input.byte())) {
          finish(*held);
          held_.erase(held_.begin() + (held - held_.data()));
        }
        break;
      case 6:
        if (Held* const held = one_of(held_, input.byte())) {
          receiver_.abandon(held->pending);
          held_.erase(held_.begin() + (held - held_.data()));
        }
        break;
      default:
        break;
    }
  }

 private:
  static Channel make(std::uint8_t choice, const Secret& secret, Direction direction, StreamPool& pool) {
    const SuiteFacts& suite = suites[choice % 8 % suites.size()];
    const MasterKey master{.key = std::span(secret).first(suite.key_length),
                           .salt = std::span(secret).first(suite.salt_length),
                           .mki = std::span(secret).first((choice & 16) != 0 ? 4 : 0)};
    auto channel = Channel::make({.suite = suite.suite,
                                  .protocol = (choice & 8) != 0 ? Protocol::rtcp : Protocol::rtp,
                                  .direction = direction,
                                  .key_derivation_rate = (choice & 32) != 0 ? 4U : 0U},
                                 {&master, 1}, keys(), pool);
    REQUIRE(channel);
    return std::move(*channel);
  }

  template <typename T>
  static T* one_of(std::vector<T>& all, std::uint8_t which) {
    return all.empty() ? nullptr : &all[which % all.size()];
  }

  static crypto::Cpu& cpu() {
    static crypto::Cpu one = *crypto::Cpu::make();
    return one;
  }

  void protect(unsigned sequence, std::uint8_t length) {
    Sent sent;
    const auto ssrc = static_cast<std::uint8_t>(length % 2);
    sent.plain = protocol_ == Protocol::rtp ? Bytes{0x80,
                                                    96,
                                                    static_cast<std::uint8_t>(sequence >> 8),
                                                    static_cast<std::uint8_t>(sequence),
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    0,
                                                    ssrc}
                                            : Bytes{0x80, 200, 0, 1, 0, 0, 0, ssrc};
    sent.plain.resize(sent.plain.size() + length, static_cast<std::uint8_t>(sent_.size()));
    sent.sealed = sent.plain;
    sent.sealed.resize(sent.plain.size() + sender_.overhead());
    crypto::Job job{};
    Pending pending{};
    crypto::Verdict verdict{};
    if (sender_.prepare({sent.sealed.data(), static_cast<std::uint32_t>(sent.plain.size()),
                         static_cast<std::uint32_t>(sent.sealed.size())},
                        job, pending) == Status::ok) {
      cpu().run(keys(), {&job, 1}, {&verdict, 1});
      REQUIRE(sender_.finish(pending, verdict) == Status::ok && pending.length == sent.sealed.size());
      sent_.push_back(std::move(sent));
    }
  }

  void hold(const Bytes& bytes) {
    Held held;
    held.bytes = bytes;
    const auto length = static_cast<std::uint32_t>(bytes.size());
    if (receiver_.prepare({held.bytes.data(), length, length}, held.job, held.pending) == Status::ok) {
      held_.push_back(std::move(held));
    }
  }

  // In flight for as long as it takes.
  void receive(const Bytes& bytes) {
    const std::size_t before = held_.size();
    hold(bytes);
    if (held_.size() > before) {
      finish(held_.back());
      held_.pop_back();
    }
  }

  void finish(Held& held) {
    const Bytes sealed = held.bytes;
    cpu().run(keys(), {&held.job, 1}, {&held.verdict, 1});
    const Status status = receiver_.finish(held.pending, held.verdict);
    if (status != Status::ok) {
      REQUIRE(status != Status::no_stream && status != Status::key_expired);
      return;
    }
    held.bytes.resize(held.pending.length);
    for (Sent& sent : sent_) {
      if (sent.sealed == sealed) {
        REQUIRE(!sent.received && sent.plain == held.bytes);
        sent.received = true;
        return;
      }
    }
    REQUIRE(!"a packet that nobody has protected");
  }

  Protocol protocol_;
  Channel sender_, receiver_;
  std::vector<Sent> sent_;
  std::vector<Held> held_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static StreamPool small = *StreamPool::make(16, 64);
  static StreamPool large = *StreamPool::make(16, 1024);
  Input input{{data, size}};
  const std::uint8_t choice = input.byte();
  StreamPool& pool = (choice & 64) != 0 ? small : large;
  {
    Trial trial(choice, secret_of({data, size}), pool);
    for (int steps = 0; steps < 200 && !input.rest.empty(); ++steps) {
      trial.step(input);
    }
  }
  REQUIRE(pool.used() == 0 && Trial::keys().used() == 0);
  return 0;
}
