// What check and the start say of [ipsec] that is no mistake.
#include "function/ipsec/ipsec_notes.h"

#include <gmock/gmock.h>

#include "function/ipsec/ipsec_control_trial_test.h"

namespace sluice::function {
namespace {

using test::policy;
using test::policy_text;
using test::sa;
using test::sa_text;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ipsec::SaSettings counting(const std::string& proposal, unsigned key_bytes, const std::string& direction = "out") {
  const bool out = direction == "out";
  return read_sa_text("direction = \"" + direction + "\"\nname = \"" + proposal + "\"\nspi = 0x1001\nproposal = \"" +
                          proposal + "\"\nkey = \"" + std::string(std::size_t{2} * key_bytes, '1') +
                          (proposal == "aes128ctr-sha1" ? "\"\nauth_key = \"" + std::string(40, '1') : "") +
                          "\"\nsource = \"192.0.2." + (out ? "1" : "2") + "\"\ndestination = \"192.0.2." +
                          (out ? "2" : "1") + "\"\n",
                      "sa")
      .value();
}

TEST(IpsecNotes, AreNoneOfATunnelWithBothWays) {
  EXPECT_THAT(ipsec_notes({.sas = {sa("in", 0x1001), sa("out", 0x2002)},
                           .policies = {policy("in", "10.2.0.0/24"), policy("out", "10.2.0.0/24")}}),
              IsEmpty());
  EXPECT_THAT(ipsec_notes({}), IsEmpty());
}

TEST(IpsecNotes, OfCounterModesWithKeysOfAFile) {
  const auto notes = [](const ipsec::SaSettings& one) {
    return ipsec_notes({.sas = {one}, .policies = {policy("out", "10.2.0.0/24"), policy("in", "10.2.0.0/24")}});
  };
  IpsecOptions options{.sas = {}, .policies = {policy("out", "10.2.0.0/24")}};
  for (const auto& [proposal, bytes] :
       {std::pair("aes128gcm16", 20U), {"aes128ctr-sha1", 20U}, {"chacha20poly1305", 36U}}) {
    EXPECT_THAT(notes(counting(proposal, bytes)),
                ElementsAre(AllOf(HasSubstr("the SA \"" + std::string(proposal) + "\": a cipher in counter mode"),
                                  HasSubstr("RFC 4106 section 2"), HasSubstr("begin at a random number"),
                                  Not(HasSubstr("1111")))));
    options.sas.push_back(counting(proposal, bytes));
  }
  options.sas.push_back(options.sas.front());
  EXPECT_THAT(ipsec_notes(options), ElementsAre(HasSubstr("the SAs \"aes128gcm16\", \"aes128ctr-sha1\", "
                                                          "\"chacha20poly1305\" and 1 more: ")));
  // Of an inbound SA the other end takes the IVs.
  EXPECT_THAT(ipsec_notes({.sas = {counting("aes128gcm16", 20, "in")}, .policies = {policy("in", "10.2.0.0/24")}}),
              IsEmpty());
}

TEST(IpsecNotes, OfAPolicyWithoutAnSa) {
  IpsecOptions options{.policies = {policy("out", "10.2.0.0/24"), policy("in", "10.2.0.0/24")}};
  EXPECT_THAT(ipsec_notes(options), ElementsAre(AllOf(HasSubstr("the policy \"10.1.0.0/24 -> 10.2.0.0/24\" has no SA"),
                                                      HasSubstr("dropped as ipsec_no_sa_out"))));
  options.ike_socket = "/run/x";
  EXPECT_THAT(ipsec_notes(options), IsEmpty());
  options.ike_socket.clear();
  options.policies = {policy("out", "10.2.0.0/24", "reqid = 7\n"), policy("in", "10.2.0.0/24")};
  options.sas = {sa("out", 0x2002, "aa", "reqid = 8\n")};
  EXPECT_THAT(ipsec_notes(options), ElementsAre(HasSubstr("has no SA"), HasSubstr("the SA \"0x00002002\" is used by")));
  options.sas = {sa("out", 0x2002, "aa", "reqid = 7\n")};
  EXPECT_THAT(ipsec_notes(options), IsEmpty());
  options.policies = {policy("out", "10.2.0.0/24")};
  EXPECT_THAT(ipsec_notes(options), IsEmpty()) << "a policy without reqid takes any between the ends";
}

TEST(IpsecNotes, OfAnSaWithoutAPolicy) {
  EXPECT_THAT(ipsec_notes({.sas = {sa("in", 0x1001)}, .policies = {}}),
              ElementsAre(HasSubstr("the SA \"0x00001001\" is used by no policy of the file")));
  EXPECT_THAT(ipsec_notes({.ike_socket = "/run/x", .sas = {sa("in", 0x1001)}, .policies = {}}), IsEmpty());
}

TEST(IpsecNotes, OfAhAroundATunnel) {
  const std::string ah = "protocol = \"ah\"\nmode = \"transport\"\nreqid = 8\n";
  const auto ah_sa = [&] {
    const std::string text = sa_text("out", 0x3003, "aa", ah);
    const auto line = [&](const std::string& from) { return text.find(from); };
    std::string without = text.substr(0, line("proposal")) + "proposal = \"sha1\"\n" + text.substr(line("auth_key"));
    return read_sa_text(without, "sa").value();
  };
  IpsecOptions options{.sas = {sa("out", 0x2002)},
                       .policies = {policy("out", "10.2.0.0/24", "ah_around = true\nah_reqid = 8\n")}};
  EXPECT_THAT(ipsec_notes(options), ElementsAre(HasSubstr("has no SA"))) << "one of both";
  options.sas.push_back(ah_sa());
  EXPECT_THAT(ipsec_notes(options), IsEmpty());
  options.policies = {policy("out", "10.2.0.0/24")};
  EXPECT_THAT(ipsec_notes(options), ElementsAre(HasSubstr("is used by no policy")));
}

TEST(IpsecNotes, OfTransportMode) {
  const std::string transport = "mode = \"transport\"\n";
  const auto hosts = [&](const std::string& direction, const std::string& far) {
    const bool out = direction == "out";
    return read_policy_text("direction = \"" + direction + "\"\nsource = \"" + (out ? "192.0.2.1" : far) +
                                "\"\ndestination = \"" + (out ? far : "192.0.2.1") + "\"\n" + transport,
                            "policy")
        .value();
  };
  EXPECT_THAT(ipsec_notes({.sas = {sa("in", 0x1001, "aa", transport)}, .policies = {}}), IsEmpty())
      << "what it opens needs no policy";
  EXPECT_THAT(ipsec_notes({.sas = {sa("out", 0x1001, "aa", transport)}, .policies = {hosts("out", "192.0.2.0/24")}}),
              IsEmpty());
  EXPECT_THAT(ipsec_notes({.sas = {sa("out", 0x1001, "aa", transport)}, .policies = {hosts("out", "192.0.9.0/24")}}),
              ElementsAre(HasSubstr("has no SA"), HasSubstr("is used by no policy")));
}

// A file, and notes on it beside ports.
class IpsecFileNotes : public testing::Test {
 protected:
  static std::vector<std::string> notes(const std::string& text, std::vector<engine::PortInfo> ports,
                                        bool at_start = false) {
    Diagnostics diagnostics;
    auto settings = Settings::from_text(text, "a.toml", diagnostics);
    Settings section = settings->section("ipsec");
    const IpsecOptions options = read_ipsec(section);
    EXPECT_THAT(diagnostics.lines, IsEmpty());
    return ipsec_notes(options, engine::PortTable(std::move(ports)), at_start);
  }
  static engine::PortInfo port(const std::string& address = "", std::uint32_t mtu = 1500) {
    engine::PortInfo info;
    info.name = "wan";
    info.mtu = mtu;
    if (!address.empty()) info.addresses = {packet::IpAddress::parse(address).value()};
    return info;
  }
  static std::string tunnel(const std::string& of_out = "", const std::string& of_in = "") {
    const std::string line = "[[ipsec.sa]]\n";
    return "[ipsec]\n" + line + sa_text("out", 0x2002, "bb", of_out) + line + sa_text("in", 0x1001, "aa", of_in) +
           "[[ipsec.policy]]\n" + policy_text("out", "10.2.0.0/24") + "[[ipsec.policy]]\n" +
           policy_text("in", "10.2.0.0/24");
  }
};

TEST_F(IpsecFileNotes, AreNoneOfATunnelOfAPort) {
  EXPECT_THAT(notes(tunnel(), {port("10.1.0.1"), port("192.0.2.1")}), IsEmpty());
  EXPECT_THAT(notes(tunnel("pad_to = 1400\n", "pad_to = 60000\n"), {port("192.0.2.1")}), IsEmpty())
      << "of what comes in the other end takes care";
}

TEST_F(IpsecFileNotes, OfAnEndThatIsNobodysHere) {
  EXPECT_THAT(notes(tunnel(), {port("192.0.2.9")}),
              ElementsAre(AllOf(HasSubstr("a.toml:4: [ipsec] the end here of \"0x00002002\" (192.0.2.1) is an address "
                                          "that no port of the file has"),
                                HasSubstr("ip addr add"))))
      << "once for each address";
  EXPECT_THAT(
      notes("[ipsec]\nike_socket = \"/run/x\"\n[[ipsec.policy]]\n" + policy_text("in", "10.2.0.0/24"), {port()}),
      ElementsAre(HasSubstr("a.toml:8: [ipsec] the end here of \"10.2.0.0/24 -> 10.1.0.0/24\" (192.0.2.1)")));
  engine::PortInfo twin = port();
  twin.has_twin = true;
  EXPECT_THAT(notes(tunnel(), {port("192.0.2.9"), twin}, true), IsEmpty()) << "it will have addresses";
  EXPECT_THAT(notes(tunnel(), {port("192.0.2.9"), twin}), testing::SizeIs(1));
  std::string of_this_host = tunnel();
  for (std::size_t at = 0; (at = of_this_host.find("192.0.2.1", at)) != std::string::npos;) {
    of_this_host.replace(at, 9, "127.0.0.1");
  }
  EXPECT_THAT(notes(of_this_host, {port()}), IsEmpty());
}

TEST_F(IpsecFileNotes, OfPaddingThatFitsNoPort) {
  // AES-CBC with SHA-1: 20 bytes of outer header, 8 of ESP, 16 of IV, 12 of ICV, and whole blocks less 2 of trailer.
  EXPECT_THAT(notes(tunnel("pad_to = 1438\n"), {port("192.0.2.1")}), IsEmpty());
  EXPECT_THAT(
      notes(tunnel("pad_to = 1439\n"), {port("192.0.2.1"), port("10.1.0.1", 1400)}),
      ElementsAre(AllOf(HasSubstr("a.toml:10: [ipsec] pad_to of the SA \"0x00002002\" (1438 bytes at most) is "),
                        HasSubstr("largest MTU is 1500"), Not(HasSubstr("1439")))));
  EXPECT_THAT(notes(tunnel("pad_to = 1439\n"), {port("192.0.2.1"), port("10.1.0.1", 9000)}), IsEmpty());
}

TEST_F(IpsecFileNotes, OfWhatAProposalSaysOfIke) {
  std::string text = tunnel();
  text.replace(text.find("aes128-sha1"), 11, "aes128-sha1-modp2048");
  EXPECT_THAT(notes(text, {port("192.0.2.1")}),
              ElementsAre(AllOf(HasSubstr("a.toml:7: [ipsec] the proposal of the SA \"0x00002002\" (modp2048): this is "
                                          "no part of an SA, and is ignored"),
                                HasSubstr("a key exchange is IKE's"))));
}

TEST_F(IpsecFileNotes, HaveTheLineOfTheFirst) {
  EXPECT_THAT(notes("[ipsec]\n\n[[ipsec.policy]]\n" + policy_text("out", "10.2.0.0/24"), {}),
              ElementsAre(HasSubstr("a.toml:3: [ipsec] the policy ")));
  EXPECT_THAT(notes("[ipsec]\n\n[[ipsec.sa]]\n" + sa_text("out", 0x2002), {}),
              ElementsAre(HasSubstr("a.toml:3: [ipsec] the SA \"0x00002002\" is used by no policy")));
}

TEST(IpsecLacks, AFolderForTheSocket) {
  EXPECT_THAT(ipsec_lacks({}), IsEmpty());
  EXPECT_THAT(ipsec_lacks({.ike_socket = "/tmp/xfrm.sock"}), IsEmpty());
  EXPECT_THAT(ipsec_lacks({.ike_socket = "/nowhere/at/all.sock"}),
              ElementsAre("[ipsec] ike_socket = \"/nowhere/at/all.sock\": there is no folder /nowhere/at: make it, or "
                          "name a path in one that is there"));
}

}  // namespace
}  // namespace sluice::function
