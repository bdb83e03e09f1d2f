// The GPU's jobs (or the host SIMT shim's) against the known answers and, on random batches, against the CPU's.
#include "crypto/gpu_crypto.h"

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
#include "crypto/known_answers.h"

namespace sluice::crypto {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t slots = 24, most_jobs = 700, most_bytes = 9216;

Bytes random_bytes(std::mt19937& random, std::size_t length) {
  Bytes bytes(length);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

std::uint32_t install_random(KeyTable& keys, std::mt19937& random) {
  const bool gcm = random() % 2 == 0;
  const Bytes cipher_key = random_bytes(random, random() % 2 == 0 ? 16 : 32),
              salt = random_bytes(random, gcm ? 12 : 14);
  const Bytes auth_key = random_bytes(random, gcm ? 0 : 20);
  constexpr std::uint8_t tags[] = {4, 10, 20, 13};
  return keys
      .install({gcm ? Cipher::aes_gcm : Cipher::aes_ctr, gcm ? Hash::none : Hash::hmac_sha1, cipher_key, salt, auth_key,
                gcm ? std::uint8_t{16} : tags[random() % 4]})
      .value();
}

enum class Size { ordinary, any, tiny };

class GpuCryptoTest : public testing::Test {
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
      first = end;
    }
    const auto ok = crypto_->run(batches, gpu_->stream(stream));
    ASSERT_TRUE(ok) << ok.error().message;
    wait(gpu_->stream(stream));
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

  void seal_what_is_opened(std::mt19937& random, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      if ((jobs_[i].flags & job_opens) == 0) continue;
      Job seal = jobs_[i];
      seal.flags &= static_cast<std::uint8_t>(~job_opens);
      Verdict verdict{};
      cpu_.run(keys_, {&seal, 1}, {&verdict, 1});
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
      const std::size_t length = std::size_t{jobs_[i].cipher_offset} + jobs_[i].cipher_length + jobs_[i].tag_gap + 20;
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
  KeyTable keys_ = KeyTable::make(slots, true).value();
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
};

TEST_F(GpuCryptoTest, KnownAnswersComeOut) {
  for (const GpuPath path : {GpuPath::direct, GpuPath::copy}) {
    for (const bool opens : {false, true}) {
      auto batch = KnownAnswerBatch::make(opens, &gpu_side());
      ASSERT_TRUE(batch) << batch.error().message;
      const std::size_t count = batch->jobs().size(), length = batch->packet(0).size();
      auto crypto = GpuCrypto::create(*gpu_, const_cast<KeyTable&>(batch->keys()), {.path = path});
      ASSERT_TRUE(crypto) << crypto.error().message;
      for (std::size_t i = 0; i < count; ++i) {
        jobs_[i] = batch->jobs()[i];
        jobs_[i].data = reinterpret_cast<std::uint64_t>(memory_ + i * length);
        std::copy_n(batch->packet(i).data(), length, memory_ + i * length);
      }
      ASSERT_TRUE((*crypto)->run({jobs_, verdicts_, static_cast<std::uint32_t>(count)}, gpu_->stream(0)));
      wait(gpu_->stream(0));
      for (std::size_t i = 0; i < count; ++i) {
        std::copy_n(memory_ + i * length, length, batch->packet(i).data());
        EXPECT_TRUE(batch->right(i, verdicts_[i])) << batch->name(i) << (opens ? " opened" : " sealed");
      }
    }
  }
}

TEST_F(GpuCryptoTest, BatchesDoAsTheCpuDoes) {
  std::mt19937 random(7);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  struct Case {
    GpuPath path;
    Size size;
    std::uint32_t pitch;
    std::uint64_t piece_bytes = 4 << 20;
    std::size_t own_bytes = 15;
  };
  for (const Case& c :
       {Case{GpuPath::direct, Size::any, 0, 4 << 20, 0}, Case{GpuPath::direct, Size::any, 0},
        Case{GpuPath::direct, Size::ordinary, 1552, 4 << 20, 0}, Case{GpuPath::direct, Size::ordinary, 1552},
        Case{GpuPath::copy, Size::ordinary, 1552}, Case{GpuPath::copy, Size::ordinary, 1552, 40'000},
        Case{GpuPath::direct, Size::tiny, 0, 4 << 20, 0}, Case{GpuPath::direct, Size::tiny, 0},
        Case{GpuPath::copy, Size::tiny, 320}, Case{GpuPath::copy, Size::any, 0},
        Case{GpuPath::automatic, Size::ordinary, 1552}}) {
    ASSERT_NO_FATAL_FAILURE(make(c.path, c.piece_bytes, c.own_bytes));
    for (const std::uint32_t count : {1, 2, 3, 31, 33, 130, 600}) {
      SCOPED_TRACE("path " + std::to_string(static_cast<int>(c.path)) + " pitch " + std::to_string(c.pitch) + ", " +
                   std::to_string(c.own_bytes) + " own bytes");
      ASSERT_NO_FATAL_FAILURE(make_jobs(random, count, c.size, c.pitch));
      ASSERT_NO_FATAL_FAILURE(compare(count, count % 2));
    }
  }
}

// In several batches, more than there is staging for at once, and some empty: in one copy where they stand behind one
// another, or, in pieces of 40,000 bytes, in several.
TEST_F(GpuCryptoTest, BatchesTogetherDoAsTheCpuDoes) {
  std::mt19937 random(19);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  struct Case {
    GpuPath path;
    std::uint32_t pitch;
    std::uint64_t piece_bytes;
  };
  for (const Case& c : {Case{GpuPath::copy, 1552, 4 << 20}, Case{GpuPath::copy, 1552, 200'000},
                        Case{GpuPath::copy, 1552, 40'000}, Case{GpuPath::copy, 1560, 4 << 20},
                        Case{GpuPath::direct, 1552, 4 << 20}, Case{GpuPath::automatic, 1552, 4 << 20}}) {
    ASSERT_NO_FATAL_FAILURE(make(c.path, c.piece_bytes));
    for (const std::uint32_t together : {2U, 3U, most_together}) {
      for (const std::uint32_t count : {1, 5, 64, 600}) {
        SCOPED_TRACE(std::to_string(together) + " batches of " + std::to_string(count) + " packets, path " +
                     std::to_string(static_cast<int>(c.path)) + " pitch " + std::to_string(c.pitch));
        together_ = together;
        ASSERT_NO_FATAL_FAILURE(make_jobs(random, count, Size::ordinary, c.pitch));
        if (count == 64) std::reverse(jobs_, jobs_ + count);
        ASSERT_NO_FATAL_FAILURE(compare(count, count % 2));
      }
    }
  }
}

// Where lines, SHA-1's blocks, AES's and units begin and end against one another.
TEST_F(GpuCryptoTest, EveryLengthAtEveryPlace) {
  std::mt19937 random(11);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  for (const std::size_t own_bytes : {0, 15}) {
    for (std::uint32_t clear = 1; clear < 140; clear += 9) {
      make(GpuPath::direct, 4 << 20, own_bytes);
      asks_ = (clear / 9 + own_bytes) % 2 != 0;  // make_jobs() asks where the batch before did not
      ASSERT_NO_FATAL_FAILURE(make_jobs(random, 260, Size::tiny, 720));
      for (std::uint32_t i = 0; i < 260; ++i) {
        jobs_[i].data = reinterpret_cast<std::uint64_t>(memory_ + std::size_t{i} * 720 + random() % 128);
        jobs_[i].cipher_offset = static_cast<std::uint16_t>(clear);
        jobs_[i].cipher_length = static_cast<std::uint16_t>(i);
      }
      seal_what_is_opened(random, 260);
      ASSERT_NO_FATAL_FAILURE(compare(260));
    }
  }
}

// A tag that begins in a packet's first unit. In front of the packet are the batch's verdicts, of which a lane of the
// host shim writes its own only when those before it have written what they have.
TEST_F(GpuCryptoTest, NothingInFrontOfAPacketIsWritten) {
  std::mt19937 random(23);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  std::uint32_t slot = 0;
  while (keys_.key(slot).tag_length != 4) ++slot;
  for (const std::size_t own_bytes : {0, 15}) {
    make(GpuPath::direct, 4 << 20, own_bytes);
    make_jobs(random, 4, Size::tiny, 512);
    for (std::uint32_t i = 0; i < 4; ++i) jobs_[i].flags = 0;
    auto* const verdicts = reinterpret_cast<Verdict*>(memory_ + 4096);
    jobs_[3].data = reinterpret_cast<std::uint64_t>(verdicts + 4);
    jobs_[3].key = slot;
    jobs_[3].cipher_offset = 2;
    jobs_[3].cipher_length = 3;
    jobs_[3].tag_gap = 1;
    std::fill(verdicts, verdicts + 4, Verdict{0xee});
    ASSERT_TRUE(crypto_->run({jobs_, verdicts, 4}, gpu_->stream(0)));
    wait(gpu_->stream(0));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(verdicts[i], Verdict::done) << i;
  }
}

TEST_F(GpuCryptoTest, TheLongestPackets) {
  std::mt19937 random(13);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  for (const GpuPath path : {GpuPath::copy, GpuPath::direct}) {
    crypto_.reset();
    auto made = GpuCrypto::create(*gpu_, keys_, {.max_packets = 24, .max_packet_bytes = 65'535, .path = path});
    ASSERT_TRUE(made);
    crypto_ = std::move(*made);
    make_jobs(random, slots, Size::tiny, 70'000);
    for (std::uint32_t i = 0; i < slots; ++i) {
      jobs_[i].key = i;
      jobs_[i].cipher_offset = static_cast<std::uint16_t>(i % 3 == 0 ? 12 : 3000);
      jobs_[i].cipher_length = static_cast<std::uint16_t>(65'300 - jobs_[i].cipher_offset + i % 4);
    }
    seal_what_is_opened(random, slots);
    ASSERT_NO_FATAL_FAILURE(compare(slots));
  }
}

TEST_F(GpuCryptoTest, AnEmptyBatchAndOneTooLarge) {
  make(GpuPath::automatic);
  EXPECT_TRUE(crypto_->run({jobs_, verdicts_, 0}, gpu_->stream(0)));
  const auto many = crypto_->run({jobs_, verdicts_, most_jobs + 1}, gpu_->stream(0));
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "a batch of 701 packets: max_packets is 700");
  jobs_[0] = {};
  jobs_[0].cipher_length = 9300;
  const auto lengthy = crypto_->run({jobs_, verdicts_, 1}, gpu_->stream(0));
  ASSERT_FALSE(lengthy);
  EXPECT_EQ(lengthy.error().message, "a packet of 9300 bytes: max_packet_bytes is 9216");
  auto other = device::Gpu::open(0, 1);
  ASSERT_TRUE(other);
  jobs_[0].cipher_length = 1;
  EXPECT_FALSE(crypto_->run({jobs_, verdicts_, 1}, (*other)->stream(0)));
}

// A slot is not done before its key has come, nor after it has gone; others go on.
TEST_F(GpuCryptoTest, KeysComeAndGoBetweenBatches) {
  std::mt19937 random(17);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  make(GpuPath::direct);
  EXPECT_TRUE(crypto_->up_to_date());
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i) {  // the same slots are taken again, by other keys
      keys_.release(random() % 2 == 0 ? 3 : 4);
      install_random(keys_, random);
    }
    EXPECT_FALSE(crypto_->up_to_date());
    ASSERT_NO_FATAL_FAILURE(sync_all());
    make_jobs(random, 60, Size::any, 0);
    ASSERT_NO_FATAL_FAILURE(compare(60, round % 2));
  }
  make_jobs(random, 2, Size::tiny, 512);
  jobs_[0].key = 5;
  jobs_[1].key = 6;
  jobs_[0].flags = jobs_[1].flags = 0;
  keys_.release(5);
  ASSERT_NO_FATAL_FAILURE(sync_all());
  const Bytes before(memory_, memory_ + memory_bytes);
  ASSERT_NO_FATAL_FAILURE(run(2));
  EXPECT_EQ(verdicts_[0], Verdict::tag_mismatch);
  EXPECT_EQ(verdicts_[1], Verdict::done);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 512, memory_));
  EXPECT_FALSE(std::equal(before.begin() + 512, before.end(), memory_ + 512));
}

// One stream's batch is under way while keys change, and another's names the new ones.
TEST_F(GpuCryptoTest, KeysChangeWhileABatchRuns) {
  std::mt19937 random(19);
  for (std::uint32_t i = 0; i < slots; ++i) install_random(keys_, random);
  make(GpuPath::direct);
  constexpr std::uint32_t half = 300;
  for (int round = 0; round < 10; ++round) {
    make_jobs(random, 2 * half, Size::ordinary, 1552);
    for (std::uint32_t i = 0; i < 2 * half; ++i) {
      jobs_[i].key = i < half ? i % (slots - 4) : slots - 4 + i % 4;
      jobs_[i].flags &= job_has_suffix;
    }
    const Bytes before(memory_, memory_ + memory_bytes);
    ASSERT_TRUE(crypto_->run({jobs_, verdicts_, half}, gpu_->stream(0)));
    for (std::uint32_t slot = slots - 4; slot < slots; ++slot) {
      keys_.release(slot);
      ASSERT_EQ(install_random(keys_, random), slot);
    }
    while (!crypto_->up_to_date()) ASSERT_TRUE(crypto_->sync(gpu_->stream(0)));
    ASSERT_TRUE(crypto_->run({jobs_ + half, verdicts_ + half, half}, gpu_->stream(1)));
    wait(gpu_->stream(0));
    wait(gpu_->stream(1));
    const Bytes sealed(memory_, memory_ + memory_bytes);
    std::copy(before.begin(), before.end(), memory_);
    std::vector<Verdict> verdicts(std::size_t{2} * half);
    cpu_.run(keys_, {jobs_, 2 * half}, verdicts);
    ASSERT_TRUE(std::equal(sealed.begin(), sealed.end(), memory_)) << round;
    for (std::uint32_t i = 0; i < 2 * half; ++i) ASSERT_EQ(verdicts_[i], Verdict::done);
  }
}

TEST_F(GpuCryptoTest, ALostGpuIsSaid) {
  make(GpuPath::automatic);
  gpu_->lose("pulled out");
  EXPECT_EQ(crypto_->sync(gpu_->stream(0)).error().message, "GPU lost: pulled out");
  EXPECT_EQ(crypto_->run({jobs_, verdicts_, 1}, gpu_->stream(0)).error().message, "GPU lost: pulled out");
}

TEST(KeyChanges, ASlotComesOnceAsItIsNow) {
  KeyTable keys = KeyTable::make(8, true).value();
  std::mt19937 random(1);
  install_random(keys, random);
  const unsigned one = keys.follow(gpu_side());
  install_random(keys, random);
  const unsigned two = keys.follow(gpu_side());
  keys.release(0);
  std::vector<KeyRecord> records(8);
  EXPECT_TRUE(keys.has_changes(one) && keys.has_changes(two));
  ASSERT_EQ(keys.take_changes(one, {records.data(), 1}), 1U);
  EXPECT_TRUE(keys.has_changes(one));
  ASSERT_EQ(keys.take_changes(one, {records.data() + 1, 1}), 1U);
  EXPECT_FALSE(keys.has_changes(one));
  EXPECT_EQ(keys.take_changes(one, records), 0U);
  ASSERT_EQ(keys.take_changes(two, {records.data() + 2, 6}), 2U);
  const auto bytes_of = [](const Key& key) {
    return std::string_view(reinterpret_cast<const char*>(&key), sizeof key);
  };
  for (std::size_t i = 0; i < 4; ++i) {
    const KeyRecord& record = records[i];
    EXPECT_EQ(bytes_of(record.key), bytes_of(keys.key(record.slot)));
    EXPECT_EQ(record.key.cipher == Cipher::none, record.slot == 0);
  }
}

}  // namespace
}  // namespace sluice::crypto
