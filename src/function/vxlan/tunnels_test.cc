// What [vxlan] may say, and where a mistake is.
#include "function/vxlan/tunnels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/settings.h"

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Read {
  TunnelSettings settings;
  std::vector<std::string> mistakes;
  std::vector<std::string> notes;
};

packet::IpAddress address(const char* text) {
  return *packet::IpAddress::parse(text);
}

Read read(const std::string& text, std::vector<packet::IpAddress> of_wan = {address("192.0.2.1")}) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(text, "v.toml", diagnostics);
  EXPECT_TRUE(file) << text;
  const engine::PortTable ports(
      {{.name = "wan", .mac = {}, .mtu = 1500, .has_twin = true, .addresses = std::move(of_wan)},
       {.name = "vx",
        .mac = {},
        .mtu = 1450,
        .is_virtual = true,
        .device = "vxlan",
        .addresses = {address("10.100.0.1")}},
       {.name = "vy", .mac = {}, .mtu = 1430, .is_virtual = true, .device = "vxlan"}});
  Settings section = file->section("vxlan");
  TunnelSettings settings = read_tunnels(section, ports);
  section.finish();
  return {std::move(settings), diagnostics.lines, local_notes(section, ports)};
}

std::string tunnel(const std::string& lines) {
  return "[[vxlan.tunnel]]\n" + lines;
}
const std::string other =
    "[[vxlan.tunnel]]\nport = \"vy\"\nvni = 2\nlocal = \"2001:db8::1\"\nremotes = [\"2001:db8::2\"]\n";
const std::string plain = "port = \"vx\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\"]\n";

TEST(Tunnels, AreReadWithTheirDefaults) {
  const Read got =
      read(tunnel(plain) + "[[vxlan.tunnel.fdb]]\nmac = \"02:00:00:00:00:09\"\nremote = \"192.0.2.9\"\n" + other);
  EXPECT_THAT(got.mistakes, IsEmpty());
  ASSERT_EQ(got.settings.tunnels.size(), 2U);
  const Tunnel& one = got.settings.tunnels[0];
  EXPECT_EQ(one.port, 1);
  EXPECT_EQ(one.vni, 1U);
  EXPECT_EQ(one.udp_port, 4789);
  EXPECT_TRUE(one.learning);
  EXPECT_FALSE(one.udp_checksum);
  EXPECT_EQ(one.stations.size(), 1U);
  EXPECT_TRUE(got.settings.tunnels[1].udp_checksum) << "over IPv6";
  EXPECT_EQ(got.settings.ageing, 300U);
}

struct Mistake {
  std::string lines;
  const char* says;
};

TEST(Tunnels, MistakesHaveTheirPlace) {
  const Mistake cases[] = {
      {"port = \"no\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\"]\n", "v.toml:2: "},
      {"port = \"wan\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\"]\n", "is no end of a tunnel"},
      {"port = \"vx\"\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\"]\n", "is missing: the network's number"},
      {"port = \"vx\"\nvni = 16777216\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\"]\n", "v.toml:3: "},
      {"port = \"vx\"\nvni = 1\nlocal = \"192.0.2\"\nremotes = [\"192.0.2.2\"]\n", "v.toml:4: "},
      {"port = \"vx\"\nvni = 1\nlocal = \"239.0.0.1\"\nremotes = [\"192.0.2.2\"]\n", "is a group"},
      {"port = \"vx\"\nvni = 1\nlocal = \"fe80::1\"\nremotes = [\"2001:db8::2\"]\n", "is link-local"},
      {"port = \"vx\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"2001:db8::2\"]\n", "different families"},
      {"port = \"vx\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.1\"]\n", "own address"},
      {"port = \"vx\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.2\", \"192.0.2.2\"]\n", "there twice"},
      {"port = \"vx\"\nvni = 1\nlocal = \"192.0.2.1\"\n", "is missing: the addresses of the tunnel's other ends"},
      {"port = \"vx\"\nvni = 1\nlocal = \"2001:db8::9\"\nremotes = [\"2001:db8::2\"]\n", "set mtu = 1430"},
      {plain + "df = \"maybe\"\n", "v.toml:6: "},
      {plain + "ttl = 0\n", "v.toml:6: "},
      {plain + "dscp = 64\n", "v.toml:6: "},
      {plain + "vin = 3\n", "v.toml:6: "},
      {plain + "[[vxlan.tunnel.fdb]]\nmac = \"01:00:5e:00:00:01\"\nremote = \"192.0.2.2\"\n", "is no station's"},
      {plain + "[[vxlan.tunnel.fdb]]\nmac = \"02:00:00:00:00:01\"\nremote = \"2001:db8::2\"\n", "another family"},
  };
  for (const Mistake& one : cases) {
    EXPECT_THAT(read(tunnel(one.lines) + other).mistakes, Contains(HasSubstr(one.says))) << one.lines;
  }
}

