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
  EXPECT_THAT(wrong("proposal = \"aes128-sha1-esn\"\n" + key + hash),
              HasSubstr("proposal: \"aes128-sha1-esn\" has -esn"));
  EXPECT_THAT(wrong("proposal = \"aes256-sha1\"\n" + key + hash),
              HasSubstr("it:6: key: the cipher's key has 16 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha256\"\n" + key + hash),
              HasSubstr("it:7: auth_key: the hash's key has 20 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\n" + hash), HasSubstr("it:5: proposal: the cipher's key has 0 bytes"));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\nkey = \"zz\"\n" + hash), Not(HasSubstr("proposal")));
  EXPECT_THAT(wrong("proposal = \"aes128-sha1\"\n" + key + hash + "hard_seconds = 9223372037\n"),
              HasSubstr("it:8: hard_seconds: "));
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

}  // namespace
}  // namespace sluice::function
