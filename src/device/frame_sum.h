// Sums the bytes of frames on the GPU, in host memory by direct reads or staged in device memory: what "touch" and the
// link probe measure, and an example of frame_read.cuh.
//
// Cost: one launch, about 2 us of CPU time. On an H200 the link is full from about 512 frames in order; at most 64
// blocks of 256 threads read host memory, so that two thirds of the GPU stay free for other streams.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "device/frame_copy.h"

namespace sluice::device {

// Enqueues: sum[i] = 32-bit sum of the length[i] bytes at frame[i], for i < count. All arrays and frames: memory that
// the GPU addresses; `stream`: a cudaStream_t. Reads round to 16-byte lines. count 0: nothing is enqueued. `staged`:
// where the frames are instead of at frame[i].
Expected<void> sum_frames(const std::uint64_t* frame, const std::uint16_t* length, std::uint32_t* sum,
                          std::uint32_t count, void* stream, const StagedFrames& staged = {});

}  // namespace sluice::device
