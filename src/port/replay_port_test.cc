#include "port/replay_port.h"

#include <gtest/gtest.h>
#include <rte_cycles.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "packet/parse.h"

namespace sluice::port {
namespace {

constexpr unsigned frames = 200;
constexpr unsigned frame_bytes = 2048;

std::unique_ptr<ReplayPort> make_port(const std::string& name, int family) {
  ReplayOptions options;
  options.mix = "imix";
  options.frames = frames;
  options.family = family;
  auto port = ReplayPort::create(name, 1, options, frame_bytes);
  EXPECT_TRUE(port) << port.error().message;
  return port ? std::move(*port) : nullptr;
}

using Bytes = std::vector<std::uint8_t>;

// The next round of frames, by index.
std::vector<Bytes> round_of(ReplayPort& port) {
  std::vector<Bytes> all(frames);
  rte_mbuf* burst[32];
  for (unsigned seen = 0; seen < frames;) {
    const std::uint16_t count = port.rx_burst(0, burst, static_cast<std::uint16_t>(std::min(32U, frames - seen)));
    EXPECT_NE(count, 0);
    for (unsigned i = 0; i < count; ++i) {
      const auto* data = rte_pktmbuf_mtod(burst[i], const std::uint8_t*);
      all[ReplayPort::frame_index(burst[i])] = Bytes(data, data + rte_pktmbuf_data_len(burst[i]));
    }
    port.tx_burst(burst, count);
    seen += count;
  }
  return all;
}

TEST(ReplayPort, TwoPortsAreTwoHostsAndFramesAreForTheirPort) {
  EXPECT_EQ(ReplayPort::mac_of("left"), ReplayPort::mac_of("left"));
  EXPECT_FALSE(ReplayPort::mac_of("left") == ReplayPort::mac_of("right"));
  const auto port = make_port("left", 4);
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(port->mac(), ReplayPort::mac_of("left"));
  EXPECT_EQ(port->mac().bytes[0] & 0x03, 0x02);  // locally administered, unicast
  for (const Bytes& frame : round_of(*port)) {
    EXPECT_TRUE(std::equal(port->mac().bytes.begin(), port->mac().bytes.end(), frame.begin()));
  }
}

TEST(ReplayPort, AFamilyChosenLaterGivesTheFramesOfAPortMadeWithIt) {
  const std::vector<Bytes> only4 = round_of(*make_port("mixed", 4));
  const std::vector<Bytes> only6 = round_of(*make_port("mixed", 6));
  EXPECT_NE(only4, only6);
  const auto port = make_port("mixed", 4);
  ASSERT_NE(port, nullptr);
  EXPECT_EQ(round_of(*port), only4);
  for (const int family : {6, 4, 6}) {
    ASSERT_TRUE(port->set_family(family));
    for (int round = 0; round < 4; ++round) {
      EXPECT_EQ(round_of(*port), family == 6 ? only6 : only4) << family << ", round " << round;
    }
  }
  for (const Bytes& frame : only6) {
    packet::FrameView view;
    EXPECT_EQ(packet::parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), view), packet::no_reason);
    EXPECT_EQ(view.kind, packet::FrameKind::ipv6);
  }
}

TEST(ReplayPort, AFrameThatWasOutDuringTheChangeIsOfTheNewFamilyToo) {
  const auto port = make_port("held", 4);
  ASSERT_NE(port, nullptr);
  rte_mbuf* held[10];
  ASSERT_EQ(port->rx_burst(0, held, 10), 10);
  ASSERT_TRUE(port->set_family(6));
  rte_mbuf* burst[frames];
  const std::uint16_t others = port->rx_burst(0, burst, frames);
  ASSERT_EQ(others, frames - 10);
  port->tx_burst(burst, others);
  port->tx_burst(held, 10);
  for (int round = 0; round < 2; ++round) {
    for (const Bytes& frame : round_of(*port)) {
      EXPECT_EQ(frame[12], 0x86);
    }
  }
}

