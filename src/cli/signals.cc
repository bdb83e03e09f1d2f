#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace sluice::cli {
namespace {

constexpr std::array ending{SIGINT, SIGTERM, SIGQUIT, SIGHUP};

void (*before_the_end)() = nullptr;

sigset_t ends() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : ending) sigaddset(&set, signal);
  return set;
}

extern "C" void end_now(int signal) {
  if (before_the_end != nullptr) {
    before_the_end();
  }
  _exit(128 + signal);
}

}  // namespace

void end_on_signals(void (*cleanup)()) {
  before_the_end = cleanup;
  struct sigaction action {};
  action.sa_handler = end_now;
  for (const int signal : ending) sigaction(signal, &action, nullptr);
  const sigset_t set = ends();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void hold_signals() {
  const sigset_t set = ends();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  for (const int without_meaning : {SIGUSR1, SIGUSR2}) signal(without_meaning, SIG_IGN);
}

}  // namespace sluice::cli
