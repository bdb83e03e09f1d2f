// A published vector in the form of a job, for every device: it must seal `text` to `sealed` and `tag`, and open it
// again. All in hexadecimal.
#pragma once

#include <string_view>

namespace sluice::crypto {

struct KnownAnswer {
  std::string_view name;  // the document and its number there
  std::string_view cipher_key;
  std::string_view salt;
  std::string_view auth_key;
  std::string_view nonce;  // 10 bytes
  std::string_view clear;
  std::string_view suffix;  // 4 bytes or none
  std::string_view text;
  std::string_view sealed;
  std::string_view tag;         // its length is the key's
  std::string_view block = {};  // aes_cbc: what becomes the IV, which is the end of `clear`, when it is sealed
};

}  // namespace sluice::crypto
