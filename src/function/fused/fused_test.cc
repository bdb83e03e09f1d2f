// The fused kernel (on the GPU or on the host SIMT shim) against the kernels that it stands for, on random frames,
// rules, routes and patterns.
#include "function/fused/fused.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "../tests/support/gpu.h"
#include "lookup/acl/acl_random_test.h"
#include "lookup/acl/gpu_classifier.h"
#include "lookup/fib.h"
#include "lookup/reference_test.h"
#include "match/automaton/gpu_matcher.h"

namespace sluice::function {
namespace {

using lookup::acl::AclRule;
using lookup::acl::ActionKind;
using lookup::acl::Key4;
using lookup::acl::Key6;
using lookup::acl::RuleIndex;

constexpr std::uint32_t most_frames = 9000;  // more than all warps take at once
constexpr std::uint32_t pitch = 256;
constexpr std::uint32_t untouched = 0xA5A5'A5A5;

// What kernels write for a batch, and the frames they write it for.
struct Results {
  std::uint32_t* rules4;
  std::uint32_t* rules6;
  std::uint32_t* verdict;
  std::uint32_t* answers6;
  std::uint32_t* found;
  std::uint32_t* key;
};

struct Parts {
  bool classify, route, match;
};

class FusedTest : public testing::TestWithParam<Parts> {
 protected:
  void SetUp() override {
    if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto gpu = device::Gpu::open(0, 1);
    ASSERT_TRUE(gpu) << gpu.error().message;
    gpu_ = std::move(*gpu);
    take(payload_, std::size_t{most_frames} * pitch);
    take(address_, most_frames);
    take(span_, most_frames);
    take(klass_, most_frames);
    take(place_, most_frames);
    take(keys4_, most_frames);
    take(keys6_, most_frames);
    take(argument_, most_frames);
    take(is_key6_, most_frames / 32 + 1);
    take(route_keys6_, most_frames);
    for (Results* r : {&separate_, &fused_}) {
      take(r->rules4, most_frames);
      take(r->rules6, most_frames);
      take(r->verdict, most_frames);
      take(r->answers6, most_frames);
      take(r->found, most_frames);
      take(r->key, most_frames * match::max_hits);
    }
  }

  template <typename T>
  void take(T*& array, std::size_t count) {
    array = static_cast<T*>(gpu_->allocate_host(count * sizeof(T)).value());
  }

  void make_rules() {
    std::vector<AclRule> six = lookup::acl::random_rules({.count = 150, .family = 6}, random_);
    rules_ = lookup::acl::random_rules({.count = 250}, random_);
    rules_.insert(rules_.end(), six.begin(), six.end());
    for (AclRule& rule : rules_) rule.action.kind = static_cast<ActionKind>(random_() % lookup::acl::action_kinds);
    auto made = lookup::acl::GpuClassifier::create(*gpu_, rules_);
    ASSERT_TRUE(made) << made.error().message;
    classifier_ = std::move(*made);
  }

  void make_routes() {
    v4_ = std::move(lookup::Trie::create(4, 1000).value());
    v6_ = std::move(lookup::Trie::create(6, 8000).value());
    fib_ = std::move(
        lookup::Fib::create({.name = "fused", .max_routes4 = 500, .max_routes6 = 500, .groups4 = 500, .groups6 = 8000})
            .value());
    ASSERT_TRUE(fib_->attach(*v4_) && fib_->attach(*v6_));
    for (std::uint32_t i = 1; i <= 200; ++i) {
      ASSERT_TRUE(fib_->add(lookup::random_overlapping_prefix(i % 2 == 0 ? 4 : 6, random_), i));
    }
    auto made = lookup::GpuFib::create(*gpu_, *v4_, *v6_);
    ASSERT_TRUE(made) << made.error().message;
    gpu_fib_ = std::move(*made);
  }

  void make_patterns() {
    std::vector<match::Pattern> patterns;
    for (int i = 0; i < 40; ++i) patterns.push_back({text(2 + random_() % 10), i % 2 == 0, match::every_class});
    auto made = match::GpuMatcher::create(*gpu_, match::GramTable(match::KeySet(patterns)));
    ASSERT_TRUE(made) << made.error().message;
    matcher_ = std::move(*made);
  }

  std::string text(std::size_t size) {
    std::string out(size, ' ');
    for (char& c : out) c = "aBcD.z/-+=%?"[random_() % 12];
    return out;
  }

