// Lanes look and count while a control thread adds, rekeys, updates and removes, and a watcher ticks. Under
// ThreadSanitizer it shows what readers may race with; without, that packets under way are finished and rekeys lose
// none.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "ipsec/databases.h"
#include "ipsec/ipsec_trial_test.h"
#include "ipsec/policy_check.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {
namespace {

using test::sa;
using test::selector;

constexpr std::string_view here = "192.0.2.1";
constexpr std::uint32_t hosts = 8;  // each with a policy and an SA in both directions
constexpr std::size_t lanes = 2, batches = 2, burst = 24;

std::string host(std::uint32_t number) {
  return "198.51.100." + std::to_string(number);
}
std::string network(std::uint32_t number) {
  return "10.1." + std::to_string(number) + ".0/24";
}

struct NoEvents final : Events {
  void acquire(const Acquire&) override { ++acquires; }
  void expired(const SaStatus&, bool) override { ++expiries; }
  void moved(const SaStatus&, const packet::IpAddress&, std::uint16_t) override { ++moves; }
  std::atomic<int> acquires{0}, expiries{0}, moves{0};
};

class DatabasesThreadsTest : public testing::Test {
 protected:
  DatabasesThreadsTest() {
    databases_.set_events(&events_);
    for (std::uint32_t i = 0; i < hosts; ++i) {
      add_policy(i);
      add_pair(i, 0);
    }
  }

  static std::uint32_t spi(std::uint32_t number, std::uint32_t generation) {
    return 0x1000 + generation * 256 + number;
  }
  void add_policy(std::uint32_t number) {
    const Template out = test::tunnel_template(here, host(number), number + 1);
    ASSERT_TRUE(databases_.add(
        test::protecting(Direction::out, selector("10.0.0.0/8", network(number)), number % 3, out), true));
  }
  void add_pair(std::uint32_t number, std::uint32_t generation) {
    ASSERT_TRUE(databases_.add(sa(Direction::in, host(number), here, spi(number, generation), number + 1)));
    SaSettings out = sa(Direction::out, here, host(number), spi(number, generation), number + 1);
    out.lifetime.packets = {.soft = 1U << 30, .hard = 1U << 31};
    ASSERT_TRUE(databases_.add(out));
  }
  void remove_pair(std::uint32_t number, std::uint32_t generation) {
    ASSERT_TRUE(databases_.remove({test::ip(host(number)), spi(number, generation), Protocol::esp}));
    ASSERT_TRUE(databases_.remove({test::ip(here), spi(number, generation), Protocol::esp}));
  }

  // Two batches of a lane, one in front of the other: each is looked up, lies a while, and is applied.
  void run_lane(std::uint32_t lane) {
    struct Batch {
      const View* view = nullptr;
      std::array<const PolicyEntry*, burst> policy{};
      std::array<Sa*, burst> out{}, in{};
    };
    std::array<Batch, batches> pending;
    PolicyCache cache(64);
    std::mt19937 random(lane);
    std::array<PacketKey, burst> keys;
    std::array<SadKey, burst> sad_keys;
    for (std::uint64_t ticket = 0; !stop_.load(std::memory_order_relaxed); ++ticket) {
      const std::size_t slot = ticket % batches, reader = lane * batches + slot;
      Batch& batch = pending[slot];
      if (batch.view != nullptr) apply(batch.view, batch.policy, batch.out, batch.in, lane);
      batch.view = databases_.pin(reader);
      for (std::size_t i = 0; i < burst; ++i) {
        const std::uint32_t number = static_cast<std::uint32_t>(random()) % hosts;
        keys[i] = packet_key(test::flow("10.0.0.1", "10.1." + std::to_string(number) + ".1"));
        const std::uint32_t on_wire = packet::be32(spi(number, generation_[number].load(std::memory_order_acquire)));
        sad_keys[i] = sad_key(reinterpret_cast<const std::uint8_t*>(&on_wire), 4, here_.bytes.data(), Protocol::esp);
      }
      batch.view->find_policies(Direction::out, keys, batch.policy.data(), ticket % 3 == 0 ? nullptr : &cache);
      batch.view->find_sas(sad_keys, batch.in.data());
      for (std::size_t i = 0; i < burst; ++i) {
        batch.out[i] = nullptr;
        if (batch.policy[i] == nullptr) {
          ++without_policy_;
          continue;
        }
        batch.out[i] = batch.view->outbound(*batch.policy[i], 0, keys[i]);
        if (batch.out[i] == nullptr) {
          ++without_sa_;
          batch.view->want(*batch.policy[i], keys[i]);
        }
      }
      ++batches_done_;
    }
    for (std::size_t slot = 0; slot < batches; ++slot) databases_.unpin(lane * batches + slot);
  }

