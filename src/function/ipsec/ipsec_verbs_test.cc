// What `sluice ctl ipsec` asks, and what it prints.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "function/ipsec/ipsec_rows.h"
#include "function/ipsec/ipsec_settings.h"
#include "function/ipsec/ipsec_type.h"

namespace sluice::function {
namespace {

using Given = std::map<std::string, std::vector<std::string>>;
using testing::HasSubstr;

class IpsecVerbs : public testing::Test {
 protected:
  // Of `ctl ipsec NAME`; empty: of `ctl ipsec`.
  tl::expected<engine::VerbRequest, engine::VerbRefusal> request(const std::string& name, const Given& given) {
    const auto& verbs = ipsec_.verbs;
    const auto verb = std::ranges::find(verbs, name, &engine::Verb::name);
    EXPECT_TRUE(name.empty() || verb != verbs.end()) << name;
    return (name.empty() ? ipsec_ : *verb).request({given}, {});
  }
  std::string path(const std::string& name, const Given& given) {
    const auto made = request(name, given);
    return made ? made->path : made.error().message;
  }

  const engine::Verb ipsec_ = ipsec_verbs().at(0);
};

TEST_F(IpsecVerbs, AskForLists) {
  EXPECT_EQ(path("", {{"--limit", {"100"}}}), "/api/v1/ipsec/sas?limit=100");
  EXPECT_EQ(path("", {{"--limit", {"5"}}, {"--address", {"2001:db8::1"}}, {"--spi", {"0x1001"}}}),
            "/api/v1/ipsec/sas?limit=5&address=2001:db8::1&spi=4097");
  EXPECT_THAT(path("", {{"--limit", {"5"}}, {"--address", {"10.0.0&x=1"}}}), HasSubstr("10.0.0&x=1: "));
  EXPECT_EQ(path("", {{"--limit", {"5"}}, {"--spi", {"10x"}}}),
            "10x: an SPI is a number of 32 bits, as 4097 or 0x1001");
  EXPECT_EQ(path("policies", {{"--limit", {"5"}}}), "/api/v1/ipsec/policies?limit=5");
  EXPECT_EQ(path("policies", {{"--limit", {"5"}}, {"DIRECTION", {"in"}}}),
            "/api/v1/ipsec/policies?limit=5&direction=in");
  EXPECT_EQ(path("policies", {{"--limit", {"5"}}, {"DIRECTION", {"up"}}}), "up: DIRECTION is in or out");
}

TEST_F(IpsecVerbs, AddWhatIsInAFile) {
  const std::string file = testing::TempDir() + "ipsec_verbs_" + std::to_string(getpid()) + ".toml";
  std::ofstream(file) << "spi = 1";
  const auto sa = request("add", {{"FILE", {file}}});
  ASSERT_TRUE(sa);
  EXPECT_EQ(sa->path, "/api/v1/ipsec/sas/add");
  EXPECT_TRUE(sa->change);
  EXPECT_EQ(sa->body, "spi = 1");
  EXPECT_EQ(path("add-policy", {{"FILE", {file}}}), "/api/v1/ipsec/policies/add");
  std::remove(file.c_str());
  EXPECT_EQ(path("add", {{"FILE", {file}}}), file + ": No such file or directory");
}

TEST_F(IpsecVerbs, NameWhatIsRemovedSoThatTheApiFindsIt) {
  const auto sa = request("remove", {{"SPI", {"0x1001"}}, {"DESTINATION", {"192.0.2.1"}}, {"--protocol", {"ah"}}});
  ASSERT_TRUE(sa);
  EXPECT_EQ(sa->path, "/api/v1/ipsec/sas/remove");
  EXPECT_EQ(read_sa_id_text(sa->body, "it")->str(), "ah 0x00001001 to 192.0.2.1");
  EXPECT_THAT(path("remove", {{"SPI", {"x"}}, {"DESTINATION", {"192.0.2.1"}}}), HasSubstr("x: an SPI is"));
  const auto odd = request("remove", {{"SPI", {"4097"}}, {"DESTINATION", {"\"\nspi = 5\n"}}});
  EXPECT_FALSE(read_sa_id_text(odd->body, "it")) << "a word stays a word";
  const auto policy = request("remove-policy", {{"DIRECTION", {"out"}},
                                                {"SOURCE", {"10.1.0.0/24"}},
                                                {"DESTINATION", {"10.2.0.0/24"}},
                                                {"--upper-protocol", {"6"}},
                                                {"--destination-port", {"443"}}});
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->path, "/api/v1/ipsec/policies/remove");
  EXPECT_EQ(read_policy_id_text(policy->body, "it")->selector.str(), "10.1.0.0/24 -> 10.2.0.0/24 tcp port 443");
  EXPECT_EQ(path("remove-policy", {{"DIRECTION", {"out"}}, {"--source-port", {"http"}}}),
            "--source-port http: a number, or with a mask as 1024/0xfc00");
  EXPECT_EQ(path("remove-policy", {{"DIRECTION", {"out"}}, {"--destination-port", {"80/x"}}}),
            "--destination-port 80/x: a number, or with a mask as 1024/0xfc00");
  EXPECT_EQ(path("remove-policy", {{"DIRECTION", {"out"}}, {"--upper-protocol", {"256"}}}),
            "--upper-protocol 256: as listed, or a number up to 255");
}

// Policies of an IKE daemon have what a configuration cannot say, too.
TEST_F(IpsecVerbs, NameEachPolicyThatIsListed) {
  const struct {
    std::uint8_t upper;
    ipsec::PortMatch from, to;
    const char *protocol, *source_port, *destination_port;  // as listed
    const char* listed;
  } cases[] = {
      {0, {}, {}, "", "", "", ""},
      {6, {}, {}, "tcp", "", "", " tcp"},
      {17, {}, {1024, 0xfc00}, "udp", "", "1024/0xfc00", " udp port 1024/0xfc00"},
      {6, {0xff7f, 0xff00}, {80, 0xffff}, "6", "65280/0xff00", "80", " tcp from port 65280/0xff00 to port 80"},
      {6, {0, 0xffff}, {}, "tcp", "0", "", " tcp from port 0"},
      {1, {8, 0xffff}, {0, 0xffff}, "icmp", "8", "0", " icmp type 8 code 0"},
      {89, {}, {}, "89", "", "", " 89"},
      {0, {500, 0xffff}, {}, "", "500", "", " from port 500"},
  };
  for (const auto& [upper, from, to, protocol, source_port, destination_port, listed] : cases) {
    const ipsec::Selector selector{packet::IpPrefix::parse("10.1.0.0/24").value(),
                                   packet::IpPrefix::parse("10.2.0.0/24").value(), upper, from, to};
    Given given = {{"DIRECTION", {"in"}}, {"SOURCE", {"10.1.0.0/24"}}, {"DESTINATION", {"10.2.0.0/24"}}};
    for (const auto& [word, value] : {std::pair("--upper-protocol", protocol),
                                      {"--source-port", source_port},
                                      {"--destination-port", destination_port}}) {
      if (*value != 0) given[word] = {value};
    }
    EXPECT_EQ(selector.str(), std::string("10.1.0.0/24 -> 10.2.0.0/24") + listed);
    const auto remove = request("remove-policy", given);
    ASSERT_TRUE(remove) << remove.error().message;
    const auto id = read_policy_id_text(remove->body, "it");
    ASSERT_TRUE(id) << id.error().message;
    EXPECT_EQ(id->selector, selector.normal()) << listed;
    EXPECT_EQ(id->direction, ipsec::Direction::in);
  }
}

TEST(IpsecReport, HasARowForEachSa) {
  IpsecSaTable table;
  table.sas.push_back({.direction = "in",
                       .protocol = "esp",
                       .mode = "tunnel",
                       .spi = 0x1001,
                       .source = "192.0.2.2",
                       .destination = "192.0.2.1",
                       .proposal = "aes128-sha1",
                       .state = "valid",
                       .origin = "configuration",
                       .name = "0x00001001",
                       .reqid = 7,
                       .udp_source_port = 4501,
                       .udp_destination_port = 4500,
                       .packets = 12,
                       .bytes = 960,
                       .drops = {{"ipsec_replay", 2}, {"ipsec_bad_icv", 1}},
                       .age_s = 61,
                       .idle_s = 4});
  table.sas.push_back({.direction = "out",
                       .protocol = "ah",
                       .mode = "transport",
                       .spi = 0xc0000000,
                       .source = "192.0.2.1",
                       .destination = "192.0.2.2",
                       .proposal = "",
                       .state = "larval",
                       .origin = "ike",
                       .path_mtu = 1400});
  table.count = 9;
  EXPECT_EQ(ipsec_sas_report(table),
            "DIRECTION  SPI         SOURCE               DESTINATION          PROTOCOL  MODE       PROPOSAL     REQID  "
            "STATE   AGE S  PACKETS  BYTES  DROPPED  IDLE S  PATH MTU  FROM           NAME\n"
            "in         0x00001001  192.0.2.2 port 4501  192.0.2.1 port 4500  esp       tunnel     aes128-sha1      7  "
            "valid      61       12    960        3       4         -  configuration  -\n"
            "out        0xc0000000  192.0.2.1            192.0.2.2            ah        transport  -                0  "
            "larval      0        0      0        0       -      1400  ike            -\n"
            "2 of 9 SAs; --limit for more\n");
  EXPECT_EQ(ipsec_sas_report({}), "no such SA: there is none, or none has this address or SPI\n");
}

TEST(IpsecReport, HasARowForEachPolicy) {
  IpsecPolicyTable table;
  table.policies.push_back({.direction = "in",
                            .selector = "10.9.0.0/16 -> 10.1.0.0/24",
                            .action = "discard",
                            .priority = 10,
                            .origin = "api",
                            .name = "b",
                            .packets = 5,
                            .bytes = 420});
  table.policies.push_back(
      {.direction = "out",
       .selector = "10.1.0.0/24 -> 10.2.0.0/24",
       .action = "protect",
       .priority = 1000,
       .templates = {{"esp", "tunnel", "192.0.2.1", "192.0.2.2", 7, 0}, {"ah", "transport", "", "", 0, 0x1001}},
       .origin = "configuration",
       .name = "10.1.0.0/24 -> 10.2.0.0/24"});
  table.count = 2;
  EXPECT_EQ(ipsec_policies_report(table),
            "DIRECTION  TRAFFIC                     PRIORITY  ACTION   BY                                              "
            "                           PACKETS  BYTES  FROM           NAME\n"
            "in         10.9.0.0/16 -> 10.1.0.0/24        10  discard  -                                               "
            "                                 5    420  api            b\n"
            "out        10.1.0.0/24 -> 10.2.0.0/24      1000  protect  esp tunnel 192.0.2.1 -> 192.0.2.2 reqid 7, in "
            "ah transport spi 0x00001001        0      0  configuration  -\n");
  EXPECT_EQ(ipsec_policies_report({}), "no such policy: what no policy is for goes by in clear\n");
}

}  // namespace
}  // namespace sluice::function
