// Files that the program appends to for as long as it runs: its log, alerts. Each one registers here, so that whoever
// rotates files reaches all of them (SIGHUP, a reload), and what cannot be written is known in one place.
//
// Thread-safety: all of it, from any thread. Cost: a lock and the hooks.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace sluice {

class AppendedFile {
 public:
  struct Hooks {
    std::function<void()> reopen;          // at its path, now or soon: after the file was renamed
    std::function<std::string()> trouble;  // "/var/log/a cannot be written: No space left on device"; empty: none
  };
  // Registered until its end, which waits for a hook that runs. Hooks must not make or end an AppendedFile.
  explicit AppendedFile(Hooks hooks);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  static void reopen_all();
  // Of all that have one.
  static std::vector<std::string> troubles();

 private:
  const Hooks hooks_;
};

}  // namespace sluice
