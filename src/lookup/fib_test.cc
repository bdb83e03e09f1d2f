#include "lookup/fib.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lookup/reference_test.h"

namespace sluice::lookup {
namespace {

packet::IpPrefix prefix(const char* text) {
  return packet::IpPrefix::parse(text).value();
}
packet::IpAddress address(const char* text) {
  return packet::IpAddress::parse(text).value();
}

class FibTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fib = Fib::create({.name = "test", .max_routes4 = 100, .max_routes6 = 100, .groups4 = 8, .groups6 = 40});
    ASSERT_TRUE(fib) << fib.error().message;
    fib_ = std::move(*fib);
  }
  NextHopId at(const char* text) const { return lookup_all(*fib_, {address(text)}).front(); }

  std::unique_ptr<Fib> fib_;
};

TEST_F(FibTest, TheLongestPrefixWins) {
  for (const auto& [text, id] : {std::pair{"0.0.0.0/0", 1},
                                 {"10.0.0.0/8", 2},
                                 {"10.1.0.0/16", 3},
                                 {"10.1.1.128/25", 4},
                                 {"10.1.1.129/32", 5},
                                 {"::/0", 6},
                                 {"2001:db8::/32", 7},
                                 {"2001:db8::1/128", 8}}) {
    ASSERT_TRUE(fib_->add(prefix(text), static_cast<NextHopId>(id)));
  }
  for (const auto& [text, id] : {std::pair{"9.9.9.9", 1},
                                 {"255.255.255.255", 1},
                                 {"10.2.0.1", 2},
                                 {"10.1.1.127", 3},
                                 {"10.1.1.128", 4},
                                 {"10.1.1.129", 5},
                                 {"10.1.2.0", 3},
                                 {"::", 6},
                                 {"ffff::", 6},
                                 {"2001:db8::2", 7},
                                 {"2001:db8::1", 8}}) {
    EXPECT_EQ(at(text), static_cast<NextHopId>(id)) << text;
  }
  EXPECT_EQ(fib_->size4(), 5U);
  EXPECT_EQ(fib_->size6(), 3U);
  EXPECT_EQ(fib_->find(prefix("0.0.0.0/0")), 1U);
  EXPECT_EQ(fib_->find(prefix("10.0.0.0/9")), no_route);
  ASSERT_TRUE(fib_->remove(prefix("0.0.0.0/0")));
  EXPECT_EQ(at("255.255.255.255"), no_route);
  EXPECT_EQ(at("10.2.0.1"), 2U);
}

TEST_F(FibTest, AnyCountOfLookups) {
  ASSERT_TRUE(fib_->add(prefix("10.0.0.0/8"), 7));
  ASSERT_TRUE(fib_->add(prefix("2001:db8::/32"), 9));
  for (const std::size_t n : {0, 1, 15, 16, 63, 64, 65, 300}) {
    EXPECT_EQ(lookup_all(*fib_, std::vector(n, address("10.1.2.3"))), std::vector(n, NextHopId{7})) << n;
    EXPECT_EQ(lookup_all(*fib_, std::vector(n, address("2001:db8::1"))), std::vector(n, NextHopId{9})) << n;
  }
}

TEST_F(FibTest, AnIdOutOfRangeOrARouteThatIsNotThereIsSaid) {
  EXPECT_EQ(fib_->add(prefix("10.0.0.0/8"), 0).error().message,
            "next hop id 0 of 10.0.0.0/8 is not between 1 and 16777215");
  EXPECT_FALSE(fib_->add(prefix("10.0.0.0/8"), max_next_hop_id + 1));
  EXPECT_TRUE(fib_->add(prefix("10.0.0.0/8"), max_next_hop_id));
  EXPECT_EQ(at("10.0.0.1"), max_next_hop_id);
  EXPECT_EQ(fib_->remove(prefix("10.0.0.0/9")).error().message, "there is no route 10.0.0.0/9 to remove");
}

