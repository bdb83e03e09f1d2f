// SAs and policies as the API has them, one at a time, and as a file has them.
#include <gmock/gmock.h>

#include "function/ipsec/ipsec_control_trial_test.h"

namespace sluice::function {
namespace {

using test::policy_text;
using test::sa_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <class T>
std::string why(const Expected<T>& read) {
  return read ? "" : read.error().message;
}

TEST(IpsecText, ReadsAnSaWithItsLineAndWithout) {
  const auto plain = read_sa_text(sa_text("in", 0x1001, "aa", "name = \"a\"\n"), "it");
  const auto within = read_sa_text("[[ipsec.sa]]\n" + sa_text("in", 0x1001, "aa", "name = \"a\"\n"), "it");
  ASSERT_TRUE(plain && within) << why(plain) << why(within);
  EXPECT_EQ(plain->id, within->id);
  EXPECT_EQ(plain->name, "a");
  EXPECT_EQ(plain->transform.cipher_key.length, 16);
}

TEST(IpsecText, GivesANameToWhatHasNone) {
  EXPECT_EQ(read_sa_text(sa_text("in", 0x1001), "it")->name, "0x00001001");
  EXPECT_EQ(read_policy_text(policy_text("out", "10.2.0.0/24"), "it")->name, "10.1.0.0/24 -> 10.2.0.0/24");
}

TEST(IpsecText, ShowsNoValueOfAnSa) {
  EXPECT_THAT(why(read_sa_text(sa_text("in", 0x1001, "aa", "pad_to = \"77\"\nkeyy = \"bbbb\"\n"), "it")),
              AllOf(HasSubstr("it:8: pad_to: "), HasSubstr("it:9: keyy: unknown key"), Not(HasSubstr("77")),
                    Not(HasSubstr("aaaa")), Not(HasSubstr("bbbb"))));
  EXPECT_EQ(why(read_sa_text("key = aaaa", "it")), "it is no TOML, which is all that can be said without showing it");
  EXPECT_THAT(why(read_sa_text("[[ipsec.sa]]\n[[ipsec.sa]]\n", "it")), HasSubstr("one [[ipsec.sa]]"));
}

TEST(IpsecText, SaysAtWhichKeyAnSaIsWrong) {
  const std::string begin = "direction = \"in\"\nsource = \"192.0.2.2\"\ndestination = \"192.0.2.1\"\nspi = 0x1001\n";
  const std::string key = "key = \"" + std::string(32, 'a') + "\"\n",
                    hash = "auth_key = \"" + std::string(40, 'b') + "\"\n";
  const auto wrong = [&](const std::string& rest) { return why(read_sa_text(begin + rest, "it")); };
  EXPECT_EQ(wrong("proposal = \"aes128-sha1\"\n" + key + hash), "");
  EXPECT_THAT(wrong("proposal = \"\"\n" + key + hash), HasSubstr("it:5: proposal: "));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1-esn\"\n" + key + hash + "esn = false\n"),
              HasSubstr("it:8: esn: the proposal says otherwise"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1-noesn\"\n" + key + hash + "esn = true\n"), HasSubstr("it:8: esn: "));
  EXPECT_THAT(wrong("proposal = \"aes256-sha1\"\n" + key + hash),
              HasSubstr("it:6: key: the cipher's key has 16 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha256\"\n" + key + hash),
              HasSubstr("it:7: auth_key: the hash's key has 20 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\n" + hash), HasSubstr("it:5: proposal: the cipher's key has 0 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\nkey = \"zz\"\n" + hash), Not(HasSubstr("proposal")));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\n" + key + hash + "hard_seconds = 9223372037\n"),
              HasSubstr("it:8: hard_seconds: "));
}

TEST(IpsecText, TakesExtendedNumbersFromTheProposalToo) {
  const auto esn = [](const char* proposal, const std::string& more) {
    std::string text = sa_text("in", 0x1001, "aa", more);
    text.replace(text.find("aes128-sha1"), std::string("aes128-sha1").size(), proposal);
    const auto read = read_sa_text(text, "it");
    EXPECT_TRUE(read) << why(read);
    return read && read->esn;
  };
  EXPECT_FALSE(esn("aes128-sha1", ""));
  EXPECT_TRUE(esn("aes128-sha1", "esn = true\n"));
  EXPECT_TRUE(esn("aes128-sha1-esn", ""));
  EXPECT_TRUE(esn("aes128-sha1-modp2048-esn", "esn = true\n"));
  EXPECT_FALSE(esn("aes128-sha1-noesn", ""));
}

