// What the kernels of gpu_jobs.cuh do: apart from them, so that a build without CUDA can say it, too.
#include "crypto/algorithm.h"

namespace sluice::crypto {

const Side& gpu_side() {
  static constexpr Side side = {.name = "CUDA", .priority = 1, .can = [](const Algorithm& algorithm, std::size_t) {
                                  return algorithm.cipher != Cipher::none &&
                                         algorithm.cipher != Cipher::chacha20_poly1305_esp;
                                }};
  return side;
}

}  // namespace sluice::crypto
