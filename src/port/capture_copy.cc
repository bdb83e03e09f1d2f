#include "port/capture_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sluice::port {

std::string folder_for_copies() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Expected<std::shared_ptr<const CaptureCopy>> CaptureCopy::make() {
  std::string path = folder_for_copies() + "/sluice-capture-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) {
    return make_error(folder_for_copies() + ": no copy of a capture as Ethernet can be made there: " +
                      std::strerror(errno) + ": set TMPDIR to a folder that can be written to");
  }
  unlink(path.c_str());
  std::FILE* const stream = fdopen(file, "w+");
  if (stream == nullptr) {
    close(file);
    return make_error("no memory for a copy of a capture");
  }
  return std::shared_ptr<const CaptureCopy>(new CaptureCopy(stream));
}

CaptureCopy::~CaptureCopy() {
  fclose(stream_);
}

std::string CaptureCopy::path() const {
  return "/proc/self/fd/" + std::to_string(fileno(stream_));
}

}  // namespace sluice::port
