#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/api_option.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/report.h"
#include "control/loading.h"
#include "control/snapshot_json.h"
#include "engine/element.h"
#include "engine/verb.h"

namespace sluice::cli {
namespace {

struct Request {
  std::string path;
  bool change = false;  // POST
  // JSON to text for people; absent: the answer is text already.
  std::function<Expected<std::string>(const std::string&)> print;
  std::string body{};  // of a change
};

// The answer to a change, with what the gateway meanwhile says about its progress when somebody looks at a terminal.
Expected<std::string> change(const control::ApiClient& client, const Request& request) {
  auto answer = std::async(std::launch::async, [&] { return client.post(request.path, request.body); });
  if (isatty(STDERR_FILENO) == 0) return answer.get();
  control::Loading loading(true);
  loading.step("reload", 0, 0);  // begins now
  while (answer.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    const auto stats = client.get("/api/v1/stats");
    const auto now = stats ? control::from_json_text<control::Snapshot>(*stats) : tl::unexpected(stats.error());
    if (now && !now->loading.what.empty()) loading.step(now->loading.what, now->loading.done, now->loading.total);
  }
  loading.done();
  return answer.get();
}

// A refused reload, or a file, has a line for each mistake.
void say_lines(const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) std::fprintf(stderr, "sluice: %s\n", line.c_str());
}

int ask(const ApiPlace& api, const Request& request, bool json) {
  const auto client = open_api(api);
  if (!client) return 2;
  const auto answer = request.change ? change(*client, request) : client->get(request.path);
  const auto text = answer && request.print && !json ? request.print(*answer) : answer;
  if (!text) {
    say_lines(text.error().message);
    return 1;
  }
  std::fputs(text->c_str(), stdout);
  return 0;
}

template <typename T>
std::function<Expected<std::string>(const std::string&)> printer(std::string (*report)(const T&)) {
  return [report](const std::string& body) -> Expected<std::string> {
    const auto value = control::from_json_text<T>(body);
    if (!value) return tl::unexpected(value.error());
    return report(*value);
  };
}

std::string done_report(const nlohmann::json& answer) {
  return answer.value("done", std::string()) + "\n";
}
std::string config_report(const nlohmann::json& answer) {
  return answer.dump(2) + "\n";
}

std::shared_ptr<unsigned> add_limit(CLI::App& command) {
  auto limit = std::make_shared<unsigned>(100);
  command.add_option("--limit", *limit, "print at most so many")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  return limit;
}

struct CtlOptions {
  std::shared_ptr<ApiPlace> api;
  std::shared_ptr<bool> json;
};

// The warnings of a change are no part of its answer.
Request request_of(const engine::VerbRequest& verb) {
  Request request{verb.path, verb.change, {}, verb.body};
  if (!verb.print) return request;
  request.print = [print = verb.print](const std::string& answer) -> Expected<std::string> {
    auto printed = print(answer);
    if (!printed) return tl::unexpected(printed.error());
    for (const std::string& warning : printed->warnings) {
      std::fprintf(stderr, "sluice: warning: %s\n", warning.c_str());
    }
    return std::move(printed->text);
  };
  return request;
}

int run_verb(const engine::Verb& verb, const engine::VerbWords& words, const CtlOptions& options) {
  const auto client = open_api(*options.api);
  if (!client) return 2;
  const auto request = verb.request(words, [&](const std::string& path) { return client->get(path); });
  if (request) return ask(*options.api, request_of(*request), *options.json);
  if (request.error().kind == engine::VerbRefusal::Kind::usage) {
    throw CLI::ValidationError(request.error().message, CLI::ExitCodes::RequiredError);
  }
  say_lines(request.error().message);
  return request.error().kind == engine::VerbRefusal::Kind::gateway ? 1 : 2;
}

// An argument on the command line, and where CLI11 puts what it has for it.
struct Given {
  std::string name;
  CLI::Option* option = nullptr;
  std::shared_ptr<std::vector<std::string>> texts = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<std::string> text = std::make_shared<std::string>();
  std::shared_ptr<unsigned> number{};  // null: it is a text
};

Given add_argument(CLI::App& command, const engine::VerbArgument& argument) {
  Given given{argument.name.substr(argument.name.rfind(',') + 1)};
  if (argument.number) {
    given.number = std::make_shared<unsigned>(argument.number->usual);
    given.option = command.add_option(argument.name, *given.number, argument.text)
                       ->check(CLI::Range(argument.number->least, argument.number->most))
                       ->capture_default_str();
    return given;
  }
  given.option = argument.many ? command.add_option(argument.name, *given.texts, argument.text)
                               : command.add_option(argument.name, *given.text, argument.text);
  given.option->type_name(argument.type)->required(argument.required);
  if (argument.is_file) complete_with_files(given.option);
  return given;
}

engine::VerbWords words_of(const std::vector<Given>& all) {
  engine::VerbWords words;
  for (const Given& one : all) {
    if (one.number) words.given[one.name] = {std::to_string(*one.number)};
    if (!one.number && one.option->count() != 0) words.given[one.name] = one.option->results();
  }
  return words;
}

// With the verbs that it has itself.
void add_verb(CLI::App& parent, const engine::Verb& verb, const CtlOptions& options, int& status) {
  CLI::App* const command = parent.add_subcommand(verb.name, verb.text);
  if (!verb.footer.empty()) command->footer(verb.footer);
  std::vector<Given> arguments;
  for (const engine::VerbArgument& argument : verb.arguments) arguments.push_back(add_argument(*command, argument));
  if (!verb.verbs.empty()) {
    command->fallthrough();
    if (!verb.request) command->require_subcommand(1);
    for (const engine::Verb& one : verb.verbs) add_verb(*command, one, options, status);
  }
  if (!verb.request) return;
  command->callback([=, &status] {
    if (command->get_subcommands().empty()) status = run_verb(verb, words_of(arguments), options);
  });
}

}  // namespace