TEST(ReplayPort, FramesWaitFromTheMomentThatTheyAreDue) {
  const auto port = make_port("waits", 4);
  ASSERT_NE(port, nullptr);
  rte_mbuf* burst[8];
  EXPECT_EQ(port->waited(0), 0U);
  port->set_rate(1000);
  while (port->rx_burst(0, burst, 1) == 0) {
  }
  port->tx_burst(burst, 1);
  const std::uint64_t ms = rte_get_tsc_hz() / 1000;
  for (const std::uint64_t begin = rte_rdtsc(); rte_rdtsc() - begin < 20 * ms;) {
  }
  ASSERT_EQ(port->rx_burst(0, burst, 8), 8);
  EXPECT_GE(port->waited(0), 18 * ms);
  EXPECT_EQ(port->missed(), 0U);
  port->tx_burst(burst, 8);
}

TEST(ReplayPort, AFullRingKeepsWhatCameFirst) {
  auto port = ReplayPort::create("ring", 1, *ReplayOptions::parse("replay,frames=100,ring=8"), 256);
  ASSERT_TRUE(port) << (port ? "" : port.error().message);
  rte_mbuf* burst[64];
  (*port)->set_rate(1000);
  EXPECT_EQ((*port)->rx_burst(0, burst, 64), 0);
  const std::uint64_t ms = rte_get_tsc_hz() / 1000;
  const auto wait = [&](std::uint64_t ticks) {
    for (const std::uint64_t begin = rte_rdtsc(); rte_rdtsc() - begin < ticks;) {
    }
  };
  // Two overflows: eight frames of the first 8 ms, of which four give way to four of the time after 40 ms.
  wait(40 * ms);
  const std::uint64_t first = rte_rdtsc();
  ASSERT_EQ((*port)->rx_burst(0, burst, 4), 4);
  EXPECT_GE((*port)->waited(0), 38 * ms);
  EXPECT_GE((*port)->missed(), 30U);
  wait(40 * ms);
  const std::uint64_t second = rte_rdtsc();
  ASSERT_EQ((*port)->rx_burst(0, burst + 4, 4), 4);
  EXPECT_GE((*port)->waited(0), 70 * ms);
  ASSERT_EQ((*port)->rx_burst(0, burst + 8, 4), 4);
  EXPECT_GE((*port)->waited(0), 34 * ms);
  EXPECT_LE((*port)->waited(0), rte_rdtsc() - first);
  EXPECT_GE((*port)->missed(), 64U);
  // Nothing is left of the gaps.
  wait(3 * ms);
  ASSERT_GE((*port)->rx_burst(0, burst + 12, 64), 3);
  EXPECT_LE((*port)->waited(0), rte_rdtsc() - second);
}

// However often the lane looks, what was due is taken, lost, or still in the ring.
TEST(ReplayPort, EveryDueFrameIsTakenOrCountedAsMissed) {
  auto port = ReplayPort::create("due", 1, *ReplayOptions::parse("replay,frames=64,ring=8"), 256);
  ASSERT_TRUE(port) << (port ? "" : port.error().message);
  rte_mbuf* held[64];
  ASSERT_EQ((*port)->rx_burst(0, held, 64), 64);  // no frame is left to give out
  constexpr double rate = 1e6;
  (*port)->set_rate(rate);
  rte_mbuf* burst[8];
  const auto look = [&] { return (*port)->rx_burst(0, burst, 8); };
  const std::uint64_t ticks = rte_get_tsc_hz() / 50;
  const std::uint64_t before = rte_rdtsc();
  ASSERT_EQ(look(), 0);
  const std::uint64_t begin = rte_rdtsc();
  while (rte_rdtsc() - begin < ticks) {
    ASSERT_EQ(look(), 0);
  }
  const std::uint64_t end = rte_rdtsc();
  ASSERT_EQ(look(), 0);
  const std::uint64_t after = rte_rdtsc();
  const auto due = [](std::uint64_t time) {
    return rate * static_cast<double>(time) / static_cast<double>(rte_get_tsc_hz());
  };
  const double all = static_cast<double>((*port)->missed()) + 8;
  EXPECT_GE(all, due(end - begin) - 2);
  EXPECT_LE(all, due(after - before) + 2);
  // A rate that was off for a while owes nothing for that time.
  (*port)->set_rate(0);
  ASSERT_EQ(look(), 0);
  const std::uint64_t missed = (*port)->missed();
  for (const std::uint64_t off = rte_rdtsc(); rte_rdtsc() - off < ticks;) {
  }
  (*port)->set_rate(rate);
  ASSERT_EQ(look(), 0);
  EXPECT_EQ((*port)->missed(), missed);
  EXPECT_LT((*port)->waited(0), ticks / 4);
}

