// Lists, negations, sets, names and ports of [[acl.rule]]: which rules they become, against what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lookup/acl/acl_reference_test.h"
#include "lookup/acl/acl_settings.h"

namespace sluice::lookup::acl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Read {
  RuleBook book;
  std::vector<std::string> mistakes;
};

Read read(const std::string& text) {
  Read result;
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "acl.toml", diagnostics);
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  Settings acl = file->section("acl");
  read_rules(acl, {.ports = {"lan", "wan", "dmz"}}, result.book);
  acl.finish();
  result.mistakes = diagnostics.lines;
  EXPECT_TRUE(!diagnostics.ok() || check(result.book.rules));
  return result;
}
RuleBook rules_of(const std::string& keys) {
  Read result = read("[[acl.rule]]\naction = \"deny\"\n" + keys);
  EXPECT_THAT(result.mistakes, ElementsAre());
  return result.book;
}

// More than a 64-bit number holds: it must not come round to few.
TEST(RuleLists, AProductThatNoNumberHoldsIsRefused) {
  std::string addresses, ports;
  for (int i = 0; i < 65536; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    addresses += comma + "\"10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256) + "\"";
    ports += comma + std::to_string(i);
  }
  const Read many =
      read("[[acl.rule]]\naction = \"deny\"\nprotocol = \"tcp\"\nsource = [" + addresses + "]\ndestination = [" +
           addresses + "]\nsource_port = [" + ports + "]\ndestination_port = [" + ports + "]\n");
  EXPECT_THAT(many.mistakes,
              ElementsAre("acl.toml:1: [[acl.rule]]: its lists multiply to 1000000000 or more rules, and "
                          "4096 are the most: put the longer ones into a set, [[acl.set]]"));
  EXPECT_TRUE(many.book.rules.empty());
}

struct Packet {
  const char* source = "10.0.0.1";
  const char* destination = "10.0.0.2";
  std::uint16_t source_port = 0, destination_port = 0;
  std::uint8_t protocol = 6, flags = 0;
  std::uint16_t tags = 0;
};
template <typename Key>
Key key_of(const Packet& packet) {
  Key key{};
  std::memcpy(key.source, packet::IpAddress::parse(packet.source)->bytes.data(), sizeof key.source);
  std::memcpy(key.destination, packet::IpAddress::parse(packet.destination)->bytes.data(), sizeof key.destination);
  key.source_port[0] = static_cast<std::uint8_t>(packet.source_port >> 8);
  key.source_port[1] = static_cast<std::uint8_t>(packet.source_port);
  key.destination_port[0] = static_cast<std::uint8_t>(packet.destination_port >> 8);
  key.destination_port[1] = static_cast<std::uint8_t>(packet.destination_port);
  key.protocol = packet.protocol;
  key.flags = packet.flags;
  key.tags[0] = static_cast<std::uint8_t>(packet.tags);
  key.tags[1] = static_cast<std::uint8_t>(packet.tags >> 8);
  return key;
}
bool matches(const RuleBook& book, const Packet& packet) {
  return packet::IpAddress::parse(packet.source)->family == 4
             ? first_match<Key4>(book.rules, key_of<Key4>(packet)) != no_match
             : first_match<Key6>(book.rules, key_of<Key6>(packet)) != no_match;
}

TEST(AclRuleLists, OneOfAListHolds) {
  const RuleBook book = rules_of(R"(source = ["10.0.0.0/24", "10.2.0.5-10.2.0.6", "2001:db8::/32"]
destination_port = [80, "8000-8100", "443"]
protocol = ["tcp", 17])");
  EXPECT_EQ(book.rules.size(), 4U * 3 * 2);  // of the range two hosts
  EXPECT_EQ(book.texts.size(), 1U);
  EXPECT_EQ(book.texts[0].match,
            "source=10.0.0.0/24,10.2.0.5-10.2.0.6,2001:db8::/32 destination_port=80,8000-8100,443 protocol=tcp,17");
  EXPECT_TRUE(matches(book, {.destination_port = 80}));
  EXPECT_TRUE(matches(book, {.source = "10.2.0.6", .destination_port = 8050, .protocol = 17}));
  EXPECT_TRUE(matches(book, {.source = "2001:db8::9", .destination = "::2", .destination_port = 443}));
  EXPECT_FALSE(matches(book, {.destination_port = 81}));
  EXPECT_FALSE(matches(book, {.source = "10.2.0.7", .destination_port = 80}));
  EXPECT_FALSE(matches(book, {.destination_port = 80, .protocol = 1}));
}

