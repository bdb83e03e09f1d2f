// What sealing and opening cost on one core, by cipher, packet size and batch; packets in the second level of cache.
#include <benchmark/benchmark.h>

#include <vector>

#include "crypto/cpu.h"

namespace sluice::crypto {
namespace {

struct Rig {
  Rig(Cipher cipher, std::size_t key_length, std::size_t length, std::size_t count)
      : cpu(*Cpu::make()), keys(*KeyTable::make(1, true)), frames(count * 2048), jobs(count), verdicts(count) {
    const std::vector<std::uint8_t> secret(32, 7);
    const bool gcm = cipher == Cipher::aes_gcm;
    const std::uint32_t slot =
        *keys.install({cipher, gcm ? Hash::none : Hash::hmac_sha1, std::span(secret).first(key_length),
                       std::span(secret).first(gcm ? 12 : 14), std::span(secret).first(gcm ? 0 : 20),
                       static_cast<std::uint8_t>(gcm ? 16 : 10)});
    for (std::size_t i = 0; i < count; ++i) {
      jobs[i].data = reinterpret_cast<std::uint64_t>(frames.data() + i * 2048);
      jobs[i].key = slot;
      jobs[i].cipher_offset = 12;
      jobs[i].cipher_length = static_cast<std::uint16_t>(length - 12);
      jobs[i].flags = gcm ? 0 : job_has_suffix;
    }
  }
  Cpu cpu;
  KeyTable keys;
  std::vector<std::uint8_t> frames;
  std::vector<Job> jobs;
  std::vector<Verdict> verdicts;
};

void seal(benchmark::State& state, Cipher cipher, std::size_t key_length) {
  const auto length = static_cast<std::size_t>(state.range(0));
  Rig rig(cipher, key_length, length, static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) {
    rig.cpu.run(rig.keys, rig.jobs, rig.verdicts);
    benchmark::ClobberMemory();
  }
  const auto packets = state.iterations() * state.range(1);
  state.SetItemsProcessed(packets);
  state.counters["Gbit/s"] = benchmark::Counter(static_cast<double>(packets) * static_cast<double>(length) * 8e-9,
                                                benchmark::Counter::kIsRate);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int length : {64, 256, 512, 1024, 1400}) {
    benchmark->Args({length, 128});
  }
  for (const int count : {1, 8, 16, 32, 64}) {
    benchmark->Args({1400, count});
  }
}
BENCHMARK_CAPTURE(seal, aes_128_ctr_hmac_sha1, Cipher::aes_ctr, 16)->Apply(sizes);
BENCHMARK_CAPTURE(seal, aes_256_ctr_hmac_sha1, Cipher::aes_ctr, 32)->Apply(sizes);
BENCHMARK_CAPTURE(seal, aes_128_gcm, Cipher::aes_gcm, 16)->Apply(sizes);
BENCHMARK_CAPTURE(seal, aes_256_gcm, Cipher::aes_gcm, 32)->Apply(sizes);

void install(benchmark::State& state, Cipher cipher) {
  KeyTable keys = *KeyTable::make(1024, true);
  const std::vector<std::uint8_t> secret(32, 7);
  const bool gcm = cipher == Cipher::aes_gcm;
  for (auto _ : state) {
    const std::uint32_t slot =
        *keys.install({cipher, gcm ? Hash::none : Hash::hmac_sha1, std::span(secret).first(16),
                       std::span(secret).first(gcm ? 12 : 14), std::span(secret).first(gcm ? 0 : 20),
                       static_cast<std::uint8_t>(gcm ? 16 : 10)});
    keys.release(slot);
  }
}
BENCHMARK_CAPTURE(install, ctr, Cipher::aes_ctr);
BENCHMARK_CAPTURE(install, gcm, Cipher::aes_gcm);

}  // namespace
}  // namespace sluice::crypto