TEST(ReplayPort, FramesThatCameBackOutOfTurnArePutInOrder) {
  for (const bool ordered : {false, true}) {
    constexpr unsigned count = 128;
    auto port = ReplayPort::create("turn", 1,
                                   *ReplayOptions::parse("replay,frames=128,ordered=" + std::to_string(ordered)), 256);
    ASSERT_TRUE(port) << (port ? "" : port.error().message);
    rte_mbuf* under_way[32];
    rte_mbuf* dropped[16];
    ASSERT_EQ((*port)->rx_burst(0, under_way, 32), 32);
    ASSERT_EQ((*port)->rx_burst(0, dropped, 16), 16);
    rte_pktmbuf_free_bulk(dropped, 16);
    (*port)->tx_burst(under_way, 32);
    std::vector<std::uint32_t> order;
    for (int round = 0; round < 3; ++round) {
      order.clear();
      while (order.size() < count) {
        rte_mbuf* burst[32];
        const std::uint16_t got = (*port)->rx_burst(0, burst, 32);
        ASSERT_EQ(got, 32);
        for (unsigned i = 0; i < got; ++i) {
          order.push_back(ReplayPort::frame_index(burst[i]));
        }
        (*port)->tx_burst(burst, got);
      }
    }
    // Of the last round: none is there twice.
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), count);
    unsigned descents = 0;
    for (unsigned i = 1; i < count; ++i) {
      descents += order[i] != (order[i - 1] + 1) % count;
    }
    EXPECT_EQ(descents == 0, ordered);
  }
}

// Of each burst of 32 every fourth frame is dropped, and so comes back before the others.
TEST(ReplayPort, FramesAreInOrderHoweverTheyComeBack) {
  auto port = ReplayPort::create("order", 1, *ReplayOptions::parse("replay,frames=1000,ordered=1"), 256);
  ASSERT_TRUE(port) << (port ? "" : port.error().message);
  std::uint32_t next = 0;
  std::vector<rte_mbuf*> late;
  for (unsigned burst = 0; burst < 500; ++burst) {
    rte_mbuf* frames[32];
    ASSERT_EQ((*port)->rx_burst(0, frames, 32), 32);
    (*port)->tx_burst(late.data(), static_cast<std::uint16_t>(late.size()));
    late.clear();
    for (unsigned i = 0; i < 32; ++i) {
      ASSERT_EQ(ReplayPort::frame_index(frames[i]), next) << burst;
      next = (next + 1) % 1000;
      if (i % 4 == 0) {
        rte_pktmbuf_free(frames[i]);
      } else {
        late.push_back(frames[i]);
      }
    }
  }
  (*port)->tx_burst(late.data(), static_cast<std::uint16_t>(late.size()));
}

TEST(ReplayPort, NoFrameMissesItsRefreshWhateverTheBursts) {
  for (const unsigned refresh : {1U, 2U, 5U}) {
    auto port = ReplayPort::create("refresh", 1,
                                   *ReplayOptions::parse("replay,frames=100,refresh=" + std::to_string(refresh)), 256);
    ASSERT_TRUE(port) << port.error().message;
    rte_mbuf* frames[64];
    unsigned lowest = 255;
    for (unsigned burst = 0; burst < 3000; ++burst) {
      const std::uint16_t count = (*port)->rx_burst(0, frames, static_cast<std::uint16_t>(1 + burst * 7 % 13));
      for (unsigned i = 0; i < count; ++i) {
        lowest = std::min<unsigned>(lowest, --rte_pktmbuf_mtod(frames[i], std::uint8_t*)[22]);
      }
      (*port)->tx_burst(frames, count);
    }
    EXPECT_EQ(lowest, 255 - refresh) << refresh;
  }
}

