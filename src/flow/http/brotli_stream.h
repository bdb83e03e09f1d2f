// A stream in Brotli (RFC 7932), undone as its bytes come, by libbrotlidec.
//
// Memory: of the pool, mostly 64 to 700 KiB, at most `most_memory`. A stream declares a window of up to 16 MiB. Larger
// ones than `wanted` bytes need are read with a smaller window: no distance reaches to before the stream's beginning
// (RFC 7932 section 4), so that the first bytes come out the same. Such a stream gives no more than most() bytes.
//
// The library takes `slice` bytes at a time. At an error it keeps back what the slice has made so far.
//
// Cost: about 2 us for a kilobyte made. cost() is in bytes made, too: a stream can have the library build tables for
// tens of microseconds, and make nothing. The library stops only where its window is full: take() may last 0.5 ms, for
// a byte or two. Thread-safety: none, one lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flow/block_pool.h"

struct BrotliDecoderStateStruct;

namespace sluice::flow::http {

class BrotliStream {
 public:
  enum class Result : std::uint8_t { more, broken, no_memory };
  static constexpr std::size_t slice = 64;
  static constexpr std::size_t most_memory = std::size_t{2} << 20;

  // What the window takes of the pool at most, for a reader that wants so many bytes; 0: all that there are.
  static std::size_t window_block(std::uint64_t wanted);

  // From the stream's first byte on. False: the pool has no capacity. The pool stays until end().
  bool begin(BlockPool& pool, std::uint64_t wanted);
  void end();
  bool active() const { return state_ != nullptr; }

  // Takes a slice of `bytes`, or less, off their beginning. Call made() until it is empty, whatever this answers.
  Result take(std::string_view& bytes);
  // The next bytes that have been made, some at a time; they stand until the next call.
  std::string_view made();
  // All that there is has been made, and taken.
  bool is_done() const;
  // What has been done since this was last asked.
  std::uint64_t cost();
  // How many bytes it can give; 0: all that there are.
  std::uint64_t most() const { return most_; }

 private:
  static void* take_block(void* stream, std::size_t size);
  static void give_block(void* stream, void* block);

  BrotliDecoderStateStruct* state_ = nullptr;
  BlockPool* pool_ = nullptr;
  std::size_t memory_ = 0;    // of the pool
  unsigned window_bits_ = 0;  // of the largest window that is given
  std::uint64_t most_ = 0;
  std::uint64_t taken_ = 0, made_ = 0, built_ = 0;  // bytes; `built_`: of tables
  std::uint64_t reported_ = 0;                      // cost()
};

}  // namespace sluice::flow::http
