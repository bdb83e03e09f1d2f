// A ClassBench set of the public data, through the real data path: what leaves is what its first match by definition
// permits.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "../tests/support/public_data.h"
#include "function/acl/acl_trial_test.h"
#include "function/acl/frame_key.h"
#include "lookup/acl/acl_random_test.h"
#include "lookup/acl/classbench.h"

namespace sluice::function {
namespace {

using lookup::acl::Key4;

packet::IpAddress address(const std::uint8_t* bytes) {
  return packet::IpAddress::from_bytes(4, bytes);
}

Bytes frame_of(const Key4& key) {
  PacketBuilder builder;
  builder.ipv4(address(key.source), address(key.destination));
  const auto from = static_cast<std::uint16_t>(key.source_port[0] * 256 + key.source_port[1]);
  const auto to = static_cast<std::uint16_t>(key.destination_port[0] * 256 + key.destination_port[1]);
  switch (key.protocol) {
    case 6:
      return builder.tcp(from, to).tcp_flags(key.flags).build();
    case 17:
      return builder.udp(from, to).build();
    case 1:
      return builder.icmp(key.flags, 0).build();
    default:
      return builder.protocol(key.protocol).payload(20).build();
  }
}

class AclClassBench : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam() == "cpu" ? "" : test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    constexpr const char* sets = "classbench/cutsplit-1k-10k-with-traces.tar.xz";
    if (const std::string why = test::why_no_data(sets); !why.empty()) GTEST_SKIP() << why;
    const std::string archive = test::data_path(sets);
    std::string name = (std::filesystem::temp_directory_path() / "acl-classbench-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    const std::string unpack = "tar -xJf '" + archive + "' -C '" + folder_.string() + "'";
    ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;  // NOLINT(cert-env33-c): a test's own command
  }
  ~AclClassBench() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path folder_;
};

TEST_P(AclClassBench, Acl1kAgainstTheDefinition) {
  const std::string file = (folder_ / "CutSplit" / "acl_1k").string();
  auto rules = lookup::acl::read_classbench(file);
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_GT(rules->size(), 900U);
  rules->pop_back();  // permits everything: without it the default counts, too
  std::mt19937_64 random(5);
  // Every third rule denies.
  for (std::size_t i = 0; i < rules->size(); i += 3) (*rules)[i].action.kind = lookup::acl::ActionKind::deny;
  std::vector<Key4> keys = lookup::acl::edge_keys<Key4>(*rules, random);
  std::shuffle(keys.begin(), keys.end(), random);
  keys.resize(std::min<std::size_t>(keys.size(), 4000));

  std::vector<Bytes> frames, expected;
  std::size_t matched = 0;
  for (const Key4& wanted : keys) {
    frames.push_back(frame_of(wanted));
    Key4 key;
    lookup::acl::Key6 other;
    ASSERT_EQ(make_key(frames.back().data(), static_cast<std::uint32_t>(frames.back().size()), key, other),
              KeyKind::ipv4);
    const lookup::acl::RuleIndex rule = lookup::acl::first_match(*rules, key);
    matched += rule != lookup::acl::no_match ? 1 : 0;
    if (rule != lookup::acl::no_match && (*rules)[rule].action.kind == lookup::acl::ActionKind::permit) {
      expected.push_back(frames.back());
    }
  }
  EXPECT_GT(matched, keys.size() / 3);
  EXPECT_LT(matched, keys.size());
  const Outcome outcome =
      AclTrial(GetParam()).run(frames, std::make_unique<Acl>(Acl::AclOptions{.rules = *rules, .deny_others = true}));
  EXPECT_EQ(outcome.sent.size(), expected.size());
  EXPECT_TRUE(outcome.sent == expected);
  EXPECT_EQ(outcome.stats.drops[acl_denied], frames.size() - expected.size());
}

INSTANTIATE_TEST_SUITE_P(Devices, AclClassBench, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

}  // namespace
}  // namespace sluice::function
