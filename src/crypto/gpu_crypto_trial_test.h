// What the tests of a GPU's jobs have in common: random jobs, done by the GPU (or the host SIMT shim) and beside it by
// the CPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/support/gpu.h"
#include "crypto/algorithm.h"
#include "crypto/cpu.h"
#include "crypto/gpu_crypto.h"
#include "crypto/key_table.h"
#include "device/warp_schedule.h"
#include "device/warp_times.h"

namespace sluice::crypto {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::uint32_t slots = 24, most_jobs = 700, most_bytes = 9216;

inline Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

// Whose keys are in the table, and so, which kernel does the jobs.
enum class Repertoire { media, all };

constexpr bool is_of_media(const Algorithm& algorithm, std::size_t = 0) {
  return algorithm.cipher == Cipher::aes_ctr || algorithm.cipher == Cipher::aes_gcm;
}

// Keys, and at the same slots those by which is sealed what they open.
struct Keys {
  KeyTable table = KeyTable::make(slots, true).value();
  KeyTable sealing = KeyTable::make(slots, true).value();

  std::uint32_t install(const Algorithm& algorithm, std::size_t key_length, std::size_t tag_length,
                        std::mt19937& random) {
    const Bytes cipher_key = random_bytes(random, key_length), salt = random_bytes(random, algorithm.salt_length);
    const Bytes auth_key = random_bytes(random, one_of(algorithm.auth_key, random));
    KeyMaterial material{
        algorithm.cipher, algorithm.hash, cipher_key, salt, auth_key, static_cast<std::uint8_t>(tag_length)};
    const std::uint32_t slot = sealing.install(material).value();
    material.opens = random() % 2 == 0;
    EXPECT_EQ(table.install(material).value(), slot);
    return slot;
  }

  // Of any algorithm of the GPU's that passes.
  template <typename Passes>
  std::uint32_t install_random(std::mt19937& random, Passes&& passes) {
    std::vector<const Algorithm*> some;
    for (const Algorithm* const one : algorithms()) {
      if (gpu_side().can(*one, one->key_lengths.front()) && passes(*one)) some.push_back(one);
    }
    const Algorithm& one = *some.at(random() % some.size());
    // The CPU borrows four bytes behind the text.
    const std::size_t tag = std::max<std::size_t>(one_of(one.tag, random), 4);
    return install(one, one.key_lengths[random() % one.key_lengths.size()], tag, random);
  }

  void release(std::uint32_t slot) {
    table.release(slot);
    sealing.release(slot);
  }