void add_ctl(CLI::App& app, int& status) {
  CLI::App* ctl = app.add_subcommand("ctl", "Ask a running gateway, or have it do something");
  ctl->require_subcommand(1);
  ctl->fallthrough();
  const auto api = add_api_options(*ctl);
  const auto json = std::make_shared<bool>(false);
  ctl->add_flag("--json", *json, "print the API's JSON as it is");

  const auto add = [&](const char* name, const char* text, const Request& request) {
    ctl->add_subcommand(name, text)->callback([=, &status] { status = ask(*api, request, *json); });
  };
  add("stats", "Counters, latency, drops, devices", {"/api/v1/stats", false, printer(stats_report)});
  add("ports", "Ports and what they counted", {"/api/v1/ports", false, printer(ports_report)});
  add("neighbours", "Neighbours with their MAC addresses", {"/api/v1/neighbours", false, printer(neighbours_report)});
  add("functions", "Functions of the chain, where they are from, and what they show of themselves",
      {"/api/v1/functions", false, printer(config_report)});
  add("config", "The configuration in force, with defaults", {"/api/v1/config", false, printer(config_report)});
  add("metrics", "Prometheus metrics", {"/metrics", false, {}});
  add("reload", "Read the configuration again, and begin log files anew",
      {"/api/v1/reload", true, printer(done_report)});
  add("reopen", "Begin log files anew at their paths, after they were renamed",
      {"/api/v1/reopen", true, printer(done_report)});
  add("stop", "End the gateway cleanly", {"/api/v1/stop", true, printer(done_report)});

  CLI::App* device = ctl->add_subcommand("device", "A GPU that was lost");
  device->require_subcommand(1);
  CLI::App* reset = device->add_subcommand("reset", "Take it again: its context on the GPU begins anew");
  const auto name = std::make_shared<std::string>();
  reset->add_option("NAME", *name, "cuda:N; without it the one that is lost")->type_name("");
  reset->callback([=, &status] {
    status = ask(*api, {"/api/v1/device/reset", true, printer(done_report), *name}, *json);
  });

  CLI::App* routes = ctl->add_subcommand("routes", "Routes of the table");
  const auto prefix = std::make_shared<std::string>();
  routes->add_option("PREFIX", *prefix, "only routes that contain this prefix or address, or lie inside it")
      ->type_name("");
  const auto limit = add_limit(*routes);
  routes->callback([=, &status] {
    if (!prefix->empty()) {
      if (const auto parsed = packet::IpPrefix::parse(*prefix); !parsed) {
        std::fprintf(stderr, "sluice: PREFIX: %s\n", parsed.error().message.c_str());
        status = 2;
        return;
      }
    }
    // The characters of a prefix need no escape in a query.
    const std::string query = prefix->empty() ? "" : "&prefix=" + *prefix;
    status =
        ask(*api, {"/api/v1/routes?limit=" + std::to_string(*limit) + query, false, printer(routes_report)}, *json);
  });

  std::vector<engine::Verb> verbs;
  for (const engine::ElementType& type : engine::element_types()) {
    if (const auto* const own = type.trait<engine::Verbs>()) std::ranges::move(own->verbs(), std::back_inserter(verbs));
  }
  std::ranges::sort(verbs, {}, &engine::Verb::name);
  for (const engine::Verb& verb : verbs) add_verb(*ctl, verb, {api, json}, status);
}

}  // namespace sluice::cli
