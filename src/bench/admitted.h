// The highest rate that a gateway lets in and forwards in time.
#pragma once

#include <vector>

#include "base/error.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

struct Admitted {
  Outcome saturated;             // the middle one of some rounds (rounds.h)
  Outcome held;                  // held.seconds 0: no rate was clean even for a short time; its rounds are the windows
  std::vector<Outcome> windows;  // of `held`
};

// The highest rate at which no deadline is missed and every frame is let in: from the saturated rate downwards in steps
// of 3 % to a fifth of it. One that is clean for `seconds` is held until it has been clean for `hold` seconds, which
// ends the search, or is not clean any more, which ends the try. The answer is the try that was clean for longest. No
// rate is held any more once that has taken eight times `hold` in all. Prints each try. Error: nothing was forwarded at
// the saturated rate.
Expected<Admitted> find_admitted(Load& load, double seconds, double hold);
// The same at one rate, that of `gbytes` per second, held once whatever comes.
Expected<Admitted> hold_at(Load& load, double gbytes, double seconds, double hold);

}  // namespace sluice::cli::bench