TEST_F(FibTest, AFullTableNamesTheKeyAndStaysAsItWas) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(fib_->add(packet::IpPrefix::of(packet::IpAddress::v4(i << 24), 8), 1 + i));
  }
  const auto full = fib_->add(prefix("200.0.0.0/8"), 1);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "the IPv4 route table is full: 200.0.0.0/8 does not fit beside 100 routes; raise [route] max_ipv4");
  EXPECT_EQ(at("200.0.0.1"), no_route);
  EXPECT_TRUE(fib_->add(prefix("0.0.0.0/8"), 77)) << "replacing needs no capacity";
  ASSERT_TRUE(fib_->remove(prefix("1.0.0.0/8")));
  EXPECT_TRUE(fib_->add(prefix("200.0.0.0/8"), 1));
}

TEST(FibMemory, IsKnownBeforeATableIsMade) {
  for (const std::uint32_t routes : {10'000U, 200'000U}) {
    const auto fib = Fib::create({.name = "memory", .max_routes4 = routes, .max_routes6 = routes});
    ASSERT_TRUE(fib) << fib.error().message;
    const auto needed = static_cast<double>(Fib::memory_needed(4, routes) + Fib::memory_needed(6, routes));
    const auto taken = static_cast<double>((*fib)->memory_bytes());
    EXPECT_LE(needed, taken) << "what is refused for want of memory would not have fitted";
    EXPECT_GE(needed, 0.97 * taken) << routes;
  }
}

TEST(FibMemory, ATableThatDoesNotFitSaysWhatItNeedsAndWhatThereIs) {
  for (const auto& [options, words] :
       {std::pair{Fib::Options{.name = "large", .max_routes4 = 16'000'000, .max_routes6 = 1},
                  "the IPv4 route table for 16000000 routes does not fit: it needs "},
        std::pair{Fib::Options{.name = "large", .max_routes4 = 1, .max_routes6 = 4'000'000},
                  "the IPv6 route table for 4000000 routes does not fit: it needs "}}) {
    const auto fib = Fib::create(options);
    ASSERT_FALSE(fib);
    const std::string& message = fib.error().message;
    ASSERT_EQ(message.rfind(words, 0), 0U) << message;
    const int family = options.max_routes4 == 1 ? 6 : 4;
    const std::string needed =
        std::to_string(Fib::memory_needed(family, std::max(options.max_routes4, options.max_routes6)) >> 20);
    EXPECT_NE(message.find("needs " + needed + " MB and "), std::string::npos) << message;
    EXPECT_NE(message.find(" MB of DPDK's memory are free; lower [route] max_ipv" + std::to_string(family)),
              std::string::npos)
        << message;
  }
}

TEST_F(FibTest, TooManyLongPrefixesNameTheKeyAndStayAsTheyWere) {
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(fib_->add(packet::IpPrefix::of(packet::IpAddress::v4(0x0a000000 + (i << 8)), 25), 1));
  }
  const auto full = fib_->add(prefix("11.0.0.0/25"), 2);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message,
            "the IPv4 route table has no capacity for another prefix longer than /24: 11.0.0.0/25 does "
            "not fit beside 8 groups; raise [route] max_ipv4");
  EXPECT_EQ(at("11.0.0.1"), no_route);
  EXPECT_TRUE(fib_->add(prefix("10.0.0.128/25"), 2)) << "its group is there";
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(fib_->add(prefix(("2001:db8:" + std::to_string(i) + "::1/128").c_str()), 5));
  }
  EXPECT_THAT(fib_->add(prefix("2002:db8::1/128"), 5).error().message, testing::HasSubstr("raise [route] max_ipv6"));
  EXPECT_EQ(at("2001:db8:3::1"), 5U);
}

// DPDK's own count of groups drifts on these; after 2^32 or after `groups` changes no route could be added any more.
TEST_F(FibTest, ChurnDoesNotWearTheTableOut) {
  ASSERT_TRUE(fib_->add(prefix("10.0.0.0/8"), 1));
  ASSERT_TRUE(fib_->add(prefix("2001:db8::/32"), 1));
  for (int i = 0; i < 500; ++i) {
    for (const char* text : {"10.0.1.0/25", "2001:db8:1::/48", "2001:db8:20::/44"}) {
      for (const NextHopId id : {1U, 2U}) {
        const auto ok = fib_->add(prefix(text), id);
        ASSERT_TRUE(ok) << i << ": " << ok.error().message;
        ASSERT_TRUE(fib_->remove(prefix(text)));
      }
    }
  }
  ASSERT_TRUE(fib_->add(prefix("10.0.2.0/25"), 3));
  ASSERT_TRUE(fib_->add(prefix("2001:db8:3::/48"), 3));
  EXPECT_EQ(at("10.0.2.1"), 3U);
  EXPECT_EQ(at("2001:db8:3::1"), 3U);
}

