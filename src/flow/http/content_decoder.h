// A body as its reader would see it: the content codings of Content-Encoding undone (RFC 9110 section 8.4, RFC 1950 to
// 1952, RFC 7932), as bytes come.
//
// What servers declare and what they send differ, by mistake or to get past an inspection; browsers make the best of
// it, and so does this. Each declared gzip, x-gzip, deflate, x-deflate or br is one layer, undone last to first; other
// codings (zstd, compress, lzma, identity, unknown ones) are none. What a layer does follows from the first bytes that
// it is given, not from its name: gzip's magic number, a valid zlib header, or raw deflate if that decodes without an
// error, at most `probe` bytes or `probe_makes` made ones far; else the bytes pass as they are (`passed`). gzip's
// header flags, checksums and lengths are not held against the sender; several gzip members follow one another; what
// follows the last one is dropped (`trailing`). An error in the middle ends the layer: what was decoded before it
// stands (`broken`).
//
// Brotli has no magic number, and browsers take nothing else for it. A layer is read as that if it is declared br, and
// only then; with an error in its first bytes it passes as it is.
//
// Each layer stops at `limit` decoded bytes, against bombs (`bomb`); a layer of deflate makes at most 1,032 bytes of
// one, one of br some 100,000. The sink may end it earlier, by what that costs: it is notified of the bytes that layers
// make, be they ever read or not. Memory of the pool, until decoding ends: about 48 KiB a layer of deflate (zlib's
// window and state), up to 700 KiB one of br (brotli_stream.h). Cost: about 2 us for a kilobyte made.
//
// The result does not depend on how the bytes were cut into pieces, with one exception: of a layer of br that ends in
// an error, that is true but for what the 64 bytes before the error make. Thread-safety: none, one lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flow/block_pool.h"

namespace sluice::flow::http {

class ContentSink {
 public:
  // False: no more is wanted; decoding ends.
  virtual bool content(std::string_view bytes) = 0;
  // What came so far was mistaken: what comes now is the content from its beginning.
  virtual void again() = 0;
  // A layer has made so many bytes, or had as much to do. False: that was too much; decoding ends (`bomb`).
  virtual bool affords(std::uint64_t /*made*/) { return true; }
  // A layer of br has made so many besides, of which nobody was asked before and nobody gets any.
  virtual void wasted(std::uint64_t /*made*/) {}

 protected:
  ~ContentSink() = default;
};

struct DecodeFlags {
  bool passed : 1 = false;     // a declared coding was not there
  bool broken : 1 = false;     // the data ended in an error, or before its end
  bool trailing : 1 = false;   // bytes behind the end
  bool bomb : 1 = false;       // `limit` or BrotliStream::most() reached, or more than the sink affords
  bool unread : 1 = false;     // behind an error in the middle, or a gap: what comes there is dropped
  bool no_memory : 1 = false;  // the pool had no capacity for a layer: the bytes pass as they are, or are dropped
  bool too_many : 1 = false;   // more layers declared than max_layers: the innermost are not undone
};

// Those declared of a body that can be undone.
struct Codings {
  // Of a field's value, comma-separated: they were applied after those before. br is none of Transfer-Encoding.
  void add(std::string_view list, bool transfer);

  unsigned count = 0;
  std::uint8_t brotli = 0;  // bit n: the one to undo as n-th is br
};

class ContentDecoder {
 public:
  static constexpr unsigned max_layers = 4;
  static constexpr std::size_t probe = 256;
  static constexpr std::uint64_t probe_makes = 16384;
  static constexpr std::uint64_t member_worth = 256;  // bytes made: what a gzip member costs

  ContentDecoder() = default;
  ContentDecoder(const ContentDecoder&) = delete;
  ContentDecoder& operator=(const ContentDecoder&) = delete;

  // At most `layers` (up to max_layers) of the `declared` codings are undone. `wanted`: how many bytes the sink takes
  // at most; 0: all.
  void begin(BlockPool& pool, Codings declared, unsigned layers, std::uint64_t limit, std::uint64_t wanted);
  bool active() const { return layers_ != 0; }
  void decode(BlockPool& pool, std::string_view bytes, ContentSink& sink);
  // The body has ended: bytes that could begin a coding, and of which nothing has come, pass.
  void finish(BlockPool& pool, ContentSink& sink);
  void clear(BlockPool& pool);
  // Bytes are missing: what comes behind cannot be decoded and is dropped.
  void abandon() {
    stopped_ = true;
    flags_.broken = flags_.unread = true;
  }

  DecodeFlags flags() const;

 private:
  struct Layer;

  void feed(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink);
  void probe_on(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink);
  void read_otherwise(BlockPool& pool, unsigned number, ContentSink& sink);
  void run(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink);
  void inflate(BlockPool& pool, unsigned number, ContentSink& sink);
  bool begin_inflate(BlockPool& pool, Layer& layer);
  bool begin_reading(BlockPool& pool, Layer& layer);
  void unbrotli(BlockPool& pool, unsigned number, std::string_view& bytes, ContentSink& sink);
  bool give_made(BlockPool& pool, unsigned number, ContentSink& sink);
  void release_ended();
  bool affords(ContentSink& sink, std::uint64_t made);

  std::array<Layer*, max_layers> layer_{};  // [0] is given the body
  unsigned layers_ = 0;
  bool stopped_ = false;
  std::uint64_t limit_ = 0, wanted_ = 0;
  DecodeFlags flags_;  // of the body; its layers have their own
};

}  // namespace sluice::flow::http
