// Who may ask the API, by which way, how much and for how long.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "control/api_trial_test.h"
#include "control/snapshot_json.h"

namespace sluice::control {
namespace {

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
  EXPECT_FALSE(Api::await_address(tcp(taken), std::chrono::milliseconds(1)));
  EXPECT_TRUE(Api::await_address({.listen = "192.0.2.1:9230", .allow_remote = true}, std::chrono::seconds(9)))
      << "nobody has it: it is another mistake";
  std::thread killed([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    api_.reset();
  });
  EXPECT_TRUE(Api::await_address(tcp(taken), std::chrono::seconds(20))) << "it came free";
  killed.join();
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

TEST_F(ApiTest, CapturesAndAReloadLeaveThreadsForReads) {
  source_.hold_reload = true;
  std::atomic<unsigned> begun{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> clients;
  for (unsigned i = 0; i < engine::FrameTap::most_sessions; ++i) {
    clients.emplace_back([&] {
      bool first = true;
      const auto take = [&](std::string_view) {
        begun += std::exchange(first, false) ? 1 : 0;
        return !over;
      };
      EXPECT_TRUE(
          ApiClient(api_->address()).stream("/api/v1/capture", R"({"target": "lan", "filter": "endless"})", take));
    });
  }
  while (begun != engine::FrameTap::most_sessions) std::this_thread::yield();
  clients.emplace_back([&] { EXPECT_TRUE(post("/api/v1/reload")); });
  while (!source_.reloading) std::this_thread::yield();
  EXPECT_TRUE(ApiClient(*parse_listen("127.0.0.1:1"), socket_).get("/api/v1/stats"));
  source_.hold_reload = false;
  over = true;
  for (std::thread& client : clients) client.join();
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

}  // namespace
}  // namespace sluice::control
