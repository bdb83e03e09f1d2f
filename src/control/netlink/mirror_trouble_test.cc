// What the mirror does about much at once, lost notifications, refusals and neighbours that nobody asks for, against a
// real kernel.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <fstream>
#include <optional>
#include <thread>

#include "control/netlink/mirror_trial_test.h"

namespace sluice::control {
namespace {

// 50,000 routes: `verb` is "add", "del" or "replace".
std::string batch(const std::string& verb, const std::string& hop) {
  const std::string path = testing::TempDir() + "/mirror_test_batch-" + std::to_string(getpid());
  std::ofstream file(path);
  for (unsigned i = 0; i < 50000; ++i) {
    file << "route " << verb << " " << 20 + i / 65536 << "." << i / 256 % 256 << "." << i % 256 << ".0/24 " << hop
         << "\n";
  }
  return "ip -batch " + path;
}

TEST_F(MirrorTest, FollowsAFullTable) {
  std::size_t announced = 0;
  options_.progress = [&](std::string_view what, std::size_t count) {
    announced = what == "IPv4 routes" ? count : announced;
    return true;
  };
  kernel(batch("add", "via 10.0.0.2"));
  start();
  EXPECT_GT(announced, 50000U);
  const std::size_t others = plane_.routes.size() - 50000;
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 0 via 10.0.0.2");
  change(batch("replace", "via 10.0.1.2"));
  EXPECT_EQ(plane_.routes.size(), 50000 + others);
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 1 via 10.0.1.2");
  change(batch("del", "via 10.0.1.2"));
  EXPECT_EQ(plane_.routes.size(), others);
  EXPECT_EQ(mirror_->stats().overruns, 0U);
  EXPECT_EQ(mirror_->stats().resyncs, 0U);
}

TEST_F(MirrorTest, ComesBackFromLostNotificationsWithoutAHole) {
  options_.receive_buffer = 16 << 10;
  kernel(batch("add", "via 10.0.0.2"));
  start();
  const std::size_t calls = plane_.route_calls;
  kernel(batch("add", "via 10.0.0.2 table 77"));  // not ours, but it fills the buffer
  kernel(
      "ip route add 192.0.2.0/24 via 10.0.0.2 && ip route del 20.1.2.0/24 && ip route change 20.1.3.0/24 via 10.0.1.2");
  settle();
  EXPECT_GE(mirror_->stats().overruns, 1U);
  EXPECT_GE(mirror_->stats().resyncs, 1U);
  EXPECT_EQ(plane_.route("20.1.2.0/24"), "none");
  EXPECT_EQ(plane_.route("20.1.3.0/24"), "unicast 1 via 10.0.1.2");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(plane_.route_calls - calls, 3U);  // the differences and nothing else
  expect_as_fresh();
}

// Routes change while a dump runs: what notifications say must not be undone by what the dump read before.
TEST_F(MirrorTest, AgreesWithTheKernelAfterChangesDuringADump) {
  kernel(batch("add", "via 10.0.0.2"));
  start();
  std::thread churn([this] {
    space_.run(batch("del", "via 10.0.0.2"));
    space_.run(batch("add", "via 10.0.1.2"));
  });
  for (int i = 0; i < 5; ++i) {
    mirror_->resync();
    settle();
  }
  churn.join();
  settle();
  expect_as_fresh();
  EXPECT_EQ(plane_.route("20.195.79.0/24"), "unicast 1 via 10.0.1.2");
}

TEST_F(MirrorTest, AnnouncesRefusedRoutesAgain) {
  start();
  plane_.route_limit = plane_.routes.size();
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  EXPECT_EQ(mirror_->stats().refusals, 1U);
  EXPECT_EQ(mirror_->stats().last_refusal, "the route table is full");
  plane_.route_limit = SIZE_MAX;
  mirror_->resync();
  for (int i = 0; i < 100 && !mirror_->settled(); ++i) {
    std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(mirror_->process());
  }
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
}

TEST_F(MirrorTest, TakesARefusedNeighbourBackWhenTheKernelGivesItUp) {
  start();
  plane_.refuse_neighbours = true;
  const auto announced = [this] {
    std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(mirror_->process());
    return plane_.neighbour(0, "10.0.0.2");
  };
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev sl-a");
  EXPECT_EQ(announced(), "02:00:00:00:00:02");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
  EXPECT_EQ(mirror_->stats().refused, 1U);
  EXPECT_EQ(mirror_->stats().neighbours, 0U);
  kernel("ip neigh del 10.0.0.2 dev sl-a");
  EXPECT_EQ(announced(), "none");
  EXPECT_EQ(mirror_->stats().refusals, 1U);
}

TEST_F(MirrorTest, AnnouncesWhatWasRefusedAtTheNextTickWithCapacity) {
  start();
  plane_.refuse_neighbours = true;
  plane_.route_limit = 0;
  kernel("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud permanent dev sl-a");
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  EXPECT_EQ(mirror_->stats().refused, 2U);
  plane_.refuse_neighbours = false;
  plane_.route_limit = SIZE_MAX;
  ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
  EXPECT_EQ(mirror_->stats().refused, 0U);
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "02:00:00:00:00:02");
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
}

TEST_F(MirrorTest, StopsReadingWhenAsked) {
  auto options = options_;
  options.progress = [](std::string_view what, std::size_t) { return what != "neighbours"; };
  auto mirror = NetlinkMirror::open(std::move(options), plane_);
  ASSERT_TRUE(mirror) << mirror.error().message;
  const auto started = (*mirror)->start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "interrupted while the kernel's tables were read");
}

