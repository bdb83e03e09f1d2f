// Any bytes as a frame of a packet socket, with any offload fields: nothing outside it is touched, what is finished is
// right, and what is cut up is all of it. The first eight bytes are those fields.
#include <cstdint>
#include <cstring>
#include <vector>

#include "packet/checksum.h"
#include "packet/checksum_check.h"
#include "packet/offload.h"
#include "require.h"

using namespace sluice::packet;

namespace {

constexpr std::size_t field_bytes = 8;

void check_cutting(const std::vector<std::uint8_t>& frame, Segmentation kind, std::size_t payload, std::size_t start) {
  Segmenter segments;
  if (!segments.begin(frame.data(), frame.size(), kind, payload, start)) {
    REQUIRE(segments.done());
    return;
  }
  std::size_t pieces = 0;
  while (!segments.done()) {
    std::vector<std::uint8_t> piece(segments.next_length());
    REQUIRE(piece.size() <= frame.size());
    segments.write_next(piece.data());
    const auto places = find_headers(piece.data(), piece.size());
    REQUIRE(places && places->end == piece.size());
    ++pieces;
  }
  REQUIRE(pieces >= 1 && pieces <= frame.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < field_bytes) {
    return 0;
  }
  std::uint16_t fields[4];
  std::memcpy(fields, data, sizeof fields);
  const std::vector<std::uint8_t> frame(data + field_bytes, data + size);
  std::vector<std::uint8_t> finished = frame;
  (void)finish_checksum(finished.data(), finished.size(), fields[0] % 2048, fields[1] % 64);
  std::vector<std::uint8_t> marked = frame;
  if (finish_marked_checksum(marked.data(), marked.size())) {
    const auto places = find_headers(marked.data(), marked.size());
    REQUIRE(places && !places->routed);
    // Of UDP what a tunnel carries decides.
    REQUIRE(places->protocol == 17 || check_transport(marked.data(), marked.size()) != ChecksumState::wrong);
  } else {
    REQUIRE(marked == frame);
  }
  (void)check_transport(frame.data(), frame.size());
  const auto places = find_headers(frame.data(), frame.size());
  const std::size_t start = (fields[3] & 1) != 0 && places ? places->transport : fields[0];
  check_cutting(frame, (fields[3] & 2) != 0 ? Segmentation::tcp : Segmentation::udp, fields[2] % 2048U, start);
  return 0;
}
