// The terminal while top runs: the alternate screen without cursor, keys without echo; as it was before when this is
// destroyed, and while the program is suspended (Ctrl-Z).
#pragma once

#include <termios.h>

#include <chrono>
#include <string>

namespace sluice::cli {

class Terminal {
 public:
  // Takes standard output (and standard input, when it is a terminal too). One at a time: SIGINT, SIGTERM, SIGQUIT,
  // SIGTSTP and SIGWINCH are caught while it lives.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether standard output is a terminal whose cursor can be moved (TERM is neither "dumb" nor missing).
  static bool is_terminal();
  // Whether it may have colours: no NO_COLOR (https://no-color.org).
  static bool has_colors();
  unsigned width() const;
  unsigned height() const;
  // Replaces the screen; what does not fit below its last row is left out.
  void draw(const std::string& text);

  enum class Event {
    time,     // is over
    key,      // was pressed
    changed,  // the screen has another size, or is back after a while
    end,      // the user asked for it (q, Ctrl-C, a signal), or the terminal is gone
  };
  struct Input {
    Event event;
    char key = 0;
  };
  // Keys that are more than one character (arrows) are passed over.
  Input wait(std::chrono::milliseconds time);

 private:
  void take();
  void give_back();

  termios before_{};
  bool keys_ = false;
};

}  // namespace sluice::cli
