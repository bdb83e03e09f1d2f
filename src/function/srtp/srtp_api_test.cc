// What the API's routes of streams make of requests.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json_text.h"
#include "engine/traits.h"
#include "function/media_streams.h"
#include "function/srtp/srtp_type.h"
#include "function/srtp/stream_table.h"

namespace sluice::function {
namespace {

class Fake final : public engine::Element, public MediaStreams {
 public:
  void apply(engine::Batch& /*batch*/, engine::Span /*span*/, engine::Emitter& /*out*/) override {}
  void* find_trait(std::string_view name) override { return engine::offer<MediaStreams>(name, this); }

  std::vector<MediaStreamRow> list(std::size_t limit, const packet::IpAddress& of, std::size_t& count) const override {
    asked_limit = limit;
    asked_address = of.empty() ? "" : of.str();
    MediaStreamRow row;
    row.name = "10.0.0.1:1 -> 10.0.0.2:2";
    row.action = "protect";
    row.origin = "api";
    row.rate = 5000;
    row.measured = "yes";
    row.rtp.packets = 7;
    row.lost[0] = 2;
    count = 4;
    return {row};
  }
  Expected<StreamChange> add_text(std::string_view text, const std::string& what) override {
    if (text.empty()) return make_error(what + ":1: action: is missing");
    body = text;
    return StreamChange{"added", {"its key is another's"}};
  }
  Expected<StreamChange> replace_text(std::string_view text, const std::string& /*what*/) override {
    return done(text, "replaced");
  }
  Expected<StreamChange> remove_text(std::string_view text, const std::string& /*what*/) override {
    return done(text, "removed");
  }
  Expected<StreamChange> release_text(std::string_view text, const std::string& /*what*/) override {
    return done(text, "released");
  }

  Expected<void> add(std::vector<MediaStreamSettings> /*streams*/) override { return {}; }
  std::size_t remove(std::span<const MediaKey> /*keys*/, MediaOrigin /*origin*/, bool /*guarded*/) override {
    return 0;
  }
  void tidy(std::chrono::steady_clock::time_point /*now*/) override {}
  std::string measure() override { return {}; }
  std::vector<std::string> take_warnings() override { return {}; }
  std::uint64_t noted(const MediaKey& /*key*/) const override { return 0; }
  void admit_by(engine::StreamAdmission& /*admission*/, std::chrono::nanoseconds /*deadline*/) override {}
  std::uint32_t largest_frame() const override { return 0; }
  const RtspOptions* rtsp() const override { return nullptr; }

  mutable std::size_t asked_limit = 0;
  mutable std::string asked_address;
  std::string body;

 private:
  Expected<StreamChange> done(std::string_view text, const char* what) {
    body = text;
    return StreamChange{what};
  }
};

class SrtpApi : public testing::Test {
 protected:
  engine::ApiAnswer ask(const std::string& path, const engine::ApiRequest& request) {
    const auto& routes = srtp_routes();
    const auto route = std::ranges::find(routes, path, &engine::ApiRoute::path);
    return route == routes.end() ? engine::refused(404, path) : route->answer(element_, request);
  }
  engine::ApiAnswer get(const std::multimap<std::string, std::string>& parameters) {
    return ask("", {.parameters = parameters});
  }
  engine::ApiAnswer post(const std::string& path, std::string_view body) { return ask(path, {.body = body}); }

  Fake element_;
};

TEST_F(SrtpApi, ListsStreams) {
  const auto table = from_json_text<StreamTable>(get({{"limit", "3"}, {"address", "2001:db8::7"}}).text);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->count, 4U);
  const StreamRow& row = table->streams.at(0);
  EXPECT_EQ(row.origin, "api");
  EXPECT_EQ(row.rate, 5000U);
  EXPECT_EQ(row.measured, "yes");
  EXPECT_EQ(row.rtp_packets, 7U);
  EXPECT_EQ(row.drops.at(std::string(stream_loss_names[0])), 2U);
  EXPECT_EQ(row.age_ms, -1);
  EXPECT_EQ(element_.asked_limit, 3U);
  EXPECT_EQ(element_.asked_address, "2001:db8::7");
  EXPECT_EQ(get({{"adress", "::1"}}).text, "unknown parameter \"adress\"; did you mean \"address\"?");
  EXPECT_TRUE(get({{"address", "10.0.0"}}).text.starts_with("address=10.0.0: "));
  EXPECT_EQ(get({{"address", "10.0.0"}}).status, 400);
  EXPECT_EQ(get({{"limit", "0"}}).text, "limit=0: allowed is a number from 1 to 1000000");
}

TEST_F(SrtpApi, ChangesStreams) {
  EXPECT_EQ(nlohmann::json::parse(post("/add", "source = \"a\"").text),
            nlohmann::json::parse(R"({"done": "added", "warnings": ["its key is another's"]})"));
  EXPECT_EQ(element_.body, "source = \"a\"");
  EXPECT_EQ(nlohmann::json::parse(post("/remove", "source = \"b\"").text),
            nlohmann::json::parse(R"({"done": "removed", "warnings": []})"));
  EXPECT_EQ(element_.body, "source = \"b\"");
  EXPECT_EQ(nlohmann::json::parse(post("/replace", "source = \"c\"").text)["done"], "replaced");
  EXPECT_EQ(nlohmann::json::parse(post("/release", "source = \"d\"").text)["done"], "released");
  EXPECT_EQ(element_.body, "source = \"d\"");
  EXPECT_EQ(post("/add", "").text, "the request:1: action: is missing");
  EXPECT_EQ(post("/add", "").status, 409);
}

}  // namespace
}  // namespace sluice::function
