// Gbit/s per core of protecting and unprotecting RTP, by suite and packet size, beside libsrtp's srtp_protect in the
// same run; and what prepare() and finish() cost by themselves. Lengths are those of the RTP packet in clear.
#include <benchmark/benchmark.h>
#include <srtp2/srtp.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "crypto/cpu.h"
#include "media/srtp/channel.h"

namespace sluice::srtp {
namespace {

constexpr std::size_t frame_capacity = 2048;
constexpr std::uint32_t first_ssrc = 0x1000;

const std::vector<std::uint8_t> secret(46, 7);

void store16(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8);
  at[1] = static_cast<std::uint8_t>(value);
}

void make_rtp(std::uint8_t* packet, std::uint32_t ssrc) {
  packet[0] = 0x80;
  packet[1] = 96;
  store16(packet + 8, ssrc >> 16);
  store16(packet + 10, ssrc);
}

void report(benchmark::State& state, std::int64_t packets, std::size_t length) {
  state.SetItemsProcessed(packets);
  state.counters["Gbit/s"] = benchmark::Counter(static_cast<double>(packets) * static_cast<double>(length) * 8e-9,
                                                benchmark::Counter::kIsRate);
}

// `sessions` channels, each with keys of its own and one stream; bursts take their packets in turn.
struct Rig {
  Rig(Suite suite, Direction direction, std::size_t sessions, std::size_t burst)
      : keys(*crypto::KeyTable::make(static_cast<std::uint32_t>(sessions), true)),
        pool(*StreamPool::make(static_cast<std::uint32_t>(sessions), 128)),
        cpu(*crypto::Cpu::make()),
        frames(burst * frame_capacity),
        jobs(burst),
        pending(burst),
        verdicts(burst),
        sequences(sessions) {
    const SuiteFacts& of = facts(suite);
    const MasterKey master{.key = std::span(secret).first(of.key_length),
                           .salt = std::span(secret).first(of.salt_length)};
    for (std::size_t i = 0; i < sessions; ++i) {
      channels.push_back(*Channel::make({.suite = suite, .direction = direction}, {&master, 1}, keys, pool));
    }
  }

  std::uint8_t* frame(std::size_t i) { return frames.data() + i * frame_capacity; }
  // The session of the burst's packet i; `sequence` is that packet's.
  std::size_t next(std::size_t i, std::uint32_t& sequence) {
    const std::size_t session = (at + i) % channels.size();
    sequence = sequences[session]++;
    return session;
  }

