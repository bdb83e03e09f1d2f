#include "function/crypto_jobs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "crypto/algorithm.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t most_jobs = 256, slots = 512;
constexpr std::size_t nonce_length = sizeof crypto::Job::nonce, suffix_length = sizeof crypto::Job::suffix;
// Behind the longest: what a device writes there (gpu_crypto.h), and what a core borrows.
constexpr std::size_t capacity = CryptoJobs::most_bytes + 64;

[[maybe_unused]] const bool registered =
    engine::register_job_kind({.name = CryptoJobs::kind_name,
                               .text = "seals and opens byte strings by the registered algorithms",
                               .make = CryptoJobs::make});

}  // namespace

// `asked` stays; `work` is what a device changes in place.
struct alignas(64) CryptoJobs::Record {
  crypto::Job job;
  std::uint32_t length;  // of what is asked
  std::uint32_t tag_length;
  crypto::Verdict verdict;
  alignas(64) std::uint8_t asked[capacity];
  alignas(64) std::uint8_t work[capacity];

  static Record& of(std::byte* job) { return *reinterpret_cast<Record*>(job); }
};

CryptoJobs::CryptoJobs(crypto::KeyTable keys, crypto::Cpu cpu)
    : keys_(std::move(keys)), cpu_(std::move(cpu)), jobs_(most_jobs), verdicts_(most_jobs) {}

Expected<std::unique_ptr<engine::JobKind>> CryptoJobs::make() {
  auto keys = crypto::KeyTable::make(most_keys, true);
  if (!keys) return tl::unexpected(keys.error());
  auto cpu = crypto::Cpu::make();
  if (!cpu) return tl::unexpected(cpu.error());
  return std::unique_ptr<engine::JobKind>(new CryptoJobs(std::move(*keys), std::move(*cpu)));
}

engine::JobKind::Shape CryptoJobs::shape() const {
  return {.bytes = sizeof(Record), .most = most_jobs, .slots = slots};
}

namespace {

// But for where its bytes are.
crypto::Job job_of(const CryptoJobs::Request& request) {
  crypto::Job job = {};
  job.key = request.key;
  job.cipher_offset = static_cast<std::uint16_t>(request.clear.size());
  job.cipher_length = static_cast<std::uint16_t>(request.text.size());
  job.flags = static_cast<std::uint8_t>((request.opens ? crypto::job_opens : 0) |
                                        (request.suffix.empty() ? 0 : crypto::job_has_suffix));
  std::ranges::copy(request.nonce, job.nonce);
  std::ranges::copy(request.suffix, job.suffix);
  return job;
}

}  // namespace

std::string CryptoJobs::why_not(const Request& request) const {
  if (request.key >= keys_.capacity() || keys_.key(request.key).cipher == crypto::Cipher::none) {
    return "key " + std::to_string(request.key) + " is not installed";
  }
  if (request.nonce.size() != nonce_length) {
    return "a nonce of " + std::to_string(request.nonce.size()) + " bytes: it has 10";
  }
  if (!request.suffix.empty() && request.suffix.size() != suffix_length) {
    return "a suffix of " + std::to_string(request.suffix.size()) + " bytes: it has 4, or there is none";
  }
  const std::size_t tag_length = keys_.key(request.key).tag_length;
  if (request.tag.size() != (request.opens ? tag_length : 0)) {
    return "a tag of " + std::to_string(request.tag.size()) + " bytes: " +
           (request.opens ? "the key's have " + std::to_string(tag_length) : std::string("a seal makes it"));
  }
  const std::size_t length = request.clear.size() + request.text.size() + tag_length;
  if (length == tag_length) return "there is nothing to seal or open";
  if (length > most_bytes) {
    return std::to_string(length) + " bytes with the tag: the most is " + std::to_string(most_bytes);
  }
  return crypto::why_no_job(keys_.key(request.key), job_of(request));
}

void CryptoJobs::write(const Request& request, std::byte* job) const {
  Record& record = Record::of(job);
  record.job = job_of(request);
  record.job.data = reinterpret_cast<std::uint64_t>(record.work);
  record.tag_length = keys_.key(request.key).tag_length;
  record.verdict = crypto::Verdict::tag_mismatch;
  std::uint8_t* to = record.asked;
  for (const Bytes part : {request.clear, request.text, request.tag}) to = std::ranges::copy(part, to).out;
  record.length = static_cast<std::uint32_t>(to - record.asked);
  std::memcpy(record.work, record.asked, record.length);
}

CryptoJobs::Result CryptoJobs::result(std::span<const std::byte> job) {
  const auto& record = *reinterpret_cast<const Record*>(job.data());
  const std::uint8_t* const text = record.work + record.job.cipher_offset;
  return {record.verdict,
          {record.work, record.job.cipher_offset},
          {text, record.job.cipher_length},
          {text + record.job.cipher_length, record.tag_length}};
}

Expected<bool> CryptoJobs::attach(device::Gpu& gpu, std::uint32_t device) {
  devices_.resize(std::max<std::size_t>(devices_.size(), device + 1));
  OnDevice& on = devices_[device];
  auto made = crypto::GpuCrypto::create(gpu, keys_, {.max_packets = most_jobs, .max_packet_bytes = most_bytes});
  if (!made) return tl::unexpected(made.error());
  on.crypto = std::move(*made);
  auto jobs = gpu.allocate_host(most_jobs * sizeof(crypto::Job));
  if (!jobs) return tl::unexpected(jobs.error());
  on.jobs = static_cast<crypto::Job*>(*jobs);
  auto verdicts = gpu.allocate_host(most_jobs * sizeof(crypto::Verdict));
  if (!verdicts) return tl::unexpected(verdicts.error());
  on.verdicts = static_cast<crypto::Verdict*>(*verdicts);
  return true;
}

bool CryptoJobs::on_device(const std::byte* job) const {
  static constexpr auto sides = [] { return std::array{&crypto::cpu_side(), &crypto::gpu_side()}; };
  const crypto::Key& key = keys_.key(reinterpret_cast<const Record*>(job)->job.key);
  return crypto::side_for(sides(), key.cipher, key.hash, crypto::key_length(key)) == &crypto::gpu_side();
}

Expected<bool> CryptoJobs::ready(std::uint32_t device, device::GpuStream& stream) {
  if (auto ok = devices_[device].crypto->sync(stream); !ok) return tl::unexpected(ok.error());
  return devices_[device].crypto->up_to_date();
}

Expected<void> CryptoJobs::launch(engine::JobBatch jobs, std::uint32_t device, device::GpuStream& stream) {
  OnDevice& on = devices_[device];
  for (std::size_t i = 0; i < jobs.size(); ++i) on.jobs[i] = Record::of(jobs[i]).job;
  return on.crypto->run({on.jobs, on.verdicts, static_cast<std::uint32_t>(jobs.size())}, stream);
}

void CryptoJobs::finish(engine::JobBatch jobs, std::uint32_t device) {
  for (std::size_t i = 0; i < jobs.size(); ++i) Record::of(jobs[i]).verdict = devices_[device].verdicts[i];
}

// A GPU may have begun them.
void CryptoJobs::compute(engine::JobBatch jobs) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Record& record = Record::of(jobs[i]);
    std::memcpy(record.work, record.asked, record.length);
    jobs_[i] = record.job;
  }
  cpu_.run(keys_, std::span(jobs_).first(jobs.size()), std::span(verdicts_).first(jobs.size()));
  for (std::size_t i = 0; i < jobs.size(); ++i) Record::of(jobs[i]).verdict = verdicts_[i];
}

}  // namespace sluice::function
