// For tests that need the first GPU and not a simulated one in its place.
#pragma once

#include <cctype>
#include <filesystem>
#include <string>

#include "device/gpu.h"

namespace sluice::test {

// Why such a test has to be skipped: this machine has no GPU. Empty where it has one, and where its driver shows one
// (/dev/nvidiaN) that CUDA does not: there the test runs, and fails with what is wrong.
inline std::string why_no_gpu() {
  const auto gpus = device::list_gpus();
  if (gpus) {
    return "";
  }
  const std::string node = "nvidia";
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    const std::string name = entry.path().filename().string();
    if (name.size() > node.size() && name.starts_with(node) &&
        std::isdigit(static_cast<unsigned char>(name[node.size()])) != 0) {
      return "";
    }
  }
  return gpus.error().message;
}

}  // namespace sluice::test
