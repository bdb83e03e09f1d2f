// Sets as tables, against membership by its definition; entries as text; files of them.
#include "lookup/acl/set_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lookup/acl/acl_random_test.h"

namespace sluice::lookup::acl {
namespace {

SetEntry entry(const char* text, SetType type = SetType::addresses) {
  const auto parsed = parse_set_entry(type, text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : SetEntry{};
}

TEST(NamedSet, EntriesAreWrittenAsTheyAreRead) {
  for (const char* const text : {"10.0.0.0/8", "0.0.0.0/0", "::/0", "192.0.2.1", "2001:db8::/33", "2001:db8::1",
                                 "192.0.2.1-192.0.2.9", "::-::2", "255.255.255.255"}) {
    EXPECT_EQ(entry(text).str(), text);
  }
  EXPECT_EQ(entry("10.0.0.0-10.0.0.255").str(), "10.0.0.0/24");
  EXPECT_EQ(entry("192.0.2.1/32").str(), "192.0.2.1");
  EXPECT_EQ(entry("80", SetType::ports).str(), "80");
  EXPECT_EQ(entry(" 80 - 90 ", SetType::ports).str(), "80-90");
  for (const char* const text : {"", "10.0.0.1/8", "10.0.0.9-10.0.0.1", "10.0.0.1-::1", "10.0.0.1-", "-", "80", "a"}) {
    EXPECT_FALSE(parse_set_entry(SetType::addresses, text)) << text;
  }
  for (const char* const text : {"", "-1", "65536", "9-8", "1-", "10.0.0.1", "http"}) {
    EXPECT_FALSE(parse_set_entry(SetType::ports, text)) << text;
  }
}

TEST(NamedSet, PrefixesAreARange) {
  const auto texts = [](const char* range) {
    std::string all;
    for (const packet::IpPrefix& prefix : prefixes_of(entry(range))) all += (all.empty() ? "" : " ") + prefix.str();
    return all;
  };
  EXPECT_EQ(texts("10.0.0.1-10.0.0.6"), "10.0.0.1/32 10.0.0.2/31 10.0.0.4/31 10.0.0.6/32");
  EXPECT_EQ(texts("0.0.0.0-255.255.255.255"), "0.0.0.0/0");
  EXPECT_EQ(texts("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), "::/0");
  EXPECT_EQ(prefixes_of(entry("0.0.0.1-255.255.255.254")).size(), 62U);
  EXPECT_EQ(prefixes_of(entry("::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe")).size(), 254U);
}

class SetFile : public testing::Test {
 protected:
  ~SetFile() override { std::filesystem::remove(path_); }
  Expected<std::vector<SetEntry>> read(const std::string& text, SetType type = SetType::addresses) {
    std::ofstream(path_) << text;
    return read_set_file(path_, type);
  }
  std::string path_ = (std::filesystem::temp_directory_path() / ("sluice-set-" + std::to_string(getpid()))).string();
};

TEST_F(SetFile, HasOneALineOrMore) {
  const auto some = read("# of the night\n192.0.2.0/24   # a net\r\n\n::1, ::2\t10.0.0.1");
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->size(), 4U);
  EXPECT_TRUE(read("")->empty()) << "a set may be empty, and filled later";
}

// As block lists of others are written.
TEST_F(SetFile, MayBeWrittenInOtherWays) {
  const auto some = read(
      "\xEF\xBB\xBF"
      "192.0.2.0/24 ; SBL1\r\n; all of it\r\n10.0.0.1 - 10.0.0.9 , 10.0.0.1- 10.0.0.9\r\n::1\t-\t::2\r\n");
  ASSERT_TRUE(some) << some.error().message;
  ASSERT_EQ(some->size(), 4U);
  EXPECT_EQ((*some)[0].str(), "192.0.2.0/24");
  EXPECT_EQ((*some)[1].str(), "10.0.0.1-10.0.0.9");
  EXPECT_EQ((*some)[2], (*some)[1]);
  EXPECT_EQ((*some)[3].str(), "::1-::2");
  EXPECT_EQ(read("22 - 23; ssh\n", SetType::ports)->at(0).str(), "22-23");
  EXPECT_EQ(read("\xff\xfe x").error().message, path_ + ":1: \"??\": '??' is not an IPv4 or IPv6 address\n" + path_ +
                                                    ":1: \"x\": 'x' is not an IPv4 or IPv6 address");
}

TEST_F(SetFile, NamesTheLineOfAMistake) {
  const auto wrong = read("192.0.2.1\n192.0.2.1/24\nnobody\n");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with(path_ + ":2: \"192.0.2.1/24\": ")) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("\n" + path_ + ":3: \"nobody\": "), std::string::npos) << wrong.error().message;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "x\n";
  EXPECT_NE(read(many).error().message.find("990 more mistakes"), std::string::npos);
}

template <typename Key>
bool has(const NamedSet& set, const std::uint8_t (&bytes)[sizeof(Key::source)]) {
  const packet::IpAddress address = packet::IpAddress::from_bytes(family_of<Key>(), bytes);
  const Interval at = interval_of(packet::IpPrefix::host(address), address.family);
  return std::any_of(set.entries.begin(), set.entries.end(), [&](const SetEntry& one) {
    return one.family == address.family && one.first <= at.first && at.first <= one.last;
  });
}

template <typename Key>
void compare(int family) {
  std::mt19937_64 random(5);
  const RandomRules wanted{.family = family, .any_address = 1000};
  std::vector<NamedSet> sets(4);
  TagPlan plan;
  for (std::uint32_t s = 0; s < sets.size(); ++s) {
    for (unsigned e = 0; e < 100 * s; ++e) {  // the first one is empty
      packet::IpPrefix prefix = random_rule_prefix(wanted, random);
      if (prefix.address.empty()) continue;
      const Interval interval = interval_of(prefix, family);
      sets[s].entries.push_back({prefix.address.family, interval.first, interval.last});
    }
    tidy(sets[s].entries);
    plan.bit_of(s, Side::source);
    if (s % 2 == 1) plan.bit_of(s, Side::destination);
  }
  const SetTables tables = SetTables::build(sets, plan);
  AclRule rule;
  std::size_t seen = 0;
  for (unsigned i = 0; i < 20'000; ++i) {
    rule.source = random_rule_prefix(wanted, random);
    rule.destination = random_rule_prefix(wanted, random);
    std::vector<Key> keys;
    append_edges(rule, random, keys);
    for (const Key& key : keys) {
      unsigned expected = 0;
      for (const TagPlan::Use& use : plan.uses()) {
        expected |= has<Key>(sets[use.set], use.side == Side::source ? key.source : key.destination) ? use.bit : 0U;
      }
      ASSERT_EQ(tables.tags(key), expected);
      seen += expected != 0 ? 1 : 0;
    }
    if (i == 100) i = 19'900;  // enough: each has 16 edges, and is compared with all entries
  }
  EXPECT_GT(seen, 100U);
}

TEST(SetTables, AnswerWhatSetsHave) {
  compare<Key4>(4);
  compare<Key6>(6);
}

TEST(SetTables, Ports) {
  const std::vector<NamedSet> sets = {
      {"a", SetType::ports, {{0, 0, 0}, {0, 80, 90}, {0, 85, 100}, {0, 65535, 65535}}, ""}};
  TagPlan plan;
  const std::uint16_t source = *plan.bit_of(0, Side::source), destination = *plan.bit_of(0, Side::destination);
  const SetTables tables = SetTables::build(sets, plan);
  for (unsigned port = 0; port < 65536; ++port) {
    const bool in = port == 0 || (port >= 80 && port <= 100) || port == 65535;
    Key4 key{};
    set_key_port(key.source_port, port);
    set_key_port(key.destination_port, 1);
    ASSERT_EQ(tables.tags(key), in ? source : 0) << port;
    std::swap(key.source_port, key.destination_port);
    ASSERT_EQ(tables.tags(key), in ? destination : 0) << port;
  }
  EXPECT_EQ(SetTables::build({}, {}).tags(Key6{}), 0);
}

}  // namespace
}  // namespace sluice::lookup::acl
