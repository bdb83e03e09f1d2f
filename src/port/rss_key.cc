#include "port/rss_key.h"

namespace sluice::port {

std::vector<std::uint8_t> symmetric_rss_key(std::size_t bytes) {
  std::vector<std::uint8_t> key(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    key[i] = i % 2 == 0 ? 0x6d : 0x5a;
  }
  return key;
}

}  // namespace sluice::port
