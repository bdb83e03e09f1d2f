// Lists exchanged while batches are under way: a batch is judged by one list as a whole, and lists that nothing needs
// are freed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "device/gpu.h"
#include "engine/options.h"
#include "function/acl/acl_trial_test.h"
#include "function/element_trial_test.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t batch_frames = 64;

// The list of generation g denies frames to ports of the parity of g.
std::vector<lookup::acl::AclRule> rules_of(unsigned generation) {
  std::vector<lookup::acl::AclRule> rules;
  for (std::uint32_t port = 0; port < batch_frames; ++port) {
    lookup::acl::AclRule rule;
    rule.destination_port = {static_cast<std::uint16_t>(port), static_cast<std::uint16_t>(port)};
    rule.action.kind = port % 2 == generation % 2 ? lookup::acl::ActionKind::deny : lookup::acl::ActionKind::permit;
    // The other list has its rules at other indices, so that an index looked up in the wrong one is seen.
    rules.insert(generation % 2 == 0 ? rules.begin() : rules.end(), rule);
  }
  return rules;
}

std::unique_ptr<Acl> acl_with(std::vector<lookup::acl::AclRule> rules) {
  return std::make_unique<Acl>(Acl::AclOptions{.rules = std::move(rules), .deny_others = false});
}

std::unique_ptr<Acl> list_of(unsigned generation) {
  return acl_with(rules_of(generation));
}

// The batches of a lane, all with the same frames: frame i goes to port i; every other one is IPv6.
class Slots {
 public:
  Slots(Acl& acl, std::uint32_t lane, std::uint32_t slots, device::Gpu* gpu) {
    std::vector<Bytes> frames;
    for (std::uint32_t i = 0; i < batch_frames; ++i) {
      PacketBuilder builder;
      i % 4 < 2 ? builder.ipv4("192.0.2.1", "192.0.2.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
      frames.push_back(builder.udp(1, static_cast<std::uint16_t>(i)).build());
    }
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      batches_.push_back(std::make_unique<ElementTrial>(acl, frames, ElementTrial::Place{lane, slot, gpu}));
    }
  }
  ElementTrial& operator[](std::size_t slot) { return *batches_[slot]; }

 private:
  std::vector<std::unique_ptr<ElementTrial>> batches_;
};

// The parity of the ports that the batch's list denies; -1: its frames were judged by different lists.
int denied_parity(ElementTrial& batch) {
  std::uint32_t denied[2] = {};
  std::uint32_t port = 0;
  for (const packet::Reason reason : batch.apply()) denied[port++ % 2] += reason == acl_denied ? 1 : 0;
  if (denied[0] == port / 2 && denied[1] == 0) return 0;
  return denied[1] == port / 2 && denied[0] == 0 ? 1 : -1;
}

void replace(Acl& acl, unsigned generation) {
  auto change = acl.reload(*list_of(generation));
  ASSERT_TRUE(change) << change.error().message;
  change->commit();
}

TEST(AclReload, ABatchIsJudgedByTheListThatItWasComputedBy) {
  constexpr std::uint32_t lanes = 2, slots = 3;
  const auto acl = list_of(1);
  ASSERT_TRUE(acl->prepare({.lanes = lanes}));
  Slots one(*acl, 0, slots, nullptr);
  one[0].classify();
  one[0].compute();
  auto dropped = acl->reload(*list_of(2));
  ASSERT_TRUE(dropped);
  dropped = make_error("not committed");
  one[1].classify();
  one[1].compute(0, batch_frames / 2);
  replace(*acl, 2);
  EXPECT_EQ(acl->reclaim(), 1U);
  one[1].compute(batch_frames / 2, batch_frames);  // the rest of it
  one[2].classify();
  one[2].compute();
  EXPECT_EQ(denied_parity(one[0]), 1);
  EXPECT_EQ(acl->reclaim(), 1U) << "the second batch has it";
  EXPECT_EQ(denied_parity(one[1]), 1);
  EXPECT_EQ(acl->reclaim(), 0U);
  EXPECT_EQ(denied_parity(one[2]), 0);
}

