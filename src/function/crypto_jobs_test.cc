// Seals and opens as jobs: known answers on cores and on the GPU (or the host SIMT shim), one beside the other, and
// when a GPU fails.
#include "function/crypto_jobs.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>

#include <map>
#include <random>

#include "../tests/support/gpu.h"
#include "crypto/algorithm.h"
#include "crypto/hex.h"
#include "crypto/known_answers.h"
#include "engine/job_trial_test.h"

namespace sluice::function {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Request = CryptoJobs::Request;

struct Sealed {
  crypto::Verdict verdict;
  Bytes clear, text, tag;
  bool operator==(const Sealed&) const = default;
};

// Queues as an engine has them, of which a test calls every look.
class Bed {
 public:
  explicit Bed(unsigned gpus) {
    for (unsigned g = 0; g < gpus; ++g) gpus_.push_back(device::Gpu::open(0, 2).value());
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(std::make_unique<engine::Submitter>(*engine::find_job_kind(CryptoJobs::kind_name)));
    pipeline_ = std::make_unique<engine::Pipeline>(std::move(elements));
    const std::chrono::milliseconds long_enough(1'000);  // that the shim takes no longer
    service_ =
        engine::JobService::create(
            *pipeline_,
            {.gpus = gpus_,
             .memory = [this](std::size_t bytes) { return memory(bytes); },
             .worker_bells = {},
             .timing =
                 {.cycle = std::chrono::nanoseconds(1), .bound = {}, .deadline = {}, .overlap = 1, .jobs = long_enough},
             .clock = {.now = [] { return static_cast<std::uint64_t>(rte_rdtsc()); }, .hz = rte_get_tsc_hz()}})
            .value();
    EXPECT_TRUE(service_->notify_users(*pipeline_));
    queue_ = service_->find(CryptoJobs::kind_name);
    client_ = queue_->open(512);
    for (unsigned g = 0; g < gpus; ++g) service_->device(g).join();
    queue_->start();
  }
  ~Bed() {
    client_.reset();
    service_.reset();
    pipeline_.reset();
    gpus_.clear();
    for (void* base : heap_) std::free(base);
  }
  Bed(const Bed&) = delete;

  CryptoJobs& crypto() { return CryptoJobs::of(*queue_); }
  device::Gpu& gpu(unsigned g) { return *gpus_[g]; }
  engine::JobDevice& device(unsigned g) { return service_->device(g); }
  engine::JobCounters counters() const { return queue_->counters(); }

  void submit(std::uint64_t tag, const Request& request) {
    ASSERT_EQ(crypto().why_not(request), "");
    ASSERT_EQ(client_->submit(tag, ~std::uint64_t{0}, [&](std::byte* job) { crypto().write(request, job); }),
              engine::JobRefusal::none);
  }
  // Until all that were submitted are back; by tag.
  std::map<std::uint64_t, Sealed> finish() {
    std::map<std::uint64_t, Sealed> all;
    while (client_->under_way() != 0) {
      service_->cores().round();
      for (unsigned g = 0; g < gpus_.size(); ++g) {
        if (!service_->device(g).work(false)) service_->device(g).leave(rte_rdtsc() + rte_get_tsc_hz());
      }
      client_->poll([&](const engine::JobAnswer& answer) {
        EXPECT_TRUE(answer.done());
        const CryptoJobs::Result result = CryptoJobs::result(answer.job);
        all[answer.tag] = {result.verdict, Bytes(result.clear.begin(), result.clear.end()),
                           Bytes(result.text.begin(), result.text.end()), Bytes(result.tag.begin(), result.tag.end())};
      });
    }
    EXPECT_EQ(counters().imbalance(), 0);
    return all;
  }

 private:
  Expected<void*> memory(std::size_t bytes) {
    if (!gpus_.empty()) return gpus_.front()->allocate_host(bytes);
    heap_.push_back(std::aligned_alloc(64, bytes));
    std::memset(heap_.back(), 0, bytes);
    return heap_.back();
  }

  std::vector<std::unique_ptr<device::Gpu>> gpus_;
  std::vector<void*> heap_;
  std::unique_ptr<engine::Pipeline> pipeline_;
  std::unique_ptr<engine::JobService> service_;
  engine::JobQueue* queue_ = nullptr;
  engine::JobClientHandle client_;
};

class CryptoJobsTest : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); GetParam() != 0 && !why.empty()) GTEST_SKIP() << why;
  }
};
INSTANTIATE_TEST_SUITE_P(OnCoresAndGpus, CryptoJobsTest, testing::Values(0U, 1U, 2U));