// What is wrong with these arguments.
std::string said_of(const std::string& arguments) {
  const auto options = ReplayOptions::parse("replay," + arguments);
  return options ? "" : options.error().message;
}

TEST(ReplayPort, DestinationsComeFromAFile) {
  const std::string path = testing::TempDir() + "sluice_destinations_" + std::to_string(getpid());
  std::ofstream(path) << "10.0.0.1\n2001:db8::1\n10.0.0.2\n";
  auto options = ReplayOptions::parse("replay,frames=" + std::to_string(frames) + ",destinations=" + path);
  ASSERT_TRUE(options) << options.error().message;
  auto port = ReplayPort::create("given", 1, *options, frame_bytes);
  ASSERT_TRUE(port) << port.error().message;
  std::set<std::uint8_t> last_bytes;
  for (const Bytes& frame : round_of(**port)) {
    ASSERT_EQ(frame[30], 10);
    last_bytes.insert(frame[33]);
  }
  EXPECT_EQ(last_bytes, (std::set<std::uint8_t>{1, 2}));
  ASSERT_TRUE((*port)->set_family(6));
  for (const Bytes& frame : round_of(**port)) {
    EXPECT_EQ(frame[38 + 1], 1);
    EXPECT_EQ(frame[38 + 15], 1);
  }
  std::ofstream(path) << "10.0.0.1\n";
  EXPECT_EQ(said_of("family=6,destinations=" + path),
            "replay: destinations has no IPv6 address, and family is 6: add some, or change family");
  options = ReplayOptions::parse("replay,frames=64,destinations=" + path);
  ASSERT_TRUE(options) << options.error().message;
  port = ReplayPort::create("ipv4-only", 1, *options, frame_bytes);
  ASSERT_TRUE(port) << port.error().message;
  EXPECT_FALSE((*port)->set_family(6)) << "not to random ones";
  std::ofstream(path) << "10.0.0.1\n10.0.0\n";
  const auto refused = ReplayOptions::parse("replay,destinations=" + path);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(path + ":2: "), std::string::npos) << refused.error().message;
  unlink(path.c_str());
  EXPECT_FALSE(ReplayOptions::parse("replay,destinations=" + path));
}

TEST(ReplayPort, DestinationsAreAFileThatEnds) {
  const std::string path = testing::TempDir() + "sluice_no_destinations_" + std::to_string(getpid());
  const std::string start = "replay: destinations: ";
  EXPECT_EQ(said_of("destinations=/dev/zero"), start + "/dev/zero: is a device: name a regular file");
  EXPECT_EQ(said_of("destinations=/tmp"), start + "/tmp: is a folder: name a regular file");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(said_of("destinations=" + path), start + path + ": is a pipe: name a regular file");
  unlink(path.c_str());
  EXPECT_EQ(said_of("destinations=" + path), start + path + ": No such file or directory");
  std::ofstream(path) << "";
  EXPECT_EQ(said_of("destinations=" + path), start + path + ": is empty: write an address on each line");
  unlink(path.c_str());
}

// Source, destination and ports of an IPv4 frame.
std::string ends_of(const Bytes& frame) {
  const auto address = [&](std::size_t at) { return packet::IpAddress::from_bytes(4, frame.data() + at).str(); };
  const auto port = [&](std::size_t at) { return std::to_string(frame[at] << 8 | frame[at + 1]); };
  return address(26) + " " + port(34) + " " + address(30) + " " + port(36);
}

