#include "port/rss_key.h"

namespace sluice::port {

std::vector<std::uint8_t> symmetric_rss_key(std::size_t bytes) {
  std::vector<std::uint8_t> key(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    key[i] = i % 2 == 0 ? 0x6d : 0x5a;
  }
  return key;
}

std::string rss_key_note(std::size_t key_bytes) {
  return key_bytes != 0
             ? ""
             : "its driver takes no RSS key, so the NIC's own spreads the flows: the two directions of one may "
               "be on different lanes";
}

}  // namespace sluice::port
