// The terminal while top runs: the alternate screen without cursor, keys without echo; as it was before when this is
// destroyed.
#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace sluice::cli {

class Terminal {
 public:
  // Takes standard output (and standard input, when it is a terminal too). One at a time: SIGINT and SIGTERM are caught
  // while it lives.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool is_terminal();
  unsigned width() const;
  // Replaces the screen; what does not fit below its last row is left out.
  void draw(const std::string& text);
  // False: the user asked to end (q, Ctrl-C, a signal) or the terminal is gone.
  bool wait(std::chrono::milliseconds time);

 private:
  termios before_{};
  bool keys_ = false;
};

}  // namespace sluice::cli