TEST_P(CryptoJobsTest, KnownAnswersComeOut) {
  Bed bed(GetParam());
  auto answers = crypto::known_answers();
  std::erase_if(answers, [](const crypto::RegisteredAnswer& one) {  // there is no job of nothing
    return one.answer->clear.empty() && one.answer->text.empty();
  });
  ASSERT_GT(answers.size(), 5U);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const crypto::KnownAnswer& one = *answers[i].answer;
    const Bytes tag = crypto::from_hex(one.tag), nonce = crypto::from_hex(one.nonce);
    const Bytes clear = crypto::from_hex(one.clear), suffix = crypto::from_hex(one.suffix);
    const auto key = [&](bool opens) {
      return bed.crypto()
          .keys()
          .install({answers[i].algorithm->cipher, answers[i].algorithm->hash, crypto::from_hex(one.cipher_key),
                    crypto::from_hex(one.salt), crypto::from_hex(one.auth_key), static_cast<std::uint8_t>(tag.size()),
                    opens})
          .value();
    };
    Bytes before = clear;
    std::ranges::copy(crypto::from_hex(one.block), before.end() - static_cast<std::ptrdiff_t>(one.block.size() / 2));
    Request request{.key = key(false), .nonce = nonce, .clear = before, .suffix = suffix};
    const Bytes text = crypto::from_hex(one.text), sealed = crypto::from_hex(one.sealed);
    request.text = text;
    bed.submit(3 * i, request);
    request.opens = true;
    request.key = key(true);
    request.clear = clear;
    request.text = sealed;
    request.tag = tag;
    bed.submit(3 * i + 1, request);
    Bytes wrong = tag;
    wrong.back() ^= 1;
    request.tag = wrong;
    bed.submit(3 * i + 2, request);
  }
  const auto results = bed.finish();
  std::uint64_t by_gpu = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const crypto::KnownAnswer& one = *answers[i].answer;
    EXPECT_EQ(results.at(3 * i), (Sealed{crypto::Verdict::done, crypto::from_hex(one.clear),
                                         crypto::from_hex(one.sealed), crypto::from_hex(one.tag)}))
        << one.name;
    EXPECT_EQ(results.at(3 * i + 1), (Sealed{crypto::Verdict::done, crypto::from_hex(one.clear),
                                             crypto::from_hex(one.text), crypto::from_hex(one.tag)}))
        << one.name;
    EXPECT_EQ(results.at(3 * i + 2).verdict, crypto::Verdict::tag_mismatch) << one.name;
    by_gpu += crypto::gpu_side().can(*answers[i].algorithm, one.cipher_key.size() / 2) ? 3 : 0;
  }
  EXPECT_LT(by_gpu, 3 * answers.size()) << "some only cores can do";
  EXPECT_EQ(bed.counters().jobs_gpu, GetParam() == 0 ? 0 : by_gpu);
  EXPECT_EQ(bed.counters().completed, 3 * answers.size());
}

// Requests of all lengths, the same ones for every bed.
struct Made {
  std::vector<Bytes> nonce, clear, text, suffix;
  std::vector<std::uint32_t> key;

  Made(Bed& bed, std::size_t count) {
    std::mt19937 random(5);
    const auto bytes = [&](std::size_t length) {
      Bytes made(length);
      for (auto& byte : made) byte = static_cast<std::uint8_t>(random());
      return made;
    };
    std::vector<std::uint32_t> keys;
    for (const std::size_t length : {16, 32}) {
      keys.push_back(bed.crypto()
                         .keys()
                         .install({crypto::Cipher::aes_gcm, crypto::Hash::none, bytes(length), bytes(12), {}, 16})
                         .value());
      keys.push_back(
          bed.crypto()
              .keys()
              .install({crypto::Cipher::aes_ctr, crypto::Hash::hmac_sha1, bytes(length), bytes(14), bytes(20), 10})
              .value());
    }
    keys.push_back(
        bed.crypto().keys().install({crypto::Cipher::null, crypto::Hash::hmac_sha1, {}, {}, bytes(20), 20}).value());
    for (std::size_t i = 0; i < count; ++i) {
      key.push_back(keys[random() % keys.size()]);
      nonce.push_back(bytes(10));
      clear.push_back(bytes(1 + random() % 40));
      text.push_back(bytes(i == 0 ? CryptoJobs::most_bytes - clear[0].size() - 20 : random() % 3'000));
      suffix.push_back(bytes(random() % 2 * 4));
    }
  }
  Request request(std::size_t i) const {
    return {.key = key[i], .nonce = nonce[i], .clear = clear[i], .text = text[i], .suffix = suffix[i]};
  }
};

TEST_P(CryptoJobsTest, DoAsTheCpuDoesAndOpenWhatTheySealed) {
  constexpr std::size_t count = 120;
  Bed cores(0), bed(GetParam());
  const Made of_cores(cores, count), made(bed, count);
  for (std::size_t i = 0; i < count; ++i) {
    cores.submit(i, of_cores.request(i));
    bed.submit(i, made.request(i));
  }
  const auto sealed = bed.finish();
  ASSERT_EQ(cores.finish(), sealed);
  for (std::size_t i = 0; i < count; ++i) {
    Request request = made.request(i);
    request.opens = true;
    request.text = sealed.at(i).text;
    request.tag = sealed.at(i).tag;
    bed.submit(i, request);
  }
  const auto opened = bed.finish();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(opened.at(i), (Sealed{crypto::Verdict::done, made.clear[i], made.text[i], sealed.at(i).tag})) << i;
  }
}

// Of two, the one that fails has changed its jobs' bytes already.
TEST(CryptoJobs, AGpuThatFailsLosesNone) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::size_t count = 60;
  Bed cores(0), bed(2);
  const Made of_cores(cores, count), made(bed, count);
  for (std::size_t i = 0; i < count; ++i) {
    cores.submit(i, of_cores.request(i));
    bed.submit(i, made.request(i));
  }
  while (!bed.device(0).under_way()) ASSERT_TRUE(bed.device(0).work(false));
  bed.gpu(0).lose("for a test");
  ASSERT_EQ(cores.finish(), bed.finish());
  const engine::JobCounters all = bed.counters();
  EXPECT_GT(all.handed_over, 0U);
  EXPECT_GT(all.jobs_gpu, 0U);
  EXPECT_EQ(all.completed, count);
}

