#include "control/api.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "control/api_client.h"
#include "control/api_socket.h"
#include "control/sample_snapshot.h"
#include "control/snapshot_json.h"

namespace sluice::control {
namespace {

// A header, then the filter twice.
class FakeCapture final : public CaptureStream {
 public:
  explicit FakeCapture(CaptureRequest request) : request_(std::move(request)) {}
  bool next(std::string& bytes) override {
    bytes = pieces_ == 0 ? "header" : request_.filter;
    return ++pieces_ < 3;
  }

 private:
  const CaptureRequest request_;
  unsigned pieces_ = 0;
};

class FakeSource final : public StatsSource {
 public:
  Snapshot snapshot() override {
    if (fail) throw std::runtime_error("out of luck");
    ++calls;
    EXPECT_FALSE(busy.exchange(true)) << "two calls at once";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    busy = false;
    return value;
  }
  Expected<RouteTable> routes(const RouteQuery& query) override {
    if (!router) return make_error("the chain has no routes");
    last_query = query;
    RouteTable table{{{"10.0.0.0/8", "unicast", {{"left", "10.1.1.1", 1}}, 20, "bgp"}}, 3};
    table.routes.resize(listed_routes, table.routes.front());
    return table;
  }
  Expected<std::vector<NeighbourRow>> neighbours() override {
    if (!router) return make_error("the chain has no neighbours");
    return std::vector<NeighbourRow>{{"left", "10.1.1.1", "02:00:00:00:00:09"}};
  }
  Expected<AclTable> acl(std::uint32_t limit) override {
    if (!router) return make_error("the chain has no ACL rules");
    last_acl_limit = limit;
    return AclTable{{{1, "deny", "protocol=tcp", 5, 320}}, 7, {0, "permit", "", 2, 128}};
  }
  Expected<std::vector<AclSetRow>> acl_sets(const std::string& name, std::uint32_t limit) override {
    if (!router) return make_error("the chain has no sets");
    return std::vector<AclSetRow>{{name.empty() ? "bad" : name, "addresses", limit, 1, true, "bad.txt", {"192.0.2.1"}}};
  }
  Expected<std::string> add_to_set(const std::string& name, const std::vector<std::string>& entries) override {
    if (name == "nobody") return make_error("there is no set \"nobody\"");
    return std::to_string(entries.size()) + " to " + name + ", first " + entries.front();
  }
  Expected<std::string> remove_from_set(const std::string& name, const std::vector<std::string>& /*entries*/) override {
    return "from " + name;
  }
  Expected<StreamTable> streams(const StreamQuery& query) override {
    if (!router) return make_error("the chain has no SRTP streams");
    last_stream_query = query;
    StreamTable table{{{"10.0.0.1:1 -> 10.0.0.2:2", "protect", "rtp", "AEAD_AES_128_GCM", "api", "", 5000, "yes"}}, 4};
    table.streams[0].rtp_packets = 7;
    table.streams[0].drops = {{"auth_failed", 2}};
    return table;
  }
  Expected<function::StreamChange> add_stream(const std::string& text) override {
    if (text.empty()) return make_error("the request:1: action: is missing");
    last_text = text;
    return function::StreamChange{"added", {"its key is another's"}};
  }
  Expected<function::StreamChange> replace_stream(const std::string& text) override {
    last_text = text;
    return function::StreamChange{"replaced"};
  }
  Expected<function::StreamChange> release_stream(const std::string& text) override {
    last_text = text;
    return function::StreamChange{"released"};
  }
  Expected<function::StreamChange> remove_stream(const std::string& text) override {
    last_text = text;
    return function::StreamChange{"removed"};
  }
  Expected<std::unique_ptr<CaptureStream>> capture(const CaptureRequest& request) override {
    if (request.target != "lan") return make_error("target: there is no port '" + request.target + "'");
    return std::make_unique<FakeCapture>(request);
  }
  std::string config() override { return R"({"file":"r.toml"})"; }
  Expected<std::string> reload() override {
    if (!router) return make_error("r.toml:3: [engine] batch = 1: allowed is ...");
    reloading = true;
    while (hold_reload) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::string("600000 routes read again");
  }
  void stop() override { stopped = true; }

