#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "base/file.h"
#include "base/units.h"
#include "cli/api_option.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/report.h"
#include "control/loading.h"
#include "control/snapshot_json.h"
#include "lookup/acl/named_set.h"

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
// The warnings of a change are no part of its answer.
std::string change_report(const nlohmann::json& answer) {
  for (const std::string& warning : answer.value("warnings", std::vector<std::string>())) {
    std::fprintf(stderr, "sluice: warning: %s\n", warning.c_str());
  }
  return done_report(answer);
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

Expected<std::string> read_stdin(std::size_t largest) {
  return read_descriptor(STDIN_FILENO, "standard input", largest);
}

// More than the API takes of a stream, which says itself how much that is.
constexpr std::size_t largest_stream_file = 64 << 10;

// A file, which may be a pipe, or "-": the standard input. Keys are in it, so none of it is ever shown.
Expected<std::string> read_stream_file(const std::string& path) {
  if (path == "-") return read_stdin(largest_stream_file);
  const int fd = open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return make_error(path + ": " + std::strerror(errno));
  auto text = read_descriptor(fd, path, largest_stream_file);
  close(fd);
  return text;
}

void add_srtp(CLI::App& ctl, const std::shared_ptr<ApiPlace>& api, const std::shared_ptr<bool>& json, int& status) {
  CLI::App* srtp =
      ctl.add_subcommand("srtp", "Streams of the element srtp: list them, add, replace, remove or release one");
  srtp->require_subcommand(1);
  srtp->fallthrough();
  CLI::App* list = srtp->add_subcommand("list", "Streams, without their keys");
  const auto address = std::make_shared<std::string>();
  list->add_option("ADDRESS", *address, "only streams from or to this address")->type_name("");
  const auto limit = add_limit(*list);
  list->callback([=, &status] {
    if (const auto parsed = packet::IpAddress::parse(*address); !address->empty() && !parsed) {
      std::fprintf(stderr, "sluice: %s: %s\n", address->c_str(), parsed.error().message.c_str());
      status = 2;
      return;
    }
    // The characters of an address need no escape in a query.
    const std::string query = address->empty() ? "" : "&address=" + *address;
    status = ask(*api, {"/api/v1/srtp?limit=" + std::to_string(*limit) + query, false, printer(streams_report)}, *json);
  });
  const auto change = [&](const char* name, const char* text) {
    CLI::App* command = srtp->add_subcommand(name, text);
    const auto file = std::make_shared<std::string>();
    complete_with_files(
        command->add_option("FILE", *file, "the keys of a [[srtp.stream]] section; -: the standard input"))
        ->type_name("")
        ->required();
    command->callback([=, &status] {
      auto body = read_stream_file(*file);
      if (!body) {
        std::fprintf(stderr, "sluice: %s\n", body.error().message.c_str());
        status = 2;
        return;
      }
      status = ask(*api, {std::string("/api/v1/srtp/") + name, true, printer(change_report), *body}, *json);
    });
  };
  change("add", "Protect or unprotect one more stream");
  change("replace",
         "The same in place of one that was added so, as with a new key: with no packet in clear between them");
  change("remove",
         "Take away one that was added so: its addresses and ports say which. What still comes in clear is dropped");
  change("release",
         "Take away one that was added so, or the guard of one that was taken away: what comes passes as it comes");
}

// A change of a set as the command line has it.
struct SetChange {
  std::string set;
  std::vector<std::string> entries;
  std::string file{};  // of more of them; "-": the standard input
};

Expected<void> check_name(const std::string& set) {
  if (lookup::acl::is_good_name(set)) return {};
  return make_error("NAME: a set's name has " + std::string(lookup::acl::good_name_text));
}

// What the set holds, which says how its file is read.
Expected<lookup::acl::SetType> type_of_set(const control::ApiClient& client, const std::string& set) {
  const auto answer = client.get("/api/v1/acl/sets?limit=1&name=" + set);
  if (!answer) return tl::unexpected(answer.error());
  const auto rows = control::from_json_text<std::vector<control::AclSetRow>>(*answer);
  if (!rows) return tl::unexpected(rows.error());
  const bool ports = !rows->empty() && rows->front().type == name_of(lookup::acl::SetType::ports);
  return ports ? lookup::acl::SetType::ports : lookup::acl::SetType::addresses;
}

// Those of the file behind those of the command line.
Expected<void> add_entries_of_file(lookup::acl::SetType type, SetChange& change) {
  const bool is_stdin = change.file == "-";
  const auto text = is_stdin ? read_stdin(lookup::acl::largest_set_text) : Expected<std::string>();
  if (!text) return make_error(text.error().message + "\nnothing is changed");
  const auto read = is_stdin ? lookup::acl::read_set_text(*text, "standard input", type)
                             : lookup::acl::read_set_file(change.file, type);
  if (!read) return make_error(read.error().message + "\nnothing is changed");
  for (const lookup::acl::SetEntry& entry : *read) change.entries.push_back(entry.str());
  if (change.entries.empty()) return make_error((is_stdin ? "standard input" : change.file) + ": has no entries");
  return {};
}

// One request: all of it, or nothing.
int change_set(const ApiPlace& api, const std::string& path, SetChange change, bool json) {
  const auto refuse = [](const Error& error, int status) {
    say_lines(error.message);
    return status;
  };
  if (const auto good = check_name(change.set); !good) return refuse(good.error(), 2);
  const auto client = open_api(api);
  if (!client) return 2;
  if (!change.file.empty()) {
    const auto type = type_of_set(*client, change.set);
    if (!type) return refuse(type.error(), 1);
    if (const auto read = add_entries_of_file(*type, change); !read) return refuse(read.error(), 2);
  }
  nlohmann::json body = {{"set", change.set}};
  body["entries"] = std::move(change.entries);
  std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > lookup::acl::largest_set_text) {
    return refuse(Error{"the change has more than " + bytes_text(lookup::acl::largest_set_text) +
                        ", the most that one may: make several of it; nothing is changed"},
                  2);
  }
  return ask(api, {path, true, printer(done_report), std::move(text)}, json);
}

