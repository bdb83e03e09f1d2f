// The whole configuration file, checked as a whole before anything starts (docs/configuration.md has every key).
//
// Reading never stops at the first mistake: diagnostics() holds one line for each, with file, line, key, value and what
// is allowed. Only where the text is no TOML, or a plug-in is refused, the rest is not read. A Config with diagnostics
// must not be run. The chain's function reads its own section; whoever makes the function (pipeline_maker.h) adds its
// mistakes to the same diagnostics.
//
// Thread-safety: none (the control thread). Cost: start-up and reload only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "control/plugins.h"
#include "control/profile_options.h"
#include "engine/options.h"
#include "engine/tables.h"

namespace sluice::control {

struct ApiOptions {
  std::string listen = "127.0.0.1:9230";  // ADDRESS:PORT, by TCP; empty: not
  bool allow_remote = false;              // listen may be other than loopback
  bool read_only = true;                  // changes do not come by TCP
  // A path; "auto": default_socket_path() (api_socket.h) of the port of `listen`, none without one; empty: none.
  std::string socket = "auto";
  std::string group = {};  // that may open the socket, besides root and its owner; empty: the gateway's own
};

struct LogOptions {
  std::string level = "info";   // trace | debug | info | warn | error | off
  std::string file;             // empty: stderr
  std::string format = "text";  // text | json (one object a line)
};

class Config {
 public:
  static Config from_file(const std::string& path);
  // `reads_profile` = false: the file of [profile] need not be there, and decides nothing.
  static Config from_text(std::string_view text, const std::string& name, bool reads_profile = true);

  bool ok() const { return diagnostics_->ok(); }
  const Diagnostics& diagnostics() const { return *diagnostics_; }
  // The diagnostics from the `first`th on, a line each, without a line break at the end: this file's by line, then
  // those of the files that it names.
  std::string mistakes(std::size_t first = 0) const;
  // Whether the captures that ports read are whole (port/capture_file.h): what is wrong there goes to the diagnostics;
  // the Error is those lines. One that is not there is passed over: it may be by the time the ports open. `progress`:
  // asked while a big one is read, which it ends by false. Those that a port's driver cannot read as they are (no
  // Ethernet, say) are copied for it where that is asked for. Cost: the files are read.
  enum class Captures { looked_at, copied };
  Expected<void> check_captures(const engine::TableProgress& progress = {}, Captures captures = Captures::looked_at);
  // For a mistake that is found outside the file's own sections.
  void add_problem(std::string line) { diagnostics_->lines.push_back(std::move(line)); }
  // A refusal that was found after the file was read, by whoever uses its settings: each of its lines with the place in
  // front of the setting that it names ("[engine] cores", "[[port]] 'lan'", a twin's name), or of the section when the
  // setting is not in the file; a line that begins with a place of its own stays.
  std::string placed(const std::string& refusal);
  // As if [profile] file named a file with it. A bound that then exceeds the deadline is a mistake.
  void use_profile(engine::Profile profile);
  // A function's section, empty when absent. Lives as long as this Config.
  Settings section(std::string_view name);
  // What the section's reader has made of it, as JSON (Settings::in_force()).
  std::string in_force(std::string_view name) const;
  // The [[port]] sections, in order.
  std::vector<Settings> ports();
  const std::string& file() const { return file_; }

  engine::Options engine;
  ProfileOptions profile;
  PluginOptions plugins;
  ApiOptions api;
  LogOptions log;

 private:
  Config(std::string file, std::unique_ptr<Diagnostics> diagnostics, Expected<Settings> root, bool reads_profile);
  std::uint64_t line_of(std::string_view mistake) const;
  void read_api();
  void read_log();
  void read_functions();
  void check_port_sizes();
  void check_virtual_ports();

  std::string file_;
  std::unique_ptr<Diagnostics> diagnostics_;  // by pointer: Settings refer to it
  Settings root_;
};

}  // namespace sluice::control