  Snapshot value = sample_snapshot();
  RouteQuery last_query;
  std::uint32_t last_acl_limit = 0;
  StreamQuery last_stream_query;
  std::string last_text;
  bool router = true;
  std::atomic<bool> fail{false}, stopped{false}, busy{false}, hold_reload{false}, reloading{false};
  std::size_t listed_routes = 1;
  std::atomic<int> calls{0};
};

// Without a socket.
ApiOptions tcp(const std::string& listen) {
  return {.listen = listen, .socket = ""};
}

class ApiTest : public testing::Test {
 protected:
  void SetUp() override { start({.listen = "127.0.0.1:0", .socket = socket_}); }
  void start(const ApiOptions& options) {
    api_.reset();
    auto api = Api::start(options, source_);
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
    ASSERT_NE(api_->address().port == 0, !options.listen.empty());
  }
  Expected<std::string> get(const std::string& path) const { return ApiClient(api_->address()).get(path); }
  Expected<std::string> post(const std::string& path, const std::string& body = {}) const {
    return ApiClient(api_->address()).post(path, body);
  }
  std::string refusal(const std::string& path) const {
    const auto answer = get(path);
    return answer ? "not refused" : answer.error().message;
  }

  int connected() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(api_->address().port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }
  // Bytes as they are, over a socket of our own; the whole answer.
  std::string raw(const std::string& request) const { return exchange(connected(), request); }
  std::string raw_on_socket(const std::string& request) const {
    const auto fd = connect_to_socket(socket_);
    return fd ? exchange(*fd, request) : fd.error().message;
  }
  static std::string exchange(int fd, const std::string& request) {
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char buffer[4096];
    pollfd ready{fd, POLLIN, 0};
    for (ssize_t n; poll(&ready, 1, 5000) > 0 && (n = recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
    }
    close(fd);
    return answer;
  }

  FakeSource source_;
  const std::string socket_ = testing::TempDir() + "api-" + std::to_string(getpid()) + ".sock";
  std::unique_ptr<Api> api_;
};

TEST_F(ApiTest, AnswersEveryRead) {
  const auto stats = get("/api/v1/stats");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(*stats, to_json_text(source_.value) + "\n");
  EXPECT_EQ(*get("/api/v1/ports"), to_json_text(source_.value.ports) + "\n");
  EXPECT_EQ(*get("/api/v1/config"), "{\"file\":\"r.toml\"}\n");
  EXPECT_EQ(nlohmann::json::parse(*get("/api/v1/neighbours"))[0]["mac"], "02:00:00:00:00:09");
  EXPECT_EQ(get("/metrics")->rfind("# HELP sluice_build_info", 0), 0U);
}

TEST_F(ApiTest, SetsAreListedAndChanged) {
  const auto sets = from_json_text<std::vector<AclSetRow>>(*get("/api/v1/acl/sets?name=web&limit=7"));
  ASSERT_TRUE(sets) << sets.error().message;
  EXPECT_EQ((*sets)[0].name, "web");
  EXPECT_EQ((*sets)[0].entries, 7U);
  EXPECT_FALSE(get("/api/v1/acl/sets?nane=web"));
  EXPECT_EQ(
      nlohmann::json::parse(*post("/api/v1/acl/sets/add", R"({"set": "web", "entries": ["80-90", 443]})"))["done"],
      "2 to web, first 80-90");
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/acl/sets/remove", R"({"set": "web", "entries": [443]})"))["done"],
            "from web");
  EXPECT_EQ(post("/api/v1/acl/sets/add", R"({"set": "nobody", "entries": ["1"]})").error().message,
            "there is no set \"nobody\"");
  for (const char* const body : {"", "{", "[]", R"({"set": "web"})", R"({"set": "web", "entries": []})",
                                 R"({"set": 7, "entries": ["1"]})", R"({"set": "web", "entries": [-1]})",
                                 R"({"set": "web", "entries": [[]]})", R"({"set": "web", "entries": ["1"], "x": 1})"}) {
    const auto refused = post("/api/v1/acl/sets/add", body);
    ASSERT_FALSE(refused) << body;
    EXPECT_TRUE(refused.error().message.starts_with("the body is {")) << refused.error().message;
  }
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

TEST_F(ApiTest, AclHasRulesWithTheirCounters) {
  const auto table = from_json_text<AclTable>(*get("/api/v1/acl"));
  ASSERT_TRUE(table);
  EXPECT_EQ(source_.last_acl_limit, 100U);
  EXPECT_EQ(table->count, 7U);
  ASSERT_EQ(table->rules.size(), 1U);
  EXPECT_EQ(table->rules[0].match, "protocol=tcp");
  EXPECT_EQ(table->rules[0].bytes, 320U);
  EXPECT_EQ(table->unmatched.frames, 2U);
  ASSERT_TRUE(get("/api/v1/acl?limit=20000"));
  EXPECT_EQ(source_.last_acl_limit, 20'000U);
  const auto streams = from_json_text<StreamTable>(*get("/api/v1/srtp?limit=3&address=2001:db8::7"));
  EXPECT_EQ(streams->streams.at(0).origin, "api");
  EXPECT_EQ(streams->streams.at(0).rate, 5000U);
  EXPECT_EQ(streams->streams.at(0).measured, "yes");
  EXPECT_EQ(streams->streams.at(0).rtp_packets, 7U);
  EXPECT_EQ(streams->streams.at(0).drops.at("auth_failed"), 2U);
  EXPECT_EQ(streams->streams.at(0).age_ms, -1);
  EXPECT_EQ(source_.last_stream_query.limit, 3U);
  EXPECT_EQ(source_.last_stream_query.address.str(), "2001:db8::7");
  EXPECT_EQ(refusal("/api/v1/srtp?adress=::1"), "unknown parameter \"adress\"; did you mean \"address\"?");
  EXPECT_TRUE(refusal("/api/v1/srtp?address=10.0.0").starts_with("address=10.0.0: "));
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/srtp/add", "source = \"a\"")),
            nlohmann::json::parse(R"({"done": "added", "warnings": ["its key is another's"]})"));
  EXPECT_EQ(source_.last_text, "source = \"a\"");
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/srtp/remove", "source = \"b\"")),
            nlohmann::json::parse(R"({"done": "removed", "warnings": []})"));
  EXPECT_EQ(source_.last_text, "source = \"b\"");
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/srtp/replace", "source = \"c\""))["done"], "replaced");
  EXPECT_EQ(nlohmann::json::parse(*post("/api/v1/srtp/release", "source = \"d\""))["done"], "released");
  EXPECT_EQ(source_.last_text, "source = \"d\"");
  EXPECT_EQ(post("/api/v1/srtp/add").error().message, "the request:1: action: is missing");
  EXPECT_EQ(refusal("/api/v1/acl?limit=0"), "limit=0: allowed is a number from 1 to 1000000");
  EXPECT_EQ(refusal("/api/v1/acl?limt=5"), "unknown parameter \"limt\"; did you mean \"limit\"?");
  EXPECT_EQ(refusal("/api/v1/acl?prefix=10.0.0.0/8"), "unknown parameter \"prefix\"; known are limit");
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
  EXPECT_FALSE(source_.stopped);
  EXPECT_TRUE(post("/api/v1/stop"));
  EXPECT_TRUE(source_.stopped);
  source_.router = false;
  EXPECT_EQ(post("/api/v1/reload").error().message, "r.toml:3: [engine] batch = 1: allowed is ...");
  EXPECT_EQ(refusal("/api/v1/routes"), "the chain has no routes");
  EXPECT_EQ(refusal("/api/v1/neighbours"), "the chain has no neighbours");
  EXPECT_EQ(refusal("/api/v1/acl"), "the chain has no ACL rules");
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

