#include "control/config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <utility>

#include "control/api_socket.h"
#include "control/chain_hints.h"
#include "control/config_sections.h"
#include "control/listen.h"
#include "engine/advice.h"
#include "engine/element.h"
#include "port/virtual_device.h"

namespace sluice::control {

Config Config::from_file(const std::string& path) {
  auto diagnostics = std::make_unique<Diagnostics>();
  auto root = Settings::from_file(path, *diagnostics);
  return Config(path, std::move(diagnostics), std::move(root), true);
}

Config Config::from_text(std::string_view text, const std::string& name, bool reads_profile) {
  auto diagnostics = std::make_unique<Diagnostics>();
  auto root = Settings::from_text(text, name, *diagnostics);
  return Config(name, std::move(diagnostics), std::move(root), reads_profile);
}

Config::Config(std::string file, std::unique_ptr<Diagnostics> diagnostics, Expected<Settings> root, bool reads_profile)
    : file_(std::move(file)),
      diagnostics_(std::move(diagnostics)),
      root_(root ? *root : Settings::empty(file_, *diagnostics_)) {
  if (!root) {
    diagnostics_->lines.push_back(root.error().message);
    return;
  }
  // Without one of them the rest may name functions that are unknown only for that: the refusal is what is wrong.
  if (!read_plugins(root_.section("plugins"), plugins)) {
    engine.chain.clear();
    return;
  }
  read_engine(root_, engine);
  read_memory(root_, engine.memory);
  read_ports(root_, engine.ports);
  read_api();
  read_log();
  read_profile(root_, reads_profile, engine, profile);
  if (engine.collect.count() == 0) engine.collect = usual_collect_time(engine.chain);
  read_functions();
  check_written_files(root_, file_, ports(), engine.ports);
  check_conversations(root_, engine);
  check_helpers(root_, engine);
  check_timing(root_.section("engine"), engine);
  check_port_sizes();
  check_virtual_ports();
  if (ok()) check_memory(root_, engine);
  root_.finish();
}

// As the start says it (port.cc).
void Config::check_port_sizes() {
  for (const port::PortOptions& port : engine.ports) {
    if (auto fits = port::check_sizes(port, engine.memory); !fits) {
      diagnostics_->lines.push_back(
          placed("[[port]] '" + port.name + "' (" + port.device + "): " + fits.error().message));
    }
  }
}

// The element that would make their frames.
void Config::check_virtual_ports() {
  std::vector<Settings> sections = ports();
  for (std::size_t i = 0; i < engine.ports.size(); ++i) {
    const std::string& device = engine.ports[i].device;
    if (!port::is_virtual(device) || std::ranges::find(engine.chain, device) != engine.chain.end()) continue;
    sections[i].error("device", "the function of that name is not in the chain: set [engine] chain = " +
                                    chain_text(chain_with(device, engine.chain, {})));
  }
}

// Of this file, 0 when it names none; those of other files come behind.
std::uint64_t Config::line_of(std::string_view mistake) const {
  if (!mistake.starts_with(file_ + ":")) return std::numeric_limits<std::uint64_t>::max();
  mistake.remove_prefix(file_.size() + 1);
  std::uint64_t line = 0;
  std::from_chars(mistake.data(), mistake.data() + mistake.size(), line);
  return line;
}

std::string Config::mistakes(std::size_t first) const {
  const std::vector<std::string>& all = diagnostics_->lines;
  std::vector<std::string_view> lines(all.begin() + static_cast<std::ptrdiff_t>(std::min(first, all.size())),
                                      all.end());
  std::ranges::stable_sort(lines, {}, [this](std::string_view line) { return line_of(line); });
  std::string text;
  for (const std::string_view line : lines) text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

std::vector<Settings> Config::ports() {
  return root_.sections("port");
}

Settings Config::section(std::string_view name) {
  return root_.section(name);
}

std::string Config::in_force(std::string_view name) const {
  Settings root = root_;
  return root.section(name).in_force();
}

void Config::use_profile(engine::Profile taken) {
  control::use_profile(std::move(taken), engine, profile);
  check_timing(root_.section("engine"), engine);
}

const std::vector<Option<ApiOptions>>& api_settings() {
  static const std::vector<Option<ApiOptions>> all = {
      option::text("listen", &ApiOptions::listen, "loopback only, for reads; port 0: any free one; `\"\"`: not by TCP")
          .takes("`ADDRESS:PORT`"),
      option::flag(
          "allow_remote", &ApiOptions::allow_remote,
          "let `listen` be any address. Whoever reaches it reads all that the gateway reports: put something in "
          "front of it"),
      option::flag("read_only", &ApiOptions::read_only,
                   "`false`: changes are taken by TCP, too. Every user of the machine can then stop the gateway"),
      option::text(
          "socket", &ApiOptions::socket,
          "path of the unix socket for [reads and changes](api.md), mode 0660; its folder is made if it is not there. "
          "`\"auto\"`: `/run/sluice/PORT-NAMESPACE.sock`, with the port of `listen` and the network namespace, or "
          "`$XDG_RUNTIME_DIR/sluice/...` for a user who may not write there; none where `listen` is `\"\"`. A start "
          "removes those of this pattern in `/run/sluice` that killed gateways left. `\"\"`: none")
          .takes("`\"auto\"`, or path"),
      option::text("group", &ApiOptions::group,
                   "a group, by name or number, that may open the socket besides root: its members can stop the "
                   "gateway. `\"\"`: none. Needs CAP_CHOWN, or a gateway that is in the group")
          .takes("name or number of a group")};
  return all;
}

const std::vector<Option<LogOptions>>& log_settings() {
  const auto words = [](std::initializer_list<const char*> names) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const char* name : names) all.emplace_back(name, name);
    return all;
  };
  static const std::vector<Option<LogOptions>> all = {
      option::word("level", &LogOptions::level, words({"trace", "debug", "info", "warn", "error", "off"}),
                   "the least that is said"),
      option::text("file", &LogOptions::file,
                   "appended to, in a folder that exists, and [nothing else](inspect.md#files); `\"\"`: standard "
                   "error. DPDK's own lines are in it too, as `DPDK: ...`. After it was renamed, SIGHUP, `sluice ctl "
                   "reload` or `sluice ctl reopen` begin a new one; one that was deleted is made again. Lines that a "
                   "full disk does not take are lost, counted and reported in the file later")
          .takes("path"),
      option::word("format", &LogOptions::format, words({"text", "json"}),
                   "`\"json\"`: one object a line with `time`, `level`, `message`")};
  return all;
}

