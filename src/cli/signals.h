// main() blocks SIGINT, SIGTERM, SIGQUIT and SIGHUP for `sluice run`, which reads them from a descriptor once it has
// opened something. Other commands end by them. SIGUSR1 and SIGUSR2, which mean nothing here, are ignored: they would
// end a gateway that has the settings of interfaces to give back.
#pragma once

namespace sluice::cli {

// From now on those signals end the program at once; `cleanup` runs first, in the signal handler: only what
// signal-safety(7) allows. Before other threads are made.
void end_on_signals(void (*cleanup)() = nullptr);

// Blocks them (again), and ignores what means nothing.
void hold_signals();

}  // namespace sluice::cli