TEST_F(ApiTest, AChangeNeedsNoBody) {
  const std::string head = " HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  EXPECT_NE(raw_on_socket("POST /api/v1/reload" + head + "\r\n").find("{\"done\":\"600000 routes read again\"}"),
            std::string::npos);
  EXPECT_EQ(raw_on_socket("POST /api/v1/relaod" + head + "\r\n").rfind("HTTP/1.1 404", 0), 0U);
  EXPECT_FALSE(source_.stopped);
  EXPECT_EQ(raw_on_socket("POST /api/v1/stop" + head + "\r\n").rfind("HTTP/1.1 200", 0), 0U);
  EXPECT_TRUE(source_.stopped);
}

TEST_F(ApiTest, ABodyOfAnyKindIsReadAndBounded) {
  const std::string head = "POST /api/v1/reload HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(raw_on_socket(head + "Content-Length: 2\r\n\r\n{}").rfind("HTTP/1.1 200", 0), 0U);
  EXPECT_EQ(raw_on_socket(chunked + "2\r\n{}\r\n0\r\n\r\n").rfind("HTTP/1.1 200", 0), 0U);
  for (const auto& [chunks, status] : {std::pair(4, "HTTP/1.1 200"), {5, "HTTP/1.1 413"}}) {
    std::string body;
    for (int chunk = 0; chunk < chunks; ++chunk) body += "400\r\n" + std::string(1024, '#') + "\r\n";
    EXPECT_EQ(raw_on_socket(chunked + body + "0\r\n\r\n").rfind(status, 0), 0U) << chunks << " KB in chunks";
  }
  EXPECT_EQ(raw_on_socket(head + "Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 5\r\n\r\n--b--")
                .rfind("HTTP/1.1 500", 0),
            std::string::npos);
  EXPECT_EQ(raw_on_socket(head + "Content-Length: -1\r\n\r\n").rfind("HTTP/1.1 200", 0), std::string::npos);
  EXPECT_TRUE(get("/healthz")) << "and it still answers";
}

