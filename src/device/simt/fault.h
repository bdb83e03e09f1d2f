// Faults on purpose, for tests on the SIMT shim. No CUDA in this header: any test of a *_test program may use it.
//
// Thread-safety: any thread; the counts are global.
#pragma once

#include <string>

namespace sluice::simt {

// After `skip` more runtime calls, the next `calls` calls of the fake CUDA runtime fail with cudaErrorUnknown. With
// `sticky` the first one breaks the device, as an illegal address does on a GPU: every call fails until clear_faults(),
// or cudaDeviceReset(). Counted are the calls that can fail on a GPU: everything but cudaGetLastError and its like, and
// the freeing calls.
void fail_calls(unsigned calls, unsigned skip = 0, bool sticky = false);
// From now on no work ends: events that are recorded are not ready, and what was recorded before is. False: all of it
// has ended. Who waits for the device meanwhile, as some freeing calls do, is counted and does not wait.
void keep_busy(bool busy);
unsigned long waits_made();
// From now on no call returns, but the freeing ones, which are counted as waiting. False: all of them return.
void block_calls(bool block);
// Forgets planned faults, a broken device, and one that is busy or blocks.
void clear_faults();
// What the last failed launch of this thread reported; empty when none failed since clear_faults().
std::string last_report();
// Runtime calls so far (those that fail_calls counts): shows a test how many to skip.
unsigned long calls_made();
// Bytes of fake device memory and pinned host memory that are allocated now.
std::size_t device_bytes();
std::size_t pinned_bytes();

}  // namespace sluice::simt
