// A monitor port that is full or slow, beside an original's port that is at its limit: originals leave as they do
// without a mirror, and every copy is somewhere.
#include <rte_ethdev.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "function/mirror/mirror_rings_test.h"

namespace sluice::function {
namespace {

using packet::Bytes;

// What reads the monitor port, in each round.
enum class Reader { all, nothing, slow, blocked };

struct Outcome {
  std::vector<Bytes> left;  // by the wan, in order
  std::uint64_t refused;    // tx_full
  bool operator==(const Outcome&) const = default;
};

class MirrorSaturation : public MirrorRings {
 protected:
  static constexpr unsigned frames = 1024, rounds = 60, burst = 64, drained = 48, places = 128;

  MirrorSaturation() : MirrorRings(frames) {}

  void TearDown() override {
    taken(wan);
    taken(monitor);
    MirrorRings::TearDown();
  }
  static Bytes numbered(unsigned number) {
    return packet::PacketBuilder()
        .ipv4("192.0.2.1", "192.0.2.2")
        .udp(static_cast<std::uint16_t>(number), 9)
        .payload(Bytes(20))
        .build();
  }
  // More comes in than the wan's reader takes, so that its ring is full from some round on.
  Outcome saturate(Reader reader, std::uint64_t waited = 0) {
    Outcome outcome{};
    fill(wan, places);
    const std::uint64_t refused_before = counters_.drops[engine::tx_full].get();
    for (unsigned round = 0; round < rounds; ++round) {
      std::vector<Bytes> all;
      for (unsigned n = 0; n < burst; ++n) all.push_back(numbered(round * burst + n));
      pass(
          all, [](engine::Batch&) {}, rte_rdtsc() - waited);
      for (Bytes& frame : taken_of_filled(wan, drained)) outcome.left.push_back(std::move(frame));
      if (reader == Reader::all) read_ += taken(monitor).size();
      if (reader == Reader::slow) read_ += taken(monitor, 1).size();
    }
    for (Bytes& frame : taken_of_filled(wan, places)) outcome.left.push_back(std::move(frame));
    empty(wan);
    outcome.refused = counters_.drops[engine::tx_full].get() - refused_before;
    return outcome;
  }
  Outcome without_mirror() {
    mirror_.reset();
    emitter_->set_hooks({});
    return saturate(Reader::nothing);
  }
  static constexpr std::uint64_t offered = std::uint64_t{rounds} * burst;
  std::uint64_t read_ = 0;  // copies
};

TEST_F(MirrorSaturation, WithoutAMirrorTheWanIsAtItsLimit) {
  const Outcome outcome = without_mirror();
  EXPECT_EQ(outcome.left.size() + outcome.refused, offered);
  EXPECT_GT(outcome.refused, 10 * (burst - drained));
}

TEST_F(MirrorSaturation, OriginalsLeaveAsWithoutAMirror) {
  const Outcome expected = without_mirror();
  struct Case {
    Reader reader;
    const char* what;
  };
  for (const Case& one : {Case{Reader::all, "all is read"},
                          {Reader::slow, "a copy in each round is read"},
                          {Reader::nothing, "nothing is read"},
                          {Reader::blocked, "the port takes nothing"}}) {
    SCOPED_TRACE(one.what);
    use("direction = \"rx\"\nfrom = [\"lan\"]\n");
    read_ = 0;
    const std::uint64_t full_before = counters_.drops[mirror_full].get();
    if (one.reader == Reader::blocked) fill(monitor);
    EXPECT_EQ(saturate(one.reader), expected);
    EXPECT_EQ(metric("mirror_copied_frames") + metric("mirror_skipped_frames"), offered);
    EXPECT_EQ(metric("mirror_lost_frames"), counters_.drops[mirror_full].get() - full_before);
    if (one.reader == Reader::blocked) {
      EXPECT_EQ(metric("mirror_lost_frames"), offered) << "each is dropped at once, under the mirror's name";
      empty(monitor);
    } else {
      read_ += taken(monitor).size();
      EXPECT_EQ(metric("mirror_copied_frames"), read_ + metric("mirror_lost_frames")) << "a copy is lost";
    }
    if (one.reader == Reader::nothing) {
      EXPECT_GT(metric("mirror_skipped_frames"), 0U) << "an eighth of the pool is free";
    }
    if (one.reader == Reader::all) {
      EXPECT_EQ(metric("mirror_copied_frames"), offered);
    }
  }
}

TEST_F(MirrorSaturation, OriginalsThatAreNearlyLateHaveNoCopies) {
  const Outcome expected = without_mirror();
  use("direction = \"rx\"\nfrom = [\"lan\"]\n");
  EXPECT_EQ(saturate(Reader::all, rte_get_tsc_hz() * 8 / 10), expected) << "four fifths of the deadline";
  EXPECT_EQ(metric("mirror_skipped_frames"), offered);
  EXPECT_EQ(metric("mirror_copied_frames"), 0U);
}

// What is handed to drivers, in order: by the driver's own callback.
struct Handed {
  std::uint16_t port;
  std::uint16_t frames;
};
std::uint16_t note(std::uint16_t port, std::uint16_t, rte_mbuf**, std::uint16_t count, void* all) {
  static_cast<std::vector<Handed>*>(all)->push_back({port, count});
  return count;
}

TEST_F(MirrorSaturation, AMonitorIsOfferedEachBurstOnceAndLast) {
  use("direction = \"rx\"\nfrom = [\"lan\"]\nlength = 64\n");
  fill(monitor);
  std::vector<Handed> handed;
  std::uint16_t wan_id = 0, monitor_id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_ring21", &wan_id), 0);
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_ring22", &monitor_id), 0);
  const rte_eth_rxtx_callback* const of_wan = rte_eth_add_tx_callback(wan_id, 0, note, &handed);
  const rte_eth_rxtx_callback* const of_monitor = rte_eth_add_tx_callback(monitor_id, 0, note, &handed);
  ASSERT_TRUE(of_wan != nullptr && of_monitor != nullptr);
  std::vector<Bytes> all;
  for (unsigned n = 0; n < 40; ++n) all.push_back(numbered(n));
  pass(all, [](engine::Batch&) {});
  rte_eth_remove_tx_callback(wan_id, 0, of_wan);
  rte_eth_remove_tx_callback(monitor_id, 0, of_monitor);
  ASSERT_EQ(handed.size(), 2U) << "the full port was offered more than once";
  EXPECT_EQ(handed[0].port, wan_id);
  EXPECT_EQ(handed[1].port, monitor_id);
  EXPECT_EQ(handed[1].frames, 40U);
  EXPECT_EQ(taken(wan), all);
  empty(monitor);
}

nlohmann::json shown(const Mirror& mirror) {
  return nlohmann::json::parse(mirror.view());
}

TEST_F(MirrorSaturation, EachSessionShowsItsOwnCopies) {
  mirror_ = unprepared(
      "[[mirror.session]]\nname = \"cut\"\nfrom = [\"lan\"]\ndirection = \"rx\"\nto = \"mon\"\nlength = 64\n"
      "[[mirror.session]]\nname = \"whole\"\nfrom = [\"lan\"]\ndirection = \"rx\"\nto = \"mon\"\n"
      "[[mirror.session.rule]]\nprotocol = \"udp\"\nsource_port = [0, 1, 2]\n");
  engine::Plan plan;
  plan.deadline = std::chrono::seconds(1);
  plan.ports = {lan};
  ASSERT_TRUE(mirror_->prepare(plan));
  std::vector<Bytes> all;
  for (unsigned n = 0; n < 10; ++n) {
    all.push_back(numbered(n));
    all.back().resize(80);
  }
  pass(all, [](engine::Batch&) {});
  EXPECT_EQ(shown(*mirror_), nlohmann::json::parse(R"({"sessions": [
      {"name": "cut", "to": "mon", "copied": 10, "cut": 10, "skipped": 0},
      {"name": "whole", "to": "mon", "copied": 3, "cut": 0, "skipped": 0}], "monitors": [{"port": "mon", "lost": 0}]})"));
}

// The copies of a session stay with its name; one that comes begins at nothing, whatever its place counted before.
TEST_F(MirrorSaturation, AReloadKeepsTheCountsOfSessionsThatStay) {
  const auto text = [](const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) {
      all += "[[mirror.session]]\nname = \"" + name + "\"\nfrom = [\"lan\"]\ndirection = \"rx\"\nto = \"mon\"\n";
    }
    return all;
  };
  mirror_ = unprepared(text({"a", "b"}));
  engine::Plan plan;
  plan.deadline = std::chrono::seconds(1);
  plan.ports = {lan};
  ASSERT_TRUE(mirror_->prepare(plan));
  pass(numbered(1));
  std::uint64_t copied = 2;
  // More reloads than there are places.
  for (unsigned turn = 0; turn < 40; ++turn) {
    auto fresh = unprepared(text({"b", "new" + std::to_string(turn)}));
    auto change = mirror_->reload(*fresh);
    ASSERT_TRUE(change) << change.error().message;
    change->commit();
    EXPECT_EQ(shown(*mirror_)["sessions"][0]["copied"], turn + 1U);
    EXPECT_EQ(shown(*mirror_)["sessions"][1]["copied"], 0U) << turn;
    pass(numbered(turn));
    EXPECT_EQ(shown(*mirror_)["sessions"][1]["copied"], 1U) << turn;
    EXPECT_EQ(metric("mirror_copied_frames"), copied += 2) << "metrics never go back";
  }
}

}  // namespace
}  // namespace sluice::function
