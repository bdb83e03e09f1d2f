#include "packet/headers.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::packet {
namespace {

TEST(Headers, ExtensionHeadersAndTagsAreThese) {
  std::set<unsigned> extensions, tags;
  for (unsigned next = 0; next < 256; ++next) {
    if (is_ipv6_extension(static_cast<std::uint8_t>(next))) extensions.insert(next);
  }
  for (unsigned type = 0; type < 65536; ++type) {
    if (is_vlan_tag(static_cast<std::uint16_t>(type))) tags.insert(type);
  }
  EXPECT_EQ(extensions, (std::set<unsigned>{0, 43, 44, 60}));
  EXPECT_EQ(tags, (std::set<unsigned>{0x8100, 0x88a8, 0x9100}));
}

}  // namespace
}  // namespace sluice::packet
