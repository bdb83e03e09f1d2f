#include "flow/http/content_decoder.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "flow/http/brotli_stream.h"
#include "flow/http/gzip_header.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

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

struct ContentDecoder::Layer {
  // Failed: an error while it is open.
  enum class State : std::uint8_t { undecided, gzip_header, data, trailer, pass, done, failed };
  // In the order in which they are tried.
  enum class Reading : std::uint8_t { none, zlib, raw, brotli, pass };
  State state = State::undecided;
  Reading reading = Reading::none;
  bool open = true;  // it may yet be something else
  bool declared_brotli = false;
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
  BrotliStream brotli;

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
  // What it is read as behind an error in `reading`.
  Reading next_reading() const {
    switch (reading) {
      case Reading::none:
        return declared_brotli ? Reading::brotli : zlib_header(head_view()) ? Reading::zlib : Reading::raw;
      case Reading::zlib:
        return Reading::raw;
      default:
        return Reading::pass;
    }
  }
  void release() {
    if (ready) inflateEnd(&stream);
    ready = false;
    brotli.end();
  }
};

void Codings::add(std::string_view list, bool transfer) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view coding = trim(list.substr(0, comma));
    const bool is_brotli = !transfer && same_name(coding, "br");
    if (is_brotli || is_deflating(coding)) {
      ++count;
      brotli = static_cast<std::uint8_t>(brotli << 1 | (is_brotli ? 1 : 0));
    }
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
}

void ContentDecoder::begin(BlockPool& pool, Codings declared, unsigned layers, std::uint64_t limit,
                           std::uint64_t wanted) {
  clear(pool);
  stopped_ = false;
  limit_ = limit;
  wanted_ = wanted;
  const unsigned most = std::min(layers, max_layers);
  flags_.too_many = declared.count > most;
  for (unsigned i = 0; i < std::min(declared.count, most); ++i) {
    std::uint8_t* const block = pool.take(sizeof(Layer));
    if (block == nullptr) {
      flags_.no_memory = true;
      return;
    }
    layer_[layers_] = new (block) Layer;
    layer_[layers_++]->declared_brotli = (declared.brotli >> i & 1) != 0;
  }
}

void ContentDecoder::clear(BlockPool& pool) {
  for (unsigned i = 0; i < layers_; ++i) {
    layer_[i]->release();
    pool.give(layer_[i]);
    layer_[i] = nullptr;
  }
  layers_ = 0;
  flags_ = {};
}

void ContentDecoder::decode(BlockPool& pool, std::string_view bytes, ContentSink& sink) {
  feed(pool, 0, bytes, sink);
  release_ended();
}

// Of a long body what is behind the first bytes takes no memory.
void ContentDecoder::release_ended() {
  for (unsigned i = 0; i < layers_; ++i) {
    if (stopped_ || layer_[i]->state == Layer::State::done) layer_[i]->release();
  }
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

bool ContentDecoder::begin_reading(BlockPool& pool, Layer& layer) {
  switch (layer.reading) {
    case Layer::Reading::pass:
      return false;
    case Layer::Reading::brotli:
      if (layer.brotli.begin(pool, wanted_)) return true;
      layer.flags.no_memory = true;
      return false;
    default:
      return begin_inflate(pool, layer);
  }
}

// More of a layer's first bytes, which are kept to be read otherwise.
void ContentDecoder::probe_on(BlockPool& pool, unsigned number, std::string_view bytes, ContentSink& sink) {
  constexpr std::string_view magic = "\x1f\x8b\x08";
  Layer& layer = *layer_[number];
  std::memcpy(layer.head.data() + layer.head_size, bytes.data(), bytes.size());
  layer.head_size += bytes.size();
  if (layer.state != Layer::State::undecided) {
    run(pool, number, bytes, sink);
  } else if (layer.declared_brotli) {
    read_otherwise(pool, number, sink);
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
  layer.reading = layer.next_reading();
  const bool decodes = begin_reading(pool, layer);
  layer.state = decodes ? Layer::State::data : Layer::State::pass;
  layer.flags.passed = !decodes;
  layer.open = decodes;
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
        if (layer.reading == Layer::Reading::brotli) {
          unbrotli(pool, number, bytes, sink);
          break;
        }
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

// Takes what there is of `bytes`, until it is used up, or the layer ends or fails.
void ContentDecoder::unbrotli(BlockPool& pool, unsigned number, std::string_view& bytes, ContentSink& sink) {
  Layer& layer = *layer_[number];
  while (!bytes.empty() && !stopped_ && layer.state == Layer::State::data) {
    if (!affords(sink, std::min(bytes.size(), BrotliStream::slice))) return;  // nothing, where nothing is left
    const BrotliStream::Result result = layer.brotli.take(bytes);
    const bool goes_on = give_made(pool, number, sink);
    while (!layer.brotli.made().empty()) continue;
    if (const std::uint64_t wasted = layer.brotli.cost(); wasted != 0) sink.wasted(wasted);
    if (!goes_on) return;
    switch (result) {
      case BrotliStream::Result::more:
        if (layer.brotli.is_done()) {
          layer.open = false;
          layer.state = Layer::State::done;
        }
        break;
      case BrotliStream::Result::broken:
        layer.state = layer.open ? Layer::State::failed : Layer::State::done;
        layer.flags.broken = layer.flags.unread = !layer.open;
        bytes = {};
        break;
      case BrotliStream::Result::no_memory:
        layer.open = false;
        layer.state = Layer::State::done;
        layer.flags.no_memory = true;
        bytes = {};
        break;
    }
  }
}

// What a layer of Brotli has made to the next one. False: that was too much.
bool ContentDecoder::give_made(BlockPool& pool, unsigned number, ContentSink& sink) {
  Layer& layer = *layer_[number];
  std::uint64_t most = limit_ == 0 ? ~std::uint64_t{0} : limit_;
  if (layer.brotli.most() != 0) most = std::min(most, layer.brotli.most());
  while (true) {
    const std::string_view made = layer.brotli.made();
    if (const std::uint64_t cost = layer.brotli.cost(); !affords(sink, cost)) {
      sink.wasted(cost);
      return false;
    }
    if (made.empty()) return true;
    const std::string_view given = made.substr(0, most - layer.out);
    layer.out += given.size();
    layer.open = layer.open && layer.out <= probe_makes;
    feed(pool, number + 1, given, sink);
    if (stopped_) return false;
    if (layer.out == most) {
      layer.flags.bomb = true;
      layer.open = false;
      layer.state = Layer::State::done;
      return false;
    }
  }
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
