#include "port/replay_codings.h"

#include <zlib.h>

#include <new>

namespace sluice::port {
namespace {

constexpr int gzip_window = 15 + 16;  // of zlib: gzip's header and trailer around deflate

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // nothing else is wrong with these arguments
  }
  std::string made(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  deflate(&stream, Z_FINISH);
  made.resize(stream.total_out);
  deflateEnd(&stream);
  return made;
}

std::string repeated(std::string_view what, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += what;
  return all;
}

// As many of `piece` behind `begin` as fit into a body.
std::string filled(std::string_view begin, std::string_view piece) {
  for (std::size_t bytes = std::size_t{1} << 20;; bytes -= bytes / 4) {
    std::string body = gzip(std::string(begin) + repeated(piece, bytes / piece.size()));
    if (body.size() <= coded_body_bytes) return body;
  }
}

std::vector<std::string> make_bodies() {
  using namespace std::string_view_literals;
  constexpr auto header = "\x1f\x8b\x08\0\0\0\0\0\0\x03"sv;          // gzip, RFC 1952 section 2.3
  constexpr auto named_header = "\x1f\x8b\x08\x08\0\0\0\0\0\x03"sv;  // a name follows
  constexpr auto empty_block = "\0\0\0\xff\xff"sv;                   // stored, not the last: RFC 1951 section 3.2.4
  constexpr std::size_t zeros = std::size_t{16} << 20;
  return {gzip(gzip(std::string(zeros, '\0'))), filled(named_header, "a"), filled({}, gzip({})),
          filled(header, empty_block)};
}

}  // namespace

const std::vector<std::string>& coded_bodies() {
  static const std::vector<std::string> bodies = make_bodies();
  return bodies;
}

}  // namespace sluice::port
