// What sealing and opening cost on one core, by algorithm, packet size and batch; packets in the second level of cache.
// Bytes are those of the packet that is protected: of SRTP all but the tag, of ESP what is enciphered.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/cpu.h"

namespace sluice::crypto {
namespace {

// As it is where the algorithm is used: 80 bits of SRTP, RFC 2404's 96, half a digest of SHA-2 (RFC 4868).
std::size_t tag_length(const Algorithm& algorithm) {
  if (algorithm.cipher == Cipher::aes_ctr) return 10;
  if (algorithm.hash == Hash::none) return algorithm.tag.most;
  return algorithm.hash == Hash::hmac_sha1 ? 12 : digest_length(algorithm.hash) / 2;
}

bool is_of_srtp(Cipher cipher) {
  return cipher == Cipher::aes_ctr || cipher == Cipher::aes_gcm;
}

std::uint32_t install(KeyTable& keys, const Algorithm& algorithm, std::size_t key_length, bool opens = false) {
  static const std::vector<std::uint8_t> secret(128, 7);
  const auto some = [](std::size_t length) { return std::span(secret).first(length); };
  return keys
      .install({algorithm.cipher, algorithm.hash, some(key_length), some(algorithm.salt_length),
                some(digest_length(algorithm.hash)), static_cast<std::uint8_t>(tag_length(algorithm)), opens})
      .value();
}

// Keys for sealing, and the same for opening, in slots of the same order.
struct Keys {
  explicit Keys(std::uint32_t count) : table(*KeyTable::make(2 * count, true)) {}
  void add(const Algorithm& algorithm, std::size_t key_length) {
    seal.push_back(install(table, algorithm, key_length));
    open.push_back(install(table, algorithm, key_length, true));
  }
  KeyTable table;
  std::vector<std::uint32_t> seal, open;
};

constexpr std::size_t frame_bytes = 2048;

void make_job(const KeyTable& keys, std::uint32_t slot, std::size_t length, bool opens, Job& job) {
  const Key& key = keys.key(slot);
  const std::size_t clear = is_of_srtp(key.cipher) ? 12 : 8 + explicit_iv_length(key.cipher);
  job.key = slot;
  job.cipher_offset = static_cast<std::uint16_t>(clear);
  job.cipher_length = static_cast<std::uint16_t>(is_of_srtp(key.cipher) ? length - clear : length);
  job.flags = static_cast<std::uint8_t>((opens ? job_opens : 0) | (key.cipher == Cipher::aes_ctr ? job_has_suffix : 0));
}

std::chrono::duration<double> thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Batches of packets of `length` bytes, all of them authentic.
class Batches {
 public:
  explicit Batches(std::size_t count, std::size_t length)
      : length_(length), frames_(count * frame_bytes), jobs_(count), verdicts_(count) {
    for (std::size_t i = 0; i < count; ++i) jobs_[i].data = reinterpret_cast<std::uint64_t>(&frames_[i * frame_bytes]);
  }

  // One key, the same batch again and again.
  void seal(benchmark::State& state, Keys& keys) {
    for (Job& job : jobs_) make_job(keys.table, keys.seal[0], length_, false, job);
    for (auto _ : state) {
      cpu_.run(keys.table, jobs_, verdicts_);
      benchmark::ClobberMemory();
    }
    count(state);
  }

  // Keys in turn, and what is opened is sealed first: the time of run() alone.
  void run(benchmark::State& state, Keys& keys, bool opens) {
    std::size_t next = 0;
    for (auto _ : state) {
      const std::size_t first = next;
      for (Job& job : jobs_) make_job(keys.table, keys.seal[next++ % keys.seal.size()], length_, false, job);
      if (opens) {
        cpu_.run(keys.table, jobs_, verdicts_);
        for (std::size_t i = 0; i < jobs_.size(); ++i) {
          make_job(keys.table, keys.open[(first + i) % keys.open.size()], length_, true, jobs_[i]);
        }
      }
      const auto begin = thread_time();
      cpu_.run(keys.table, jobs_, verdicts_);
      state.SetIterationTime((thread_time() - begin).count());
      if (std::ranges::count(verdicts_, Verdict::done) != std::ssize(verdicts_)) {
        state.SkipWithError("a packet is not authentic");
      }
    }
    count(state);
  }

