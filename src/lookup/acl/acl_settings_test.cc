#include "lookup/acl/acl_settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::lookup::acl {
namespace {

// The rules of a text, or its first mistake.
Expected<std::vector<AclRule>> read(const std::string& text) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "acl.toml", diagnostics);
  if (!file) {
    return tl::unexpected(file.error());
  }
  Settings acl = file->section("acl");
  auto rules = read_rules(acl);
  acl.finish();
  if (!diagnostics.ok()) {
    return make_error(diagnostics.lines.front());
  }
  return rules;
}

// As a bench reads them: keys there have no tags, so that such a rule would match all frames.
TEST(AclSettingsTest, AFileForKeysWithoutTagsHasNoSetsAndPorts) {
  const std::string path = testing::TempDir() + "acl-tagless-" + std::to_string(getpid()) + ".toml";
  for (const std::string key : {"source = \"@blocked\"", "ingress = \"lan\"", "egress = [\"!wan\", \"!dmz\"]"}) {
    std::ofstream(path)
        << "[[acl.set]]\nname = \"blocked\"\nentries = [\"192.0.2.1\"]\n[[acl.rule]]\naction = \"permit\"\n"
           "protocol = \"udp\"\n[[acl.rule]]\naction = \"deny\"\n"
        << key << "\n";
    const auto rules = read_rules_file(path);
    ASSERT_FALSE(rules) << key;
    EXPECT_EQ(rules.error().message, path +
                                         ":7: [[acl.rule]]: asks for a set, ingress or egress, which only frames of a "
                                         "gateway have: leave such rules out of what is read here");
  }
  std::filesystem::remove(path);
}

TEST(AclSettingsTest, ReadsEveryKey) {
  const auto rules = read(R"([[acl.rule]]
source = "192.0.2.0/24"
destination = "198.51.100.7"
source_port = "1024-65535"
destination_port = "443"
protocol = "tcp"
tcp_flags = "syn, !ack"
action = "police"
rate = 10_000_000
burst = "64K"
[[acl.rule]]
protocol = "47"
action = "mark"
mark = 7
[[acl.rule]]
source = "2001:db8::/32"
protocol = "icmpv6"
icmp_type = 128
priority = 5
action = "deny"
[[acl.rule]]
action = "permit"
)");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 4U);
  EXPECT_EQ((*rules)[0].line, 15U);  // of priority 5: before all others
  EXPECT_EQ((*rules)[0].flags, (MaskedByte{128, 0xff}));
  EXPECT_EQ((*rules)[0].action.kind, ActionKind::deny);
  AclRule police;
  police.source = *packet::IpPrefix::parse("192.0.2.0/24");
  police.destination = *packet::IpPrefix::parse("198.51.100.7");
  police.source_port = {1024, 65535};
  police.destination_port = {443, 443};
  police.protocol = {6, 0xff};
  police.flags = {0x02, 0x12};
  police.action = {ActionKind::police, 0, 10'000'000, 65536};
  police.line = 1;
  police.text = 0;
  EXPECT_EQ((*rules)[1], police);
  EXPECT_EQ((*rules)[2].protocol, (MaskedByte{47, 0xff}));
  EXPECT_EQ((*rules)[2].action.mark, 7U);
  EXPECT_EQ((*rules)[2].family(), 0);
  EXPECT_EQ((*rules)[3].action.kind, ActionKind::permit);
}

TEST(AclSettingsTest, PortsGoWithProtocolsThatHaveThem) {
  for (const char* const protocol : {"tcp", "udp", "sctp", "33", "136"}) {
    const auto rules =
        read(std::string("[[acl.rule]]\naction = \"deny\"\nsource_port = \"53\"\nprotocol = \"") + protocol + "\"\n");
    EXPECT_TRUE(rules) << rules.error().message;
  }
  EXPECT_TRUE(read("[[acl.rule]]\naction = \"deny\"\nsource_port = \"53\"\n"));
  EXPECT_TRUE(read("[[acl.rule]]\naction = \"deny\"\nprotocol = \"icmp\"\nsource_port = \"0-65535\"\n"));
}

