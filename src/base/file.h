// Files that an administrator names: any path may be in a configuration, so none may make the program wait, read for
// ever or fill the memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace sluice {

// All of a regular file, of `largest` bytes at most. An Error is one line, "PATH: " and why not; a folder, a pipe or a
// device is refused without waiting for it. Cost: the file's bytes in memory. Thread-safety: any thread.
Expected<std::string> read_regular_file(const std::string& path, std::size_t largest);

// All that an open file still gives, a pipe or a terminal too, of which the end is waited for; `largest` bytes at most.
// An Error is one line, "NAME: " and why not; what was read before is gone then. It stays open.
Expected<std::string> read_descriptor(int fd, const std::string& name, std::size_t largest);

// Whether two paths are one regular file, by whatever names, or will be: neither need be there yet.
bool same_file(const std::string& a, const std::string& b);

// Whether two paths lead to one place, whatever is or will be there: links are followed, files not looked at.
bool same_path(const std::string& a, const std::string& b);

// An Error for what read_regular_file() would refuse before it reads a byte.
Expected<void> check_regular_file(const std::string& path);

}  // namespace sluice