TEST(ReplayPort, FlowsOfAFileFollowEachOtherFromQueueToQueue) {
  const std::string path = testing::TempDir() + "sluice_flows_" + std::to_string(getpid());
  std::ofstream(path) << "10.0.0.1 1 10.1.0.1 80\n2001:db8::1 5 2001:db8::2 6\n10.0.0.2 2 10.1.0.2 53\n"
                      << "10.0.0.3 65535 10.1.0.3 0\n";
  const std::vector<std::string> flows{"10.0.0.1 1 10.1.0.1 80", "10.0.0.2 2 10.1.0.2 53", "10.0.0.3 65535 10.1.0.3 0"};
  for (const std::string protocol : {"udp", "tcp"}) {
    const auto options = ReplayOptions::parse("replay,frames=64,protocol=" + protocol + ",flows=" + path);
    ASSERT_TRUE(options) << options.error().message;
    const auto port = ReplayPort::create("flows-" + protocol, 2, *options, frame_bytes);
    ASSERT_TRUE(port) << port.error().message;
    for (unsigned i = 0; i < 128; ++i) {
      const Bytes& frame = (*port)->pristine(static_cast<std::uint16_t>(i / 64), i % 64);
      EXPECT_EQ(ends_of(frame), flows[i % 3]) << i;
      EXPECT_EQ(frame[23], protocol == "udp" ? 17 : 6);
    }
  }
  const std::string no_ipv6 = "replay: flows has no IPv6 flow, and family is 6: add some, or change family";
  const std::string form = "write 'SOURCE PORT DESTINATION PORT', such as 192.0.2.1 1024 198.51.100.1 80";
  EXPECT_EQ(said_of("protocol=http,flows=" + path),
            "replay: flows are for protocol=udp and protocol=tcp: conversations have their own");
  std::ofstream(path) << "10.0.0.1 1 10.1.0.1 80\n";
  EXPECT_EQ(said_of("family=6,flows=" + path), no_ipv6);
  for (const auto& [line, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"10.0.0.1 1 10.1.0.1", form},
           {"10.0.0.1 1 10.1.0.1 65536", form},
           {"10.0.0.1 1 10.1.0.1 80 6", form},
           {"", form},
           {"10.0.0.1 1 2001:db8::1 80", "one address is IPv4, the other IPv6: write two of a family"}}) {
    std::ofstream(path) << "10.0.0.1 1 10.1.0.1 80\n" << line << "\n";
    EXPECT_EQ(said_of("flows=" + path), "replay: " + path + ":2: " + wrong);
  }
  std::ofstream(path) << "";
  EXPECT_EQ(said_of("flows=" + path), "replay: flows: " + path + ": is empty: write a flow on each line");
  unlink(path.c_str());
}

TEST(ReplayPort, FlowsSayWhereFramesGo) {
  const std::string flows = testing::TempDir() + "sluice_flows_" + std::to_string(getpid());
  const std::string addresses = testing::TempDir() + "sluice_addresses_" + std::to_string(getpid());
  std::ofstream(flows) << "10.0.0.1 1 10.1.0.1 80\n";
  std::ofstream(addresses) << "10.0.0.1\n";
  EXPECT_EQ(said_of("flows=" + flows + ",destinations=" + addresses),
            "replay: flows say where frames go: leave destinations out");
  unlink(flows.c_str());
  unlink(addresses.c_str());
}

TEST(ReplayPort, WebPayloadsAreWordsOfPagesToThePortsOfWebAndDns) {
  for (const auto& [protocol, number, headers] :
       {std::tuple{"udp", "53", std::size_t{42}}, std::tuple{"tcp", "80", std::size_t{54}}}) {
    const auto options =
        ReplayOptions::parse(std::string("replay,mix=1500,frames=64,payload=web,protocol=") + protocol);
    ASSERT_TRUE(options) << options.error().message;
    const auto port = ReplayPort::create(std::string("web-") + protocol, 1, *options, frame_bytes);
    ASSERT_TRUE(port) << port.error().message;
    const Bytes& frame = (*port)->pristine(0, 0);
    EXPECT_TRUE(ends_of(frame).ends_with(std::string(" ") + number)) << ends_of(frame);
    EXPECT_NE(std::string(frame.begin() + static_cast<std::ptrdiff_t>(headers), frame.end()).find("User-Agent: "),
              std::string::npos);
  }
}