  // One in eight is not IP, as many are malformed, a third of the others is IPv6 unless `four_only`. `in_order`: all
  // are IPv4.
  void make_frames(std::uint32_t count, bool four_only, bool in_order = false) {
    in_order_ = in_order;
    four_only |= in_order;
    count_ = count;
    n4_ = n6_ = routes6_ = 0;
    bytes_ = 0;
    std::fill_n(is_key6_, most_frames / 32 + 1, 0U);
    const auto edges4 = lookup::acl::edge_keys<Key4>(rules_, random_);
    const auto edges6 = lookup::acl::edge_keys<Key6>(rules_, random_);
    for (std::uint32_t i = 0; i < count; ++i) {
      const unsigned kind = random_() % 8;
      const bool six = !four_only && random_() % 3 == 0;
      if (kind < 2 && GetParam().classify && !in_order) {
        place_[i] = kind == 0 ? place_not_ip : place_malformed;
      } else if (six) {
        keys6_[n6_] = edges6[random_() % edges6.size()];
        place_[i] = n6_++ | place_is_key6;
      } else {
        keys4_[n4_] = edges4[random_() % edges4.size()];
        place_[i] = n4_++;
      }
      auto to = last_or_first(lookup::random_overlapping_prefix(six ? 6 : 4, random_));
      if (place_[i] < place_is_key6) {
        // What the key says is what the argument says.
        std::uint8_t* const destination = keys4_[place_[i]].destination;
        if (random_() % 2 == 0) {
          to = packet::IpAddress::from_bytes(4, destination);
        } else {
          std::memcpy(destination, to.bytes.data(), 4);
        }
      }
      argument_[i] = six ? routes6_ : to.v4_host_order();
      if (six) {
        is_key6_[i / 32] |= 1U << i % 32;
        std::memcpy(route_keys6_[routes6_++], to.bytes.data(), 16);
      }
      const std::string bytes = text(random_() % 5 == 0 ? 200 : random_() % 60);
      char* const at = payload_ + std::size_t{i} * pitch + random_() % 50;
      std::memcpy(at, bytes.data(), bytes.size());
      address_[i] = reinterpret_cast<std::uint64_t>(at);
      span_[i] = {static_cast<std::uint16_t>(bytes.size() / 8), static_cast<std::uint16_t>(bytes.size())};
      klass_[i] = static_cast<std::uint8_t>(random_() % 32);
    }
  }

  packet::IpAddress last_or_first(const packet::IpPrefix& prefix) {
    return random_() % 2 == 0 ? prefix.address : lookup::last_address(prefix);
  }

  match::MatchBatch match_batch(const Results& to) const {
    return {address_, span_, klass_, to.found, to.key, count_, bytes_};
  }

  void forget(Results& r) {
    for (std::uint32_t* array : {r.rules4, r.rules6, r.verdict, r.answers6, r.found}) {
      std::fill_n(array, most_frames, untouched);
    }
    std::fill_n(r.key, most_frames * match::max_hits, untouched);
  }

  void wait() {
    ASSERT_TRUE(gpu_->stream(0).mark());
    while (gpu_->stream(0).poll() == device::MarkState::pending) {
    }
    ASSERT_FALSE(gpu_->lost()) << gpu_->why();
  }

  void run_separately() {
    forget(separate_);
    device::GpuStream& stream = gpu_->stream(0);
    ASSERT_TRUE(classifier_->classify(stream, keys4_, separate_.rules4, n4_, keys6_, separate_.rules6, n6_));
    ASSERT_TRUE(
        gpu_fib_->lookup(stream, argument_, separate_.verdict, count_, *route_keys6_, separate_.answers6, routes6_));
    ASSERT_TRUE(matcher_->match(match_batch(separate_), stream));
    wait();
  }

