// A file without a name that holds a capture's frames as Ethernet, for a driver that opens a path and reads nothing
// else. It is gone with the object.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"

namespace sluice::port {

// Where copies lie: $TMPDIR, or /tmp.
std::string folder_for_copies();

class CaptureCopy {
 public:
  // An Error is one line: the folder, and why nothing can be made there.
  static Expected<std::shared_ptr<const CaptureCopy>> make();
  ~CaptureCopy();
  CaptureCopy(const CaptureCopy&) = delete;
  CaptureCopy& operator=(const CaptureCopy&) = delete;

  std::FILE* stream() const { return stream_; }
  // Of this process, from its first byte on each time.
  std::string path() const;

 private:
  explicit CaptureCopy(std::FILE* stream) : stream_(stream) {}
  std::FILE* const stream_;
};

}  // namespace sluice::port
