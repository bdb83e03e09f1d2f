// The files that `sluice calibrate` writes once it has measured: looked at before, for that takes minutes, and written
// beside their places first, so that nobody finds half of one.
//
// Errors are a sentence that begins with what `name` says, such as "--out a.toml". Thread-safety: one thread; and
// remove_half_written() in a signal handler.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace sluice::cli {

// What is written over: a file that this knows, and an empty one.
struct Replaceable {
  std::string what;  // "profile"
  std::function<bool(const std::string& path)> is_it;
};

// Whether `path` can be written. PATH.new is made for it, and taken away.
Expected<void> check_output(const std::string& name, const std::string& path, const Replaceable& replaceable);
// As PATH.new, which takes the place of PATH then.
Expected<void> write_output(const std::string& path, const std::string& text);
// Takes PATH.new away, if one is being written. Async-signal-safe.
void remove_half_written();

}  // namespace sluice::cli
