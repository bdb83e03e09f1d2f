// Who goes when the table, or a bucket of it, is full.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "flow/flow_table.h"
#include "flow/flow_table_trial_test.h"
#include "flow/recorder.h"

namespace sluice::flow {
namespace {

using namespace test;

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Clients whose flows fall into the same two buckets and no other.
std::vector<std::uint32_t> clients_of_one_pair(const FlowTable& table, std::size_t count) {
  std::vector<std::uint32_t> clients;
  std::array<std::uint32_t, 2> pair{};
  for (std::uint32_t client = 0; clients.size() < count; ++client) {
    const auto buckets = table.buckets_of(table.hash(tcp(client, 9, up, 0, 0, 0)));
    if (clients.empty() && buckets[0] != buckets[1]) {
      pair = buckets;
    }
    if (buckets == pair && buckets[0] != buckets[1]) {
      clients.push_back(client);
    }
  }
  return clients;
}

// What is remembered has no place that a new flow needs, but for a flood's: that leaves half of the table.
TEST(FlowTable, WhatIsRememberedGivesWayAndAFloodLeavesHalfOfIt) {
  Ends ends;
  FlowTable table(remembering(16), &ends);
  for (std::uint32_t client = 0; client < 16; ++client) handshake(table, client, 1, 0);
  const Milliseconds now = FlowTimeouts().tcp_established;
  for (std::uint32_t client = 0; client < 16; ++client) feed(table, tcp(client, 1, up, tcp_ack, 101, 501), now);
  EXPECT_EQ(table.in_class()[2], 16U);
  EXPECT_EQ(table.in_use(), 0U);
  for (std::uint32_t n = 0; n < 100; ++n) feed(table, tcp(100 + n, 9, up, tcp_syn, 1, 0), now);
  EXPECT_GE(table.in_class()[2], 7U);
  EXPECT_LE(table.in_class()[0], 9U);
  EXPECT_EQ(table.in_use(), table.in_class()[0]);
  EXPECT_EQ(ends.reasons.size(), 16U + table.counters().evicted_new);
  EXPECT_EQ(table.counters().evicted_closed, 0U);
  for (std::uint32_t client = 200; client < 216; ++client) handshake(table, client, 1, now);
  EXPECT_EQ(table.in_class()[1] + table.counters().refused_full / 3 + table.counters().refused_bucket / 3, 16U);
}

TEST(FlowTable, WhatIsRememberedLongestGivesWayToWhatHasJustFallenSilent) {
  FlowTable table(remembering(4));
  for (std::uint32_t client = 1; client < 5; ++client) handshake(table, client, 1, 0);
  for (std::uint32_t client = 3; client < 5; ++client) feed(table, tcp(client, 1, up, tcp_ack, 101, 501), 300'000);
  const Milliseconds now = FlowTimeouts().tcp_established;
  EXPECT_EQ(feed(table, tcp(1, 1, up, tcp_ack, 101, 501), now).flow->state, FlowState::silent);
  feed(table, tcp(9, 1, up, tcp_syn, 100, 0), now);
  EXPECT_EQ(table.in_class(), (std::array<std::uint32_t, 3>{1, 2, 1}));
  EXPECT_EQ(feed(table, tcp(2, 1, up, tcp_ack, 101, 501), now).flow->state, FlowState::silent);
  EXPECT_EQ(table.counters().expired, 2U);
}

TEST(FlowTable, WhoGoesFirstWhenItIsFull) {
  Ends ends;
  FlowTable table(small(4), &ends);
  handshake(table, 1, 1, 0);
  handshake(table, 2, 2, 0);
  feed(table, tcp(3, 3, up, tcp_syn, 1, 0), 10);
  handshake(table, 4, 4, 20);
  feed(table, tcp(4, 4, up, tcp_rst | tcp_ack, 101, 501), 20);
  ASSERT_EQ(table.in_use(), 4U);
  auto newcomer = [&, next = 10U](Milliseconds now) mutable {
    handshake(table, next, 9, now);
    ++next;
    return ends.reasons.empty() ? FlowEndReason::flushed : ends.reasons.back();
  };
  EXPECT_EQ(newcomer(30), FlowEndReason::evicted_closed);
  EXPECT_EQ(newcomer(40), FlowEndReason::evicted_new);
  EXPECT_EQ(ends.reasons.size(), 2U);
  newcomer(50);  // four established ones: refused, all three packets of it
  EXPECT_EQ(ends.reasons.size(), 2U);
  EXPECT_EQ(table.counters().refused_full, 3U);
  feed(table, tcp(2, 2, up, tcp_ack, 101, 501), 50'000);
  EXPECT_EQ(newcomer(60'000), FlowEndReason::evicted_idle) << "the one that has been silent for a minute";
  EXPECT_EQ(table.counters().evicted_idle, 1U);
  Direction direction{};
  EXPECT_NE(table.find(tcp(2, 2, up, 0, 0, 0), table.hash(tcp(2, 2, up, 0, 0, 0)), 60'000, direction), nullptr);
  EXPECT_EQ(table.in_use(), 4U);
}

TEST(FlowTable, FullBucketsGiveUpOnlyWhatMayGo) {
  for (const FlowState gone : {FlowState::established, FlowState::fresh, FlowState::closed}) {
    FlowTable table(small());
    const std::vector<std::uint32_t> clients = clients_of_one_pair(table, 17);
    for (std::size_t i = 0; i < 16; ++i) {
      if (i == 7 && gone == FlowState::fresh) {
        feed(table, tcp(clients[i], 9, up, tcp_syn, 100, 0), 0);
      } else {
        handshake(table, clients[i], 9, 0);
      }
    }
    if (gone == FlowState::closed) {
      feed(table, tcp(clients[7], 9, up, tcp_rst, 101, 0), 0);
    }
    Flow* const flow = feed(table, tcp(clients[16], 9, up, tcp_syn, 100, 0), 1).flow;
    const FlowCounters& counters = table.counters();
    EXPECT_EQ(flow != nullptr, gone != FlowState::established);
    EXPECT_EQ(counters.refused_bucket, gone == FlowState::established ? 1U : 0U);
    EXPECT_EQ(counters.evicted_new, gone == FlowState::fresh ? 1U : 0U);
    EXPECT_EQ(counters.evicted_closed, gone == FlowState::closed ? 1U : 0U);
    EXPECT_EQ(table.in_use(), 16U);
    EXPECT_EQ(table.in_class()[1], gone == FlowState::established ? 16U : 15U);
  }
}

TEST(FlowTable, InFullBucketsTheOldestThatMayGoGoes) {
  FlowTable table(small());
  const std::vector<std::uint32_t> clients = clients_of_one_pair(table, 17);
  Milliseconds now = 0;
  const auto fresh = [](std::size_t i) { return i == 3 || i == 7 || i == 12; };
  for (const unsigned i : {7U, 0U, 1U, 2U, 3U, 4U, 5U, 6U, 8U, 9U, 10U, 11U, 12U, 13U, 14U, 15U}) {
    if (fresh(i)) {
      feed(table, tcp(clients[i], 9, up, tcp_syn, 100, 0), now);
    } else {
      handshake(table, clients[i], 9, now);
    }
    ++now;
  }
  ASSERT_EQ(table.in_use(), 16U);
  ASSERT_NE(feed(table, tcp(clients[16], 9, up, tcp_syn, 100, 0), now).flow, nullptr);
  for (std::size_t i = 0; i < 16; ++i) {
    Direction direction{};
    const Packet packet = tcp(clients[i], 9, up, tcp_ack, 101, 501);
    EXPECT_EQ(table.find(packet, table.hash(packet), now, direction) != nullptr, i != 7) << i;
  }
}

TEST(FlowTable, OfEstablishedFlowsTwoAreLookedAtForOneThatIsSilent) {
  for (const std::uint32_t active : {1U, 2U}) {
    FlowTable table(small(4));
    for (std::uint32_t client = 1; client < 5; ++client) handshake(table, client, 1, 0);
    for (std::uint32_t client = 1; client <= active; ++client) {
      feed(table, tcp(client, 1, up, tcp_ack, 101, 501), 50'000);
    }
    EXPECT_EQ(feed(table, tcp(9, 1, up, tcp_syn, 100, 0), 60'000).flow != nullptr, active == 1);
    EXPECT_EQ(table.counters().evicted_idle, active == 1 ? 1U : 0U);
    EXPECT_NE(feed(table, tcp(9, 1, up, tcp_syn, 100, 0), 60'000).flow, nullptr) << "the next two";
  }
}

// The flood: SYNs from random addresses to a table that holds a million conversations. None of those is lost, memory
// stays what it was, and every flow that was made is either there or counted away.
TEST(FlowTable, ASynFloodEvictsNoEstablishedFlow) {
#ifdef SLUICE_SANITIZED
  constexpr std::uint32_t established = 50'000, flood = 500'000, spare = 4096;
#else
  constexpr std::uint32_t established = 1'000'000, flood = 10'000'000, spare = 65'536;
#endif
  FlowTable table(small(established + spare));
  for (std::uint32_t i = 0; i < established; ++i) {
    handshake(table, i, 1000, 0);
  }
  ASSERT_EQ(table.in_class()[1], established);
  const std::uint64_t resident = resident_bytes();
  std::uint64_t random = 1;
  for (std::uint32_t i = 0; i < flood; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    Packet syn =
        tcp(static_cast<std::uint32_t>(random >> 33), static_cast<std::uint16_t>(random >> 17), up, tcp_syn, i, 0);
    syn.source[0] = static_cast<std::uint8_t>(100 + (random >> 57));
    feed(table, syn, 1 + i / 10'000);
  }
  EXPECT_LT(resident_bytes(), resident + (8U << 20));
  EXPECT_EQ(table.in_class()[1], established);
  const FlowCounters& counters = table.counters();
  EXPECT_EQ(counters.refused_full, 0U);
  EXPECT_EQ(counters.evicted_idle + counters.expired + counters.evicted_closed, 0U);
  EXPECT_EQ(counters.made, table.in_use() + counters.evicted_new);
  EXPECT_LE(counters.made + counters.refused_bucket, std::uint64_t{established} + flood);
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < established; ++i) {
    Direction direction{};
    const Packet packet = tcp(i, 1000, down, tcp_ack, 501, 101);
    const Flow* const flow = table.find(packet, table.hash(packet), 2000, direction);
    found += flow != nullptr && flow->state == FlowState::established && direction == down ? 1 : 0;
  }
  EXPECT_EQ(found, established);
  std::cout << table.in_use() << " flows in " << FlowTable::memory_bytes(table.capacity()) / 1048576 << " MiB, "
            << counters.evicted_new << " evicted, " << counters.refused_bucket << " refused\n";
  // A handshake that is quicker than the flood's way through the spare places gets its flow.
  handshake(table, 5, 7, 3000);
  EXPECT_EQ(table.in_class()[1], established + 1);
}

}  // namespace
}  // namespace sluice::flow
