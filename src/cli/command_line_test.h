// For tests of the subcommands: what they print and the exit status, against an API over a real socket.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "control/api.h"
#include "control/sample_snapshot.h"

namespace sluice::cli {

class Source final : public control::StatsSource {
 public:
  control::Snapshot snapshot() override {
    control::Snapshot s = control::sample_snapshot();
    s.uptime_ns += 1'000'000'000 * ++calls;
    return s;
  }
  Expected<control::RouteTable> routes(const control::RouteQuery& query) override {
    last_query = query;
    return control::RouteTable{{{"10.0.0.0/8", "unicast", {{"left", "10.1.1.1", 1}}, 20, "bgp"}}, 1};
  }
  Expected<std::vector<control::NeighbourRow>> neighbours() override { return make_error("the chain is no router"); }
  engine::ApiAnswer ask(const engine::ElementType& type, const engine::ApiRoute& route,
                        const engine::ApiRequest& request) override {
    const auto parameter = [&](const char* name) {
      const auto found = request.parameters.find(name);
      return found == request.parameters.end() ? std::string() : found->second;
    };
    const std::string path = std::string(type.name) + route.path;
    asked.push_back(path + " " + parameter("limit"));
    if (path == "acl") {
      return {.text = R"({"count":3,"rules":[{"number":1,"action":"deny","match":"destination_port=22 protocol=tcp",)"
                      R"("frames":5,"bytes":320}],"unmatched":{"action":"permit","frames":2,"bytes":128}})"};
    }
    if (path == "acl/sets") {
      if (parameter("name") == "nobody") return engine::refused(engine::conflict, "there is no set \"nobody\"");
      return {.text = R"([{"name":"bad","type":"addresses","entries":3,"rules":1,"changed":true,"file":"bad.txt",)"
                      R"("first":["192.0.2.1","192.0.2.8/31"]}])"};
    }
    if (path == "srtp") {
      stream_address = parameter("address");
      return {.text =
                  R"({"count":6,"streams":[{"stream":"10.0.0.1:1 -> 10.0.0.2:2","action":"protect","carries":"rtp",)"
                  R"("suite":"AEAD_AES_128_GCM","origin":"api","rate":1600000,"measured":"not yet",)"
                  R"("rtp_packets":7,"rtp_bytes":700,"rtcp_packets":2,"rtcp_bytes":100,"ssrcs":1,"age_ms":20,)"
                  R"("drops":{"auth_failed":3,"replayed":4,"policed":5,"too_old":6,"others":10}}]})"};
    }
    if (!mistakes.empty()) return engine::refused(engine::conflict, mistakes);
    body = request.body;
    const std::string done = path.ends_with("/add") ? "added" : "removed";
    return {.text = to_json_text(nlohmann::json{{"done", done}, {"warnings", warnings}})};
  }
  Expected<std::unique_ptr<control::CaptureStream>> capture(const control::CaptureRequest& request) override {
    return make_error("target: there is no port '" + request.target + "'");
  }
  std::string config() override { return R"({"file":"r.toml"})"; }
  std::vector<control::FunctionRow> functions() override {
    return {{"sampler", "a plug-in", "/x/sampler.so (sampler 1.0)", R"({"taken":3})"}, {"route", "router", "", ""}};
  }
  Expected<std::string> reload() override {
    if (!mistakes.empty()) return make_error(mistakes);
    return std::string("nothing changed");
  }
  Expected<std::string> reset_device(std::string_view device) override {
    if (!mistakes.empty()) return make_error(mistakes);
    return std::string(device.empty() ? "cuda:0" : device) + " takes part again";
  }
  void stop() override { stopped = true; }

  std::uint64_t calls = 0;
  control::RouteQuery last_query;
  bool stopped = false;
  std::vector<std::string> asked;  // of elements: path and limit
  std::string mistakes, body, stream_address;
  std::vector<std::string> warnings;
};

inline std::string file_text(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// `words`: those that lead to the command.
inline void expect_described(const CLI::App& root, const CLI::App& app, std::vector<std::string> words,
                             const std::string& manual) {
  const auto offered = [&](const std::vector<std::string>& before, const std::string& typed) {
    std::vector<std::string> line = before;
    line.push_back(typed);
    return complete(root, line).words;
  };
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::regex word("\\b" + command->get_name() + "\\b");
    EXPECT_TRUE(std::regex_search(manual, word)) << command->get_name();
    EXPECT_THAT(offered(words, ""), testing::Contains(command->get_name()));
    std::vector<std::string> inside = words;
    inside.push_back(command->get_name());
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string name = "--" + option->get_lnames()[0];
      EXPECT_NE(manual.find(std::regex_replace(name, std::regex("-"), "\\-")), std::string::npos) << name;
      EXPECT_THAT(offered(inside, "--"), testing::Contains(name)) << command->get_name();
    }
    expect_described(root, *command, inside, manual);
  }
}

// The manual and the completion know every command and option of the program.
inline void expect_described(const CLI::App& app) {
  expect_described(app, app, {}, file_text("packaging/sluice.1"));
}

class Commands : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // of the API in this process, to the output that is looked at
    auto api = control::Api::start({.listen = "127.0.0.1:0", .socket = socket_}, source_);
    ASSERT_TRUE(api) << api.error().message;
    api_ = std::move(*api);
  }

  // The exit status; what was printed is in out_ and err_. With the running API's address where ADDRESS stands, and its
  // socket where SOCKET does.
  int sluice(std::vector<std::string> words) {
    for (std::string& word : words)
      word = word == "ADDRESS" ? api_->address().str() : word == "SOCKET" ? socket_ : word;
    std::reverse(words.begin(), words.end());
    CLI::App app;
    app.require_subcommand(1);
    explain_mistakes(app);
    int status = -1;
    add_commands(app, status);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    try {
      app.parse(words);
    } catch (const CLI::ParseError& error) {
      status = app.exit(error) == 0 ? 0 : 2;
    }
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return status;
  }

  // Those that the words may name.
  virtual void add_commands(CLI::App& app, int& status) {
    add_bench(app, status);
    add_calibrate(app, status);
    add_check(app, status);
    add_run(app, status);
    add_rules(app, status);
    add_ctl(app, status);
    add_top(app, status);
  }

  Source source_;
  const std::string socket_ = testing::TempDir() + "commands-" + std::to_string(getpid()) + ".sock";
  std::unique_ptr<control::Api> api_;
  std::string out_, err_;
};

}  // namespace sluice::cli
