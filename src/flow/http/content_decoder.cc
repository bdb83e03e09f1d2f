#include "flow/http/content_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::uint8_t gzip_extra = 4, gzip_name = 8, gzip_comment = 16, gzip_crc = 2;  // RFC 1952 section 2.3.1

voidpf take_for_zlib(voidpf pool, uInt items, uInt size) {
  return static_cast<BlockPool*>(pool)->take(std::size_t{items} * size);
}
void give_for_zlib(voidpf pool, voidpf block) {
  static_cast<BlockPool*>(pool)->give(block);
}

bool is_deflating(std::string_view coding) {
  return same_name(coding, "gzip") || same_name(coding, "x-gzip") || same_name(coding, "deflate") ||
         same_name(coding, "x-deflate");
}

// A gzip member's header, byte by byte.
class GzipHeader {
 public:
  enum class Step { more, done, not_gzip };
  void begin() { *this = GzipHeader{}; }
  // How many of these bytes, at the beginning, it does not depend on.
  std::size_t skips(std::string_view bytes) const {
    if (part_ != Part::name && part_ != Part::comment) return 0;
    return std::min(bytes.find('\0'), bytes.size());
  }
  Step step(std::uint8_t byte) {
    switch (part_) {
      case Part::fixed:
        return fixed(byte);
      case Part::extra_length:
        left_ |= static_cast<unsigned>(byte) << (8 * count_);
        if (++count_ == 2) {
          part_ = Part::extra;
          return left_ == 0 ? after_extra() : Step::more;
        }
        return Step::more;
      case Part::extra:
        return --left_ == 0 ? after_extra() : Step::more;
      case Part::name:
        return byte == 0 ? after_name() : Step::more;
      case Part::comment:
        return byte == 0 ? after_comment() : Step::more;
      case Part::crc:
        return ++count_ == 2 ? Step::done : Step::more;
    }
    return Step::not_gzip;
  }

 private:
  enum class Part : std::uint8_t { fixed, extra_length, extra, name, comment, crc };
  Step fixed(std::uint8_t byte) {
    if ((count_ == 0 && byte != 0x1f) || (count_ == 1 && byte != 0x8b) || (count_ == 2 && byte != 8)) {
      return Step::not_gzip;
    }
    flags_ = count_ == 3 ? byte : flags_;
    if (++count_ < 10) {
      return Step::more;
    }
    count_ = 0;
    if ((flags_ & gzip_extra) != 0) {
      part_ = Part::extra_length;
      return Step::more;
    }
    return after_extra();
  }
  Step after_extra() {
    part_ = Part::name;
    return (flags_ & gzip_name) != 0 ? Step::more : after_name();
  }
  Step after_name() {
    part_ = Part::comment;
    return (flags_ & gzip_comment) != 0 ? Step::more : after_comment();
  }
  Step after_comment() {
    part_ = Part::crc;
    count_ = 0;
    return (flags_ & gzip_crc) != 0 ? Step::more : Step::done;
  }

  Part part_ = Part::fixed;
  std::uint8_t flags_ = 0;
  unsigned count_ = 0;
  unsigned left_ = 0;
};

}  // namespace

struct ContentDecoder::Layer {
  // Failed: an error while it is open.
  enum class State : std::uint8_t { undecided, gzip_header, data, trailer, pass, done, failed };
  // In the order in which they are tried.
  enum class Reading : std::uint8_t { none, zlib, raw, pass };
  State state = State::undecided;
  Reading reading = Reading::none;
  bool open = true;  // it may yet be something else
  bool gzip = false;
  bool ready = false;  // `stream` is initialised
  unsigned trailer_left = 0;
  bool later_member = false;
  DecodeFlags flags;
  GzipHeader header;
  std::uint64_t out = 0;
  std::size_t head_size = 0;
  std::array<char, probe> head;
  z_stream stream{};

  std::string_view head_view() const { return {head.data(), head_size}; }
  // As before its first byte.
  void begin() {
    state = State::undecided;
    reading = Reading::none;
    open = true;
    gzip = later_member = false;
    flags = {};
    header.begin();
    out = head_size = 0;
  }
};

unsigned ContentDecoder::codings(std::string_view encodings) {
  unsigned count = 0;
  while (!encodings.empty()) {
    const std::size_t comma = encodings.find(',');
    count += is_deflating(trim(encodings.substr(0, comma))) ? 1 : 0;
    encodings = comma == std::string_view::npos ? std::string_view{} : encodings.substr(comma + 1);
  }
  return count;
}