TEST(AclRuleLists, NegatedIsAllElse) {
  const RuleBook book = rules_of(R"(source = ["!10.0.0.0/8", "!192.168.1.7", "!2001:db8::/32"])");
  for (const char* const inside : {"10.0.0.0", "10.255.255.255", "192.168.1.7"}) {
    EXPECT_FALSE(matches(book, {.source = inside})) << inside;
  }
  for (const char* const outside :
       {"9.255.255.255", "11.0.0.0", "192.168.1.6", "192.168.1.8", "0.0.0.0", "255.255.255.255"}) {
    EXPECT_TRUE(matches(book, {.source = outside})) << outside;
  }
  EXPECT_FALSE(matches(book, {.source = "2001:db8:ffff::", .destination = "::1"}));
  EXPECT_TRUE(matches(book, {.source = "2001:db9::", .destination = "::1"}));
  EXPECT_TRUE(matches(rules_of("source = \"!10.0.0.0/8\""), {.source = "::1", .destination = "::2"})) << "not in it";
  EXPECT_FALSE(matches(rules_of("source = \"! 10.0.0.0/8\"\ndestination = \"10.0.0.2\""), {.source = "10.1.1.1"}));

  const RuleBook ports = rules_of("destination_port = [\"!22\", \"!80-90\", \"!65535\"]\nprotocol = \"tcp\"");
  for (const std::uint16_t port : {22, 80, 85, 90, 65535}) EXPECT_FALSE(matches(ports, {.destination_port = port}));
  for (const std::uint16_t port : {0, 21, 23, 79, 91, 65534}) EXPECT_TRUE(matches(ports, {.destination_port = port}));

  const RuleBook protocols = rules_of("protocol = [\"!tcp\", \"!58\"]");
  for (unsigned protocol = 0; protocol < 256; ++protocol) {
    EXPECT_EQ(matches(protocols, {.protocol = static_cast<std::uint8_t>(protocol)}), protocol != 6 && protocol != 58);
  }
}

TEST(AclRuleLists, IcmpTypesByName) {
  EXPECT_TRUE(matches(rules_of("protocol = \"icmp\"\nicmp_type = \"echo-request\""), {.protocol = 1, .flags = 8}));
  const RuleBook both =
      rules_of("protocol = [\"icmp\", \"icmpv6\"]\nicmp_type = [\"echo-request\", \"packet-too-big\", 3]");
  for (const auto& [protocol, type] : {std::pair{1, 8}, {1, 3}, {58, 128}, {58, 2}, {58, 3}}) {
    EXPECT_TRUE(
        matches(both, {.protocol = static_cast<std::uint8_t>(protocol), .flags = static_cast<std::uint8_t>(type)}));
  }
  EXPECT_FALSE(matches(both, {.protocol = 1, .flags = 2}));
  EXPECT_FALSE(matches(both, {.protocol = 58, .flags = 8}));
  EXPECT_TRUE(matches(rules_of("source = \"0.0.0.0/0\"\nprotocol = [\"icmp\", \"icmpv6\"]"), {.protocol = 1}));
  const RuleBook others =
      rules_of("protocol = \"icmpv6\"\nicmp_type = [\"!nd-neighbor-solicit\", \"!nd-neighbor-advert\"]");
  for (unsigned type = 0; type < 256; ++type) {
    EXPECT_EQ(matches(others, {.protocol = 58, .flags = static_cast<std::uint8_t>(type)}), type != 135 && type != 136);
  }
}