// Prefixes side by side up to the last address, and a change of what covers them.
TEST_F(FibTest, TheLastAddressIsLikeAnyOther) {
  struct Case {
    std::vector<const char*> side_by_side;
    const char* covering;
    const char* outside;
  };
  for (const auto& [side_by_side, covering, outside] : {
           Case{{"0.0.0.0/1", "128.0.0.0/1"}, "0.0.0.0/0", "1.2.3.4"},
           Case{{"224.0.0.0/4", "240.0.0.0/4"}, "224.0.0.0/3", "1.2.3.4"},
           Case{{"255.255.255.254/32", "255.255.255.255/32"}, "255.255.255.254/31", "255.255.255.253"},
           Case{{"fe00::/8", "ff00::/8"}, "fe00::/7", "2001::"},
           Case{{"::/1", "8000::/1"}, "::/0", "2001::"},
       }) {
    const NextHopId before = at(outside);
    for (const char* text : side_by_side) {
      ASSERT_TRUE(fib_->add(prefix(text), 10));
    }
    ASSERT_TRUE(fib_->add(prefix(covering), 20));
    ASSERT_TRUE(fib_->add(prefix(covering), 21));
    const bool covers = prefix(covering).contains(address(outside));
    EXPECT_EQ(at(outside), covers ? 10 : before) << covering;
    for (const char* text : side_by_side) {
      EXPECT_EQ(lookup_all(*fib_, {prefix(text).address, last_address(prefix(text))}),
                (std::vector<NextHopId>{10, 10}));
      ASSERT_TRUE(fib_->remove(prefix(text)));
      EXPECT_EQ(lookup_all(*fib_, {prefix(text).address, last_address(prefix(text))}),
                (std::vector<NextHopId>{21, 21}));
    }
    ASSERT_TRUE(fib_->remove(prefix(covering)));
    EXPECT_EQ(at(outside), before) << covering;
  }
  EXPECT_EQ(fib_->groups_used(4) + fib_->groups_used(6), 0U);
}

TEST_F(FibTest, AReaderSeesTheOldOrTheNewRoute) {
  ASSERT_TRUE(fib_->add(prefix("10.0.0.0/16"), 1));
  ASSERT_TRUE(fib_->add(prefix("10.0.7.0/24"), 9));
  std::atomic<bool> stop{false};
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> rounds{0};
  std::thread reader([&] {
    std::uint32_t keys[64];
    NextHopId out[64];
    for (std::uint32_t i = 0; i < 64; ++i) {
      keys[i] = 0x0a000000 + i * 256;
    }
    while (!stop) {
      fib_->lookup4(keys, out, 64);
      for (std::uint32_t i = 0; i < 64; ++i) {
        wrong += i == 7 ? out[i] != 9 : out[i] != 1 && out[i] != 2;
      }
      ++rounds;
    }
  });
  for (NextHopId id = 0; id < 2000 || rounds < 100; ++id) {
    ASSERT_TRUE(fib_->add(prefix("10.0.0.0/16"), 1 + id % 2));
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0U);
}

TEST(FibOptions, MistakesAreSaid) {
  EXPECT_THAT(Fib::create({.name = "a name that is far too long"}).error().message,
              testing::HasSubstr("1 to 16 characters"));
  const auto huge = Fib::create({.name = "huge", .max_routes4 = 20'000'000});
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.error().message, testing::HasSubstr("lower [route] max_ipv4 or raise [memory] size"));
  const auto small = Fib::create({.name = "small", .max_routes4 = 1000, .max_routes6 = 1000});
  ASSERT_TRUE(small) << "what a failed creation took is given back";
  EXPECT_GT((*small)->memory_bytes(), 128U << 20);
  EXPECT_LT((*small)->memory_bytes(), 160U << 20);
}

}  // namespace
}  // namespace sluice::lookup
