#include "cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include <initializer_list>

namespace sluice::cli {
namespace {

void (*before_the_end)() = nullptr;

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
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&ends, signal);
    sigaction(signal, &action, nullptr);
  }
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
}

}  // namespace sluice::cli