 private:
  void count(benchmark::State& state) const {
    const auto packets = state.iterations() * std::ssize(jobs_);
    state.SetItemsProcessed(packets);
    state.counters["Gbit/s"] = benchmark::Counter(static_cast<double>(packets) * static_cast<double>(length_) * 8e-9,
                                                  benchmark::Counter::kIsRate);
  }

  const std::size_t length_;
  Cpu cpu_ = Cpu::make().value();
  std::vector<std::uint8_t> frames_;
  std::vector<Job> jobs_;
  std::vector<Verdict> verdicts_;
};

Batches batches(const benchmark::State& state) {
  return Batches(static_cast<std::size_t>(state.range(1)), static_cast<std::size_t>(state.range(0)));
}

std::string key_name(std::size_t length) {
  return length == 0 ? "" : "/" + std::to_string(8 * length);
}

void sizes(benchmark::internal::Benchmark* benchmark, bool and_batches) {
  for (const int length : {64, 256, 1408}) benchmark->Args({length, 128});
  if (!and_batches) return;
  for (const int count : {1, 8, 16, 32, 64}) benchmark->Args({1408, count});
}

// One key.
void one(benchmark::State& state, const Algorithm& algorithm, std::size_t key_length, bool opens) {
  Keys keys(1);
  keys.add(algorithm, key_length);
  if (opens) {
    batches(state).run(state, keys, true);
  } else {
    batches(state).seal(state, keys);
  }
}

// So many keys that they come from memory.
void many(benchmark::State& state, const Algorithm& algorithm, std::size_t key_length) {
  constexpr std::uint32_t count = 100'000;
  Keys keys(count);
  for (std::uint32_t i = 0; i < count; ++i) keys.add(algorithm, key_length);
  std::shuffle(keys.seal.begin(), keys.seal.end(), std::mt19937(1));
  batches(state).run(state, keys, false);
}

// All algorithms of ESP in each batch.
void mixed(benchmark::State& state, bool opens) {
  Keys keys(static_cast<std::uint32_t>(3 * algorithms().size()));
  for (const std::size_t key_length : {0, 16, 24, 32}) {
    for (const Algorithm* const algorithm : algorithms()) {
      if (is_of_srtp(algorithm->cipher) || std::ranges::count(algorithm->key_lengths, key_length) == 0) continue;
      keys.add(*algorithm, key_length);
    }
  }
  batches(state).run(state, keys, opens);
}

void key_install(benchmark::State& state, const Algorithm& algorithm, std::size_t key_length) {
  KeyTable keys = *KeyTable::make(1024, true);
  for (auto _ : state) keys.release(install(keys, algorithm, key_length));
}

const bool registered = [] {
  for (const Algorithm* const algorithm : algorithms()) {
    for (const std::size_t key_length : algorithm->key_lengths) {
      const std::string name = std::string(algorithm->name) + key_name(key_length);
      for (const bool opens : {false, true}) {
        auto* const benchmark =
            benchmark::RegisterBenchmark(((opens ? "open/" : "seal/") + name).c_str(),
                                         [=](benchmark::State& state) { one(state, *algorithm, key_length, opens); });
        if (opens) benchmark->UseManualTime();
        sizes(benchmark, is_of_srtp(algorithm->cipher) || algorithm->hash == Hash::hmac_sha1);
      }
      benchmark::RegisterBenchmark(("many_keys/" + name).c_str(),
                                   [=](benchmark::State& state) { many(state, *algorithm, key_length); })
          ->UseManualTime()
          ->Args({64, 128})
          ->Args({256, 128})
          ->Args({1408, 128});
      benchmark::RegisterBenchmark(("install/" + name).c_str(),
                                   [=](benchmark::State& state) { key_install(state, *algorithm, key_length); });
    }
  }
  for (const bool opens : {false, true}) {
    auto* const benchmark = benchmark::RegisterBenchmark(opens ? "open/mixed" : "seal/mixed",
                                                         [=](benchmark::State& state) { mixed(state, opens); });
    sizes(benchmark->UseManualTime(), true);
  }
  return true;
}();

}  // namespace
}  // namespace sluice::crypto
