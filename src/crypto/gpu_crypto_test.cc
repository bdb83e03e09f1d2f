// The GPU's jobs (or the host SIMT shim's) against the known answers and, on random batches, against the CPU's.
#include "crypto/gpu_crypto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/algorithm.h"
#include "crypto/cpu.h"
#include "crypto/gpu_crypto_trial_test.h"
#include "crypto/known_answers.h"

namespace sluice::crypto {
namespace {

INSTANTIATE_TEST_SUITE_P(Of, GpuCryptoTest, testing::Values(Repertoire::media, Repertoire::all),
                         [](const auto& of) { return of.param == Repertoire::media ? "Media" : "All"; });

constexpr Side media_side = {.name = "SRTP's", .priority = 1, .can = is_of_media};

TEST_P(GpuCryptoTest, KnownAnswersComeOut) {
  for (const GpuPath path : {GpuPath::direct, GpuPath::copy}) {
    for (const bool opens : {false, true}) {
      auto batch = KnownAnswerBatch::make(opens, GetParam() == Repertoire::all ? &gpu_side() : &media_side);
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

TEST_P(GpuCryptoTest, BatchesDoAsTheCpuDoes) {
  std::mt19937 random(7);
  install_keys(random);
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
TEST_P(GpuCryptoTest, BatchesTogetherDoAsTheCpuDoes) {
  std::mt19937 random(19);
  install_keys(random);
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
TEST_P(GpuCryptoTest, EveryLengthAtEveryPlace) {
  std::mt19937 random(11);
  install_keys(random);
  for (const std::size_t own_bytes : {0, 15}) {
    for (std::uint32_t clear = 1; clear < 140; clear += 9) {
      make(GpuPath::direct, 4 << 20, own_bytes);
      asks_ = (clear / 9 + own_bytes) % 2 != 0;  // make_jobs() asks where the batch before did not
      ASSERT_NO_FATAL_FAILURE(make_jobs(random, 260, Size::tiny, 720));
      for (std::uint32_t i = 0; i < 260; ++i) {
        jobs_[i].data = reinterpret_cast<std::uint64_t>(memory_ + std::size_t{i} * 720 + random() % 128);
        jobs_[i].cipher_offset = static_cast<std::uint16_t>(clear);
        jobs_[i].cipher_length = static_cast<std::uint16_t>(i);
        fit(jobs_[i]);
      }
      seal_what_is_opened(random, 260);
      ASSERT_NO_FATAL_FAILURE(compare(260));
    }
  }
}

// A tag that begins in a packet's first unit. In front of the packet are the batch's verdicts, of which a lane of the
// host shim writes its own only when those before it have written what they have.
TEST_P(GpuCryptoTest, NothingInFrontOfAPacketIsWritten) {
  std::mt19937 random(23);
  install_keys(random);
  all_keys_.release(7);
  const std::uint32_t slot = all_keys_.install(*algorithm(Cipher::aes_ctr, Hash::hmac_sha1), 16, 4, random);
  for (const std::size_t own_bytes : {0, 15}) {
    make(GpuPath::direct, 4 << 20, own_bytes);
    make_jobs(random, 4, Size::tiny, 512);
    for (std::uint32_t i = 0; i < 4; ++i) {
      jobs_[i].key = slot;
      jobs_[i].flags = 0;
    }
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

TEST_P(GpuCryptoTest, TheLongestPackets) {
  std::mt19937 random(13);
  install_keys(random);
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
      fit(jobs_[i]);
    }
    seal_what_is_opened(random, slots);
    ASSERT_NO_FATAL_FAILURE(compare(slots));
  }
}

TEST_P(GpuCryptoTest, AnEmptyBatchAndOneTooLarge) {
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
TEST_P(GpuCryptoTest, KeysComeAndGoBetweenBatches) {
  std::mt19937 random(17);
  install_keys(random);
  make(GpuPath::direct);
  EXPECT_TRUE(crypto_->up_to_date());
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 5; ++i) {  // the same slots are taken again, by other keys
      all_keys_.release(random() % 2 == 0 ? 3 : 4);
      install_random(random);
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
  all_keys_.release(5);
  ASSERT_NO_FATAL_FAILURE(sync_all());
  const Bytes before(memory_, memory_ + memory_bytes);
  ASSERT_NO_FATAL_FAILURE(run(2));
  EXPECT_EQ(verdicts_[0], Verdict::tag_mismatch);
  EXPECT_EQ(verdicts_[1], Verdict::done);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 512, memory_));
  EXPECT_FALSE(std::equal(before.begin() + 512, before.end(), memory_ + 512));
}

// One stream's batch is under way while keys change, and another's names the new ones.
TEST_P(GpuCryptoTest, KeysChangeWhileABatchRuns) {
  std::mt19937 random(19);
  // Which seal: what opens by CBC does nothing else.
  const auto install = [&] {
    return all_keys_.install_random(random, [](const Algorithm& one) {
      return one.cipher != Cipher::aes_cbc && (GetParam() == Repertoire::all || is_of_media(one));
    });
  };
  for (std::uint32_t i = 0; i < slots; ++i) install();
  make(GpuPath::direct);
  constexpr std::uint32_t half = 300;
  for (int round = 0; round < 10; ++round) {
    make_jobs(random, 2 * half, Size::ordinary, 1552);
    for (std::uint32_t i = 0; i < 2 * half; ++i) {
      jobs_[i].key = i < half ? i % (slots - 4) : slots - 4 + i % 4;
      jobs_[i].flags &= job_has_suffix;
      fit(jobs_[i]);
    }
    const Bytes before(memory_, memory_ + memory_bytes);
    ASSERT_TRUE(crypto_->run({jobs_, verdicts_, half}, gpu_->stream(0)));
    for (std::uint32_t slot = slots - 4; slot < slots; ++slot) {
      all_keys_.release(slot);
      ASSERT_EQ(install(), slot);
    }
    for (std::uint32_t i = half; i < 2 * half; ++i) fit(jobs_[i]);
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

TEST_P(GpuCryptoTest, ALostGpuIsSaid) {
  make(GpuPath::automatic);
  gpu_->lose("pulled out");
  EXPECT_EQ(crypto_->sync(gpu_->stream(0)).error().message, "GPU lost: pulled out");
  EXPECT_EQ(crypto_->run({jobs_, verdicts_, 1}, gpu_->stream(0)).error().message, "GPU lost: pulled out");
}

TEST(KeyChanges, ASlotComesOnceAsItIsNow) {
  std::mt19937 random(1);
  Keys made;
  KeyTable& keys = made.table;
  const auto install = [&] { made.install_random(random, [](const Algorithm&) { return true; }); };
  install();
  const unsigned one = keys.follow(gpu_side());
  install();
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
