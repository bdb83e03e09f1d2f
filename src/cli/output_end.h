// The end of standard output: results that could not be written whole are no success.
#pragma once

namespace sluice::cli {

// Writes what is buffered, and returns `status`; or, where it is 0 and not all output could be written (a full disk), 1
// after a sentence on standard error. A reader that has closed its end, as `head` does, or an output that was closed
// from the start, wants no more: that is no failure.
int end_output(int status);

}  // namespace sluice::cli