void Config::read_api() {
  Settings section = root_.section("api");
  option::read(api_settings(), section, api);
  section.finish();
  if (!api.socket.empty() && api.socket != "auto") {
    if (const std::string why = why_not_socket_path(api.socket); !why.empty()) section.error("socket", why);
  }
  if (api.listen.empty()) return;
  const auto address = parse_listen(api.listen);
  if (!address) {
    section.error("listen", address.error().message);
  } else if (!address->loopback && !api.allow_remote) {
    section.error(
        "listen",
        "is not a loopback address; whoever reaches the API reads all that it reports: use 127.0.0.1 or [::1], "
        "or set allow_remote = true");
  }
}

void Config::read_log() {
  Settings section = root_.section("log");
  option::read(log_settings(), section, log);
  // Not made by us: a folder that is not there is more likely misspelt.
  const std::filesystem::path folder = std::filesystem::path(log.file).parent_path();
  if (std::error_code ignored; std::filesystem::is_directory(log.file, ignored)) {
    section.error("file", "is a folder: name a file in it");
  } else if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    section.error("file", "there is no folder " + folder.string() + ": make it, or name a file in one that is there");
  }
  section.finish();
}

void Config::read_functions() {
  std::vector<std::string> outside;
  for (const engine::ElementType& type : engine::element_types()) {
    (void)root_.section(type.name);
    const bool used = std::find(engine.chain.begin(), engine.chain.end(), type.name) != engine.chain.end();
    if (root_.has(type.name) && !used) outside.emplace_back(type.name);
  }
  std::vector<std::string> chain = engine.chain;
  for (const std::string& name : outside) {
    const auto* const advice = engine::find_element(name)->trait<engine::Advice>();
    Settings section = root_.section(name);
    const std::string_view wanted = advice == nullptr ? std::string_view() : advice->wants_in_chain(section);
    if (!wanted.empty()) chain = chain_with(wanted, chain, {});
  }
  for (const std::string& name : outside) {
    const bool is_last = engine::find_element(name)->ends_chain;
    root_.section(name).error("", "the function is not in the chain: remove the section, or set [engine] chain = " +
                                      chain_text(chain_with(name, chain, outside)) +
                                      (is_last ? ", where it is the last one: " : ", where it is in front: ") +
                                      functions_and_places());
  }
}

}  // namespace sluice::control