TEST(AclRuleLists, SetsAndPortsAreTags) {
  const Read result = read(R"([[acl.set]]
name = "bad"
entries = ["192.0.2.0/24", "2001:db8::1", "198.51.100.3-198.51.100.9"]
[[acl.set]]
name = "web"
type = "ports"
entries = [80, "443", "8000-8100"]
[[acl.rule]]
name = "first"
comment = "as of today"
source = "@bad"
destination = "!@bad"
destination_port = "@web"
protocol = "tcp"
ingress = ["lan", "dmz"]
action = "deny"
[[acl.rule]]
source = ["@bad", "10.0.0.0/8"]
egress = "!wan"
action = "reject"
log = true
)");
  EXPECT_THAT(result.mistakes, ElementsAre());
  const RuleBook& book = result.book;
  ASSERT_EQ(book.rules.size(), 2U + 2 * 2);
  EXPECT_EQ(book.texts[0].name, "first");
  EXPECT_EQ(book.texts[0].comment, "as of today");
  EXPECT_EQ(book.texts[0].match, "source=@bad destination=!@bad destination_port=@web protocol=tcp ingress=lan,dmz");
  ASSERT_EQ(book.plan.uses().size(), 3U);
  const std::uint16_t source = book.plan.uses()[0].bit, destination = book.plan.uses()[1].bit,
                      web = book.plan.uses()[2].bit;
  const auto tagged = [](unsigned tags) {
    return Packet{.destination_port = 80, .tags = static_cast<std::uint16_t>(tags)};
  };
  const auto in = [&](std::uint16_t port) { return book.plan.ingress_tags(port); };
  const auto first = std::span(book.rules).first(2);
  const auto is_first = [&](unsigned tags) { return first_match<Key4>(first, key_of<Key4>(tagged(tags))) != no_match; };
  EXPECT_TRUE(is_first(source | web | in(0)));
  EXPECT_TRUE(is_first(source | web | in(2)));
  EXPECT_FALSE(is_first(source | web | in(1)));
  EXPECT_FALSE(is_first(source | destination | web | in(0)));
  EXPECT_FALSE(is_first(source | in(0)));
  EXPECT_FALSE(is_first(web | in(0)));
  const auto second = std::span(book.rules).last(4);
  const auto is_second = [&](unsigned tags) {
    return first_match<Key4>(second, key_of<Key4>(tagged(tags))) != no_match;
  };
  EXPECT_TRUE(is_second(book.plan.egress_tags(0)));
  EXPECT_TRUE(is_second(book.plan.egress_tags(2)));
  EXPECT_FALSE(is_second(book.plan.egress_tags(1)));
  EXPECT_FALSE(is_second(book.plan.egress_tags(0xffff))) << "what leaves by none is not asked about";
  EXPECT_TRUE(second[0].action.log);
}

TEST(AclRuleLists, MistakesOfSets) {
  const Read result = read(R"([[acl.set]]
name = "a"
entries = ["192.0.2.1/24"]
[[acl.set]]
name = "a"
type = "port"
[[acl.set]]
name = "p"
type = "ports"
file = "/nowhere/at/all"
[[acl.rule]]
source = "@p"
action = "deny"
)");
  EXPECT_THAT(result.mistakes,
              ElementsAre(AllOf(StartsWith("acl.toml:3: [[acl.set]] entries = "), HasSubstr("\"192.0.2.1/24\": ")),
                          HasSubstr("acl.toml:5: [[acl.set]] name = \"a\": there is a set of this name already"),
                          HasSubstr("acl.toml:6: [[acl.set]] type = \"port\": allowed is \"addresses\", \"ports\""),
                          HasSubstr("acl.toml:10: [[acl.set]] file = "),
                          HasSubstr("the set \"p\" is of ports, and addresses are asked for")));
}

TEST(AclRuleLists, SixteenTagsAreTheMost) {
  std::string text;
  for (int s = 0; s < 17; ++s) text += "[[acl.set]]\nname = \"s" + std::to_string(s) + "\"\n";
  for (int s = 0; s < 17; ++s) text += "[[acl.rule]]\naction = \"deny\"\nsource = \"@s" + std::to_string(s) + "\"\n";
  EXPECT_THAT(read(text).mistakes, ElementsAre(HasSubstr("source = \"@s16\": there is no tag left for this set")));
}

TEST(AclRuleLists, NamesAreOfOneRule) {
  const Read result =
      read("[[acl.rule]]\nname = \"x\"\naction = \"deny\"\n[[acl.rule]]\nname = \"x\"\naction = \"deny\"\n");
  EXPECT_THAT(result.mistakes,
              ElementsAre(HasSubstr("acl.toml:5: [[acl.rule]] name = \"x\": there is a rule of this name")));
}

}  // namespace
}  // namespace sluice::lookup::acl