  void apply(const View* view, const std::array<const PolicyEntry*, burst>& policies, const std::array<Sa*, burst>& out,
             const std::array<Sa*, burst>& in, std::uint32_t lane) {
    for (std::size_t i = 0; i < burst; ++i) {
      if (policies[i] != nullptr) view->count(Direction::out, *policies[i], lane, 1, 100);
      if (out[i] != nullptr) {
        // The SA is the policy's own: nothing of it has been given to another one meanwhile.
        wrong_ += out[i]->reqid != policies[i]->with[0].reqid ? 1 : 0;
        wrong_ += keys_.key(out[i]->key).hash == crypto::Hash::hmac_sha1 ? 0 : 1;
        wrong_ += view->count(*out[i], lane, 1, 100) ? 0 : 1;
        wrong_ += view->take_numbers(*out[i], 1).count == 1 ? 0 : 1;
      }
      if (in[i] != nullptr) {
        ++inbound_;
        wrong_ += in[i]->direction == Direction::in ? 0 : 1;
        const std::uint64_t number = in[i]->window.highest() + 1;
        if (in[i]->window.may_be_new(number)) in[i]->window.accept(number);
        view->count(*in[i], lane, 1, 100);
        const Outer& outer = *in[i]->outer.load(std::memory_order_acquire);
        if (i == 0) view->note_moved(*in[i], outer.source.data(), 4500);
        in[i]->has_inner(packet_key(test::flow("10.1.0.1", "10.0.0.1")));
      }
    }
  }

  crypto::KeyTable keys_ = crypto::KeyTable::make(1024, true).value();
  Databases databases_{keys_, {.sas = 512, .policies = 256, .lanes = lanes, .readers = lanes * batches}};
  NoEvents events_;
  const packet::IpAddress here_ = test::ip(here);
  std::array<std::atomic<std::uint32_t>, hosts> generation_{};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> wrong_{0}, without_sa_{0}, without_policy_{0}, inbound_{0}, batches_done_{0};
};

TEST_F(DatabasesThreadsTest, LanesLookWhileEverythingChanges) {
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) threads.emplace_back([this, lane] { run_lane(lane); });
  threads.emplace_back([this] {
    while (!stop_) {
      databases_.tick(std::chrono::steady_clock::now());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  // Until lanes have seen much of it.
  std::mt19937 random(99);
  for (std::uint32_t round = 1; round < 300 || batches_done_ < 2000; ++round) {
    const std::uint32_t number = static_cast<std::uint32_t>(random()) % hosts;
    const std::uint32_t before = generation_[number].load();
    add_pair(number, before + 1);  // make before break
    generation_[number].store(before + 1, std::memory_order_release);
    if (round % 2 == 0) add_policy(number);  // in place of itself
    // An odd policy comes and goes: lists of tuples change.
    const Selector odd = selector("10.0.0.0/8", "10.1.0.0/" + std::to_string(17 + round % 7), 17);
    ASSERT_TRUE(databases_.add(test::bypassing(Direction::out, odd, 100 + round % 5), true));
    SaSettings changed = sa(Direction::in, host(number), here, spi(number, before + 1), number + 1);
    for (const std::uint16_t port : {4500, 4501, 4502}) {
      changed.udp = UdpPorts{port, 4500};
      changed.selector = selector("10.1.0.0/16", "10.0.0.0/8", 17, {}, {port, 0xffff});
      ASSERT_TRUE(databases_.update(changed));
    }
    remove_pair(number, before);
    ASSERT_TRUE(databases_.remove_policy(Direction::out, odd));
    if (round % 16 == 0) std::this_thread::yield();
  }
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_, 0U);
  EXPECT_EQ(without_sa_, 0U) << "a rekey leaves no moment without an SA";
  EXPECT_EQ(without_policy_, 0U) << "nor a policy that is replaced";
  EXPECT_GT(inbound_, 0U);
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(databases_.leaving(), 0U);
  EXPECT_EQ(keys_.used(), 2 * hosts);
  databases_.set_events(nullptr);
}

TEST_F(DatabasesThreadsTest, AnSaThatIsReplacedIsThereAtAnyMoment) {
  const std::uint32_t on_wire = packet::be32(spi(0, 0));
  const SadKey wanted = sad_key(reinterpret_cast<const std::uint8_t*>(&on_wire), 4, here_.bytes.data(), Protocol::esp);
  const PacketKey packet = packet_key(test::flow("10.0.0.1", "10.1.0.1"));
  const auto look = [&](std::size_t reader) {
    while (!stop_.load(std::memory_order_relaxed)) {
      const View& view = *databases_.pin(reader);
      Sa* in = nullptr;
      view.find_sas({&wanted, 1}, &in);
      const PolicyEntry* policy = nullptr;
      view.find_policies(Direction::out, {&packet, 1}, &policy, nullptr);
      Sa* const out = policy == nullptr ? nullptr : view.outbound(*policy, 0, packet);
      without_sa_ += in == nullptr || out == nullptr ? 1 : 0;
      ++batches_done_;
    }
    databases_.unpin(reader);
  };
  std::vector<std::thread> threads;
  for (std::size_t reader = 0; reader < 2; ++reader) threads.emplace_back(look, reader);
  for (std::uint32_t round = 0; round < 500 || batches_done_ < 2000; ++round) {
    ASSERT_TRUE(databases_.replace(sa(Direction::in, host(0), here, spi(0, 0), 1)));
    ASSERT_TRUE(databases_.replace(sa(Direction::out, here, host(0), spi(0, 0), 1)));
  }
  stop_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(without_sa_, 0U);
  databases_.tick(std::chrono::steady_clock::now());
  EXPECT_EQ(databases_.leaving(), 0U);
  EXPECT_EQ(keys_.used(), 2 * hosts);
}

}  // namespace
}  // namespace sluice::ipsec
