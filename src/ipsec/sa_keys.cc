// What an SA's algorithms are to packets and to the table of keys.
#include "crypto/key_table.h"
#include "ipsec/sa.h"
#include "ipsec/sa_record.h"

namespace sluice::ipsec {

PacketSizes packet_sizes(const Transform& transform) {
  const std::size_t iv = crypto::explicit_iv_length(transform.cipher);
  return {.iv = static_cast<std::uint8_t>(iv),
          .block = static_cast<std::uint8_t>(transform.cipher == crypto::Cipher::aes_cbc ? crypto::aes_block : 4),
          .icv = transform.icv_length};
}

}  // namespace sluice::ipsec