TEST(AclReload, LanesBesideManyChanges) {
  constexpr std::uint32_t lanes = 3, slots = 4;
  const auto acl = list_of(1);
  ASSERT_TRUE(acl->prepare({.lanes = lanes}));
  std::atomic<bool> stop{false};
  std::atomic<int> mixed{0};
  std::atomic<std::uint64_t> judged[2] = {};
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    threads.emplace_back([&, lane] {
      Slots batches(*acl, lane, slots, nullptr);
      for (std::size_t round = 0; !stop || round < slots; ++round) {
        ElementTrial& batch = batches[round % slots];
        if (round >= slots) {
          const int parity = denied_parity(batch);
          mixed += parity < 0 ? 1 : 0;
          if (parity >= 0) ++judged[parity];
        }
        batch.classify();
        batch.compute();
      }
      for (std::size_t slot = 0; slot < slots; ++slot) mixed += denied_parity(batches[slot]) < 0 ? 1 : 0;
    });
  }
  for (unsigned generation = 2; generation < 60 || judged[0] < 1000 || judged[1] < 1000; ++generation) {
    replace(*acl, generation);
    if (HasFatalFailure()) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(acl->reclaim(), 0U);
}

// Rules that only change places, counted by a forwarder beside a collector for each lane, and looked at meanwhile.
TEST(AclReload, RulesThatStayCountEveryFrame) {
  constexpr std::uint32_t lanes = 2, slots = 3;
  const auto list = [](bool reversed) {
    std::vector<lookup::acl::AclRule> rules = rules_of(1);
    if (reversed) std::reverse(rules.begin(), rules.end());
    return acl_with(std::move(rules));
  };
  const auto acl = list(false);
  ASSERT_TRUE(acl->prepare({.lanes = lanes, .forwarders = true}));
  struct Way {
    std::unique_ptr<Slots> batches;
    std::atomic<std::uint32_t> collected{0}, forwarded{0};
    std::atomic<bool> ended{false};
  };
  std::array<Way, lanes> ways;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> batches{0};
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    Way& way = ways[lane];
    way.batches = std::make_unique<Slots>(*acl, lane, slots, nullptr);
    threads.emplace_back([&] {
      while (!stop) {
        const std::uint32_t next = way.collected;
        if (next == way.forwarded + slots) continue;
        ElementTrial& batch = (*way.batches)[next % slots];
        batch.classify();
        for (std::uint32_t i = 0; i < batch_frames; i += 3) batch.batch().to_host(i);  // those are judged, too
        batch.compute();
        way.collected = next + 1;
      }
      way.ended = true;
    });
    threads.emplace_back([&] {
      while (!way.ended || way.forwarded != way.collected) {
        const std::uint32_t next = way.forwarded;
        if (next == way.collected) continue;
        EXPECT_EQ(denied_parity((*way.batches)[next % slots]), 1);
        ++batches;
        way.forwarded = next + 1;
      }
    });
  }
  const auto counts = [&] {  // by port
    std::array<std::uint64_t, batch_frames> frames{};
    for (const engine::CountedRule& rule : acl->trait<engine::CountedRules>()->list(batch_frames).rules) {
      frames.at(std::stoul(rule.match.substr(rule.match.find('=') + 1))) = rule.frames;
    }
    return frames;
  };
  auto before = counts();
  for (unsigned i = 1; i < 60 || batches < 5000; ++i) {
    auto change = acl->reload(*list(i % 2 == 1));
    EXPECT_TRUE(change) << change.error().message;
    if (!change) break;
    change->commit();
    const auto now = counts();
    for (std::size_t port = 0; port < batch_frames; ++port) EXPECT_GE(now[port], before[port]) << "port " << port;
    before = now;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  acl->reclaim();
  std::array<std::uint64_t, batch_frames> expected{};
  expected.fill(batches);
  EXPECT_EQ(counts(), expected);
  for (const engine::Metric& metric : acl->metrics()) {
    if (metric.name == "acl_permit_frames") {
      EXPECT_EQ(metric.value, batches * batch_frames / 2);
    }
    if (metric.name == "acl_deny_frames") {
      EXPECT_EQ(metric.value, batches * batch_frames / 2);
    }
  }
}

void await(device::GpuStream& stream) {
  ASSERT_TRUE(stream.mark());
  while (stream.pending_marks() != 0) ASSERT_NE(stream.poll(), device::MarkState::failed);
}

// As many cycles as a change takes; a GPU works on each in its own time.
void settle(Acl& acl, device::GpuStream& stream, std::uint32_t device = 0) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(acl.begin_cycle(device, stream));
    await(stream);
  }
}

