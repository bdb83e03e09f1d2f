#include "bench/srtp_packets.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>

#include "packet/frame_mix.h"

namespace sluice::cli::bench {
namespace {

constexpr std::uint32_t rtp_bytes = 12;

constexpr std::array suites = {
    SrtpSuite{"AES_CM_128_HMAC_SHA1_80", crypto::Cipher::aes_ctr, 16, 10},
    SrtpSuite{"AES_CM_128_HMAC_SHA1_32", crypto::Cipher::aes_ctr, 16, 4},
    SrtpSuite{"AES_256_CM_HMAC_SHA1_80", crypto::Cipher::aes_ctr, 32, 10},
    SrtpSuite{"AES_256_CM_HMAC_SHA1_32", crypto::Cipher::aes_ctr, 32, 4},
    SrtpSuite{"AEAD_AES_128_GCM", crypto::Cipher::aes_gcm, 16, 16},
    SrtpSuite{"AEAD_AES_256_GCM", crypto::Cipher::aes_gcm, 32, 16},
};

// The packet's bytes follow from its number, so that nothing need be kept to compare with.
void fill(std::uint8_t* at, std::uint32_t length, std::uint32_t number) {
  std::minstd_rand random(number + 1);
  for (std::uint32_t i = 0; i < length; i += 4) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(at + i, &word, std::min<std::size_t>(4, length - i));
  }
}

Expected<void> install(crypto::KeyTable& keys, const SrtpSuite& suite, std::uint32_t streams) {
  std::mt19937 random(3);
  std::array<std::uint8_t, 32> key{}, salt{}, auth{};
  const bool gcm = suite.cipher == crypto::Cipher::aes_gcm;
  for (std::uint32_t s = 0; s < streams; ++s) {
    for (auto* bytes : {&key, &salt, &auth}) {
      for (std::uint8_t& byte : *bytes) {
        byte = static_cast<std::uint8_t>(random());
      }
    }
    const auto slot = keys.install({suite.cipher, gcm ? crypto::Hash::none : crypto::Hash::hmac_sha1,
                                    std::span(key).first(suite.key_bytes), std::span(salt).first(gcm ? 12 : 14),
                                    std::span(auth).first(gcm ? 0 : 20), static_cast<std::uint8_t>(suite.tag_bytes)});
    if (!slot) {
      return tl::unexpected(slot.error());
    }
  }
  return {};
}

crypto::Job job_of(const SrtpSuite& suite, std::uint8_t* packet, std::uint32_t text, std::uint32_t number,
                   std::uint32_t streams) {
  crypto::Job job = {};
  job.data = reinterpret_cast<std::uint64_t>(packet);
  job.key = number % streams;
  const std::uint32_t index = number / streams;
  std::memcpy(job.nonce, &job.key, 4);
  std::memcpy(job.nonce + 6, &index, 4);
  job.cipher_offset = rtp_bytes;
  job.cipher_length = static_cast<std::uint16_t>(text);
  job.flags = suite.cipher == crypto::Cipher::aes_gcm ? 0 : crypto::job_has_suffix;
  return job;
}

}  // namespace

std::span<const SrtpSuite> srtp_suites() {
  return suites;
}

Expected<SrtpPackets> SrtpPackets::make(device::Gpu& gpu, void* memory, std::uint32_t count, const std::string& mix,
                                        const SrtpSuite& suite, std::uint32_t streams) {
  auto sizes = packet::FrameMix::make(mix);
  if (!sizes) {
    return tl::unexpected(sizes.error());
  }
  auto keys = crypto::KeyTable::make(streams, suite.cipher == crypto::Cipher::aes_gcm);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  if (auto ok = install(*keys, suite, streams); !ok) {
    return tl::unexpected(ok.error());
  }
  SrtpPackets packets(std::move(*keys));
  auto jobs = gpu.allocate_host(std::size_t{count} * sizeof(crypto::Job));
  auto verdicts = gpu.allocate_host(count);
  if (!jobs || !verdicts) {
    return tl::unexpected(!jobs ? jobs.error() : verdicts.error());
  }
  packets.jobs_ = static_cast<crypto::Job*>(*jobs);
  packets.verdicts_ = static_cast<crypto::Verdict*>(*verdicts);
  packets.count_ = count;
  packets.tag_bytes_ = suite.tag_bytes;
  packets.sum_.push_back(0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t most = pitch - 128 - crypto::max_tag_length;
    const std::uint32_t frame = std::clamp<std::uint32_t>(sizes->next(), header_bytes + rtp_bytes, most);
    const std::uint32_t text = frame - header_bytes - rtp_bytes;
    std::uint8_t* const packet = static_cast<std::uint8_t*>(memory) + std::size_t{i} * pitch + header_bytes;
    fill(packet, rtp_bytes + text, i);
    packets.jobs_[i] = job_of(suite, packet, text, i, streams);
    packets.sum_.push_back(packets.sum_.back() + frame - header_bytes + suite.tag_bytes);
  }
  return packets;
}

crypto::GpuBatch SrtpPackets::batch(std::uint32_t first, std::uint32_t count) const {
  return {jobs_ + first, verdicts_ + first, count};
}

void SrtpPackets::set_opens(bool opens) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const unsigned flags = jobs_[i].flags & ~unsigned{crypto::job_opens};
    jobs_[i].flags = static_cast<std::uint8_t>(flags | (opens ? crypto::job_opens : 0));
  }
}

void SrtpPackets::forget_verdicts() {
  std::fill(verdicts_, verdicts_ + count_, crypto::Verdict::tag_mismatch);
}

Expected<void> SrtpPackets::all_done() const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (verdicts_[i] != crypto::Verdict::done) {
      return make_error(fmt::format("NOT VERIFIED: packet {} was not done", i));
    }
  }
  return {};
}

Expected<void> SrtpPackets::open_by_cpu(crypto::Cpu& cpu, bool clear) {
  std::vector<crypto::Job> jobs(jobs_, jobs_ + count_);
  for (crypto::Job& job : jobs) {
    job.flags |= crypto::job_opens;
  }
  std::vector<crypto::Verdict> verdicts(count_, crypto::Verdict::tag_mismatch);
  cpu.run(keys_, jobs, verdicts);
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (verdicts[i] != crypto::Verdict::done) {
      return make_error(fmt::format("NOT VERIFIED: packet {}: the CPU does not accept its tag", i));
    }
  }
  return clear ? all_clear() : Expected<void>{};
}

Expected<void> SrtpPackets::all_clear() const {
  std::vector<std::uint8_t> wanted(pitch);
  for (std::uint32_t i = 0; i < count_; ++i) {
    const std::uint32_t length = std::uint32_t{jobs_[i].cipher_offset} + jobs_[i].cipher_length;
    fill(wanted.data(), length, i);
    if (std::memcmp(wanted.data(), reinterpret_cast<const void*>(jobs_[i].data), length) != 0) {
      return make_error(fmt::format("NOT VERIFIED: packet {} does not hold what it should", i));
    }
  }
  return {};
}

}  // namespace sluice::cli::bench
