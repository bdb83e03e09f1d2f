// Who has to go first when guards have no capacity.
#include "function/srtp/guards.h"

#include <gtest/gtest.h>

#include "function/srtp/media_stream.h"

namespace sluice::function {
namespace {

const Guards::Time start = Guards::Time::clock::now();

MediaKey key_to(const char* client, unsigned port) {
  const auto address = *packet::IpAddress::parse(client);
  const char* const server = address.family == 4 ? "10.2.0.2" : "2001:db8:9::1";
  return media_key(*packet::IpAddress::parse(server), 5004, address, static_cast<std::uint16_t>(port));
}

TEST(Guards, OfOneClientAreSoMany) {
  const struct {
    const char *first, *second;
    bool same;
  } cases[] = {{"10.1.0.2", "10.1.0.2", true},
               {"10.1.0.2", "10.1.0.3", false},
               {"2001:db8::1", "2001:db8::ffff:1", true},
               {"2001:db8::1", "2001:db8:0:1::1", false},
               {"10.1.0.2", "a01:2::", false}};  // the same four bytes
  for (const auto& one : cases) {
    Guards guards(1);
    EXPECT_FALSE(guards.add(key_to(one.first, 1), key_to(one.first, 1), start));
    const auto gone = guards.add(key_to(one.second, 2), key_to(one.second, 2), start);
    EXPECT_EQ(gone.has_value(), one.same) << one.first << ' ' << one.second;
    if (gone) {
      EXPECT_EQ(*gone, key_to(one.first, 1));
      guards.erase(*gone);
    }
    EXPECT_EQ(guards.size(), one.same ? 1U : 2U);
  }
}

TEST(Guards, TheOldestIsTheOneThatWasAddedFirst) {
  Guards guards(8);
  for (unsigned port = 1; port <= 4; ++port) guards.add(key_to("10.1.0.2", port), key_to("10.1.0.2", port), start);
  EXPECT_EQ(guards.oldest(), key_to("10.1.0.2", 1));
  guards.erase(key_to("10.1.0.2", 1));
  guards.erase(key_to("10.1.0.2", 1));
  guards.erase(key_to("10.1.0.2", 3));
  EXPECT_EQ(guards.oldest(), key_to("10.1.0.2", 2));
  guards.erase(key_to("10.1.0.2", 2));
  guards.add(key_to("10.1.0.2", 1), key_to("10.1.0.2", 1), start);
  EXPECT_EQ(guards.oldest(), key_to("10.1.0.2", 4));
}

TEST(Guards, AreQuietWhenNothingHasComeForSoLong) {
  using std::chrono::seconds;
  Guards guards(8);
  const MediaKey silent = key_to("10.1.0.2", 1), loud = key_to("10.1.0.2", 2);
  guards.add(silent, silent, start);
  guards.add(loud, loud, start);
  std::uint64_t come = 0;
  const auto noted = [&](const MediaKey& key) { return key == loud ? come : 0; };
  const auto time_of = [](const MediaKey&) { return seconds(5); };
  EXPECT_TRUE(guards.quiet(start + seconds(4), time_of, noted).empty());
  come = 1;
  EXPECT_EQ(guards.quiet(start + seconds(6), time_of, noted), std::vector{silent});
  EXPECT_EQ(guards.quiet(start + seconds(11), time_of, noted).size(), 2U);
  const auto own_time_of = [&](const MediaKey& key) { return key == loud ? seconds(30) : seconds(5); };
  EXPECT_EQ(guards.quiet(start + seconds(35), own_time_of, noted), std::vector{silent});
  EXPECT_EQ(guards.quiet(start + seconds(36), own_time_of, noted).size(), 2U);
}

}  // namespace
}  // namespace sluice::function
