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
  enum class State : std::uint8_t { undecided, gzip_header, data, trailer, pass, done };
  State state = State::undecided;
  bool gzip = false;
  bool zlib = false;
  bool ready = false;  // `stream` is initialised
  unsigned trailer_left = 0;
  bool later_member = false;
  GzipHeader header;
  std::uint64_t out = 0;
  std::size_t head_size = 0;
  std::array<char, probe> head;
  z_stream stream{};

  std::string_view head_view() const { return {head.data(), head_size}; }
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
  if (layer.state != Layer::State::undecided) {
    run(pool, number, bytes, sink);
    return;
  }
  const std::size_t more = std::min(bytes.size(), probe - layer.head_size);
  std::memcpy(layer.head.data() + layer.head_size, bytes.data(), more);
  layer.head_size += more;
  decide(pool, layer, layer.head_size == probe, sink);
  if (layer.state != Layer::State::undecided) {
    run(pool, number, layer.head_view(), sink);
    run(pool, number, bytes.substr(more), sink);
  }
}

bool ContentDecoder::begin_inflate(BlockPool& pool, Layer& layer) {
  if (layer.ready) {
    return inflateReset(&layer.stream) == Z_OK;
  }
  layer.stream.zalloc = take_for_zlib;
  layer.stream.zfree = give_for_zlib;
  layer.stream.opaque = &pool;
  layer.ready = inflateInit2(&layer.stream, -MAX_WBITS) == Z_OK;
  flags_.no_memory = flags_.no_memory || !layer.ready;
  return layer.ready;
}

namespace {

// Whether `bytes` begin raw deflate data, as far as one can see. `made`: how many bytes that has cost.
bool inflates(z_stream& stream, std::string_view bytes, bool at_end, std::uint64_t& made) {
  std::array<Bytef, 4096> out;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  bool any = false;
  int result = Z_OK;
  while (result == Z_OK) {
    if (made >= ContentDecoder::probe_makes) return true;
    stream.next_out = out.data();
    stream.avail_out = out.size();
    result = inflate(&stream, Z_SYNC_FLUSH);
    any = any || stream.avail_out != out.size();
    made += out.size() - stream.avail_out;
  }
  return result == Z_STREAM_END || (result == Z_BUF_ERROR && (any || !at_end));
}

bool zlib_header(std::string_view bytes) {
  if (bytes.size() < 2) {
    return false;
  }
  const auto method = static_cast<unsigned char>(bytes[0]);
  const auto flags = static_cast<unsigned char>(bytes[1]);
  return (method & 15U) == 8 && method >> 4 <= 7 && (method * 256U + flags) % 31 == 0 && (flags & 0x20U) == 0;
}

}  // namespace

// What the layer's first bytes are. Nothing, while that is open.
void ContentDecoder::decide(BlockPool& pool, Layer& layer, bool at_end, ContentSink& sink) {
  constexpr std::string_view magic = "\x1f\x8b\x08";
  const std::string_view head = layer.head_view();
  const bool like_gzip = head.substr(0, magic.size()) == magic.substr(0, head.size());
  if (like_gzip && head.size() >= magic.size()) {
    layer.gzip = true;
    layer.state = begin_inflate(pool, layer) ? Layer::State::gzip_header : Layer::State::pass;
    return;
  }
  if (!at_end) {
    return;
  }
  for (const bool with_header : {true, false}) {
    if (with_header && !zlib_header(head)) {
      continue;
    }
    if (!begin_inflate(pool, layer)) {
      break;
    }
    const bool whole = head.size() < probe;  // nothing comes behind it
    std::uint64_t made = 0;
    const bool is_deflate = inflates(layer.stream, head.substr(with_header ? 2 : 0), whole, made);
    if (!affords(sink, made)) return;
    if (is_deflate && begin_inflate(pool, layer)) {
      layer.zlib = with_header;
      layer.state = Layer::State::data;
      return;
    }
  }
  layer.state = Layer::State::pass;
  flags_.passed = true;
}

// Bytes of a layer that knows what it is.
void ContentDecoder::run(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink) {
  Layer& layer = *layer_[number];
  if (layer.zlib && layer.state == Layer::State::data && layer.head_size != 0 && bytes.data() == layer.head.data()) {
    bytes.remove_prefix(2);
  }
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
          flags_.trailing = true;
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
      case Layer::State::undecided:
      case Layer::State::done:
        flags_.trailing = true;
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
    if (limit_ != 0 && layer.out >= limit_) {
      flags_.bomb = true;
      layer.state = Layer::State::done;
      layer.stream.avail_in = 0;
      return;
    }
    if (result == Z_STREAM_END) {
      layer.trailer_left = layer.gzip ? 8 : layer.zlib ? 4 : 0;
      layer.state = layer.trailer_left == 0 ? Layer::State::done : Layer::State::trailer;
      return;
    }
    if (result == Z_BUF_ERROR || (result == Z_OK && layer.stream.avail_in == 0 && made < out.size())) {
      layer.stream.avail_in = 0;
      return;
    }
    if (result != Z_OK) {
      flags_.broken = flags_.broken || result != Z_MEM_ERROR;
      flags_.unread = flags_.unread || result != Z_MEM_ERROR;
      flags_.no_memory = flags_.no_memory || result == Z_MEM_ERROR;
      layer.state = Layer::State::done;
      layer.stream.avail_in = 0;
      return;
    }
  }
  layer.stream.avail_in = 0;
}

void ContentDecoder::finish(BlockPool& pool, ContentSink& sink) {
  for (unsigned i = 0; i < layers_ && !stopped_; ++i) {
    Layer& layer = *layer_[i];
    if (layer.state == Layer::State::undecided && layer.head_size != 0) {
      decide(pool, layer, true, sink);
      run(pool, i, layer.head_view(), sink);
    }
    const bool header_cut = layer.state == Layer::State::gzip_header && !layer.later_member;
    flags_.broken = flags_.broken || layer.state == Layer::State::data || header_cut;
  }
}

}  // namespace sluice::flow::http