  crypto::KeyTable keys;
  StreamPool pool;
  crypto::Cpu cpu;
  std::vector<std::uint8_t> frames;
  std::vector<crypto::Job> jobs;
  std::vector<Pending> pending;
  std::vector<crypto::Verdict> verdicts;
  std::vector<Channel> channels;
  std::vector<std::uint32_t> sequences;
  std::size_t at = 0;
};

void protect_burst(benchmark::State& state, Rig& rig, std::size_t length, bool crypto) {
  const std::size_t burst = rig.jobs.size();
  for (std::size_t i = 0; i < burst; ++i) {
    std::uint32_t sequence = 0;
    const std::size_t session = rig.next(i, sequence);
    make_rtp(rig.frame(i), first_ssrc);
    store16(rig.frame(i) + 2, sequence);
    const Packet packet{.data = rig.frame(i), .length = static_cast<std::uint32_t>(length), .capacity = frame_capacity};
    if (rig.channels[session].prepare(packet, rig.jobs[i], rig.pending[i]) != Status::ok) {
      state.SkipWithError("a packet was refused");
    }
  }
  if (crypto) {
    rig.cpu.run(rig.keys, rig.jobs, rig.verdicts);
  }
  for (std::size_t i = 0; i < burst; ++i) {
    benchmark::DoNotOptimize(rig.channels[(rig.at + i) % rig.channels.size()].finish(rig.pending[i], rig.verdicts[i]));
  }
  rig.at = (rig.at + burst) % rig.channels.size();
}

// Arguments: packet length, sessions, burst.
void protect(benchmark::State& state, Suite suite) {
  const auto length = static_cast<std::size_t>(state.range(0));
  Rig rig(suite, Direction::protect, static_cast<std::size_t>(state.range(1)),
          static_cast<std::size_t>(state.range(2)));
  for (auto _ : state) {
    protect_burst(state, rig, length, true);
  }
  report(state, state.iterations() * state.range(2), length);
}

void prepare_and_finish(benchmark::State& state) {
  Rig rig(Suite::aes_cm_128_hmac_sha1_80, Direction::protect, static_cast<std::size_t>(state.range(0)), 128);
  for (auto _ : state) {
    protect_burst(state, rig, 1400, false);
  }
  state.SetItemsProcessed(state.iterations() * 128);
}
BENCHMARK(prepare_and_finish)->Arg(1)->Arg(1000)->Arg(100'000);

// Packets that another channel has protected, each once: its cost is measured apart, by protect.
void unprotect(benchmark::State& state, Suite suite) {
  const auto length = static_cast<std::size_t>(state.range(0));
  const auto burst = static_cast<std::size_t>(state.range(1));
  Rig sender(suite, Direction::protect, 1, burst);
  Rig receiver(suite, Direction::unprotect, 1, burst);
  for (auto _ : state) {
    state.PauseTiming();
    protect_burst(state, sender, length, true);
    state.ResumeTiming();
    for (std::size_t i = 0; i < burst; ++i) {
      const Packet packet{.data = sender.frame(i), .length = sender.pending[i].length, .capacity = frame_capacity};
      if (receiver.channels[0].prepare(packet, receiver.jobs[i], receiver.pending[i]) != Status::ok) {
        state.SkipWithError("a packet was refused");
      }
    }
    receiver.cpu.run(receiver.keys, receiver.jobs, receiver.verdicts);
    for (std::size_t i = 0; i < burst; ++i) {
      if (receiver.channels[0].finish(receiver.pending[i], receiver.verdicts[i]) != Status::ok) {
        state.SkipWithError("a packet was refused");
      }
    }
  }
  report(state, state.iterations() * state.range(1), length);
}

void libsrtp_protect(benchmark::State& state, Suite suite) {
  const auto length = static_cast<std::size_t>(state.range(0));
  static const srtp_err_status_t started = srtp_init();
  srtp_policy_t policy = {};
  std::vector<std::uint8_t> key = secret;
  const bool gcm = suite == Suite::aead_aes_128_gcm;
  for (srtp_crypto_policy_t* part : {&policy.rtp, &policy.rtcp}) {
    gcm ? srtp_crypto_policy_set_aes_gcm_128_16_auth(part) : srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(part);
  }
  policy.key = key.data();
  policy.ssrc.type = ssrc_any_outbound;
  policy.window_size = 128;
  srtp_t session = nullptr;
  if (started != srtp_err_status_ok || srtp_create(&session, &policy) != srtp_err_status_ok) {
    state.SkipWithError("libsrtp does not start");
    return;
  }
  std::vector<std::uint8_t> frame(frame_capacity);
  std::uint32_t sequence = 0;
  for (auto _ : state) {
    make_rtp(frame.data(), first_ssrc);
    store16(frame.data() + 2, sequence++);
    auto octets = static_cast<int>(length);
    if (srtp_protect(session, frame.data(), &octets) != srtp_err_status_ok) {
      state.SkipWithError("libsrtp refuses a packet");
      break;
    }
  }
  srtp_dealloc(session);
  report(state, state.iterations(), length);
}

void protect_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int length : {64, 256, 512, 1024, 1400}) {
    benchmark->Args({length, 1000, 128});
  }
  benchmark->Args({1400, 1000, 32})->Args({1400, 100'000, 128})->Args({64, 100'000, 128});
}
void unprotect_sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Args({64, 128})->Args({1400, 128});
}
void plain_sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int length : {64, 256, 512, 1024, 1400}) {
    benchmark->Arg(length);
  }
}
BENCHMARK_CAPTURE(protect, AES_CM_128_HMAC_SHA1_80, Suite::aes_cm_128_hmac_sha1_80)->Apply(protect_sizes);
BENCHMARK_CAPTURE(protect, AES_256_CM_HMAC_SHA1_80, Suite::aes_256_cm_hmac_sha1_80)->Apply(protect_sizes);
BENCHMARK_CAPTURE(protect, AEAD_AES_128_GCM, Suite::aead_aes_128_gcm)->Apply(protect_sizes);
BENCHMARK_CAPTURE(protect, AEAD_AES_256_GCM, Suite::aead_aes_256_gcm)->Apply(protect_sizes);
BENCHMARK_CAPTURE(unprotect, AES_CM_128_HMAC_SHA1_80, Suite::aes_cm_128_hmac_sha1_80)->Apply(unprotect_sizes);
BENCHMARK_CAPTURE(unprotect, AEAD_AES_128_GCM, Suite::aead_aes_128_gcm)->Apply(unprotect_sizes);
BENCHMARK_CAPTURE(libsrtp_protect, AES_CM_128_HMAC_SHA1_80, Suite::aes_cm_128_hmac_sha1_80)->Apply(plain_sizes);
BENCHMARK_CAPTURE(libsrtp_protect, AEAD_AES_128_GCM, Suite::aead_aes_128_gcm)->Apply(plain_sizes);

// A session's keys: both protocols of one direction.
void make_channels(benchmark::State& state, Suite suite) {
  crypto::KeyTable keys = *crypto::KeyTable::make(2, true);
  StreamPool pool = *StreamPool::make(2, 128);
  const SuiteFacts& of = facts(suite);
  const MasterKey master{.key = std::span(secret).first(of.key_length),
                         .salt = std::span(secret).first(of.salt_length)};
  for (auto _ : state) {
    for (const Protocol protocol : {Protocol::rtp, Protocol::rtcp}) {
      benchmark::DoNotOptimize(Channel::make({.suite = suite, .protocol = protocol}, {&master, 1}, keys, pool));
    }
  }
}
BENCHMARK_CAPTURE(make_channels, AES_CM_128_HMAC_SHA1_80, Suite::aes_cm_128_hmac_sha1_80);
BENCHMARK_CAPTURE(make_channels, AEAD_AES_128_GCM, Suite::aead_aes_128_gcm);

}  // namespace
}  // namespace sluice::srtp