void ContentDecoder::begin(BlockPool& pool, unsigned declared, unsigned layers, std::uint64_t limit) {
  clear(pool);
  stopped_ = false;
  limit_ = limit;
  const unsigned most = std::min(layers, max_layers);
  flags_.too_many = declared > most;
  for (unsigned i = 0; i < std::min(declared, most); ++i) {
    std::uint8_t* const block = pool.take(sizeof(Layer));
    if (block == nullptr) {
      flags_.no_memory = true;
      return;
    }
    layer_[layers_++] = new (block) Layer;
  }
}

void ContentDecoder::clear(BlockPool& pool) {
  for (unsigned i = 0; i < layers_; ++i) {
    if (layer_[i]->ready) {
      inflateEnd(&layer_[i]->stream);
    }
    pool.give(layer_[i]);
    layer_[i] = nullptr;
  }
  layers_ = 0;
  flags_ = {};
}

void ContentDecoder::decode(BlockPool& pool, std::string_view bytes, ContentSink& sink) {
  feed(pool, 0, bytes, sink);
}

bool ContentDecoder::affords(ContentSink& sink, std::uint64_t made) {
  if (made == 0 || sink.affords(made)) return true;
  flags_.bomb = stopped_ = true;
  return false;
}

// `bytes` to layer `number`, or what comes out of the last to the sink.
void ContentDecoder::feed(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink) {
  if (stopped_ || bytes.empty()) {
    return;
  }
  if (number == layers_) {
    stopped_ = !sink.content(bytes);
    return;
  }
  Layer& layer = *layer_[number];
  if (layer.open) {
    const std::size_t more = std::min(bytes.size(), probe - layer.head_size);
    probe_on(pool, number, bytes.substr(0, more), sink);
    bytes.remove_prefix(more);
    layer.open = layer.open && layer.head_size < probe;
  }
  run(pool, number, bytes, sink);
}

bool ContentDecoder::begin_inflate(BlockPool& pool, Layer& layer) {
  if (layer.ready) {
    return inflateReset(&layer.stream) == Z_OK;
  }
  layer.stream.zalloc = take_for_zlib;
  layer.stream.zfree = give_for_zlib;
  layer.stream.opaque = &pool;
  layer.ready = inflateInit2(&layer.stream, -MAX_WBITS) == Z_OK;
  layer.flags.no_memory = layer.flags.no_memory || !layer.ready;
  return layer.ready;
}

namespace {

constexpr std::size_t zlib_header_size = 2;

bool zlib_header(std::string_view bytes) {
  if (bytes.size() < zlib_header_size) {
    return false;
  }
  const auto method = static_cast<unsigned char>(bytes[0]);
  const auto flags = static_cast<unsigned char>(bytes[1]);
  return (method & 15U) == 8 && method >> 4 <= 7 && (method * 256U + flags) % 31 == 0 && (flags & 0x20U) == 0;
}

}  // namespace

// More of a layer's first bytes, which are kept to be read otherwise.
void ContentDecoder::probe_on(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink) {
  constexpr std::string_view magic = "\x1f\x8b\x08";
  Layer& layer = *layer_[number];
  std::memcpy(layer.head.data() + layer.head_size, bytes.data(), bytes.size());
  layer.head_size += bytes.size();
  if (layer.state != Layer::State::undecided) {
    run(pool, number, bytes, sink);
  } else if (const std::string_view head = layer.head_view(); head.starts_with(magic)) {
    layer.open = false;
    layer.gzip = true;
    layer.state = begin_inflate(pool, layer) ? Layer::State::gzip_header : Layer::State::pass;
    run(pool, number, head, sink);
  } else if (head.size() >= zlib_header_size && !magic.starts_with(head)) {
    read_otherwise(pool, number, sink);
  }
  while (layer.state == Layer::State::failed && !stopped_) {
    read_otherwise(pool, number, sink);
  }
}

// Reads what there is of a layer as the next that it can be.
void ContentDecoder::read_otherwise(BlockPool& pool, unsigned number, ContentSink& sink) {
  using Reading = Layer::Reading;
  Layer& layer = *layer_[number];
  for (unsigned i = number + 1; i < layers_; ++i) {
    layer_[i]->begin();
  }
  if (layer.out != 0) sink.again();
  layer.out = 0;
  layer.trailer_left = 0;
  const bool skips_zlib = layer.reading == Reading::none && !zlib_header(layer.head_view());
  layer.reading = static_cast<Reading>(static_cast<unsigned>(layer.reading) + (skips_zlib ? 2 : 1));
  const bool inflates = layer.reading != Reading::pass && begin_inflate(pool, layer);
  layer.state = inflates ? Layer::State::data : Layer::State::pass;
  layer.flags.passed = !inflates;
  layer.open = inflates;
  run(pool, number, layer.head_view().substr(layer.reading == Reading::zlib ? zlib_header_size : 0), sink);
}

