#include "crypto/selftest.h"

#include <cstring>
#include <string>
#include <vector>

#include "crypto/hex.h"
#include "crypto/known_answers.h"
#include "crypto/secret.h"

namespace sluice::crypto {
namespace {

tl::unexpected<Error> failed(std::string_view name, std::string_view what) {
  return make_error("cryptographic self-test: " + std::string(name) + ": " + std::string(what) +
                    "; this build or this CPU must not be trusted with keys");
}

// FIPS-197 appendices A.1 and A.3: the last round key.
Expected<void> test_key_expansion() {
  struct Expansion {
    std::string_view name, key, last;
  };
  auto keys = KeyTable::make(1, false);
  if (!keys) {
    return tl::unexpected(keys.error());
  }
  for (const Expansion& expansion :
       {Expansion{"FIPS-197 A.1", "2b7e151628aed2a6abf7158809cf4f3c", "d014f9a8c9ee2589e13f0cc8b6630ca6"},
        Expansion{"FIPS-197 A.3", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
                  "fe4890d1e6188d0b046df344706c631e"}}) {
    static constexpr std::uint8_t nothing[20] = {};
    auto slot = keys->install({Cipher::aes_ctr, Hash::hmac_sha1, from_hex(expansion.key), std::span(nothing).first(14),
                               std::span(nothing), 10});
    if (!slot) {
      return failed(expansion.name, slot.error().message);
    }
    const Key& key = keys->key(*slot);
    const auto last = from_hex(expansion.last);
    if (std::memcmp(key.round_keys[key.rounds], last.data(), aes_block) != 0) {
      return failed(expansion.name, "the expanded key is wrong");
    }
    keys->release(*slot);
  }
  return {};
}

// SP 800-38A F.5.1 and F.5.5, two blocks: libcrypto's side, which derives keys.
Expected<void> test_keystream() {
  struct Keystream {
    std::string_view name, key, text, sealed;
  };
  constexpr std::string_view text = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51";
  const auto counter = from_hex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
  for (const Keystream& answer :
       {Keystream{"SP 800-38A F.5.1", "2b7e151628aed2a6abf7158809cf4f3c", text,
                  "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"},
        Keystream{"SP 800-38A F.5.5", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", text,
                  "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"}}) {
    std::uint8_t stream[32];
    if (!aes_ctr_keystream(from_hex(answer.key), std::span<const std::uint8_t, 16>(counter), stream)) {
      return failed(answer.name, "libcrypto refuses");
    }
    const auto plain = from_hex(answer.text);
    const auto sealed = from_hex(answer.sealed);
    for (std::size_t i = 0; i < sizeof stream; ++i) {
      if ((stream[i] ^ plain[i]) != sealed[i]) {
        return failed(answer.name, "the keystream is wrong");
      }
    }
  }
  return {};
}

// All in one batch, where they share vectors, or each alone.
Expected<void> test_jobs(Cpu& cpu, bool opens, bool alone) {
  auto batch = KnownAnswerBatch::make(opens);
  if (!batch) {
    return tl::unexpected(batch.error());
  }
  const std::span<const Job> jobs = batch->jobs();
  std::vector<Verdict> verdicts(jobs.size(), Verdict::tag_mismatch);
  const std::size_t step = alone ? 1 : jobs.size();
  for (std::size_t at = 0; at < jobs.size(); at += step) {
    cpu.run(batch->keys(), jobs.subspan(at, step), std::span(verdicts).subspan(at, step));
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!batch->right(i, verdicts[i])) {
      return failed(batch->name(i), opens ? "opening gives wrong bytes" : "sealing gives wrong bytes");
    }
  }
  return {};
}

// A wrong bit of a tag is seen.
Expected<void> test_mismatch(Cpu& cpu) {
  auto batch = KnownAnswerBatch::make(true);
  if (!batch) {
    return tl::unexpected(batch.error());
  }
  const std::span<const Job> jobs = batch->jobs();
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    batch->packet(i)[jobs[i].cipher_offset + std::size_t{jobs[i].cipher_length} + 3] ^= 1;
  }
  std::vector<Verdict> verdicts(jobs.size(), Verdict::done);
  cpu.run(batch->keys(), jobs, verdicts);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (verdicts[i] != Verdict::tag_mismatch) {
      return failed(batch->name(i), "a wrong tag is accepted");
    }
  }
  return {};
}

}  // namespace

Expected<void> self_test(Cpu& cpu) {
  if (auto tested = test_key_expansion(); !tested) {
    return tested;
  }
  if (auto tested = test_keystream(); !tested) {
    return tested;
  }
  for (const bool opens : {false, true}) {
    for (const bool alone : {false, true}) {
      if (auto tested = test_jobs(cpu, opens, alone); !tested) {
        return tested;
      }
    }
  }
  return test_mismatch(cpu);
}

}  // namespace sluice::crypto
