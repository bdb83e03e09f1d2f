// For tests of the API: one on this machine, over TCP and a socket, with answers that are made up.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/api.h"
#include "control/api_client.h"
#include "control/api_socket.h"
#include "control/sample_snapshot.h"

namespace sluice::control {

// A header, then the filter twice; with the filter "endless" no end.
class FakeCapture final : public CaptureStream {
 public:
  explicit FakeCapture(CaptureRequest request) : request_(std::move(request)) {}
  bool next(std::string& bytes) override {
    if (request_.filter == "endless") {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      bytes = "x";
      return true;
    }
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
  engine::ApiAnswer ask(const engine::ElementType& type, const engine::ApiRoute& route,
                        const engine::ApiRequest& request) override {
    last_asked = std::string(type.name) + route.path;
    last_parameters = request.parameters;
    last_body = request.body;
    return answer;
  }
  Expected<std::unique_ptr<CaptureStream>> capture(const CaptureRequest& request) override {
    if (request.target != "lan") return make_error("target: there is no port '" + request.target + "'");
    return std::make_unique<FakeCapture>(request);
  }
  std::string config() override { return R"({"file":"r.toml"})"; }
  std::vector<FunctionRow> functions() override {
    return {{"sampler", "a plug-in", "/x/sampler.so (sampler 1.0)", R"({"taken":3})"}, {"route", "router", "", ""}};
  }
  Expected<std::string> reset_device(std::string_view device) override {
    if (fail) return make_error("no GPU is lost");
    return std::string(device) + " takes part again";
  }
  Expected<std::string> reload() override {
    if (!router) return make_error("r.toml:3: [engine] batch = 1: allowed is ...");
    reloading = true;
    while (hold_reload) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::string("600000 routes read again");
  }
  void stop() override { stopped = true; }

  Snapshot value = sample_snapshot();
  RouteQuery last_query;
  std::string last_asked, last_body;  // of elements
  std::multimap<std::string, std::string> last_parameters;
  engine::ApiAnswer answer{.text = R"({"count":7})"};
  bool router = true;
  std::atomic<bool> fail{false}, stopped{false}, busy{false}, hold_reload{false}, reloading{false};
  std::size_t listed_routes = 1;
  std::atomic<int> calls{0};
};

// Without a socket.
inline ApiOptions tcp(const std::string& listen) {
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

}  // namespace sluice::control
