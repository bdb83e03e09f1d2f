// Captures of any bytes, and frames of any link type: what is read of them stays inside them. The first byte chooses.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "port/capture_file.h"
#include "port/link_frame.h"
#include "require.h"

namespace {

void read_frame(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return;
  const std::uint32_t link = data[0] | data[1] << 8;
  sluice::port::to_ethernet(link, {data + 2, size - 2}, [](sluice::port::Bytes frame) { REQUIRE(frame.size() >= 14); });
}

void read_file(const std::uint8_t* data, std::size_t size) {
  const int file = memfd_create("capture", MFD_CLOEXEC);
  REQUIRE(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size));
  (void)sluice::port::check_capture("/proc/self/fd/" + std::to_string(file));
  close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if ((data[0] & 1) != 0) {
    read_frame(data + 1, size - 1);
  } else {
    read_file(data + 1, size - 1);
  }
  return 0;
}