// A key that comes while others' jobs are done is there when the first job that names it is.
TEST_P(CryptoJobsTest, KeysComeAndGoBetweenJobs) {
  Bed bed(GetParam());
  std::map<std::uint64_t, Sealed> before;
  for (std::uint8_t round = 0; round < 8; ++round) {
    const Bytes secret(32, round), nonce(10, 1), text(100, 2);
    const std::uint32_t key =
        bed.crypto()
            .keys()
            .install({crypto::Cipher::aes_gcm, crypto::Hash::none, secret, std::span(secret).first(12), {}, 16})
            .value();
    bed.submit(round, {.key = key, .nonce = nonce, .text = text});
    const auto sealed = bed.finish();
    EXPECT_EQ(sealed.at(round).verdict, crypto::Verdict::done);
    for (const auto& [tag, other] : before) EXPECT_NE(other.text, sealed.at(round).text);
    before.insert(*sealed.begin());
    bed.crypto().keys().release(key);
  }
}

TEST(CryptoJobs, SayWhatIsWrongWithARequest) {
  Bed bed(0);
  const Bytes secret(32, 1), long_text(CryptoJobs::most_bytes, 0), nonce(10), text(4);
  const std::uint32_t key =
      bed.crypto()
          .keys()
          .install({crypto::Cipher::aes_gcm, crypto::Hash::none, secret, std::span(secret).first(12), {}, 16})
          .value();
  const auto why = [&](const Request& request) { return bed.crypto().why_not(request); };
  EXPECT_EQ(why({.key = key, .nonce = nonce, .text = text}), "");
  EXPECT_EQ(why({.key = key + 1, .nonce = nonce, .text = text}), "key 1 is not installed");
  EXPECT_EQ(why({.key = 99'999, .nonce = nonce, .text = text}), "key 99999 is not installed");
  EXPECT_EQ(why({.key = key, .nonce = text, .text = text}), "a nonce of 4 bytes: it has 10");
  EXPECT_EQ(why({.key = key, .nonce = nonce, .text = text, .suffix = nonce}),
            "a suffix of 10 bytes: it has 4, or there is none");
  EXPECT_EQ(why({.key = key, .nonce = nonce, .text = text, .tag = text}), "a tag of 4 bytes: a seal makes it");
  EXPECT_EQ(why({.opens = true, .key = key, .nonce = nonce, .text = text, .tag = text}),
            "a tag of 4 bytes: the key's have 16");
  EXPECT_EQ(why({.key = key, .nonce = nonce}), "there is nothing to seal or open");
  EXPECT_EQ(why({.key = key, .nonce = nonce, .text = long_text}), "16656 bytes with the tag: the most is 16640");
  const std::uint32_t esp =
      bed.crypto()
          .keys()
          .install({crypto::Cipher::aes_cbc, crypto::Hash::hmac_sha1, secret, {}, std::span(secret).first(20), 12})
          .value();
  EXPECT_EQ(why({.key = esp, .nonce = nonce, .clear = std::span(secret).first(24), .text = text}),
            "aes_cbc_hmac_sha1: a text of 4 bytes: must be whole blocks of 16, one at least");
}

}  // namespace
}  // namespace sluice::function
