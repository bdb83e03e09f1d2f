// What the API's routes of rules and sets make of requests.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json_text.h"
#include "engine/counted_rules.h"
#include "engine/named_sets.h"
#include "engine/traits.h"
#include "function/acl/acl_rows.h"
#include "function/acl/acl_type.h"

namespace sluice::function {
namespace {

class Fake final : public engine::Element, public engine::CountedRules, public engine::NamedSets {
 public:
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  void* find_trait(std::string_view name) override {
    return engine::offer<engine::CountedRules, engine::NamedSets>(name, this);
  }
  Listing list(std::uint32_t limit) const override {
    asked = limit;
    return {{{"deny", "protocol=tcp", 5, 320}}, 7, {"permit", "", 2, 128}};
  }
  Expected<std::vector<Entry>> list_sets(std::string_view name, std::uint32_t limit) const override {
    if (name == "nobody") return make_error("there is no set \"nobody\"");
    return std::vector<Entry>{
        {std::string(name.empty() ? "bad" : name), "addresses", limit, 1, true, "bad.txt", {"192.0.2.1"}}};
  }
  Expected<std::string> add_to_set(std::string_view name, const std::vector<std::string>& entries) override {
    if (name == "nobody") return make_error("there is no set \"nobody\"");
    return std::to_string(entries.size()) + " to " + std::string(name) + ", first " + entries.front();
  }
  Expected<std::string> remove_from_set(std::string_view name, const std::vector<std::string>& /*entries*/) override {
    return "from " + std::string(name);
  }
  mutable std::uint32_t asked = 0;
};

class AclApi : public testing::Test {
 protected:
  engine::ApiAnswer ask(const std::string& path, const engine::ApiRequest& request) {
    const auto& routes = acl_routes();
    const auto route = std::ranges::find(routes, path, &engine::ApiRoute::path);
    return route == routes.end() ? engine::refused(404, path) : route->answer(element_, request);
  }
  engine::ApiAnswer get(const std::string& path, const std::multimap<std::string, std::string>& parameters = {}) {
    return ask(path, {.parameters = parameters});
  }
  std::string post(const std::string& path, std::string_view body) {
    const engine::ApiAnswer answer = ask(path, {.body = body});
    return answer.status == 200 ? nlohmann::json::parse(answer.text)["done"].get<std::string>()
                                : std::to_string(answer.status) + " " + answer.text;
  }

  Fake element_;
};

TEST_F(AclApi, HasRulesWithTheirCounters) {
  const auto table = from_json_text<AclTable>(get("").text);
  ASSERT_TRUE(table);
  EXPECT_EQ(element_.asked, 100U);
  EXPECT_EQ(table->count, 7U);
  ASSERT_EQ(table->rules.size(), 1U);
  EXPECT_EQ(table->rules[0].number, 1U);
  EXPECT_EQ(table->rules[0].match, "protocol=tcp");
  EXPECT_EQ(table->rules[0].bytes, 320U);
  EXPECT_EQ(table->unmatched.frames, 2U);
  EXPECT_EQ(get("", {{"limit", "20000"}}).status, 200);
  EXPECT_EQ(element_.asked, 20'000U);
  EXPECT_EQ(get("", {{"limit", "0"}}).text, "limit=0: allowed is a number from 1 to 1000000");
  EXPECT_EQ(get("", {{"limit", "0"}}).status, 400);
  EXPECT_EQ(get("", {{"limt", "5"}}).text, "unknown parameter \"limt\"; did you mean \"limit\"?");
  EXPECT_EQ(get("", {{"prefix", "10.0.0.0/8"}}).text, "unknown parameter \"prefix\"; known are limit");
}

TEST_F(AclApi, SetsAreListedAndChanged) {
  const auto sets = from_json_text<std::vector<AclSetRow>>(get("/sets", {{"name", "web"}, {"limit", "7"}}).text);
  ASSERT_TRUE(sets) << sets.error().message;
  EXPECT_EQ((*sets)[0].name, "web");
  EXPECT_EQ((*sets)[0].entries, 7U);
  EXPECT_EQ(get("/sets", {{"nane", "web"}}).status, 400);
  EXPECT_EQ(get("/sets", {{"name", "nobody"}}).status, 409);
  EXPECT_EQ(post("/sets/add", R"({"set": "web", "entries": ["80-90", 443]})"), "2 to web, first 80-90");
  EXPECT_EQ(post("/sets/remove", R"({"set": "web", "entries": [443]})"), "from web");
  EXPECT_EQ(post("/sets/add", R"({"set": "nobody", "entries": ["1"]})"), "409 there is no set \"nobody\"");
  for (const char* const body : {"", "{", "[]", R"({"set": "web"})", R"({"set": "web", "entries": []})",
                                 R"({"set": 7, "entries": ["1"]})", R"({"set": "web", "entries": [-1]})",
                                 R"({"set": "web", "entries": [[]]})", R"({"set": "web", "entries": ["1"], "x": 1})"}) {
    EXPECT_TRUE(post("/sets/add", body).starts_with("400 the body is {")) << body;
  }
}

}  // namespace
}  // namespace sluice::function
