// Any segments in any order: each direction's bytes come once, in order, as their number in the stream says, gaps
// included. Memory is bounded and all of it comes back; of a segment that is refused nothing comes; what has waited
// comes as it was announced that it may. The corpus holds plain conversations, one file each.
//
// Input: a byte of settings, then segments: flags, direction and whether it begins anew there, two bytes of sequence,
// two of acknowledgment, one of length.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "flow/tcp_stream.h"
#include "flow/tcp_track.h"
#include "require.h"

using namespace sluice::flow;

namespace {

struct Checker final : StreamSink {
  void data(Direction direction, const StreamData& data) override {
    auto& at = next[static_cast<unsigned>(direction)];
    REQUIRE(!closed_side[static_cast<unsigned>(direction)]);
    REQUIRE(!data.fresh.empty() && data.window.size() >= data.fresh.size() && data.window.ends_with(data.fresh));
    REQUIRE(data.offset == at);
    at += data.fresh.size();
    own |= data.origin >= fed.data() && data.origin < fed.data() + fed.size();
    released += data.mark == waited ? data.fresh.size() : 0;
  }
  std::uint8_t waits(Direction) override { return waited; }
  bool takes_waiting(Direction, std::size_t bytes) override { return bytes % 16 != 13; }
  void gap(Direction direction, std::uint64_t bytes) override {
    REQUIRE(bytes != 0);
    next[static_cast<unsigned>(direction)] += bytes;
  }
  void closed(Direction direction) override {
    REQUIRE(!closed_side[static_cast<unsigned>(direction)]);
    closed_side[static_cast<unsigned>(direction)] = true;
  }
  void restarted(Direction direction) override {
    next[static_cast<unsigned>(direction)] = 0;
    closed_side[static_cast<unsigned>(direction)] = false;
  }
  std::uint64_t next[2] = {};
  bool closed_side[2] = {};
  std::uint64_t released = 0;
  std::string_view fed;  // the packet's payload
  bool own = false;      // bytes of it have come
  static constexpr std::uint8_t waited = 7;
};

StreamSettings settings_of(std::uint8_t byte) {
  StreamSettings settings;
  settings.window = byte & 1 ? 0 : 64;
  settings.piece = byte & 2 ? 7 : 16384;
  settings.held_segments = byte & 4 ? 3 : 256;
  settings.depth = byte & 8 ? 300 : 0;
  settings.midstream = (byte & 16) != 0;
  settings.ahead = byte & 32 ? 200 : 1U << 20;
  settings.drop_conflicts = (byte & 64) != 0;
  settings.drop_without_capacity = (byte & 128) != 0;
  return settings;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  static BlockPool pool(1U << 20);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Reassembler reassembler(settings_of(data[0]), pool);
  TcpStream stream;
  Checker checker;
  for (std::size_t at = 1; at + 6 <= size;) {
    Packet packet;
    const std::uint8_t flags = data[at];
    const Direction direction = flags & 0x80 ? Direction::to_client : Direction::to_server;
    packet.tcp_flags = flags & 0x17;
    // Near where the numbers wrap, and within 64 KiB; or as far away as they can be.
    const std::uint32_t far = static_cast<std::uint32_t>(flags & 0x08U) << 28;
    packet.sequence = 0xffff8000U + static_cast<std::uint32_t>(data[at + 1] << 8 | data[at + 2]) + far;
    packet.acknowledgment = 0xffff8000U + static_cast<std::uint32_t>(data[at + 3] << 8 | data[at + 4]) +
                            ((data[at + 5] & 1) != 0 ? far : 0);
    packet.payload = bytes.substr(at + 6, data[at + 5]);
    at += 6 + packet.payload.size();
    const auto side = static_cast<unsigned>(direction);
    if ((flags & 0x40) != 0) {
      const bool settled = (flags & 0x20) != 0;
      const Taken begun = reassembler.begin_again(stream, direction, packet.sequence, settled, checker);
      REQUIRE(begun == Taken::all || begun == Taken::conflict);
      REQUIRE(begun == Taken::conflict || !stream.sides[side].open ||
              packet.sequence == stream.sides[side].next - static_cast<std::uint32_t>(stream.sides[side].offset));
    }
    checker.fed = packet.payload;
    checker.own = false;
    const std::uint64_t released = checker.released;
    const Waiting waiting = Reassembler::may_release(stream, direction, packet);
    const Taken taken = reassembler.feed(stream, direction, packet, checker);
    const bool more = (packet.tcp_flags & tcp_rst) != 0 || !reassembler.settings().drop_without_capacity;
    REQUIRE(more || checker.released - released <= waiting.bytes + packet.payload.size());
    REQUIRE(taken == Taken::all || !packet.payload.empty());
    REQUIRE(!checker.own || (taken != Taken::conflict && taken != Taken::no_capacity));
    for (const StreamSide& side : stream.sides) {
      REQUIRE((side.held == nullptr) == (side.held_count == 0) && (side.held == nullptr) == (side.held_bytes == 0));
    }
  }
  reassembler.finish(stream, checker);
  reassembler.release(stream);
  reassembler.give_back(std::numeric_limits<std::size_t>::max());
  REQUIRE(pool.in_use() == 0);
  return 0;
}
