#include "port/rss_key.h"

#include <gtest/gtest.h>
#include <rte_thash.h>

#include <algorithm>
#include <vector>

namespace sluice::port {
namespace {

// As DPDK hashes a flow: source and destination address, then source and destination port.
std::uint32_t hash(std::vector<std::uint32_t> addresses, std::uint16_t source, std::uint16_t destination,
                   const std::vector<std::uint8_t>& key) {
  addresses.push_back(static_cast<std::uint32_t>(source) << 16 | destination);
  return rte_softrss(addresses.data(), static_cast<std::uint32_t>(addresses.size()), key.data());
}

TEST(RssKey, BothDirectionsOfAFlowHaveOneHashWhateverTheKeysLength) {
  for (const std::size_t bytes : {40, 52, 64, 65, 128, 255}) {
    const std::vector<std::uint8_t> key = symmetric_rss_key(bytes);
    ASSERT_EQ(key.size(), bytes);
    EXPECT_EQ(hash({0x0a010002, 0xc6336407}, 40001, 443, key), hash({0xc6336407, 0x0a010002}, 443, 40001, key));
    EXPECT_EQ(hash({0x20010db8, 1, 2, 3, 0x20010db8, 5, 6, 7}, 40001, 443, key),
              hash({0x20010db8, 5, 6, 7, 0x20010db8, 1, 2, 3}, 443, 40001, key));
    EXPECT_NE(hash({0x0a010002, 0xc6336407}, 40001, 443, key), hash({0x0a010002, 0xc6336407}, 40002, 443, key));
    // A NIC that hashes more than a flow's addresses and ports uses the rest of the key.
    EXPECT_TRUE(std::ranges::equal(key.begin() + 2, key.end(), key.begin(), key.end() - 2));
  }
}

TEST(RssKey, ADriverThatTakesNoneIsSaid) {
  EXPECT_TRUE(symmetric_rss_key(0).empty());
  EXPECT_NE(rss_key_note(0).find("takes no RSS key"), std::string::npos);
  EXPECT_EQ(rss_key_note(40), "");
}

}  // namespace
}  // namespace sluice::port