TEST_F(ApiTest, HeadersAreBounded) {
  const std::string head = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const auto many = [](std::size_t count) {
    std::string headers;
    for (std::size_t i = 0; i < count; ++i) headers += "A: b\r\n";
    return headers;
  };
  EXPECT_EQ(raw(head + many(10'000) + "\r\n").rfind("HTTP/1.1 200", 0), 0U);
  EXPECT_EQ(raw(head + many(20'000) + "\r\n").rfind("HTTP/1.1 400", 0), 0U);
  EXPECT_EQ(raw(head + "A: " + std::string(200'000, 'b')).rfind("HTTP/1.1 400", 0), 0U) << "before it ends";
  EXPECT_TRUE(get("/healthz")) << "and it still answers";
}

// However it comes: a client that sends a byte now and then keeps a thread from others.
TEST_F(ApiTest, ARequestHasTwoSecondsToArrive) {
  const auto begin = std::chrono::steady_clock::now();
  const int fd = connected();
  const std::string request = "GET /healthz HTTP/1.1\r\nA: " + std::string(60, 'b') + "\r\n\r\n";
  char answer[4096];
  bool ended = false;
  for (std::size_t sent = 0; sent < request.size() && !ended; ++sent) {
    send(fd, request.data() + sent, 1, MSG_NOSIGNAL);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ended = recv(fd, answer, sizeof answer, MSG_DONTWAIT) >= 0;
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  close(fd);
  EXPECT_TRUE(ended);
  EXPECT_GE(took, std::chrono::milliseconds(1900));
  EXPECT_LT(took, std::chrono::milliseconds(4000));
}

// Some 7 MB of it, which no socket's buffers hold.
TEST_F(ApiTest, AnAnswerThatNobodyReadsEndsAfterTwoSeconds) {
  source_.listed_routes = 60'000;
  const int fd = connected();
  const int small = 4096;
  ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
  const std::string request = "GET /api/v1/routes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  send(fd, request.data(), request.size(), MSG_NOSIGNAL);
  char first = 0;
  ASSERT_EQ(recv(fd, &first, 1, MSG_PEEK), 1) << "all of it has been made by then";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(get("/healthz")) << "others are answered meanwhile";
  api_.reset();
  const auto took = std::chrono::steady_clock::now() - begin;
  close(fd);
  EXPECT_GE(took, std::chrono::milliseconds(1900)) << "it did not wait for its reader";
  EXPECT_LT(took, std::chrono::milliseconds(4500)) << "httplib by itself waits five";
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
  snapshot.rtsp_ailment.clear();
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

TEST_F(ApiTest, AnAddressThatIsTakenIsFoundBeforeAnythingElse) {
  const std::string taken = api_->address().str();
  const Expected<void> refused = Api::check_address(tcp(taken));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "[api] listen = \"" + taken + "\": Address already in use (is another sluice running?)");
  const auto started = Api::start(tcp(taken), source_);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, refused.error().message);
  EXPECT_FALSE(Api::check_address({.listen = "192.0.2.1:9230", .allow_remote = true})) << "not of this machine";
  api_.reset();
  EXPECT_TRUE(Api::check_address(tcp(taken)));
  EXPECT_TRUE(Api::check_address(tcp("127.0.0.1:0")));
  EXPECT_TRUE(Api::check_address(tcp("")));
}

TEST_F(ApiTest, WhatAWebPageCouldSendIsRefused) {
  const std::string tail = "Content-Length: 0\r\n\r\n";
  EXPECT_EQ(raw("POST /api/v1/stop HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n" + tail)
                .rfind("HTTP/1.1 403", 0),
            0U);
  EXPECT_EQ(raw("POST /api/v1/stop HTTP/1.1\r\nHost: evil.example:9230\r\n" + tail).rfind("HTTP/1.1 403", 0), 0U);
  EXPECT_EQ(raw("GET /api/v1/config HTTP/1.1\r\nHost: evil.example\r\n\r\n").rfind("HTTP/1.1 403", 0), 0U);
  EXPECT_FALSE(source_.stopped);
  for (const char* host : {"127.0.0.1", "localhost:9230", "[::1]", "[::1]:9230"}) {
    EXPECT_EQ(raw("GET /healthz HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n").rfind("HTTP/1.1 200", 0), 0U)
        << host;
  }
}

TEST_F(ApiTest, RequestsAreBounded) {
  EXPECT_EQ(raw_on_socket("POST /api/v1/reload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n" +
                          std::string(5000, 'x'))
                .rfind("HTTP/1.1 413", 0),
            0U);
  EXPECT_EQ(raw("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").rfind("HTTP/1.1 414", 0),
            0U);
  for (const char* bad :
       {"\r\n\r\n", "GET\r\n\r\n", "NOTHING / HTTP/1.1\r\n\r\n", "GET /healthz HTTP/9\r\n\r\n", "\xff\xfe\x00\x01"}) {
    raw(bad);
  }
  EXPECT_TRUE(get("/healthz")) << "and it still answers";
}

TEST_F(ApiTest, AnExceptionIsAnAnswer) {
  source_.fail = true;
  EXPECT_EQ(refusal("/api/v1/stats"), "failed: out of luck");
  source_.fail = false;
  EXPECT_TRUE(get("/api/v1/stats"));
}

TEST_F(ApiTest, ManyClientsAreServedOneAtATime) {
  std::vector<std::thread> clients;
  std::atomic<int> answered{0};
  clients.reserve(8);
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int j = 0; j < 10; ++j) answered += get("/api/v1/stats") ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 80);
  EXPECT_EQ(source_.calls, 80);
}

// Those that no thread has taken yet are not waited for.
TEST_F(ApiTest, StopsSoonWithManyIdleClients) {
  std::vector<int> clients(16);
  for (int& fd : clients) fd = connected();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // threads wait for the first ones' requests by now
  const auto begin = std::chrono::steady_clock::now();
  api_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  for (const int fd : clients) close(fd);
}

TEST_F(ApiTest, AnAddressInUseIsAnError) {
  const auto second = Api::start(tcp(api_->address().str()), source_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "[api] listen = \"" + api_->address().str() + "\": Address already in use (is another sluice running?)");
  const auto elsewhere = Api::start({.listen = "192.0.2.1:9230", .allow_remote = true, .socket = ""}, source_);
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().message.rfind("[api] listen = \"192.0.2.1:9230\": ", 0), 0U);
}

TEST_F(ApiTest, ARestartGetsTheSameAddress) {
  const std::string address = api_->address().str();
  ASSERT_TRUE(get("/healthz"));
  start({.listen = address, .socket = socket_});
  EXPECT_EQ(api_->address().str(), address);
  EXPECT_TRUE(get("/healthz"));
}

// Refusals of the API too: what they say is repeated to the user as the gateway's.
TEST_F(ApiTest, EveryAnswerSaysThatItIsSluices) {
  for (const char* request : {"GET /api/v1/stats HTTP/1.1\r\n\r\n", "GET /nowhere HTTP/1.1\r\n\r\n",
                              "POST /nowhere HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"}) {
    EXPECT_NE(raw(request).find("\r\nServer: sluice/" SLUICE_VERSION "\r\n"), std::string::npos) << request;
  }
}

TEST_F(ApiTest, ChangesAreRefusedByTcpWithTheWayToTheSocket) {
  const std::string tail = " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n";
  for (const char* path : {"stop", "reload", "srtp/add"}) {
    const std::string answer = raw("POST /api/v1/" + std::string(path) + tail);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << answer;
    EXPECT_NE(answer.find("changes are not made by TCP but over the unix socket " + socket_), std::string::npos);
  }
  for (const char* method : {"PUT", "DELETE", "PATCH"}) {
    EXPECT_TRUE(raw(method + std::string(" /api/v1/stop") + tail).starts_with("HTTP/1.1 403")) << method;
  }
  EXPECT_FALSE(source_.stopped);
  EXPECT_EQ(nlohmann::json::parse(*get("/api/v1/socket")),
            nlohmann::json::parse(R"({"socket": ")" + socket_ + R"(", "read_only": true})"));
}

TEST_F(ApiTest, TheSocketAnswersEverything) {
  const ApiClient client(*parse_listen("127.0.0.1:1"), socket_);
  EXPECT_EQ(*client.get("/api/v1/stats"), to_json_text(source_.value) + "\n");
  EXPECT_TRUE(client.post("/api/v1/stop"));
  EXPECT_TRUE(source_.stopped);
  EXPECT_TRUE(raw_on_socket("GET /healthz HTTP/1.1\r\nHost: sluice\r\n\r\n").starts_with("HTTP/1.1 200"))
      << "no browser comes by here";
}

TEST_F(ApiTest, WithoutTcpTheSocketIsThere) {
  start({.listen = "", .socket = socket_});
  EXPECT_TRUE(api_->address().host.empty());
  EXPECT_TRUE(ApiClient(*parse_listen("127.0.0.1:1"), socket_).post("/api/v1/stop"));
}

TEST_F(ApiTest, WithoutASocketNothingIsChangedUnlessTcpMay) {
  start(tcp("127.0.0.1:0"));
  EXPECT_EQ(post("/api/v1/stop").error().message,
            "this gateway takes no changes: it has no socket for them ([api] socket in its configuration)");
  EXPECT_FALSE(source_.stopped);
  start({.listen = "127.0.0.1:0", .read_only = false, .socket = ""});
  EXPECT_TRUE(post("/api/v1/stop"));
  EXPECT_TRUE(source_.stopped);
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