TEST(AclSettingsTest, NamesTheLineAndKeyOfAMistake) {
  struct Mistake {
    const char* text;
    const char* said;
  };
  const Mistake mistakes[] = {
      {"source = \"1.2.3.4/8\"\naction = \"deny\"", "acl.toml:2: [[acl.rule]] source"},
      {"source = \"1.2.3.4\"\ndestination = \"::1\"\naction = \"deny\"", "acl.toml:3: [[acl.rule]] destination"},
      {"source_port = \"9-8\"\naction = \"deny\"", "the lower first"},
      {"source_port = \"1-\"\naction = \"deny\"", "the lower first"},
      {"source_port = true\naction = \"deny\"",
       "source_port = true: allowed is a text in quotes, a whole number, or a list"},
      {"source_port = 65536\naction = \"deny\"", "source_port = 65536: a port from 0 to 65535"},
      {"source = []\naction = \"deny\"", "or a list of these"},
      {"source = [\"!1.2.3.4\", \"5.6.7.8\"]\naction = \"deny\"", "before each value of a list or before none"},
      {"source = [\"1.2.3.4\", \"5.6.7\"]\naction = \"deny\"", "\"5.6.7\": "},
      {"source = \"1.2.3.9-1.2.3.1\"\naction = \"deny\"", "the lower first"},
      {"source = \"@nobody\"\naction = \"deny\"",
       "there is no set \"nobody\": write it as [[acl.set]] before the rules"},
      {"source = \"!0.0.0.0/0\"\ndestination = \"10.0.0.0/8\"\naction = \"deny\"", "is not of the source's family"},
      {"source = [\"!0.0.0.0/0\", \"!::/0\"]\naction = \"deny\"", "no address is left"},
      {"source_port = \"!0-65535\"\naction = \"deny\"", "no port is left"},
      {"source = \"!::1\"\ndestination = \"!::1\"\naction = \"deny\"",
       "acl.toml:1: [[acl.rule]]: its lists multiply to"},
      {"ingress = \"lan\"\naction = \"deny\"", "there is no port \"lan\""},
      {"name = \"a b\"\naction = \"deny\"", "name = \"a b\": allowed is 1 to 32 letters"},
      {"comment = \"a\\nb\"\naction = \"deny\"", "one line"},
      {"log = 1\naction = \"deny\"", "true or false"},
      {"protocol = \"icmp\"\nicmp_type = \"ping\"\naction = \"deny\"", "a type's name or a whole number from 0 to 255"},
      {"protocol = [\"tcp\", \"icmp\"]\nicmp_type = 8\naction = \"deny\"", "only with protocol = \"icmp\""},
      {"source = \"10.0.0.0/8\"\nprotocol = \"icmpv6\"\naction = \"deny\"",
       "acl.toml:3: [[acl.rule]] protocol = \"icmpv6\": icmpv6 is IPv6's, and the addresses are IPv4's: write icmp"},
      {"destination = \"2001:db8::/32\"\nprotocol = \"icmp\"\naction = \"deny\"",
       "icmp is IPv4's, and the addresses are IPv6's: write icmpv6"},
      {"destination_port = \"65536\"\naction = \"deny\"", "destination_port"},
      {"protocol = \"icmp\"\ndestination_port = \"8\"\naction = \"deny\"",
       "acl.toml:3: [[acl.rule]] destination_port = \"8\": protocol \"icmp\" has no ports: leave it out, or write "
       "icmp_type; tcp"},
      {"source_port = \"0-1023\"\nprotocol = \"47\"\naction = \"deny\"",
       "acl.toml:2: [[acl.rule]] source_port = \"0-1023\": protocol \"47\" has no ports: leave it out; tcp"},
      {"protocol = \"tpc\"\naction = \"deny\"", "tcp, udp"},
      {"protocol = \"256\"\naction = \"deny\"", "from 0 to 255"},
      {"tcp_flags = \"syn\"\naction = \"deny\"", "only with protocol = \"tcp\""},
      {"protocol = \"tcp\"\ntcp_flags = \"syn,\"\naction = \"deny\"", "such as \"syn,!ack\""},
      {"protocol = \"tcp\"\ntcp_flags = \"\"\naction = \"deny\"", "such as \"syn,!ack\""},
      {"protocol = \"tcp\"\ntcp_flags = \"syn,!syn\"\naction = \"deny\"", "each once at most"},
      {"protocol = \"tcp\"\nicmp_type = 8\naction = \"deny\"", "only with protocol = \"icmp\""},
      {"protocol = \"icmp\"\nicmp_type = 256\naction = \"deny\"", "from 0 to 255"},
      {"source = \"::/0\"", "action: is missing: permit, deny, reject, mark or police"},
      {"action = \"drop\"", "\"permit\", \"deny\", \"reject\", \"mark\", \"police\""},
      {"action = \"mark\"", "action = \"mark\" needs mark"},
      {"action = \"police\"\nrate = 5", "needs burst"},
      {"action = \"deny\"\nmark = 5", "only with action = \"mark\""},
      {"action = \"mark\"\nmark = 5\nburst = \"1K\"", "only with action = \"police\""},
      {"action = \"police\"\nrate = 0\nburst = \"1K\"", "a whole number from 1"},
      {"action = \"deny\"\nsorce = \"::/0\"", "did you mean \"source\"?"},
      {"action = \"deny\"\npriority = \"high\"", "a whole number"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto rules = read(std::string("[[acl.rule]]\n") + mistake.text + "\n");
    ASSERT_FALSE(rules) << mistake.text;
    EXPECT_TRUE(rules.error().message.starts_with("acl.toml:")) << rules.error().message;
    EXPECT_NE(rules.error().message.find(mistake.said), std::string::npos) << rules.error().message;
  }
}

}  // namespace
}  // namespace sluice::lookup::acl