TEST(IpsecText, AnEndIsOneHosts) {
  const auto sa_with = [](const std::string& key, const std::string& address) {
    std::string text = sa_text("in", 0x1001);
    const std::size_t at = text.find(key + " = \"") + key.size() + 4;
    text.replace(at, text.find('"', at) - at, address);
    return why(read_sa_text(text, "it"));
  };
  const auto policy_with = [](const std::string& address) {
    std::string text = policy_text("out", "10.2.0.0/24");
    return why(read_policy_text(text.replace(text.find("192.0.2.2"), 9, address), "it"));
  };
  const std::pair<const char*, const char*> cases[] = {{"0.0.0.0", "is no address: an SA is between two hosts"},
                                                       {"255.255.255.255", "is the broadcast address"},
                                                       {"224.0.0.5", "is a multicast address"},
                                                       {"239.255.255.255", "is a multicast address"}};
  for (const auto& [address, says] : cases) {
    EXPECT_THAT(sa_with("source", address), HasSubstr("it:2: source: " + std::string(says)));
    EXPECT_THAT(sa_with("destination", address), HasSubstr("it:3: destination: " + std::string(says)));
    EXPECT_THAT(policy_with(address), HasSubstr("it:5: tunnel_destination: " + std::string(says)));
  }
  EXPECT_THAT(sa_with("source", "::"), HasSubstr("it:2: source: is no address"));
  EXPECT_THAT(sa_with("source", "ff02::1"), HasSubstr("it:2: source: is a multicast address"));
  for (const char* const address : {"223.255.255.255", "240.0.0.1", "10.0.0.0"})
    EXPECT_EQ(sa_with("source", address), "");
}

TEST(IpsecText, PaddingIsOfEspInTunnels) {
  EXPECT_EQ(why(read_sa_text(sa_text("out", 0x1001, "aa", "pad_to = 700\n"), "it")), "");
  EXPECT_THAT(why(read_sa_text(sa_text("out", 0x1001, "aa", "pad_to = 700\nmode = \"transport\"\n"), "it")),
              HasSubstr("it:8: pad_to: is of ESP in tunnel mode alone"));
}

TEST(IpsecText, APolicyIsForSomePackets) {
  const auto with = [](const std::string& lines) {
    return why(read_policy_text(policy_text("out", "10.2.0.0/24", lines), "it"));
  };
  const auto with6 = [](const std::string& lines) {
    return why(read_policy_text(
        "direction = \"in\"\nsource = \"::/0\"\ndestination = \"::/0\"\naction = \"discard\"\n" + lines, "it"));
  };
  for (const char* const fine :
       {"upper_protocol = 1\nsource_port = 255\n", "upper_protocol = 1\nsource_port = 3\ndestination_port = 4\n",
        "upper_protocol = 6\nsource_port = 65535\n", "upper_protocol = 132\ndestination_port = 9\n",
        "upper_protocol = 136\ndestination_port = 9\n", "upper_protocol = 33\nsource_port = 1\n",
        "upper_protocol = 50\n", "upper_protocol = 43\n"}) {
    EXPECT_EQ(with(fine), "");
  }
  EXPECT_THAT(with("upper_protocol = 1\nsource_port = 256\n"),
              HasSubstr("it:7: source_port: is ICMP's type, which is 255 at most: no packet has it"));
  EXPECT_THAT(with("upper_protocol = 1\nsource_port = 3\ndestination_port = 300\n"),
              HasSubstr("it:8: destination_port: is ICMP's code, which is 255 at most"));
  EXPECT_THAT(with6("upper_protocol = 58\nsource_port = 400\n"), HasSubstr("is ICMP's type"));
  for (const char* const protocol : {"50", "51", "47", "4"}) {
    EXPECT_THAT(with("upper_protocol = " + std::string(protocol) + "\nsource_port = 7\n"),
                HasSubstr("it:7: source_port: packets of upper_protocol " + std::string(protocol) + " show no ports"));
  }
  EXPECT_THAT(with("destination_port = 7\n"), HasSubstr("needs `upper_protocol` beside it"));
  EXPECT_THAT(with6("upper_protocol = 43\n"), HasSubstr("it:5: upper_protocol: is an extension header of IPv6"));
}

