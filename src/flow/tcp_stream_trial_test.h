// What the tests of TCP streams share: one stream with its sink, and what is sent on it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "flow/recorder.h"
#include "flow/tcp_stream.h"

namespace sluice::flow::test {

inline constexpr Direction up = Direction::to_server;
inline constexpr Direction down = Direction::to_client;

struct Bytes final : StreamSink {
  void data(Direction direction, const StreamData& data) override {
    auto& mine = all[static_cast<unsigned>(direction)];
    EXPECT_EQ(data.offset, mine.size() + skipped);
    EXPECT_TRUE(data.window.ends_with(data.fresh));
    EXPECT_EQ(data.fresh.data() + data.fresh.size(), data.window.data() + data.window.size());
    mine += data.fresh;
    place = data.fresh.data();
    windows.emplace_back(data.window);
  }
  bool takes_waiting(Direction, std::size_t) override {
    ++asked;
    return takes != 0 && takes-- != 0;
  }
  void gap(Direction, std::uint64_t bytes) override {
    gaps.push_back(bytes);
    skipped += bytes;
  }
  void closed(Direction direction) override { closes += direction == up ? 'u' : 'd'; }
  void restarted(Direction direction) override {
    all[static_cast<unsigned>(direction)].clear();
    skipped = 0;
    ++restarts;
  }
  std::string all[2];
  std::vector<std::string> windows;
  std::vector<std::uint64_t> gaps;
  std::uint64_t skipped = 0;
  std::string closes;
  const char* place = nullptr;  // of the last bytes
  unsigned restarts = 0, asked = 0;
  unsigned takes = ~0U;  // pieces of what waits, before it takes no more
};

// A stream whose client side begins at `first`.
struct Rig {
  explicit Rig(StreamSettings settings = {}, std::uint32_t first_byte = 1001, std::size_t pool_bytes = 1U << 20)
      : pool(pool_bytes), reassembler(settings, pool), first(first_byte) {
    send(up, tcp_syn, first - 1, 0);
    send(down, tcp_syn | tcp_ack, 5000, first);
  }
  ~Rig() {
    reassembler.release(stream);
    reassembler.give_back(pool.in_use());
    EXPECT_EQ(pool.in_use(), 0U);
  }
  Taken send(Direction direction, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment,
             std::string_view payload = {}) {
    return reassembler.feed(stream, direction, tcp(1, 1000, direction, flags, sequence, acknowledgment, payload), sink);
  }
  // The client's byte number `at`.
  bool at(std::uint32_t at, std::string_view payload, std::uint8_t flags = 0) {
    return put(at, payload, flags) == Taken::all;
  }
  Taken put(std::uint32_t at, std::string_view payload, std::uint8_t flags = 0) {
    return send(up, flags, first + at, 0, payload);
  }
  // The server has the client's bytes before this one.
  void ack(std::uint32_t at) { send(down, tcp_ack, 5001, first + at); }
  const std::string& got() const { return sink.all[0]; }

  BlockPool pool;
  Reassembler reassembler;
  TcpStream stream;
  Bytes sink;
  std::uint32_t first;
};

inline StreamSettings guarded() {
  StreamSettings settings;
  settings.drop_conflicts = settings.drop_without_capacity = true;
  return settings;
}

}  // namespace sluice::flow::test
