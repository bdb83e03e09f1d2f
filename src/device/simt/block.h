// The SIMT machine of the shim: runs a kernel's blocks one after another on the calling OS thread, the threads of a
// block as fibers, warps of 32.
//
// Collectives are real rendezvous: a lane that calls a warp intrinsic sleeps until every live lane of its mask has
// called the same one with the same mask. A thread at __syncthreads sleeps until all threads of the block stand at the
// same source line. When nobody can go on, the launch ends with a report that names who waits where and who is missing,
// instead of hanging. Stricter than a GPU: a thread that has returned is missing from __syncthreads. Not seen here:
// races between threads (they run in a fixed order), spinning without __nanosleep (hangs), blocks that wait for other
// blocks (reported).
//
// Thread-safety: launches may run at once on several OS threads; each has its own machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "device/simt/vector_types.h"

// Of the running thread; set at every switch.
extern thread_local constinit uint3 threadIdx;
extern thread_local constinit uint3 blockIdx;
extern thread_local constinit dim3 blockDim;
extern thread_local constinit dim3 gridDim;
inline constexpr int warpSize = 32;

namespace sluice::simt {

enum class Collective : std::uint8_t {
  none,
  barrier,
  sync,
  shuffle,
  ballot,
  match,
  sum,
  min,
  max,
  bit_and,
  bit_or,
  bit_xor
};

struct Place {
  const char* file;
  int line;
};

// Gives `value` to the collective and sleeps until it completes. The result by kind: shuffle: the value of lane
// `source` (a pattern of 0xDE bytes when that lane takes no part); ballot: lanes with a non-zero value; match: lanes
// with the same value; barrier: number of non-zero values in the block (`mask` unused); sum ... bit_xor: over the
// participants, unsigned 32 bits.
std::uint64_t join(Collective kind, std::uint32_t mask, std::uint64_t value, unsigned source, Place place);
// Lets the other threads of the block run.
void yield_thread();
unsigned lane_id();
// Lanes of the running warp that have not returned.
std::uint32_t live_lanes();
// The block's dynamic shared memory: exactly the bytes of the launch, filled with 0xAB.
std::byte* dynamic_shared();
// Ends the launch with a report from the running thread: "block (0,0,0): thread (5,0,0) WHAT DETAIL". Does not return.
[[noreturn]] void fail_thread(const char* what, const char* detail = "");

// Runs the kernel; an empty string, or the report of what went wrong.
std::string run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel);

}  // namespace sluice::simt