// Bytes of a layer of which it is said what they are.
void ContentDecoder::run(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink) {
  Layer& layer = *layer_[number];
  while (!bytes.empty() && !stopped_) {
    switch (layer.state) {
      case Layer::State::gzip_header: {
        bytes.remove_prefix(layer.header.skips(bytes));
        if (bytes.empty()) return;
        const auto step = layer.header.step(static_cast<std::uint8_t>(bytes.front()));
        bytes.remove_prefix(1);
        if (step == GzipHeader::Step::done) {
          layer.state = Layer::State::data;
        } else if (step == GzipHeader::Step::not_gzip) {
          layer.state = Layer::State::done;
          layer.flags.trailing = true;
        }
        break;
      }
      case Layer::State::data: {
        layer.stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        layer.stream.avail_in = static_cast<uInt>(bytes.size());
        inflate(pool, number, sink);
        bytes.remove_prefix(bytes.size() - layer.stream.avail_in);
        break;
      }
      case Layer::State::trailer:
        bytes.remove_prefix(1);
        if (--layer.trailer_left == 0) {
          if (!affords(sink, member_worth)) return;
          layer.header.begin();
          layer.later_member = true;
          layer.state = layer.gzip && begin_inflate(pool, layer) ? Layer::State::gzip_header : Layer::State::done;
        }
        break;
      case Layer::State::pass:
        feed(pool, number + 1, bytes, sink);
        return;
      case Layer::State::done:
        layer.flags.trailing = true;
        return;
      case Layer::State::undecided:
      case Layer::State::failed:
        return;
    }
  }
}

// What the layer's stream has been given, until it is used up, ends or fails.
void ContentDecoder::inflate(BlockPool& pool, unsigned number, ContentSink& sink) {
  Layer& layer = *layer_[number];
  std::array<Bytef, 4096> out;
  while (!stopped_) {
    layer.stream.next_out = out.data();
    layer.stream.avail_out = out.size();
    const int result = ::inflate(&layer.stream, Z_SYNC_FLUSH);
    const std::size_t made = out.size() - layer.stream.avail_out;
    layer.out += made;
    if (!affords(sink, made)) break;
    feed(pool, number + 1, {reinterpret_cast<const char*>(out.data()), made}, sink);
    layer.open = layer.open && layer.out <= probe_makes;
    if (limit_ != 0 && layer.out >= limit_) {
      layer.flags.bomb = true;
      layer.open = false;
      layer.state = Layer::State::done;
      layer.stream.avail_in = 0;
      return;
    }
    if (result == Z_STREAM_END) {
      layer.open = false;
      layer.trailer_left = layer.gzip ? 8 : layer.reading == Layer::Reading::zlib ? 4 : 0;
      layer.state = layer.trailer_left == 0 ? Layer::State::done : Layer::State::trailer;
      return;
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && layer.stream.avail_in == 0 && made < out.size())) {
      layer.stream.avail_in = 0;
      return;
    }
    if (result != Z_OK) {
      const bool no_memory = result == Z_MEM_ERROR;
      const bool is_other = layer.open && !no_memory;
      layer.state = is_other ? Layer::State::failed : Layer::State::done;
      layer.open = is_other;
      layer.flags.no_memory = layer.flags.no_memory || no_memory;
      layer.flags.broken = layer.flags.unread = layer.state == Layer::State::done && !no_memory;
      layer.stream.avail_in = 0;
      return;
    }
  }
  layer.stream.avail_in = 0;
}

void ContentDecoder::finish(BlockPool& pool, ContentSink& sink) {
  using State = Layer::State;
  for (unsigned i = 0; i < layers_ && !stopped_; ++i) {
    Layer& layer = *layer_[i];
    const auto is_nothing = [&] {
      return layer.state == State::undecided || layer.state == State::failed ||
             (layer.state == State::data && layer.out == 0);
    };
    while (layer.open && layer.head_size != 0 && is_nothing() && !stopped_) {
      read_otherwise(pool, i, sink);
    }
    const bool header_cut = layer.state == State::gzip_header && !layer.later_member;
    layer.flags.broken = layer.flags.broken || layer.state == State::data || header_cut;
  }
}

DecodeFlags ContentDecoder::flags() const {
  DecodeFlags all = flags_;
  for (unsigned i = 0; i < layers_; ++i) {
    const DecodeFlags& one = layer_[i]->flags;
    all.passed |= one.passed;
    all.broken |= one.broken;
    all.trailing |= one.trailing;
    all.bomb |= one.bomb;
    all.unread |= one.unread;
    all.no_memory |= one.no_memory;
  }
  return all;
}

}  // namespace sluice::flow::http