// The kernel itself has no traffic for the neighbour, so it would never look whether its MAC is still right.
TEST_F(MirrorTest, ProbesStaleNeighbours) {
  kernel("sysctl -qw net.ipv4.neigh.sl-a.delay_first_probe_time=0 net.ipv4.neigh.sl-a.retrans_time_ms=50");
  start();
  change("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 nud stale dev sl-a");
  EXPECT_EQ(mirror_->stats().probes, 1U);
  // Nobody answers: the kernel gives the address up, and so does the router.
  settle_until([this] { return plane_.neighbours.empty(); });
  EXPECT_EQ(plane_.neighbour(0, "10.0.0.2"), "none");
  // The kernel did ask the old MAC for it.
  std::array<std::byte, 2048> frame;
  bool asked = false;
  for (auto length = twins_[0].read(frame); length && *length > 0; length = twins_[0].read(frame)) {
    asked |= *length >= 42 && frame[12] == std::byte{8} && frame[13] == std::byte{6} && frame[0] == std::byte{2} &&
             frame[5] == std::byte{2};
  }
  EXPECT_TRUE(asked);
}

// The twins need no address, and the kernel no route.
TEST_F(MirrorTest, MakesTheKernelAskForANeighbourThatItHasNoRouteTo) {
  kernel("ip addr flush dev sl-b scope global && sysctl -qw net.ipv4.neigh.sl-b.retrans_time_ms=50");
  start();
  for (const char* address : {"172.16.0.9", "2001:db8:ffff::9"}) {
    const auto sent = mirror_->resolve(1, packet::IpAddress::parse(address).value());
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_TRUE(*sent);
  }
  settle();
  EXPECT_TRUE(plane_.neighbours.empty()) << "nobody has answered";
  std::array<std::byte, 2048> frame;
  unsigned arp = 0, nd = 0;
  for (auto length = twins_[1].read(frame); length && *length > 0; length = twins_[1].read(frame)) {
    arp += *length >= 42 && frame[12] == std::byte{8} && frame[13] == std::byte{6} && frame[38] == std::byte{172} &&
           frame[41] == std::byte{9};
    nd += *length >= 78 && frame[12] == std::byte{0x86} && frame[54] == std::byte{135} && frame[77] == std::byte{9};
  }
  EXPECT_GE(arp, 1U);
  EXPECT_GE(nd, 1U);
  change("ip neigh replace 172.16.0.9 lladdr 02:00:00:00:00:09 dev sl-b");
  EXPECT_EQ(plane_.neighbour(1, "172.16.0.9"), "02:00:00:00:00:09");
  EXPECT_FALSE(mirror_->resolve(7, packet::IpAddress::v4(1)).value()) << "no twin: nobody to ask";
}

// Puts a socket that takes no message (its buffer is full) in the place of the mirror's own.
class FullSocket {
 public:
  explicit FullSocket(int fd) : fd_(fd), saved_(dup(fd)) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair_) != 0) return;
    const char byte = 0;
    while (send(pair_[0], &byte, 1, 0) == 1) full_ = true;
    dup2(pair_[0], fd_);
  }
  ~FullSocket() {
    dup2(saved_, fd_);
    for (const int fd : {saved_, pair_[0], pair_[1]}) close(fd);
  }
  bool full() const { return full_; }

 private:
  int fd_;
  int saved_;
  int pair_[2] = {-1, -1};
  bool full_ = false;
};

TEST_F(MirrorTest, ProbesAgainWhatTheKernelDidNotTake) {
  start();
  change("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev sl-a nud reachable");
  const std::uint64_t before = mirror_->stats().probes;
  kernel("ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev sl-a nud stale");
  std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(mirror_->process());
  {
    const FullSocket full(mirror_->fd());
    ASSERT_TRUE(full.full());
    const auto ticked = mirror_->tick(NetlinkMirror::Clock::now());
    ASSERT_TRUE(ticked) << ticked.error().message;
    EXPECT_EQ(mirror_->stats().probes, before);
    EXPECT_EQ(mirror_->stats().unsent, 1U);
  }
  ASSERT_TRUE(mirror_->tick(NetlinkMirror::Clock::now()));
  EXPECT_EQ(mirror_->stats().probes, before + 1);
  EXPECT_EQ(mirror_->stats().unsent, 1U);
}

TEST_F(MirrorTest, ReadsEverythingLaterWhenTheKernelDoesNotTakeTheRequest) {
  start();
  const std::uint64_t resyncs = mirror_->stats().resyncs;
  std::this_thread::sleep_for(50ms);  // until another comparison is allowed
  mirror_->resync();
  {
    const FullSocket full(mirror_->fd());
    ASSERT_TRUE(full.full());
    const auto done = mirror_->process();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(mirror_->stats().unsent, 1U);
    EXPECT_FALSE(mirror_->settled());
  }
  kernel("ip route add 192.0.2.0/24 via 10.0.0.2");
  settle();
  EXPECT_EQ(mirror_->stats().resyncs, resyncs + 1);
  EXPECT_EQ(plane_.route("192.0.2.0/24"), "unicast 0 via 10.0.0.2");
  expect_as_fresh();
}

}  // namespace
}  // namespace sluice::control