  // Of frames [first, last), where first is a multiple of 32.
  FusedWork work_of(std::uint32_t first, std::uint32_t last, bool deny_others) const {
    FusedWork work;
    work.count = last - first;
    if (GetParam().classify) {
      work.classify = {classifier_->view(), deny_others,  false, place_ + first, keys4_, keys6_,
                       fused_.rules4,       fused_.rules6};
      if (in_order_) {
        work.classify->in_order = true;
        work.classify->place = nullptr;
        work.classify->keys4 = keys4_ + first;
        work.classify->rules4 = fused_.rules4 + first;
      }
    }
    if (GetParam().route) {
      work.route = {gpu_fib_->view4(),
                    gpu_fib_->view6(),
                    argument_ + first,
                    fused_.verdict + first,
                    routes6_ != 0 ? is_key6_ + first / 32 : nullptr,
                    *route_keys6_,
                    fused_.answers6};
    }
    if (GetParam().match) {
      work.match = {matcher_->view(),
                    {address_ + first, span_ + first, klass_ + first, fused_.found + first,
                     fused_.key + std::size_t{first} * match::max_hits, last - first, bytes_}};
    }
    return work;
  }

  // As so many batches, of which the first are small or empty.
  void run_fused(bool deny_others, std::uint32_t batches = 1) {
    forget(fused_);
    std::vector<FusedWork> works;
    std::uint32_t first = 0;
    for (std::uint32_t b = 1; b <= batches; ++b) {
      const std::uint32_t last = b == batches ? count_ : count_ * b * b / (batches * batches) / 32 * 32;
      works.push_back(work_of(first, last, deny_others));
      first = last;
    }
    const auto ok = launch_fused(works, gpu_->stream(0));
    ASSERT_TRUE(ok) << ok.error().message;
    wait();
  }

  bool goes_on(std::uint32_t i, bool deny_others) const {
    if (!GetParam().classify || place_[i] == place_not_ip) return true;
    if (place_[i] == place_malformed) return false;
    const std::uint32_t key = place_[i] & ~place_is_key6;
    const RuleIndex rule = (place_[i] & place_is_key6) != 0 ? separate_.rules6[key] : separate_.rules4[key];
    return rule == lookup::acl::no_match ? !deny_others : !lookup::acl::drops(rules_[rule].action.kind);
  }

  void expect_route(std::uint32_t i, bool on) const {
    const bool six = (is_key6_[i / 32] >> i % 32 & 1) != 0;
    const std::uint32_t key = argument_[i];
    ASSERT_EQ(fused_.verdict[i], on && !six ? separate_.verdict[i] : untouched) << "frame " << i;
    if (six) {
      ASSERT_EQ(fused_.answers6[key], on ? separate_.answers6[key] : untouched) << "frame " << i;
    }
  }

  void expect_keys(std::uint32_t i, bool on) {
    const auto reported = [&](const Results& r) {
      const std::uint32_t* const keys = r.key + std::size_t{i} * match::max_hits;
      return std::multiset<std::uint32_t>(keys, keys + match::max_hits);
    };
    ASSERT_EQ(fused_.found[i], on ? separate_.found[i] : 0U) << "frame " << i;
    const std::multiset<std::uint32_t> none{untouched, untouched, untouched, untouched,
                                            untouched, untouched, untouched, untouched};
    if (on && separate_.found[i] > match::max_hits) return;  // which are reported is open
    ASSERT_EQ(reported(fused_), on ? reported(separate_) : none) << "frame " << i;
    reported_ += on ? separate_.found[i] : 0;
  }

  // Answers how many frames were dropped.
  std::uint32_t check(bool deny_others, std::uint32_t batches = 1) {
    run_separately();
    run_fused(deny_others, batches);
    if (GetParam().classify) {
      EXPECT_EQ(std::memcmp(fused_.rules4, separate_.rules4, most_frames * 4), 0);
      EXPECT_EQ(std::memcmp(fused_.rules6, separate_.rules6, most_frames * 4), 0);
    }
    std::uint32_t dropped = 0;
    for (std::uint32_t i = 0; i < count_ && !HasFatalFailure(); ++i) {
      const bool on = goes_on(i, deny_others);
      dropped += !on;
      if (GetParam().route) expect_route(i, on);
      if (GetParam().match) expect_keys(i, on);
    }
    return dropped;
  }

  std::mt19937_64 random_{5};
  std::unique_ptr<device::Gpu> gpu_;
  std::vector<AclRule> rules_;
  std::unique_ptr<lookup::Trie> v4_, v6_;
  std::unique_ptr<lookup::Fib> fib_;
  std::unique_ptr<lookup::acl::GpuClassifier> classifier_;
  std::unique_ptr<lookup::GpuFib> gpu_fib_;
  std::unique_ptr<match::GpuMatcher> matcher_;

