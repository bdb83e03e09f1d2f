// What the API answers, and its client with it.
#include "control/api.h"

#include <gtest/gtest.h>
#include <httplib.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "control/api_trial_test.h"
#include "control/snapshot_json.h"

namespace sluice::control {
namespace {

TEST_F(ApiTest, AnswersEveryRead) {
  const auto stats = get("/api/v1/stats");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(*stats, to_json_text(source_.value) + "\n");
  EXPECT_EQ(*get("/api/v1/ports"), to_json_text(source_.value.ports) + "\n");
  EXPECT_EQ(*get("/api/v1/config"), "{\"file\":\"r.toml\"}\n");
  EXPECT_EQ(nlohmann::json::parse(*get("/api/v1/neighbours"))[0]["mac"], "02:00:00:00:00:09");
  const auto functions = nlohmann::json::parse(*get("/api/v1/functions"));
  EXPECT_EQ(functions[0]["view"]["taken"], 3);
  EXPECT_FALSE(functions[1].contains("view"));
  EXPECT_EQ(get("/metrics")->rfind("# HELP sluice_build_info", 0), 0U);
}

TEST_F(ApiTest, RoutesTakePrefixAndLimit) {
  const auto table = from_json_text<RouteTable>(*get("/api/v1/routes"));
  ASSERT_TRUE(table);
  EXPECT_EQ(table->matching, 3U);
  EXPECT_EQ(table->routes[0].next_hops[0].gateway, "10.1.1.1");
  EXPECT_EQ(source_.last_query.limit, 100U);
  EXPECT_FALSE(source_.last_query.prefix);
  ASSERT_TRUE(get("/api/v1/routes?prefix=2001:db8::/32&limit=5"));
  EXPECT_EQ(source_.last_query.limit, 5U);
  EXPECT_EQ(source_.last_query.prefix->str(), "2001:db8::/32");
}

// What they make of a request is tested with them (function/acl/acl_api_test.cc).
TEST_F(ApiTest, RoutesOfElementsAreAskedOfThem) {
  EXPECT_EQ(*get("/api/v1/acl"), "{\"count\":7}\n");
  EXPECT_EQ(source_.last_asked, "acl");
  EXPECT_TRUE(source_.last_parameters.empty());
  ASSERT_TRUE(get("/api/v1/srtp?limit=3&address=2001:db8::7"));
  EXPECT_EQ(source_.last_asked, "srtp");
  EXPECT_EQ(source_.last_parameters,
            (std::multimap<std::string, std::string>{{"limit", "3"}, {"address", "2001:db8::7"}}));
  EXPECT_EQ(*post("/api/v1/srtp/add", "source = \"a\""), "{\"count\":7}\n");
  EXPECT_EQ(source_.last_asked, "srtp/add");
  EXPECT_EQ(source_.last_body, "source = \"a\"");
  source_.answer = engine::refused(engine::bad_request, "limit=0: allowed is more");
  EXPECT_EQ(refusal("/api/v1/acl/sets?limit=0"), "limit=0: allowed is more");
  EXPECT_EQ(source_.last_asked, "acl/sets");
  EXPECT_TRUE(raw("GET /api/v1/acl HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").starts_with("HTTP/1.1 400"));
  source_.answer = engine::refused(engine::conflict, "it is not in the chain");
  EXPECT_EQ(post("/api/v1/acl/sets/add", "{}").error().message, "it is not in the chain");
}

// Over the socket; any user may come by TCP.
TEST_F(ApiTest, ABodyIsAsLargeAsItsRouteTakes) {
  const std::string large(5000, 'x');
  EXPECT_TRUE(post("/api/v1/acl/sets/add", large));
  EXPECT_EQ(source_.last_body, large);
  EXPECT_EQ(post("/api/v1/srtp/add", large).error().message, "the body is larger than 4096 bytes");
  start({.listen = "127.0.0.1:0", .read_only = false, .socket = socket_});
  const std::string head = " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n";
  const std::string answer = raw("POST /api/v1/acl/sets/add" + head + large);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413")) << answer;
  EXPECT_NE(answer.find("the body is larger than 4096 bytes; larger ones are taken over the unix socket " + socket_),
            std::string::npos)
      << answer;
}

TEST_F(ApiTest, BadParametersAreNamed) {
  EXPECT_EQ(refusal("/api/v1/routes?limit=0"), "limit=0: allowed is a number from 1 to 1000000");
  EXPECT_EQ(refusal("/api/v1/routes?limit=5x"), "limit=5x: allowed is a number from 1 to 1000000");
  EXPECT_EQ(refusal("/api/v1/routes?limit=99999999999"), "limit=99999999999: allowed is a number from 1 to 1000000");
  EXPECT_EQ(refusal("/api/v1/routes?prefx=10.0.0.0/8"), "unknown parameter \"prefx\"; did you mean \"prefix\"?");
  EXPECT_EQ(refusal("/api/v1/routes?prefix=300.0.0.0/8").rfind("prefix=300.0.0.0/8: ", 0), 0U);
}

TEST_F(ApiTest, ChangesAreMadeOrRefusedWithASentence) {
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/reload"))["done"], "600000 routes read again");
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/device/reset", "cuda:1"))["done"], "cuda:1 takes part again");
  EXPECT_FALSE(source_.stopped);
  EXPECT_TRUE(post("/api/v1/stop"));
  EXPECT_TRUE(source_.stopped);
  source_.router = false;
  EXPECT_EQ(post("/api/v1/reload").error().message, "r.toml:3: [engine] batch = 1: allowed is ...");
  EXPECT_EQ(refusal("/api/v1/routes"), "the chain has no routes");
  EXPECT_EQ(refusal("/api/v1/neighbours"), "the chain has no neighbours");
}

// As `curl -X POST` sends it.
TEST_F(ApiTest, ACaptureComesPieceByPieceOverTheSocketAlone) {
  const auto stream = [&](const ApiClient& client, const std::string& body) {
    std::string all;
    const auto done = client.stream("/api/v1/capture", body, [&](std::string_view bytes) {
      all.append(bytes);
      return all.size() < 40;
    });
    return done ? all : done.error().message;
  };
  const ApiClient client(api_->address());
  EXPECT_EQ(stream(client, R"({"target": "lan", "filter": "udp"})"), "headerudpudp");
  EXPECT_EQ(stream(client, R"({"target": "lan", "filter": ")" + std::string(50, 'x') + "\"}").size(), 56U) << "left";
  EXPECT_EQ(stream(client, R"({"target": "wan"})"), "target: there is no port 'wan'");
  EXPECT_EQ(stream(client, R"({"target": "lan", "fliter": "udp"})"), "unknown key 'fliter'; did you mean \"filter\"?");
  EXPECT_EQ(stream(client, "[]"), "the request is no object of JSON");
  EXPECT_EQ(stream(client, "{}"), "target: name a port, \"any\", \"lane:N\" or \"drops\"");
  EXPECT_EQ(stream(client, R"({"target": "lan", "count": -1})"), "count: allowed is a number from 0 to 4294967295");
  EXPECT_EQ(stream(client, R"({"target": "lan", "filter": 1})"), "filter: a text is allowed");
  EXPECT_EQ(stream(client, R"({"target": "lan", "direction": "up"})"), "direction: allowed is \"in\" or \"out\"");
  start({.listen = "127.0.0.1:0", .read_only = false, .socket = socket_});
  const std::string body = R"({"target": "lan"})";
  EXPECT_EQ(raw("POST /api/v1/capture HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 17\r\n\r\n" + body)
                .rfind("HTTP/1.1 403", 0),
            0U);
}

TEST_F(ApiTest, ReadsAreAnsweredWhileAReloadIsAtWork) {
  source_.hold_reload = true;
  Expected<std::string> answer;
  std::thread client([&] { answer = post("/api/v1/reload"); });
  while (!source_.reloading) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(get("/api/v1/stats"));
  EXPECT_TRUE(get("/metrics"));
  EXPECT_TRUE(post("/api/v1/stop"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  source_.hold_reload = false;
  client.join();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(nlohmann::json::parse(*answer)["done"], "600000 routes read again");
}

TEST_F(ApiTest, UnknownPathsAndMethodsNameTheKnownOnes) {
  EXPECT_EQ(refusal("/api/v2/stats").rfind("there is no GET /api/v2/stats; there are GET /api/v1/acl, ", 0), 0U);
  EXPECT_NE(refusal("/api/v1/stop").find("POST /api/v1/stop"), std::string::npos) << "a read must not stop the gateway";
  EXPECT_FALSE(source_.stopped);
}

// The sample's ailments, but for that of a GPU.
void heal(Snapshot& snapshot) {
  snapshot.forwarding_off.clear();
  snapshot.function_troubles.clear();
  snapshot.output_troubles.clear();
  snapshot.ports[0].twin_unaddressed = false;
  snapshot.ports[1].link_up = true;
}

TEST_F(ApiTest, HealthSaysWhatIsWrong) {
  heal(source_.value);
  EXPECT_EQ(nlohmann::json::parse(*get("/healthz")), nlohmann::json::parse(R"({"status": "degraded",
    "why": "device cuda:0 is down", "ailments": [{"name": "device_down", "what": "device cuda:0 is down", "do": ""}]})"));
  const auto why = [&] { return nlohmann::json::parse(*get("/healthz"))["why"].get<std::string>(); };
  source_.value.devices[1].state = "up";
  EXPECT_EQ(*get("/healthz"), "{\"status\":\"ok\"}\n");
  source_.value.ports[0].twin_down = true;
  EXPECT_EQ(why(), "port left: its twin twin0 is down (ip link set twin0 up)");
  source_.value.ports[0].twin_deleted = true;
  EXPECT_EQ(why(), "port left: its twin twin0 was deleted (restart sluice)");
  source_.value.ports[0].interface_deleted = source_.value.ports[1].interface_deleted = true;
  source_.value.conserved = false;
  source_.value.devices[1].state = "down";
  EXPECT_EQ(why(),
            "device cuda:0 is down, port left: its interface was deleted (restart sluice), port right: its "
            "interface was deleted (restart sluice), port left: its twin twin0 was deleted (restart sluice), "
            "counters do not add up");
}

TEST_F(ApiTest, ReadinessIsAStatusForLoadBalancers) {
  const std::string request = "GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  std::string answer = raw(request);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503")) << answer;
  EXPECT_NE(answer.find("\"status\":\"not ready\""), std::string::npos) << answer;
  EXPECT_NE(answer.find("\"why\":\"device cuda:0 is down, "), std::string::npos) << answer;
  heal(source_.value);
  source_.value.devices[1].state = "up";
  answer = raw(request);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
  EXPECT_TRUE(answer.ends_with("{\"status\":\"ready\"}\n")) << answer;
}

TEST_F(ApiTest, AnExceptionIsAnAnswer) {
  source_.fail = true;
  EXPECT_EQ(refusal("/api/v1/stats"), "failed: out of luck");
  source_.fail = false;
  EXPECT_TRUE(get("/api/v1/stats"));
}

TEST(ApiClient, TakesNoOtherServerForSluice) {
  for (const auto& [name, said] : {std::pair{"", "a server without a name"}, {"nginx/1.2", "'nginx/1.2'"}}) {
    httplib::Server server;
    if (*name != '\0') server.set_default_headers({{"Server", name}});
    server.Get("/api/v1/socket", [](const auto&, auto& response) { response.set_content("{}", "application/json"); });
    const int port = server.bind_to_any_port("127.0.0.1");
    std::thread thread([&server] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
    const std::string address = "127.0.0.1:" + std::to_string(port);
    for (const char* path : {"/api/v1/stats", "/nowhere"}) {
      const auto answer = ApiClient(*parse_listen(address)).get(path);
      EXPECT_FALSE(answer);
      if (answer) continue;
      EXPECT_EQ(answer.error().message,
                "what answers at " + address + " is not sluice but " + said +
                    ": give --api the address of sluice's API ([api] listen in its configuration)");
    }
    server.stop();
    thread.join();
  }
}

TEST(ApiClient, SaysWhereTheGatewayWasExpected) {
  const auto answer = ApiClient(*parse_listen("127.0.0.1:1")).get("/api/v1/stats");
  ASSERT_FALSE(answer);
  EXPECT_EQ(
      answer.error().message,
      "no answer from 127.0.0.1:1: is sluice running? Its API was expected there ([api] listen in its configuration; "
      "--api ADDRESS for another)");
}

}  // namespace
}  // namespace sluice::control
