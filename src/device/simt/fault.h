// Faults on purpose, for tests on the SIMT shim. No CUDA in this header: any test of a *_test program may use it.
//
// Thread-safety: any thread; the counts are global.
#pragma once

#include <string>

namespace sluice::simt {

// After `skip` more runtime calls, the next `calls` calls of the fake CUDA runtime fail with cudaErrorUnknown. With
// `sticky` the first one breaks the device, as an illegal address does on a GPU: every call fails until clear_faults().
// Counted are the calls that can fail on a GPU: everything but cudaGetLastError and its like, and the freeing calls.
void fail_calls(unsigned calls, unsigned skip = 0, bool sticky = false);
// Forgets planned faults and a broken device.
void clear_faults();
// What the last failed launch of this thread reported; empty when none failed since clear_faults().
std::string last_report();
// Runtime calls so far (those that fail_calls counts): shows a test how many to skip.
unsigned long calls_made();
// Bytes of fake device memory and pinned host memory that are allocated now.
std::size_t device_bytes();
std::size_t pinned_bytes();

}  // namespace sluice::simt
