// Files that an administrator names. A configuration may have any path, so no file may make the program wait, read for
// ever or fill the memory.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace sluice {

// Reads a regular file of at most `largest` bytes. An Error is one line, "PATH: " and the cause. A folder, a pipe or a
// device is refused at once. Cost: the file's bytes in memory. Thread-safety: any thread.
Expected<std::string> read_regular_file(const std::string& path, std::size_t largest);

// Reads an open file to its end, at most `largest` bytes. Waits for the end of a pipe or a terminal, too. An Error is
// one line, "NAME: " and the cause; what was read by then is lost. The descriptor stays open.
Expected<std::string> read_descriptor(int fd, const std::string& name, std::size_t largest);

// Whether two paths name the same regular file. If neither exists yet: whether both lead to the same place.
bool same_file(const std::string& a, const std::string& b);

// Whether two paths lead to the same place, whatever is there. Links are followed; files are not looked at.
bool same_path(const std::string& a, const std::string& b);

// The Error with which read_regular_file() would refuse the file before it reads a byte.
Expected<void> check_regular_file(const std::string& path);

}  // namespace sluice