TEST(AclReload, AListStaysUntilTheGpuAndItsBatchesHaveLeftIt) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto acl = list_of(1);
  ASSERT_TRUE(acl->prepare({.lanes = 1}));
  ASSERT_TRUE(acl->attach(**gpu, {1, 2, batch_frames, 2048, true}));
  Slots batches(*acl, 0, 2, gpu->get());
  device::GpuStream& stream = (*gpu)->stream(0);
  const auto launch = [&](ElementTrial& batch) {
    batch.classify();
    ASSERT_TRUE(acl->launch(batch.batch(), stream));
    await(stream);
  };
  replace(*acl, 2);
  EXPECT_EQ(acl->reclaim(), 1U) << "the GPU has not heard of the second one";
  launch(batches[0]);
  settle(*acl, stream);
  launch(batches[1]);
  EXPECT_EQ(acl->reclaim(), 1U) << "the first batch's indices are of it";
  EXPECT_EQ(denied_parity(batches[0]), 1);
  EXPECT_EQ(acl->reclaim(), 0U);
  EXPECT_EQ(denied_parity(batches[1]), 0);
}

TEST(AclReload, EachGpuHasItsListAndALostOneHoldsNone) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  std::unique_ptr<device::Gpu> gpus[2];
  const auto acl = list_of(1);
  ASSERT_TRUE(acl->prepare({.lanes = 1}));
  for (std::uint32_t device = 0; device < 2; ++device) {
    auto gpu = device::Gpu::open(0, 1);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpus[device] = std::move(*gpu);
    ASSERT_TRUE(acl->attach(*gpus[device], {1, 2, batch_frames, 2048, true, device}));
  }
  Slots batches(*acl, 0, 2, gpus[0].get());
  const auto launch = [&](std::uint32_t device) {
    ElementTrial& batch = batches[device];
    batch.batch().device = device;
    batch.classify();
    ASSERT_TRUE(acl->launch(batch.batch(), gpus[device]->stream(0)));
    await(gpus[device]->stream(0));
  };
  replace(*acl, 2);
  settle(*acl, gpus[1]->stream(0), 1);
  launch(0);
  launch(1);
  EXPECT_EQ(denied_parity(batches[0]), 1) << "this one has not heard of the second list";
  EXPECT_EQ(denied_parity(batches[1]), 0);
  EXPECT_EQ(acl->reclaim(), 1U);
  gpus[0]->lose("for a test");
  EXPECT_EQ(acl->reclaim(), 0U);
  replace(*acl, 3);
  settle(*acl, gpus[1]->stream(0), 1);
  launch(1);
  EXPECT_EQ(denied_parity(batches[1]), 1);
  EXPECT_EQ(acl->reclaim(), 0U);
}

TEST(AclReload, LaunchesBesideManyChanges) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::uint32_t slots = 4;
  auto gpu = device::Gpu::open(0, 2);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto acl = list_of(1);
  ASSERT_TRUE(acl->prepare({.lanes = 1}));
  const engine::DevicePlan plan{1, slots, batch_frames, 2048, true};
  ASSERT_TRUE(acl->attach(**gpu, plan));
  Slots batches(*acl, 0, slots, gpu->get());
  std::atomic<bool> stop{false};
  std::thread control([&] {
    for (unsigned generation = 2; !stop; ++generation) replace(*acl, generation);
  });
  int mixed = 0, failed = 0;
  std::uint64_t judged[2] = {};
  const auto cycle = [&](std::size_t round) {
    device::GpuStream& stream = (*gpu)->stream(round % 2);
    ElementTrial& batch = batches[round % slots];
    failed += acl->begin_cycle(0, (*gpu)->stream(0)) ? 0 : 1;
    batch.classify();
    failed += acl->launch(batch.batch(), stream) && stream.mark() ? 0 : 1;
    while (stream.pending_marks() != 0) failed += stream.poll() == device::MarkState::failed ? 1 : 0;
  };
  std::size_t round = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (; (judged[0] < 100 || judged[1] < 100) && failed == 0 && std::chrono::steady_clock::now() < end; ++round) {
    if (round >= slots) {
      const int parity = denied_parity(batches[round % slots]);
      mixed += parity < 0 ? 1 : 0;
      if (parity >= 0) ++judged[parity];
    }
    cycle(round);
  }
  stop = true;
  control.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_GE(judged[0], 100U);
  EXPECT_GE(judged[1], 100U);
  settle(*acl, (*gpu)->stream(0));
  for (std::size_t slot = 0; slot < slots; ++slot) batches[slot].apply();
  EXPECT_EQ(acl->reclaim(), 0U) << "the GPU has the last list";
}

}  // namespace
}  // namespace sluice::function
