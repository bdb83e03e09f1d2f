#include "control/plugins.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>
#include <tuple>

#include "base/file.h"
#include "engine/plugin.h"
#include "packet/reason.h"

namespace sluice::control {
namespace {

constexpr char plugin_symbol[] = "sluice_plugin";
constexpr std::string_view contract_prefix = "sluice-contract:";
constexpr std::size_t largest_file = 1 << 30;
// The file's own sections: no element can have one of these as its own.
constexpr std::array<std::string_view, 7> sections = {"engine", "memory", "port", "api", "log", "profile", "plugins"};

// Which file it was.
using Identity = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;
struct Loaded {
  std::string path;  // without links
  Identity identity;
};
bool closed = false;

std::vector<Loaded>& loaded() {
  static std::vector<Loaded> instance;
  return instance;
}

Expected<Identity> identity_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return make_error("there is no such file");
  return Identity{found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

// Before any of its code runs: what it was built for.
Expected<void> check_contract(const std::string& path) {
  const auto content = read_regular_file(path, largest_file);
  if (!content) return tl::unexpected(content.error());
  const std::string_view bytes = *content;
  constexpr std::string_view mark = SLUICE_CONTRACT_MARK;
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    return make_error("is no shared object: build the plug-in with sluice_element() of the CMake package");
  if (bytes.find(mark) != std::string_view::npos) return {};
  const std::size_t at = bytes.find(contract_prefix);
  if (at == std::string_view::npos) {
    return make_error(std::string("has no symbol ") + plugin_symbol +
                      ": one of its sources has to say SLUICE_PLUGIN() of <sluice/plugin.h>");
  }
  const std::string_view found = bytes.substr(at, std::min(bytes.find(';', at) - at + 1, std::size_t{80}));
  const std::string_view version = found.substr(std::min(found.rfind(':') + 1, found.size()));
  return make_error("was built for another contract of elements, of Sluice " +
                    std::string(version.substr(0, version.find(';'))) + " (" +
                    std::string(found.substr(contract_prefix.size(), 12)) +
                    "); this is Sluice " SLUICE_CONTRACT_VERSION " (" SLUICE_CONTRACT
                    "): build it anew against the headers that are installed with this program");
}

struct Closed {
  void operator()(void* handle) const { dlclose(handle); }
};

// Path and colons are said in front.
std::string reason_of_loader(const std::string& path) {
  const char* const said = dlerror();
  std::string text = said == nullptr ? "the loader does not say why" : said;
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return text;
}

Expected<void> take_elements(const engine::Plugin& plugin, const std::string& path) {
  std::vector<engine::ElementType> types = plugin.elements();
  if (types.empty()) return make_error("registers no function");
  for (engine::ElementType& type : types) {
    if (std::ranges::find(sections, type.name) != sections.end()) {
      return make_error("function '" + std::string(type.name) +
                        "' has the name of a section of the configuration: give it another name");
    }
    type.origin = path + " (" + plugin.name + " " + plugin.version + ")";
  }
  if (auto added = engine::add_elements(std::move(types)); !added) {
    return make_error(added.error().message + ": give it another name, or load one of the two");
  }
  return {};
}

Expected<void> load(const std::string& path) {
  if (auto fits = check_contract(path); !fits) return fits;
  // In front of the handle: what it has registered goes before its texts do.
  std::unique_ptr<void, Closed> handle;
  packet::ReasonTrial reasons;
  handle.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) return make_error("cannot be loaded: " + reason_of_loader(path));
  const auto* const plugin = static_cast<const engine::Plugin*>(dlsym(handle.get(), plugin_symbol));
  if (plugin == nullptr) {
    return make_error(std::string("has no symbol ") + plugin_symbol +
                      ": one of its sources has to say SLUICE_PLUGIN() of <sluice/plugin.h>, and export it");
  }
  if (!reasons.mistake().empty()) {
    return make_error(reasons.mistake() + (reasons.mistake().ends_with("twice")
                                               ? ": give the reason another name, with the function's in front"
                                               : ""));
  }
  if (auto taken = take_elements(*plugin, path); !taken) return taken;
  reasons.keep();
  (void)handle.release();
  return {};
}

}  // namespace

const std::vector<Option<PluginOptions>>& plugin_settings() {
  static const std::vector<Option<PluginOptions>> all = {Option<PluginOptions>{
      "load",
      "paths of shared objects that bring functions of their own ([write an element](write-an-element.md)), loaded in "
      "this order before `chain` is read. One that was built for another version, lacks the symbol `sluice_plugin`, or "
      "brings a name that is there already is refused",
      [](Settings& section, PluginOptions& to) { to.load = section.texts("load", to.load); },
      [](const PluginOptions& of) {
        return option::list_literal(of.load);
      }}.takes("list of paths")};
  return all;
}

Expected<void> load_plugin(const std::string& path) {
  const auto refuse = [&](const std::string& why) { return make_error(path + ": " + why); };
  const auto identity = identity_of(path);
  if (!identity) return refuse(identity.error().message + ": install the plug-in, or take it out of the list");
  std::error_code failed;
  const std::string place = std::filesystem::canonical(path, failed).string();
  if (failed) return refuse(failed.message());
  if (std::ranges::any_of(loaded(), [&](const Loaded& one) { return one.path == place; })) return {};
  if (closed) return refuse("a running gateway loads no plug-in: restart it");
  try {
    if (auto done = load(place); !done) {
      std::string why = done.error().message;
      for (const std::string& said : {place + ": ", path + ": "}) {
        if (why.starts_with(said)) why.erase(0, said.size());
      }
      return refuse(why);
    }
  } catch (const std::exception& error) {
    return refuse(std::string("fails while it is loaded: ") + error.what());
  }
  loaded().push_back({place, *identity});
  return {};
}

bool read_plugins(Settings section, PluginOptions& options) {
  option::read(plugin_settings(), section, options);
  bool all = true;
  for (const std::string& path : options.load) {
    auto done = load_plugin(path);
    if (done) continue;
    all = false;
    section.error("load", done.error().message);
  }
  section.finish();
  return all;
}

void close_plugins() {
  closed = true;
}

std::vector<std::string> plugin_notes() {
  std::vector<std::string> notes;
  for (const Loaded& one : loaded()) {
    const auto now = identity_of(one.path);
    if (now && *now == one.identity) continue;
    notes.push_back("plug-in " + one.path +
                    " is no longer the file that was loaded: what was loaded stays in force until a restart");
  }
  return notes;
}

}  // namespace sluice::control
