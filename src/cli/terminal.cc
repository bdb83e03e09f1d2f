#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sluice::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0, suspended = 0, resized = 0;

void note(int signal) {
  switch (signal) {
    case SIGTSTP:
      suspended = 1;
      break;
    case SIGWINCH:
      resized = 1;
      break;
    default:
      interrupted = 1;
  }
}

void catch_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGWINCH}) sigaction(signal, &action, nullptr);
}

winsize size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {24, 80, 0, 0};
  return size;
}

void write_out(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// What follows an ESC: of an arrow, "[A"; of Alt with a key, that key.
void pass_over_sequence() {
  const auto next = [] {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char byte = 0;
    return ::poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) == 1 ? byte : '\0';
  };
  const char first = next();
  if (first != '[' && first != 'O') return;
  for (char byte = next(); byte != '\0' && (byte < '@' || byte > '~');) byte = next();
}

}  // namespace

Terminal::Terminal() {
  catch_signals(note);
  keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
  take();
}

Terminal::~Terminal() {
  give_back();
  catch_signals(SIG_DFL);
}

void Terminal::take() {
  if (keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_out("\x1b[?1049h\x1b[?25l");
}

void Terminal::give_back() {
  write_out("\x1b[?25h\x1b[?1049l");
  if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool Terminal::is_terminal() {
  const char* const kind = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && kind != nullptr && *kind != '\0' && std::strcmp(kind, "dumb") != 0;
}

bool Terminal::has_colors() {
  const char* const none = std::getenv("NO_COLOR");
  return is_terminal() && (none == nullptr || *none == '\0');
}

unsigned Terminal::width() const {
  return size().ws_col;
}

unsigned Terminal::height() const {
  return size().ws_row;
}

void Terminal::draw(const std::string& text) {
  const unsigned rows = size().ws_row;
  std::string out = "\x1b[H";
  std::size_t begin = 0;
  for (unsigned row = 0; row < rows && begin < text.size(); ++row) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out.append(row == 0 ? "" : "\r\n").append(text, begin, end - begin).append("\x1b[K");
    begin = end + 1;
  }
  write_out(out + "\x1b[J");
}

Terminal::Input Terminal::wait(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + time;
  while (interrupted == 0) {
    if (suspended != 0) {
      suspended = 0;
      give_back();
      raise(SIGSTOP);
      take();
      return {Event::changed};
    }
    if (resized != 0) {
      resized = 0;
      return {Event::changed};
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return {Event::time};
    pollfd input{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
    char key = 0;
    const ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || key == 'q' || key == 'Q' || key == '\x03') break;
    if (key != '\x1b') return {Event::key, key};
    pass_over_sequence();
  }
  return {Event::end};
}

}  // namespace sluice::cli
