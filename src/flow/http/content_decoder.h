// A body as its reader would see it: the content codings of Content-Encoding undone (RFC 9110 section 8.4, RFC 1950 to
// 1952), as bytes come.
//
// What servers declare and what they send differ, by mistake or to get past an inspection; browsers make the best of
// it, and so does this. Each declared gzip, x-gzip, deflate or x-deflate is one layer, undone last to first; other
// codings (br, compress, lzma, identity, unknown ones) are none. What a layer does follows from the first bytes that it
// is given, not from its name: gzip's magic number, a valid zlib header, or raw deflate if that decodes without an
// error, at most `probe` bytes or `probe_makes` made ones far; else the bytes pass as they are (`passed`). gzip's
// header flags, checksums and lengths are not held against the sender; several gzip members follow one another; what
// follows the last one is dropped (`trailing`). An error in the middle ends the layer: what was decoded before it
// stands (`broken`).
//
// Each layer stops at `limit` decoded bytes, against bombs (`bomb`); a layer of deflate makes at most 1,032 bytes of
// one. The sink may end it earlier, by what that costs: it is told of the bytes that layers make, be they ever read or
// not. Memory: about 48 KiB of the pool a layer (zlib's window and state). Cost: about 1.6 us for a kilobyte made.
//
// The result does not depend on how the bytes were cut into pieces. Thread-safety: none, one lane.
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

 protected:
  ~ContentSink() = default;
};

struct DecodeFlags {
  bool passed : 1 = false;     // a declared coding was not there
  bool broken : 1 = false;     // the data ended in an error, or before its end
  bool trailing : 1 = false;   // bytes behind the end
  bool bomb : 1 = false;       // `limit` reached, or more than the sink affords
  bool unread : 1 = false;     // behind an error in the middle, or a gap: what comes there is dropped
  bool no_memory : 1 = false;  // the pool had no room for a layer: the bytes pass as they are, or are dropped
  bool too_many : 1 = false;   // more layers declared than max_layers: the innermost are not undone
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

  // How many of a Content-Encoding, comma-separated, can be undone.
  static unsigned codings(std::string_view encodings);
  // At most `layers` (up to max_layers) of the `declared` codings are undone.
  void begin(BlockPool& pool, unsigned declared, unsigned layers, std::uint64_t limit);
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
  bool affords(ContentSink& sink, std::uint64_t made);

  std::array<Layer*, max_layers> layer_{};  // [0] is given the body
  unsigned layers_ = 0;
  bool stopped_ = false;
  std::uint64_t limit_ = 0;
  DecodeFlags flags_;  // of the body; its layers have their own
};

}  // namespace sluice::flow::http