TEST(IpsecText, FindsAnSaByWhatItWasAddedWith) {
  const auto id = read_sa_id_text(sa_text("in", 0x1001), "it");
  ASSERT_TRUE(id) << why(id);
  EXPECT_EQ(id->str(), "esp 0x00001001 to 192.0.2.1");
  EXPECT_EQ(read_sa_id_text("spi = 0x1002\ndestination = \"2001:db8::1\"\nprotocol = \"ah\"\n", "it")->str(),
            "ah 0x00001002 to 2001:db8::1");
  EXPECT_THAT(why(read_sa_id_text("destination = \"192.0.2.1\"\n", "it")), HasSubstr("`spi` is missing"));
  EXPECT_THAT(why(read_sa_id_text("spi = 0x1001\n", "it")), HasSubstr("destination"));
  EXPECT_THAT(why(read_sa_id_text("spi = 77\ndestination = \"192.0.2.1\"\n", "it")), HasSubstr("256"));
  EXPECT_THAT(why(read_sa_id_text("spi = 999\ndestination = \"192.0.2.1\"\nprotocoll = \"ah\"\n", "it")),
              HasSubstr("unknown key; did you mean \"protocol\"?"));
}

TEST(IpsecText, FindsAPolicyByWhatItWasAddedWith) {
  const std::string ports = "upper_protocol = 6\ndestination_port = 443\npriority = 7\n";
  const auto id = read_policy_id_text(policy_text("out", "10.2.0.0/24", ports), "it");
  ASSERT_TRUE(id) << why(id);
  const auto policy = read_policy_text(policy_text("out", "10.2.0.0/24", ports), "it");
  EXPECT_EQ(id->selector, policy->selector.normal());
  EXPECT_EQ(id->selector.str(), "10.1.0.0/24 -> 10.2.0.0/24 tcp port 443");
  EXPECT_EQ(id->direction, ipsec::Direction::out);
  EXPECT_TRUE(read_policy_id_text("direction = \"in\"\nsource = \"::/0\"\ndestination = \"::/0\"\n", "it"))
      << "without a tunnel";
  const auto masked = read_policy_id_text(
      policy_text("out", "10.2.0.0/24", "upper_protocol = 17\nsource_port = 1055\nsource_port_mask = 0xfc00\n"), "it");
  ASSERT_TRUE(masked) << why(masked);
  EXPECT_EQ(masked->selector.str(), "10.1.0.0/24 -> 10.2.0.0/24 udp from port 1024/0xfc00");
  EXPECT_THAT(why(read_policy_id_text(policy_text("out", "10.2.0.0/24", "source_port_mask = 1\n"), "it")),
              HasSubstr("needs `source_port` beside it"));
  EXPECT_THAT(why(read_policy_id_text("source = \"::/0\"\ndestination = \"::/0\"\n", "it")), HasSubstr("direction"));
  EXPECT_THAT(why(read_policy_id_text("direction = \"in\"\nsource = \"::/0\"\n", "it")), HasSubstr("destination"));
}

class IpsecFile : public testing::Test {
 protected:
  std::string mistakes(const std::string& text) {
    Diagnostics diagnostics;
    auto settings = Settings::from_text(text, "a.toml", diagnostics);
    Settings section = settings->section("ipsec");
    read_ipsec(section);
    std::string all;
    for (const std::string& line : diagnostics.lines) all += line + "\n";
    return all;
  }
};

TEST_F(IpsecFile, HasEachSaAndPolicyOnce) {
  const std::string sa = "[[ipsec.sa]]\n" + sa_text("in", 0x1001);
  const std::string policy = "[[ipsec.policy]]\n" + policy_text("out", "10.2.0.0/24");
  EXPECT_EQ(mistakes(sa + policy), "");
  EXPECT_THAT(mistakes(sa + sa), HasSubstr("is there twice"));
  EXPECT_THAT(mistakes(policy + policy), HasSubstr("a.toml:7: [[ipsec.policy]]: there is a policy for these packets"));
  EXPECT_EQ(mistakes(policy + "[[ipsec.policy]]\n" + policy_text("out", "10.2.0.0/24", "upper_protocol = 6\n")), "");
  EXPECT_EQ(mistakes(policy + "[[ipsec.policy]]\n" + policy_text("in", "10.2.0.0/24")), "");
}

TEST_F(IpsecFile, TheDaemonsSocketHasAPathThatItCanFind) {
  const auto with = [&](const std::string& path) { return mistakes("[ipsec]\nike_socket = \"" + path + "\"\n"); };
  EXPECT_EQ(with("/run/sluice/xfrm.sock"), "");
  EXPECT_EQ(with(""), "");
  EXPECT_EQ(with("/" + std::string(106, 'a')), "");
  EXPECT_THAT(with("xfrm.sock"), HasSubstr("a.toml:2: [ipsec] ike_socket: is no path that begins with /"));
  EXPECT_THAT(with("/run/"), HasSubstr("is a folder's path"));
  EXPECT_THAT(with("/" + std::string(107, 'a')), HasSubstr("is longer than the 107 characters"));
}

}  // namespace
}  // namespace sluice::function
