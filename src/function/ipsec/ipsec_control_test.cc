// What people add, remove and list, beside an IKE daemon.
#include <gmock/gmock.h>

#include "function/ipsec/ipsec_control_trial_test.h"

namespace sluice::function {
namespace {

using test::of_a_daemon;
using test::policy;
using test::sa;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Origin = IpsecControl::Origin;

class IpsecControlTest : public test::WithControl {
 protected:
  void SetUp() override {
    const IpsecOptions file{.sas = {sa("in", 0x1001)}, .policies = {policy("in", "10.2.0.0/24")}};
    ASSERT_TRUE(control_->load(file));
    ASSERT_TRUE(control_->add(sa("in", 0x1002)));
    ASSERT_TRUE(control_->add(policy("out", "10.2.0.0/24")));
    ASSERT_TRUE(databases_.add(of_a_daemon(sa("out", 0x1003))));
    ASSERT_TRUE(databases_.add(of_a_daemon(policy("out", "10.3.0.0/24")), false));
  }
};

TEST_F(IpsecControlTest, SaysWhoHasBroughtWhat) {
  const auto sas = control_->list_sas(100, {});
  ASSERT_EQ(sas.count, 3U);
  EXPECT_EQ(sas.rows.at(0).value.settings.id.spi, 0x1001U);
  EXPECT_EQ(sas.rows.at(0).origin, Origin::configuration);
  EXPECT_EQ(sas.rows.at(1).origin, Origin::api);
  EXPECT_EQ(sas.rows.at(2).origin, Origin::ike);
  const auto policies = control_->list_policies(100, {});
  ASSERT_EQ(policies.count, 3U);
  EXPECT_EQ(policies.rows.at(0).origin, Origin::configuration);
  EXPECT_EQ(policies.rows.at(1).origin, Origin::api);
  EXPECT_EQ(policies.rows.at(2).origin, Origin::ike);
}

TEST_F(IpsecControlTest, ListsWhatIsAskedFor) {
  EXPECT_EQ(control_->list_sas(1, {}).rows.size(), 1U);
  EXPECT_EQ(control_->list_sas(1, {}).count, 3U);
  EXPECT_EQ(control_->list_sas(9, {.spi = 0x1002}).rows.at(0).value.settings.id.spi, 0x1002U);
  const auto here = packet::IpAddress::parse("192.0.2.1").value();
  EXPECT_EQ(control_->list_sas(1, {.address = here}).count, 3U) << "at either end";
  EXPECT_EQ(control_->list_sas(9, {.address = packet::IpAddress::parse("192.0.2.9").value()}).count, 0U);
  EXPECT_EQ(control_->list_policies(1, ipsec::Direction::out).count, 2U);
  EXPECT_EQ(control_->list_policies(1, ipsec::Direction::out).rows.size(), 1U);
}

TEST_F(IpsecControlTest, ShowsNoKey) {
  for (const auto& row : control_->list_sas(100, {}).rows) {
    const ipsec::Transform& transform = row.value.settings.transform;
    EXPECT_EQ(transform.cipher_key.length, 16) << "the list says which AES it is";
    for (const ipsec::SecretKey* const key : {&transform.cipher_key, &transform.auth_key}) {
      EXPECT_THAT(key->view(), testing::Each(0));
    }
  }
}

TEST_F(IpsecControlTest, RefusesWhatIsThereAlready) {
  const auto again = control_->add(sa("in", 0x1001));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, "there is an SA esp 0x00001001 to 192.0.2.1 already");
  EXPECT_FALSE(control_->add(policy("out", "10.3.0.0/24")));
}

TEST_F(IpsecControlTest, RemovesWhoeverHasBroughtIt) {
  const auto own = control_->remove(sa("in", 0x1001).id);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->done, "the SA esp 0x00001001 to 192.0.2.1 is removed");
  EXPECT_THAT(own->warnings, IsEmpty());
  EXPECT_THAT(control_->remove(sa("out", 0x1003).id)->warnings, ElementsAre(HasSubstr("an IKE daemon brought it")));
  EXPECT_EQ(control_->remove(sa("out", 0x1003).id).error().message, "there is no SA esp 0x00001003 to 192.0.2.2");
  EXPECT_EQ(databases_.sa_count(), 1U);
  const auto id_of = [](const ipsec::Policy& one) { return PolicyId{one.direction, one.selector}; };
  EXPECT_EQ(control_->remove(id_of(policy("in", "10.2.0.0/24")))->done,
            "the policy in 10.2.0.0/24 -> 10.1.0.0/24 is removed");
  EXPECT_THAT(control_->remove(id_of(policy("out", "10.3.0.0/24")))->warnings, testing::SizeIs(1));
  EXPECT_EQ(control_->remove(id_of(policy("out", "10.3.0.0/24"))).error().message,
            "there is no policy out 10.1.0.0/24 -> 10.3.0.0/24");
  EXPECT_EQ(databases_.policy_count(), 1U);
}

TEST_F(IpsecControlTest, HoldsToTheLimits) {
  for (unsigned spi = 0; spi < most - 3; ++spi) ASSERT_TRUE(control_->add(sa("in", 0x2000 + spi)));
  EXPECT_EQ(control_->add(sa("in", 0x3000)).error().message, "there are 10 SAs, as many as [ipsec] max_sas allows");
  for (unsigned n = 0; n < most - 3; ++n) {
    ASSERT_TRUE(control_->add(policy("out", "10." + std::to_string(100 + n) + ".0.0/24")));
  }
  EXPECT_THAT(control_->add(policy("out", "10.99.0.0/24")).error().message, HasSubstr("max_policies"));
}

TEST_F(IpsecControlTest, WarnsOfCounterModesWithKeysByHand) {
  const auto made = [](const std::string& direction, unsigned spi) {
    const std::string ends = direction == "out" ? "source = \"192.0.2.1\"\ndestination = \"192.0.2.2\"\n"
                                                : "source = \"192.0.2.2\"\ndestination = \"192.0.2.1\"\n";
    return read_sa_text("direction = \"" + direction + "\"\n" + ends + "spi = " + std::to_string(spi) +
                            "\nproposal = \"aes128gcm16\"\nkey = \"" + std::string(40, '1') + "\"\n",
                        "sa")
        .value();
  };
  EXPECT_THAT(control_->add(made("out", 0x5000))->warnings, ElementsAre(HasSubstr("RFC 8221")));
  EXPECT_THAT(control_->add(made("in", 0x5001))->warnings, IsEmpty()) << "the other end numbers";
  EXPECT_THAT(control_->add(sa("out", 0x5002))->warnings, IsEmpty()) << "AES-CBC";
}

}  // namespace
}  // namespace sluice::function