 private:
  static std::size_t one_of(const Lengths& lengths, std::mt19937& random) {
    return lengths.least + random() % ((lengths.most - lengths.least) / lengths.step + 1) * lengths.step;
  }
};

enum class Size { ordinary, any, tiny };

class GpuCryptoTest : public testing::TestWithParam<Repertoire> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    auto gpu = device::Gpu::open(0, 2);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
    jobs_ = static_cast<Job*>(gpu_->allocate_host(most_jobs * sizeof(Job)).value());
    verdicts_ = static_cast<Verdict*>(gpu_->allocate_host(most_jobs).value());
    sums_ = static_cast<Sums*>(gpu_->allocate_host(most_jobs * sizeof(Sums)).value());
    memory_ = static_cast<std::uint8_t*>(gpu_->allocate_host(memory_bytes).value());
    order_ = static_cast<std::uint16_t*>(gpu_->allocate_host(most_places * sizeof(std::uint16_t)).value());
    times_ = static_cast<std::uint32_t*>(gpu_->allocate_host(most_places / 32 * sizeof(std::uint32_t)).value());
  }

  std::uint32_t install_random(std::mt19937& random) {
    return all_keys_.install_random(
        random, [](const Algorithm& one) { return GetParam() == Repertoire::all || is_of_media(one); });
  }
  // In every slot one.
  void install_keys(std::mt19937& random) {
    for (std::uint32_t i = 0; i < slots; ++i) install_random(random);
  }

  // `own_bytes`: behind each packet, as the contract has it.
  void make(GpuPath path, std::uint64_t piece_bytes = 4U << 20, std::size_t own_bytes = 15) {
    crypto_.reset();
    own_bytes_ = own_bytes;
    auto made = GpuCrypto::create(*gpu_, keys_,
                                  {.max_packets = most_jobs,
                                   .max_packet_bytes = most_bytes,
                                   .path = path,
                                   .own_buffers = own_bytes != 0,
                                   .piece_bytes = piece_bytes,
                                   .together = 3});
    ASSERT_TRUE(made) << made.error().message;
    crypto_ = std::move(*made);
  }

  void wait(device::GpuStream& stream) {
    ASSERT_TRUE(stream.mark());
    while (stream.pending_marks() > 0) {
      ASSERT_NE(stream.poll(), device::MarkState::failed) << gpu_->why();
    }
  }

  void run(std::uint32_t count, unsigned stream = 0) {
    std::fill(verdicts_, verdicts_ + most_jobs, Verdict{0xee});
    std::vector<GpuBatch> batches;
    std::uint32_t first = 0;
    for (std::uint32_t b = 0; b < together_; ++b) {
      const std::uint32_t end = count * (b + 1) / together_;
      const device::RunList* const runs = note_runs(b, first, end);
      batches.push_back({jobs_ + first, verdicts_ + first, end - first, asks_ ? sums_ + first : nullptr, runs});
      batches.back().opens =
          std::any_of(jobs_ + first, jobs_ + end, [](const Job& job) { return (job.flags & job_opens) != 0; });
      first = end;
    }
    std::fill(times_, times_ + most_places / 32, 0);
    if (ordered_) put_in_order(batches);
    for (GpuBatch& batch : batches) batch.makes_order = makes_order_;
    const auto ok = crypto_->run(batches, gpu_->stream(stream));
    ASSERT_TRUE(ok) << ok.error().message;
    wait(gpu_->stream(stream));
  }

  // By what the jobs are and how long, as an element would.
  void put_in_order(std::vector<GpuBatch>& batches) {
    std::uint32_t& place = places_ = 0;
    for (GpuBatch& batch : batches) {
      for (std::uint32_t i = 0; i < batch.count; ++i) {
        const Job& job = batch.jobs[i];
        const Key& key = keys_.key(job.key);
        schedule_.add(static_cast<unsigned>(key.cipher) * 8 + static_cast<unsigned>(key.hash), job.cipher_length);
      }
      const std::span<std::uint16_t> items(order_ + place, most_places - place);
      batch.order = schedule_.order(items, labels_).items;
      batch.times = times_ + place / 32;
      place += static_cast<std::uint32_t>(batch.order.size());
    }
  }

  // Of two batches in four; in one of these they are of fewer packets than the batch, and not to be used.
  const device::RunList* note_runs(std::uint32_t batch, std::uint32_t first, std::uint32_t end) {
    ++batches_;
    device::RunList& runs = runs_[batch];
    runs.clear();
    for (std::uint32_t i = first; i < end - (batches_ % 4 == 3 && end != first ? 1 : 0); ++i) {
      const Job& job = jobs_[i];
      runs.add(job.data,
               std::uint32_t{job.cipher_offset} + job.cipher_length + job.tag_gap + keys_.key(job.key).tag_length);
    }
    return batches_ % 2 != 0 ? &runs : nullptr;
  }

  void sync_all() {
    while (!crypto_->up_to_date()) {
      const auto ok = crypto_->sync(gpu_->stream(0));
      ASSERT_TRUE(ok) << ok.error().message;
      wait(gpu_->stream(0));
    }
  }

  // Random jobs over random bytes, `pitch` apart, or one behind the other at odd places with 0, which ask for sums in
  // every second batch. Every fourth that is opened is falsified somewhere: what is authenticated, or the tag.
  void make_jobs(std::mt19937& random, std::uint32_t count, Size size, std::uint32_t pitch) {
    std::size_t at = 0;
    asks_ = !asks_;
    for (std::uint32_t i = 0; i < count; ++i) {
      Job job = {};
      job.key = random() % slots;
      job.cipher_offset = static_cast<std::uint16_t>(1 + (size == Size::any ? random() % 300 : random() % 40));
      job.cipher_length = static_cast<std::uint16_t>(size == Size::ordinary && random() % 8 != 0 ? 1000 + random() % 300
                                                     : size == Size::any && random() % 16 == 0   ? random() % 8500
                                                     : size == Size::tiny                        ? random() % 40
                                                                                                 : random() % 700);
      job.tag_gap = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 140 : 0);
      job.flags =
          static_cast<std::uint8_t>((random() % 2 == 0 ? job_opens : 0) | (random() % 2 == 0 ? job_has_suffix : 0));
      if (asks_) job.flags |= static_cast<std::uint8_t>(random() % 4 * job_sums_before);
      for (std::uint8_t& byte : job.nonce) byte = static_cast<std::uint8_t>(random());
      for (std::uint8_t& byte : job.suffix) byte = static_cast<std::uint8_t>(random());
      fit(job);
      const std::size_t length =
          std::size_t{job.cipher_offset} + job.cipher_length + job.tag_gap + keys_.key(job.key).tag_length;
      const std::size_t gap = own_bytes_ + (random() % 4 == 0 ? random() % 64 : 0);
      const std::size_t begin = pitch != 0 ? std::size_t{i} * pitch + 6 : at + gap;
      ASSERT_LE(begin + length, memory_bytes);
      job.data = reinterpret_cast<std::uint64_t>(memory_ + begin);
      at = begin + length;
      jobs_[i] = job;
    }
    for (std::size_t i = 0; i < memory_bytes; i += 4) {
      const auto word = static_cast<std::uint32_t>(random());
      std::memcpy(memory_ + i, &word, 4);
    }
    seal_what_is_opened(random, count);
  }

  // Makes it what job.h asks of jobs with this key.
  void fit(Job& job) const {
    const Key& key = keys_.key(job.key);
    const auto iv = static_cast<std::uint16_t>(explicit_iv_length(key.cipher));
    job.cipher_offset = std::max<std::uint16_t>(job.cipher_offset, iv + (iv == 8 ? 1 : 0));
    const bool inserts = key.cipher == Cipher::aes_gcm_esp && (job.flags & job_has_suffix) != 0;
    if (inserts) job.cipher_offset = 16;
    if (key.cipher != Cipher::aes_cbc) return;
    job.cipher_length = static_cast<std::uint16_t>(std::max(job.cipher_length / 16 * 16, 16));
    job.flags = static_cast<std::uint8_t>((job.flags & ~job_opens) | (key.opens != 0 ? job_opens : 0));
  }

  void seal_what_is_opened(std::mt19937& random, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if ((jobs_[i].flags & job_opens) == 0) continue;
      Job seal = jobs_[i];
      seal.flags &= static_cast<std::uint8_t>(~job_opens);
      Verdict verdict{};
      cpu_.run(all_keys_.sealing, {&seal, 1}, {&verdict, 1});
      ASSERT_EQ(verdict, Verdict::done);
      const std::uint32_t authenticated = std::uint32_t{seal.cipher_offset} + seal.cipher_length;
      const std::uint32_t tag = keys_.key(seal.key).tag_length;
      if (random() % 4 != 0) continue;
      const auto which = static_cast<std::uint32_t>(random() % (authenticated + tag));
      const std::uint32_t at = which < authenticated ? which : which + seal.tag_gap;
      reinterpret_cast<std::uint8_t*>(seal.data)[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
    }
  }

  // The GPU's result beside the CPU's, over all of the memory. A packet that is refused is as it was.
  void compare(std::uint32_t count, unsigned stream = 0) {
    const Bytes before(memory_, memory_ + memory_bytes);
    std::vector<Verdict> wanted(count);
    std::vector<Sums> wanted_sums(asks_ ? count : 0);
    cpu_.run(keys_, {jobs_, count}, wanted, wanted_sums);
    Bytes expected(memory_, memory_ + memory_bytes);
    for (std::uint32_t i = 0; asks_ && i < count; ++i) {
      ASSERT_NO_FATAL_FAILURE(compare_sums(i, before, expected, wanted[i], wanted_sums[i])) << "on a core";
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      if (wanted[i] == Verdict::done) continue;
      const std::size_t at = reinterpret_cast<std::uint8_t*>(jobs_[i].data) - memory_ + jobs_[i].cipher_offset;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(at), jobs_[i].cipher_length,
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::copy(before.begin(), before.end(), memory_);
    ASSERT_NO_FATAL_FAILURE(run(count, stream));
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(verdicts_[i], wanted[i]) << describe(i) << " of " << count;
      if (!asks_) continue;
      ASSERT_NO_FATAL_FAILURE(compare_sums(i, before, expected, wanted[i], sums_[i]));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::size_t at = reinterpret_cast<std::uint8_t*>(jobs_[i].data) - memory_;
      const std::size_t length = std::size_t{jobs_[i].cipher_offset} + jobs_[i].cipher_length + jobs_[i].tag_gap +
                                 keys_.key(jobs_[i].key).tag_length;
      for (std::size_t b = at; b < at + length; ++b) {
        ASSERT_EQ(memory_[b], expected[b]) << describe(i) << ": byte " << b - at;
      }
    }
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), memory_)) << "outside of packets";
  }

  // What job i asked for, beside sums byte by byte.
  void compare_sums(std::uint32_t i, const Bytes& before, const Bytes& after, Verdict verdict, Sums sums) const {
    const Job& job = jobs_[i];
    const std::size_t at = reinterpret_cast<std::uint8_t*>(job.data) - memory_;
    const std::size_t clear = std::size_t{job.cipher_offset} + job.cipher_length;
    const std::size_t sealed = clear + job.tag_gap + keys_.key(job.key).tag_length;
    const bool opens = (job.flags & job_opens) != 0;
    const auto sum = [at](const Bytes& bytes, std::size_t length) {
      std::uint64_t words = 0;
      for (std::size_t b = 0; b < length; ++b) words += std::uint64_t{bytes[at + b]} << 8 * (b % 2);
      while (words > 0xffff) words = (words & 0xffff) + (words >> 16);
      return words;
    };
    if ((job.flags & job_sums_before) != 0) {
      EXPECT_EQ(sums.before, sum(before, opens ? sealed : clear)) << describe(i);
    }
    if ((job.flags & job_sums_after) != 0 && verdict == Verdict::done) {
      EXPECT_EQ(sums.after, sum(after, opens ? clear : sealed)) << describe(i);
    }
    ASSERT_FALSE(HasFailure());
  }

  std::string describe(std::uint32_t i) const {
    const Job& job = jobs_[i];
    const Key& key = keys_.key(job.key);
    return "job " + std::to_string(i) + " " + std::string(algorithm_name(key.cipher, key.hash)) + " rounds " +
           std::to_string(key.rounds) + " at " + std::to_string(job.data % 128) + " clear " +
           std::to_string(job.cipher_offset) + " text " + std::to_string(job.cipher_length) + " gap " +
           std::to_string(job.tag_gap) + " flags " + std::to_string(job.flags);
  }

  static constexpr std::size_t memory_bytes = std::size_t{2} << 20;
  Keys all_keys_;
  KeyTable& keys_ = all_keys_.table;
  Cpu cpu_ = Cpu::make().value();
  std::unique_ptr<device::Gpu> gpu_;
  std::unique_ptr<GpuCrypto> crypto_;
  Job* jobs_ = nullptr;
  Verdict* verdicts_ = nullptr;
  Sums* sums_ = nullptr;
  static constexpr std::uint32_t most_together = 7;
  std::uint32_t together_ = 1;  // batches that the jobs are
  device::RunList runs_[most_together] = {};
  unsigned batches_ = 0;
  bool asks_ = false;          // the batch, for sums
  std::size_t own_bytes_ = 0;  // behind each packet
  std::uint8_t* memory_ = nullptr;
  bool ordered_ = false, makes_order_ = false;  // batches
  static constexpr std::uint32_t most_places = most_jobs + 32 * 64 * most_together;
  std::uint16_t* order_ = nullptr;
  std::uint32_t places_ = 0;  // of it
  std::uint32_t* times_ = nullptr;
  device::WarpTimes warp_times_{64, 6, 256};
  device::WarpSchedule schedule_{{.max_items = most_jobs, .kinds = 64}, warp_times_};
  std::vector<std::uint16_t> labels_ = std::vector<std::uint16_t>(schedule_.most_labels());
};

}  // namespace sluice::crypto