  bool in_order_ = false;  // keys are
  std::uint32_t count_ = 0, n4_ = 0, n6_ = 0, routes6_ = 0;
  std::uint64_t reported_ = 0;  // keys that both reported
  std::uint64_t bytes_ = 0;     // as MatchBatch::bytes: it only spreads the work
  char* payload_ = nullptr;
  std::uint64_t* address_ = nullptr;
  match::Span* span_ = nullptr;
  std::uint8_t* klass_ = nullptr;
  std::uint32_t* place_ = nullptr;
  Key4* keys4_ = nullptr;
  Key6* keys6_ = nullptr;
  std::uint32_t* argument_ = nullptr;
  std::uint32_t* is_key6_ = nullptr;
  std::uint8_t (*route_keys6_)[16] = nullptr;
  Results separate_{}, fused_{};
};

TEST_P(FusedTest, DoesWhatTheKernelsDoForFramesThatGoOn) {
  make_rules();
  make_routes();
  make_patterns();
  for (const std::uint32_t count : {1U, 31U, 33U, 700U}) {
    for (const bool four_only : {false, true}) {
      make_frames(count, four_only);
      for (const bool deny_others : {false, true}) {
        for (const std::uint64_t bytes : {0U, 1U << 30}) {
          bytes_ = bytes;
          const std::uint32_t dropped = check(deny_others);
          ASSERT_FALSE(HasFailure()) << count << (four_only ? " of IPv4" : "");
          if (GetParam().classify && count > 100) {
            EXPECT_GT(dropped, count / 8);
            EXPECT_LT(dropped, count);
          }
        }
      }
    }
  }
}

TEST_P(FusedTest, GoesOverMoreFramesThanThereAreLanes) {
  make_rules();
  make_routes();
  make_patterns();
  make_frames(most_frames, false);
  bytes_ = 1U << 30;
  check(false);
  if (GetParam().match) {
    EXPECT_GT(reported_, most_frames / 4);
  }
}

TEST_P(FusedTest, ReadsNoPlacesWhereKeysAreInTheOrderOfFrames) {
  make_rules();
  make_routes();
  make_patterns();
  make_frames(700, true, true);
  for (const std::uint32_t batches : {1U, 3U}) check(true, batches);
}

TEST_P(FusedTest, OneLaunchDoesTheWorkOfSeveralBatches) {
  make_rules();
  make_routes();
  make_patterns();
  for (const std::uint32_t batches : {2U, 3U, 8U}) {
    for (const std::uint32_t count : {40U, 700U, 3000U}) {
      make_frames(count, false);
      for (const std::uint64_t bytes : {0U, 1U << 30}) {
        bytes_ = bytes;
        check(true, batches);
        ASSERT_FALSE(HasFailure()) << count << " in " << batches;
      }
    }
  }
}

TEST_P(FusedTest, AnEmptyBatchIsNoWork) {
  make_rules();
  make_routes();
  make_patterns();
  make_frames(0, false);
  run_fused(false);
  run_fused(false, 3);
}

INSTANTIATE_TEST_SUITE_P(Parts, FusedTest,
                         testing::Values(Parts{true, true, false}, Parts{true, false, true}, Parts{false, true, true},
                                         Parts{true, true, true}),
                         [](const auto& info) {
                           return std::string(info.param.classify ? "acl" : "") + (info.param.route ? "route" : "") +
                                  (info.param.match ? "inspect" : "");
                         });

TEST_F(FusedTest, OnePartAloneIsRefused) {
  FusedWork work;
  work.count = 1;
  work.route = FusedWork::Route{};
  EXPECT_FALSE(launch_fused(work, gpu_->stream(0)));
}

TEST_F(FusedTest, BatchesOfOtherPartsAndTooManyAreRefused) {
  FusedWork all;
  all.count = 1;
  all.classify = FusedWork::Classify{};
  all.route = FusedWork::Route{};
  all.match = FusedWork::Match{};
  FusedWork two = all;
  two.classify.reset();
  EXPECT_FALSE(launch_fused(std::vector<FusedWork>{all, two}, gpu_->stream(0)));
  EXPECT_FALSE(launch_fused(std::vector<FusedWork>(most_works + 1, all), gpu_->stream(0)));
  EXPECT_FALSE(launch_fused(std::vector<FusedWork>(), gpu_->stream(0)));
}

}  // namespace
}  // namespace sluice::function
