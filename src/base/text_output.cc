#include "base/text_output.h"

#include <atomic>

namespace sluice {
namespace {

std::atomic<bool> reserved{false};

}  // namespace

void reserve_standard_output() {
  reserved.store(true);
}

std::FILE* text_output() {
  return reserved.load() ? stderr : stdout;
}

}  // namespace sluice
