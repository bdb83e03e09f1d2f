#include "control/plugins.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "base/file.h"
#include "base/name.h"
#include "base/quote.h"
#include "base/thrown.h"
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

// Its headers and what they say is in the file: the loader would reach behind the end of one that is cut short. Files
// of other machines are left to its words.
Expected<void> check_whole(std::string_view bytes) {
  if (!bytes.starts_with(ELFMAG)) {
    return make_error("is no shared object: build the plug-in with sluice_element() of the CMake package");
  }
  const auto damaged = [&](std::uint64_t end) {
    return make_error("is damaged or cut short: it has " + std::to_string(bytes.size()) +
                      " bytes, and its headers say " + std::to_string(end) + ": build it or copy it again");
  };
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return damaged(sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return {};
  if (header.e_type != ET_DYN) {
    return make_error("is no shared object: build the plug-in with sluice_element() of the CMake package");
  }
  std::uint64_t end = 0;
  const auto reach = [&](std::uint64_t offset, std::uint64_t size) {
    end = std::max(end, offset > UINT64_MAX - size ? UINT64_MAX : offset + size);
  };
  reach(header.e_shoff, std::uint64_t{header.e_shnum} * header.e_shentsize);
  reach(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (end > bytes.size()) return damaged(end);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, bytes.data() + header.e_phoff + i * sizeof part, sizeof part);
    reach(part.p_offset, part.p_filesz);
  }
  if (end > bytes.size()) return damaged(end);
  return {};
}

// Before any of its code runs: what it was built for.
Expected<void> check_contract(const std::string& path) {
  const auto content = read_regular_file(path, largest_file);
  if (!content) return tl::unexpected(content.error());
  const std::string_view bytes = *content;
  constexpr std::string_view mark = SLUICE_CONTRACT_MARK;
  if (auto whole = check_whole(bytes); !whole) return whole;
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

// "[NAME]", "[NAME.x]" or "[[NAME.x]]" of one of these functions.
bool is_own_section(const std::string& title, const std::vector<engine::ElementType>& types) {
  return std::ranges::any_of(types, [&](const engine::ElementType& type) {
    const std::string name(type.name);
    return title == "[" + name + "]" || (title.starts_with("[" + name + ".") && title.ends_with("]")) ||
           (title.starts_with("[[" + name + ".") && title.ends_with("]]"));
  });
}

// What the functions say of themselves, once: what they throw here would else end the program later.
Expected<void> check_sections(const std::vector<engine::ElementType>& types) {
  for (const engine::ElementType& type : types) {
    if (type.options == nullptr || !is_name(type.name)) continue;  // the latter is refused for its name
    std::vector<OptionSection> sections_of_it;
    try {
      sections_of_it = type.options();
    } catch (...) {
      return make_error("function " + in_quotes(type.name) + ": its `options` fails: " + what_was_thrown());
    }
    for (const OptionSection& section : sections_of_it) {
      if (is_own_section(section.title, types)) continue;
      return make_error("function " + in_quotes(type.name) + " declares the section " + in_quotes(section.title) +
                        ", which is not its own: its sections are [" + printable(type.name) + "] and those in it");
    }
  }
  return {};
}

// Here, and not where the file is loaded: a type of exception of the plug-in's own goes with it.
Expected<std::vector<engine::ElementType>> elements_of(const engine::Plugin& plugin) {
  try {
    return plugin.elements();
  } catch (...) {
    return make_error("fails when it is asked for its functions: " + what_was_thrown());
  }
}

Expected<void> take_elements(const engine::Plugin& plugin, const std::string& path) {
  auto registered = elements_of(plugin);
  if (!registered) return tl::unexpected(registered.error());
  std::vector<engine::ElementType>& types = *registered;
  if (types.empty()) return make_error("registers no function");
  for (engine::ElementType& type : types) {
    if (std::ranges::find(sections, type.name) != sections.end()) {
      return make_error("function '" + std::string(type.name) +
                        "' has the name of a section of the configuration: give it another name");
    }
    type.origin = path + " (" + plugin.name + " " + plugin.version + ")";
  }
  if (auto own = check_sections(types); !own) return own;
  return engine::add_elements(std::move(types));
}

// Null: dlerror() says why. What the static initialisers of the plug-in throw comes through the loader, to which such
// an object is loaded from then on: it is never asked for it again.
Expected<void*> open_object(const std::string& path) {
  static std::map<std::string, std::string> half_initialised;
  if (const auto why = half_initialised.find(path); why != half_initialised.end()) return make_error(why->second);
  // The loader's header says that it throws nothing, by which a compiler would leave out the handler.
  void* (*volatile const open)(const char*, int) = dlopen;
  try {
    return open(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (...) {
    return make_error(half_initialised[path] = "fails while it is loaded, in an initialiser: " + what_was_thrown());
  }
}

Expected<void> load(const std::string& path) {
  if (auto fits = check_contract(path); !fits) return fits;
  // In front of the handle: what it has registered goes before its texts do.
  std::unique_ptr<void, Closed> handle;
  packet::ReasonTrial reasons;
  const auto opened = open_object(path);
  if (!opened) return tl::unexpected(opened.error());
  handle.reset(*opened);
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
  if (path.empty()) return make_error("a path is empty: name the file of a plug-in, or take it out of the list");
  const auto refuse = [&](const std::string& why) { return make_error(path + ": " + why); };
  const auto identity = identity_of(path);
  if (!identity) return refuse(identity.error().message + ": install the plug-in, or take it out of the list");
  std::error_code failed;
  const std::string place = std::filesystem::canonical(path, failed).string();
  if (failed) return refuse(failed.message());
  if (std::ranges::any_of(loaded(), [&](const Loaded& one) { return one.path == place; })) return {};
  if (closed) return refuse("a running gateway loads no plug-in: restart it");
  if (auto done = load(place); !done) {
    std::string why = done.error().message;
    for (const std::string& said : {place + ": ", path + ": "}) {
      if (why.starts_with(said)) why.erase(0, said.size());
    }
    return refuse(why);
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