TEST(ReplayPort, PayloadsAreMadeOfThePiecesOfAFileAndSegmentsAreOfTcp) {
  const std::string path = testing::TempDir() + "pieces-" + std::to_string(getpid());
  std::ofstream(path) << "6f6e65\n\n2054574F20\n";
  auto options = ReplayOptions::parse("replay,mix=600,frames=64,protocol=tcp,payload=" + path);
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->pieces, (std::vector<std::string>{"one", " TWO "}));
  auto port = ReplayPort::create("pieces", 1, *options, 2048);
  ASSERT_TRUE(port) << port.error().message;
  const std::vector<std::uint8_t>& frame = (*port)->pristine(0, 3);
  const std::string text(frame.begin() + 54, frame.end());
  EXPECT_EQ(frame[23], 6) << "the IP protocol";
  EXPECT_NE(text.find("one"), std::string::npos);
  EXPECT_NE(text.find(" TWO "), std::string::npos);
  EXPECT_EQ(text.find_first_not_of("one TWO"), std::string::npos);
  std::ofstream(path) << "6f\n6f6\n";
  EXPECT_EQ(said_of("payload=" + path), "replay: " + path + ":2: a piece is pairs of hexadecimal digits");
  std::ofstream(path) << "";
  EXPECT_EQ(said_of("payload=" + path), "replay: payload: " + path + ": is empty: write a piece on each line");
  unlink(path.c_str());
}

TEST(ReplayPort, EachArgumentIsTakenOrRefusedForWhatItIs) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"mix=imix,frames=64,family=6,seed=2,rate=1.5,ring=32,ordered=1,refresh=3", ""},
      {"ordered=yes", "replay: 'ordered=yes': ordered takes 0 or 1"},
      {"ordered=2", "replay: 'ordered=2': ordered takes 0 or 1"},
      {"family=5", "replay: 'family=5': family takes 4 or 6"},
      {"frames=x", "replay: 'frames=x': frames takes a number from 0 to 1e9"},
      {"frames=64.5", "replay: 'frames=64.5': frames takes a whole number"},
      {"seed=1,rate=5,seed=1", "replay: seed is there twice: give it once"},
      {"", "replay: there is no argument behind a comma: take the comma out, or write KEY=VALUE behind it"},
      {"seed=1,", "replay: there is no argument behind a comma: take the comma out, or write KEY=VALUE behind it"},
      {"orderd=1",
       "replay: 'orderd=1': the keys are mix, frames, family (4 or 6), seed, rate, ring, ordered (0 or 1), refresh, "
       "destinations, protocol (udp, tcp, streams or http), payload, flows"},
      {"protocol=tcp,payload=text", ""},
      {"payload=random", ""},
      {"protocol=sctp", "replay: 'protocol=sctp': protocol takes udp, tcp, streams or http"},
      {"protocol=streams", ""},
      {"protocol=http,payload=text", ""},
      {"protocol=http,payload=codings", ""},
      {"protocol=streams,payload=resets", ""},
      {"protocol=http,payload=resets", "replay: payload=resets is of TCP conversations: say protocol=streams, too"},
      {"protocol=tcp,payload=codings", "replay: payload=codings is of bodies of HTTP: say protocol=http, too"},
      {"payload=/nowhere",
       "replay: payload: /nowhere: No such file or directory; it takes random, text, web, codings, resets, or a file "
       "of pieces"},
      {"frames=63", "replay: frames=63 is too few; 64 is the least"},
  };
  for (const auto& [arguments, expected] : cases) {
    EXPECT_EQ(said_of(arguments), expected) << arguments;
  }
}

}  // namespace
}  // namespace sluice::port
