// What the kernels of gpu_jobs.cuh do: apart from them, so that a build without CUDA can say it, too.
#include "crypto/algorithm.h"

namespace sluice::crypto {

const Side& gpu_side() {
  static constexpr Side side = {
      .name = "CUDA", .priority = 1, .can = [](const Algorithm& algorithm, std::size_t key_length) {
        return (algorithm.cipher == Cipher::aes_ctr || algorithm.cipher == Cipher::aes_gcm) && key_length != 0;
      }};
  return side;
}

}  // namespace sluice::crypto
