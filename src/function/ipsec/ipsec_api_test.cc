// What the API's routes of SAs and policies make of requests.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/json_text.h"
#include "function/ipsec/ipsec_control_trial_test.h"
#include "function/ipsec/ipsec_rows.h"
#include "function/ipsec/ipsec_type.h"

namespace sluice::function {
namespace {

using test::of_a_daemon;
using test::policy_text;
using test::sa;
using test::sa_text;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Fake final : public engine::Element {
 public:
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  void* find_trait(std::string_view name) override { return name == IpsecControl::trait_name ? control : nullptr; }
  IpsecControl* control = nullptr;
};

class IpsecApi : public test::WithControl {
 protected:
  void SetUp() override { element_.control = control_.get(); }

  engine::ApiAnswer ask(const std::string& path, const engine::ApiRequest& request) {
    const auto& routes = ipsec_routes();
    const auto route = std::ranges::find(routes, path, &engine::ApiRoute::path);
    return route == routes.end() ? engine::refused(404, path) : route->answer(element_, request);
  }
  engine::ApiAnswer get(const std::string& path, const std::multimap<std::string, std::string>& parameters = {}) {
    return ask(path, {.parameters = parameters});
  }
  engine::ApiAnswer post(const std::string& path, std::string_view body) { return ask(path, {.body = body}); }
  IpsecSaTable sas(const std::multimap<std::string, std::string>& parameters = {}) {
    return from_json_text<IpsecSaTable>(get("/sas", parameters).text).value_or(IpsecSaTable{});
  }
  IpsecPolicyTable policies(const std::multimap<std::string, std::string>& parameters = {}) {
    return from_json_text<IpsecPolicyTable>(get("/policies", parameters).text).value_or(IpsecPolicyTable{});
  }

