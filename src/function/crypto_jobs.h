// Seals and opens of byte strings that are no frames, such as records of TLS, as jobs of the kind "crypto"
// (engine/jobs.h): what the registered algorithms do (crypto/algorithm.h), by intel-ipsec-mb on a core and by the
// kernels of gpu_crypto on a GPU. Which of them does a job, side_for() says by its key; the bytes are the same.
//
//     CryptoJobs& crypto = CryptoJobs::of(*queue);
//     const std::uint32_t key = crypto.keys().install({...}).value();
//     const CryptoJobs::Request seal{.key = key, .nonce = nonce, .clear = header, .text = text};
//     if (std::string why = crypto.why_not(seal); !why.empty()) ...
//     client->submit(tag, deadline, [&](std::byte* job) { crypto.write(seal, job); });
//     client->poll([&](const engine::JobAnswer& answer) { ... CryptoJobs::result(answer.job) ... });
//
// What is authenticated, and how a nonce is used, crypto/job.h says. A key is installed before a job names it, and
// released when no job that names it is under way.
//
// Thread-safety: any thread, but what is JobKind's. Cost: write() copies the bytes twice, since a job that a GPU has
// begun must be done again when that GPU fails. Memory: 33 KB for each of 512 slots, pinned; 2.2 MB of keys; on a GPU
// 4.3 MB for each of its streams.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "crypto/cpu.h"
#include "crypto/gpu_crypto.h"
#include "crypto/job.h"
#include "crypto/key_table.h"
#include "engine/jobs.h"

namespace sluice::function {

class CryptoJobs final : public engine::JobKind {
 public:
  static constexpr std::string_view kind_name = "crypto";
  static constexpr std::uint32_t most_bytes = 16384 + 256;  // of clear, text and tag together: a record of TLS 1.3
  static constexpr std::uint32_t most_keys = 1024;

  using Bytes = std::span<const std::uint8_t>;
  struct Request {
    bool opens = false;  // else it seals
    std::uint32_t key = 0;
    Bytes nonce = {};   // 10 bytes
    Bytes clear = {};   // authenticated only
    Bytes text = {};    // to be enciphered, or enciphered
    Bytes tag = {};     // opens: of the key's tag length
    Bytes suffix = {};  // 4 bytes that are authenticated, too, or none
  };
  struct Result {
    crypto::Verdict verdict;
    Bytes clear;  // as it was, but for aes_cbc's IV that a seal has made
    Bytes text;   // sealed or opened; of a tag_mismatch it may be anything
    Bytes tag;    // seals: the tag
  };

  static Expected<std::unique_ptr<engine::JobKind>> make();
  // `queue` is of this kind.
  static CryptoJobs& of(engine::JobQueue& queue) { return static_cast<CryptoJobs&>(queue.kind()); }

  crypto::KeyTable& keys() { return keys_; }
  // Empty, or what is wrong with the request.
  std::string why_not(const Request& request) const;
  // Of a request with which nothing is wrong.
  void write(const Request& request, std::byte* job) const;
  static Result result(std::span<const std::byte> job);

  Shape shape() const override;
  Expected<bool> attach(device::Gpu& gpu, std::uint32_t device) override;
  void detach(std::uint32_t device) override {
    if (device < devices_.size()) devices_[device] = {};
  }
  bool on_device(const std::byte* job) const override;
  Expected<bool> ready(std::uint32_t device, device::GpuStream& stream) override;
  Expected<void> launch(engine::JobBatch jobs, std::uint32_t device, device::GpuStream& stream) override;
  void finish(engine::JobBatch jobs, std::uint32_t device) override;
  void compute(engine::JobBatch jobs) override;

 private:
  struct Record;
  struct OnDevice {
    std::unique_ptr<crypto::GpuCrypto> crypto;
    crypto::Job* jobs = nullptr;
    crypto::Verdict* verdicts = nullptr;
  };
  CryptoJobs(crypto::KeyTable keys, crypto::Cpu cpu);

  crypto::KeyTable keys_;
  crypto::Cpu cpu_;
  std::vector<crypto::Job> jobs_;  // of a batch on the core
  std::vector<crypto::Verdict> verdicts_;
  std::vector<OnDevice> devices_;
};

}  // namespace sluice::function