TEST(Tunnels, AreDistinguished) {
  EXPECT_THAT(read(tunnel(plain) + tunnel(plain) + other).mistakes,
              Contains(HasSubstr("a port is the end of one tunnel")));
  EXPECT_THAT(read(tunnel(plain) + tunnel("port = \"vy\"\nvni = 1\nlocal = \"192.0.2.1\"\nremotes = [\"192.0.2.3\"]\n"))
                  .mistakes,
              Contains(HasSubstr("could be either tunnel's")));
  EXPECT_THAT(read(tunnel(plain)).mistakes, Contains(HasSubstr("no [[vxlan.tunnel]] has port = \"vy\"")));
  EXPECT_THAT(read("").mistakes, Contains(HasSubstr("there is no tunnel")));
}

TEST(Tunnels, HaveAsManyRemotesAsThereAreNumbers) {
  const auto with_stations = [](unsigned count) {
    std::string text = tunnel(plain);
    char station[128];
    for (unsigned n = 0; n < count; ++n) {
      std::snprintf(station, sizeof station,
                    "[[vxlan.tunnel.fdb]]\nmac = \"02:00:00:%02x:%02x:%02x\"\nremote = \"10.%u.%u.%u\"\n", n >> 16,
                    n >> 8 & 255, n & 255, n >> 16, n >> 8 & 255, n & 255);
      text += station;
    }
    return text + other;
  };
  // With the one of each tunnel's `remotes`.
  EXPECT_THAT(read(with_stations(65'533)).mistakes, IsEmpty());
  EXPECT_THAT(read(with_stations(65'534)).mistakes,
              testing::ElementsAre(HasSubstr("65536 addresses of remotes, and there may be 65535")));
}

TEST(Tunnels, LocalIsAnAddressOfTheUnderlay) {
  EXPECT_THAT(
      read(tunnel("port = \"vx\"\nvni = 1\nlocal = \"10.100.0.1\"\nremotes = [\"192.0.2.2\"]\n") + other).mistakes,
      ElementsAre(AllOf(HasSubstr("v.toml:4: [[vxlan.tunnel]] local"), HasSubstr("own port \"vx\""))));
  const Read right = read(tunnel(plain));
  EXPECT_THAT(right.notes, IsEmpty());
  const Read elsewhere =
      read(tunnel("port = \"vx\"\nvni = 1\nlocal = \"1.2.3.4\"\nremotes = [\"192.0.2.2\"]\n") + other);
  EXPECT_THAT(elsewhere.mistakes, IsEmpty());
  EXPECT_THAT(elsewhere.notes, ElementsAre(HasSubstr("v.toml:4: [[vxlan.tunnel]] local = \"1.2.3.4\": no [[port]] has"),
                                           HasSubstr("2001:db8::1")));
  EXPECT_THAT(read(tunnel(plain), {}).notes, IsEmpty()) << "wan's addresses come from elsewhere";
}

}  // namespace
}  // namespace sluice::function