// The entries of one set, one a line, as a file of a set has them.
std::string entries_report(const std::vector<control::AclSetRow>& sets) {
  std::string text;
  for (const control::AclSetRow& set : sets) {
    for (const std::string& entry : set.first) text += entry + "\n";
    if (set.entries > set.first.size()) {
      text += "# " + std::to_string(set.first.size()) + " of " + std::to_string(set.entries) +
              " entries; --limit for more\n";
    }
  }
  return text;
}

void add_sets(CLI::App& acl, const std::shared_ptr<ApiPlace>& api, const std::shared_ptr<bool>& json, int& status) {
  CLI::App* sets = acl.add_subcommand("set", "Named sets of addresses and ports: list them, add or remove entries");
  sets->require_subcommand(1);
  sets->fallthrough();
  CLI::App* list = sets->add_subcommand("list", "All sets; of one its entries");
  const auto name = std::make_shared<std::string>();
  list->add_option("NAME", *name, "the set whose entries are to be listed")->type_name("");
  const auto limit = add_limit(*list);
  list->callback([=, &status] {
    if (const auto good = check_name(*name); !name->empty() && !good) {
      say_lines(good.error().message);
      status = 2;
      return;
    }
    const std::string path =
        "/api/v1/acl/sets?limit=" + std::to_string(*limit) + (name->empty() ? "" : "&name=" + *name);
    status = ask(*api, {path, false, printer(name->empty() ? acl_sets_report : entries_report)}, *json);
  });
  const auto change = [&](const char* command, const char* text) {
    CLI::App* one = sets->add_subcommand(command, text);
    const auto wanted = std::make_shared<SetChange>();
    one->add_option("NAME", wanted->set, "the set")->type_name("")->required();
    CLI::Option* const entries =
        one->add_option("ENTRY", wanted->entries, "addresses, prefixes or ranges; of a set of ports: ports or ranges")
            ->type_name("");
    CLI::Option* const file =
        complete_with_files(
            one->add_option(
                "-f,--file", wanted->file,
                "a file of entries, as [[acl.set]] file has them: one a line, or several with blanks or commas "
                "between, # or ; a comment; -: the standard input"))
            ->type_name("FILE");
    one->footer("All entries are changed, or none: one that cannot be is named, with its line in the file.");
    one->callback([=, &status] {
      if (entries->empty() && file->empty()) {
        throw CLI::ValidationError("ENTRY or -f FILE is required", CLI::ExitCodes::RequiredError);
      }
      if (!file->empty()) require_file(wanted->file);
      status = change_set(*api, std::string("/api/v1/acl/sets/") + command, *wanted, *json);
    });
  };
  change("add", "Add entries, from the next frame on; until a restart, or a reload that changes the set");
  change("remove", "Take entries out, likewise");
}

}  // namespace

void add_ctl(CLI::App& app, int& status) {
  CLI::App* ctl = app.add_subcommand("ctl", "Ask a running gateway, or tell it something");
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

  CLI::App* acl = ctl->add_subcommand("acl", "Rules of the element acl, with the frames and bytes of each; their sets");
  acl->fallthrough();
  const auto rules = add_limit(*acl);
  add_sets(*acl, api, json, status);
  acl->callback([=, &status] {
    if (!acl->get_subcommands().empty()) return;
    status = ask(*api, {"/api/v1/acl?limit=" + std::to_string(*rules), false, printer(acl_report)}, *json);
  });
  add_srtp(*ctl, api, json, status);
}

}  // namespace sluice::cli
