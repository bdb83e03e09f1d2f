// What `sluice ctl acl` prints.
#include <gtest/gtest.h>

#include "function/acl/acl_rows.h"

namespace sluice::function {
namespace {

TEST(AclReport, HasARowForEachRuleAndTheDefault) {
  const AclTable table{
      {{1, "deny", "destination_port=22 protocol=tcp", 12, 960}, {2, "mark 46", "any", 3'000'000, 192'000'000}},
      9,
      {0, "permit", "", 0, 0}};
  EXPECT_EQ(acl_report(table),
            "RULE     ACTION    FRAMES      BYTES  MATCH\n"
            "1        deny          12        960  destination_port=22 protocol=tcp\n"
            "2        mark 46  3000000  192000000  any\n"
            "default  permit         0          0  no rule matches\n"
            "2 of 9 rules; --limit for more\n");
}

}  // namespace
}  // namespace sluice::function
