#include "cli/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace sluice::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void interrupt(int) {
  interrupted = 1;
}

void catch_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGQUIT, &action, nullptr);
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

}  // namespace

Terminal::Terminal() {
  catch_signals(interrupt);
  keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_out("\x1b[?1049h\x1b[?25l");
}

Terminal::~Terminal() {
  write_out("\x1b[?25h\x1b[?1049l");
  if (keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  catch_signals(SIG_DFL);
}

bool Terminal::is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}

unsigned Terminal::width() const {
  return size().ws_col;
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

bool Terminal::wait(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + time;
  while (interrupted == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return true;
    pollfd input{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    if (::poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q' || key == '\x03') return false;
  }
  return false;
}

}  // namespace sluice::cli