  Fake element_;
};

TEST_F(IpsecApi, AddsAnSaThatIsListedThenWithoutItsKeys) {
  const std::string more =
      "name = \"a\"\nreqid = 7\nesn = true\nreplay_window = 128\nhard_bytes = 5000\nudp_source_port = "
      "4501\nudp_destination_port = 4500\n";
  const auto added = post("/sas/add", sa_text("in", 0x1001, "aa", more));
  ASSERT_EQ(added.status, 200) << added.text;
  EXPECT_EQ(nlohmann::json::parse(added.text),
            nlohmann::json::parse(R"({"done": "the SA esp 0x00001001 to 192.0.2.1 is in force", "warnings": []})"));
  receive(0x1001, 3, 9);
  EXPECT_THAT(get("/sas").text, AllOf(Not(HasSubstr("aaaa")), Not(HasSubstr("key"))));
  const IpsecSaTable table = sas();
  ASSERT_EQ(table.count, 1U);
  const IpsecSaRow& row = table.sas.at(0);
  EXPECT_EQ(row.name, "a");
  EXPECT_EQ(row.direction, "in");
  EXPECT_EQ(row.protocol, "esp");
  EXPECT_EQ(row.mode, "tunnel");
  EXPECT_EQ(row.spi, 0x1001U);
  EXPECT_EQ(row.source, "192.0.2.2");
  EXPECT_EQ(row.destination, "192.0.2.1");
  EXPECT_EQ(row.proposal, "aes128-sha1");
  EXPECT_EQ(row.state, "valid");
  EXPECT_EQ(row.origin, "api");
  EXPECT_EQ(row.reqid, 7U);
  EXPECT_TRUE(row.esn);
  EXPECT_EQ(row.replay_window, 128U);
  EXPECT_EQ(row.udp_source_port, 4501U);
  EXPECT_EQ(row.lifetime, (std::map<std::string, std::uint64_t>{{"hard_bytes", 5000}}));
  EXPECT_EQ(row.packets, 3U);
  EXPECT_EQ(row.bytes, 300U);
  EXPECT_EQ(row.sequence, 9U);
  EXPECT_EQ(row.drops.at("ipsec_replay"), 0U);
  EXPECT_GE(row.age_s, 0);
  EXPECT_GE(row.idle_s, 0);
}

TEST_F(IpsecApi, WarnsOfWhatIsNoPartOfAnSa) {
  const auto add = [&](unsigned spi, const std::string& proposal) {
    std::string text = sa_text("in", spi);
    text.replace(text.find("aes128-sha1"), std::string("aes128-sha1").size(), proposal);
    const auto added = post("/sas/add", text);
    EXPECT_EQ(added.status, 200) << added.text;
    return nlohmann::json::parse(added.text).at("warnings").get<std::vector<std::string>>();
  };
  EXPECT_THAT(add(0x1001, "aes128-sha1-modp2048"),
              testing::ElementsAre(AllOf(HasSubstr("the proposal of the SA esp 0x00001001 to 192.0.2.1 (modp2048): "),
                                         HasSubstr("no part of an SA, and is ignored"))));
  EXPECT_THAT(add(0x1002, "aes128-sha1-noesn"), testing::IsEmpty());
  EXPECT_EQ(sas({{"spi", "0x1001"}}).sas.at(0).proposal, "aes128-sha1");
  EXPECT_EQ(post("/sas/add", sa_text("in", 0x1001)).status, 409);
}

TEST_F(IpsecApi, ListsTheSasThatAreAskedFor) {
  ASSERT_TRUE(control_->add(sa("in", 0x1001)));
  ASSERT_TRUE(control_->add(sa("out", 0x2002)));
  ASSERT_TRUE(databases_.add(of_a_daemon(sa("out", 0x2003))));
  EXPECT_EQ(sas({{"limit", "1"}}).sas.size(), 1U);
  EXPECT_EQ(sas({{"limit", "1"}}).count, 3U);
  EXPECT_EQ(sas({{"spi", "0x2002"}}).sas.at(0).spi, 0x2002U);
  EXPECT_EQ(sas({{"spi", "8195"}}).sas.at(0).origin, "ike");
  EXPECT_EQ(sas({{"address", "192.0.2.1"}}).count, 3U);
  EXPECT_EQ(sas({{"address", "192.0.2.7"}}).count, 0U);
  EXPECT_EQ(sas({{"spi", "0x2002"}}).sas.at(0).idle_s, -1);
  EXPECT_THAT(get("/sas", {{"address", "10.0.0"}}).text, HasSubstr("address=10.0.0: "));
  EXPECT_EQ(get("/sas", {{"spi", "0x10z"}}).text, "spi=0x10z: allowed is a number of 32 bits, as 4097 or 0x1001");
  EXPECT_EQ(get("/sas", {{"spi", ""}}).status, 400);
  EXPECT_EQ(get("/sas", {{"spy", "1"}}).text, "unknown parameter \"spy\"; did you mean \"spi\"?");
  EXPECT_EQ(get("/sas", {{"limit", "0"}}).status, 400);
}

TEST_F(IpsecApi, ShowsAReservedSpi) {
  const auto here = packet::IpAddress::parse("192.0.2.1").value(),
             there = packet::IpAddress::parse("192.0.2.2").value();
  ASSERT_TRUE(databases_.reserve_spi(there, here, ipsec::Protocol::esp, 7, 0x5000, 0x5000));
  const IpsecSaRow row = sas().sas.at(0);
  EXPECT_EQ(row.state, "larval");
  EXPECT_EQ(row.proposal, "");
  EXPECT_EQ(row.spi, 0x5000U);
}

TEST_F(IpsecApi, RemovesAnSaByWhatItWasAddedWith) {
  ASSERT_TRUE(control_->add(sa("in", 0x1001)));
  ASSERT_TRUE(control_->add(sa("in", 0x1002)));
  EXPECT_EQ(post("/sas/remove", sa_text("in", 0x1001)).status, 200);
  EXPECT_EQ(post("/sas/remove", "spi = 0x1002\ndestination = \"192.0.2.1\"\n").status, 200);
  EXPECT_EQ(databases_.sa_count(), 0U);
  const auto again = post("/sas/remove", "spi = 0x1002\ndestination = \"192.0.2.1\"\n");
  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.text, "there is no SA esp 0x00001002 to 192.0.2.1");
}

TEST_F(IpsecApi, AddsListsAndRemovesPolicies) {
  const std::string out = policy_text("out", "10.2.0.0/24", "reqid = 7\npriority = 5\n");
  EXPECT_EQ(nlohmann::json::parse(post("/policies/add", out).text)["done"],
            "the policy out 10.1.0.0/24 -> 10.2.0.0/24 is in force");
  ASSERT_EQ(post("/policies/add",
                 "direction = \"in\"\nsource = \"10.9.0.0/16\"\ndestination = \"10.1.0.0/24\"\n"
                 "action = \"discard\"\nname = \"b\"\n")
                .status,
            200);
  const IpsecPolicyTable table = policies();
  ASSERT_EQ(table.count, 2U);
  EXPECT_EQ(table.policies.at(0).action, "discard");
  EXPECT_EQ(table.policies.at(0).name, "b");
  EXPECT_TRUE(table.policies.at(0).templates.empty());
  const IpsecPolicyRow& row = table.policies.at(1);
  EXPECT_EQ(row.direction, "out");
  EXPECT_EQ(row.selector, "10.1.0.0/24 -> 10.2.0.0/24");
  EXPECT_EQ(row.priority, 5U);
  EXPECT_EQ(row.origin, "api");
  EXPECT_EQ(row.templates.at(0).source, "192.0.2.1");
  EXPECT_EQ(row.templates.at(0).reqid, 7U);
  EXPECT_EQ(policies({{"direction", "out"}, {"limit", "1"}}).count, 1U);
  EXPECT_EQ(get("/policies", {{"direction", "up"}}).text, "direction=up: allowed is in or out");
  EXPECT_EQ(get("/policies", {{"dir", "in"}}).status, 400);
  EXPECT_EQ(post("/policies/remove", out).status, 200);
  EXPECT_EQ(post("/policies/remove", out).status, 409);
  EXPECT_EQ(policies().count, 1U);
}

TEST_F(IpsecApi, AddsAPolicyOfEspWithAhAroundIt) {
  ASSERT_EQ(
      post("/policies/add", policy_text("out", "10.2.0.0/24", "reqid = 7\nah_around = true\nah_reqid = 8\n")).status,
      200);
  const IpsecPolicyTable table = policies();
  ASSERT_EQ(table.policies.at(0).templates.size(), 2U);
  EXPECT_EQ(table.policies.at(0).templates.at(0).protocol, "esp");
  const IpsecTemplateRow& around = table.policies.at(0).templates.at(1);
  EXPECT_EQ(around.protocol, "ah");
  EXPECT_EQ(around.mode, "transport");
  EXPECT_EQ(around.reqid, 8U);
  const auto refused = [&](const std::string& more) {
    return post("/policies/add", policy_text("out", "10.3.0.0/24", more)).text;
  };
  EXPECT_THAT(refused("ah_around = true\nprotocol = \"ah\"\n"), HasSubstr("ah_around: needs `protocol = \"esp\"`"));
  EXPECT_THAT(refused("ah_reqid = 8\n"), HasSubstr("ah_reqid: needs `ah_around = true`"));
  EXPECT_THAT(post("/policies/add",
                   "direction = \"in\"\nsource = \"10.9.0.0/16\"\ndestination = \"10.1.0.0/24\"\naction = "
                   "\"bypass\"\nah_around = true\n")
                  .text,
              HasSubstr("ah_around: is of action = \"protect\" alone"));
}

TEST_F(IpsecApi, RefusesWrongBodiesWithoutShowingThem) {
  const auto wrong = post("/sas/add", sa_text("in", 0x1001, "zz"));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.text, AllOf(HasSubstr("the request:6: key: is to be pairs of"), Not(HasSubstr("zz"))));
  EXPECT_EQ(post("/policies/add", "").status, 400);
  EXPECT_EQ(post("/sas/remove", "").status, 400);
  EXPECT_EQ(post("/policies/remove", "source = 1").status, 400);
}

TEST_F(IpsecApi, WaitsForTheStart) {
  element_.control = nullptr;
  EXPECT_EQ(get("/sas").status, 409);
  EXPECT_EQ(get("/policies").status, 409);
  EXPECT_EQ(post("/sas/add", sa_text("in", 0x1001)).status, 409);
}

}  // namespace
}  // namespace sluice::function
