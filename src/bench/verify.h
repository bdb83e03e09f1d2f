// Checks of what a bench's gateway really did, made in a run of their own before anything is measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "bench/rig.h"

namespace sluice::cli::bench {

// Starts the rig and runs it until `seen` has reached `frames`, five seconds at most, then ends it. An Error, too, when
// the counters do not add up, when a device that is there had no part in it, or by `had_part`, which is asked again and
// again what more there is to say of that.
Expected<void> run_until(Rig& rig, const std::atomic<std::uint64_t>& seen, std::uint64_t frames,
                         const std::function<Expected<void>()>& had_part = {});

// Echo: every byte that leaves is the byte that came in, XORed with the key behind the first 12 bytes, for at least
// `frames` frames that the device in question handled.
Expected<std::uint64_t> verify_echo(const RigOptions& options, std::uint8_t key, std::uint64_t frames);

// Any element whose compute() leaves the frame alone (touch, route): each verdict of the device equals what the CPU
// computes.
Expected<std::uint64_t> verify_verdicts(RigOptions options, std::uint64_t frames);

}  // namespace sluice::cli::bench
