// Jobs of AEADs on a core, packet by packet. For .cc files of this room only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/ipsec_mb.h"
#include "crypto/job.h"
#include "crypto/key_table.h"

namespace sluice::crypto {

class CpuAead {
 public:
  explicit CpuAead(IMB_MGR& manager);
  ~CpuAead();
  CpuAead(const CpuAead&) = delete;
  CpuAead& operator=(const CpuAead&) = delete;

  Verdict run(const KeyTable& keys, const Key& key, const Job& job);

 private:
  // The library's functions for one length of keys.
  struct Gcm {
    aes_gcm_enc_dec_t seal, open;
    aes_gcm_init_t begin;
    aes_gcm_enc_dec_update_t seal_text, open_text;
    aes_gcm_enc_dec_finalize_t end_sealing, end_opening;
  };
  // What a packet of ESP has in front of its text.
  struct Additional {
    Additional(const Job& job, const Key& key);
    const std::uint8_t* bytes;
    std::size_t length;
    std::uint8_t nonce[12];
    std::uint8_t together[12];  // where the suffix is in its middle
  };

  void gcm(const gcm_key_data& expanded, const Gcm& by, const Key& key, const Job& job, std::uint8_t* tag);
  void gcm_esp(const gcm_key_data& expanded, const Gcm& by, const Key& key, const Job& job, std::uint8_t* tag);
  void chacha20_poly1305_esp(const Key& key, const Job& job, std::uint8_t* tag);

  IMB_MGR& manager_;
  const Gcm gcm_[3];  // of 128, 192 and 256 bits
  gcm_context_data gcm_context_ = {};
};

}  // namespace sluice::crypto
