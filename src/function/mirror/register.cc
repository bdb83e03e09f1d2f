// The element's entry in the list of elements: reads [mirror].
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/option.h"
#include "engine/advice.h"
#include "engine/element.h"
#include "engine/port_table.h"
#include "engine/traits.h"
#include "function/mirror/mirror.h"

namespace sluice::function {
namespace {

constexpr std::uint32_t least_length = 64;

PortBits bit_of(std::uint16_t port) {
  return PortBits{1} << port;
}

std::string names_of(const engine::PortTable& ports) {
  std::string names;
  for (std::size_t p = 0; p < ports.size(); ++p) names += (p == 0 ? "" : ", ") + ports[p].name;
  return names;
}

std::optional<std::uint16_t> port_of(Settings& section, std::string_view key, const std::string& name,
                                     const engine::PortTable& ports) {
  const auto port = ports.index(name);
  if (!port) section.error(key, "there is no port \"" + name + "\": write one of " + names_of(ports));
  return port;
}

// What is read of a session before all of them are known.
struct Read {
  Settings section;
  const engine::PortTable* ports;
  const std::vector<Read>* before;
  MirrorSession session = {};
  bool has_to = false;
};

void read_name(Settings& section, Read& to) {
  to.session.name = section.required_text("name");
  for (const Read& other : *to.before) {
    if (to.session.name.empty() || other.session.name != to.session.name) continue;
    section.error("name", "there is a session of this name already");
    break;
  }
}

void read_direction(Settings& section, Read& to) {
  const std::string direction = section.choice("direction", "both", {"rx", "tx", "both"});
  to.session.rx = direction != "tx";
  to.session.tx = direction != "rx";
}

std::string shown_direction(const Read& of) {
  return option::literal(of.session.rx && of.session.tx ? "both" : of.session.rx ? "rx" : "tx");
}

void read_to(Settings& section, Read& to) {
  const std::string name = section.required_text("to");
  const auto port = name.empty() ? std::nullopt : port_of(section, "to", name, *to.ports);
  if (!port) return;
  // Copies would leave by the port under it, where they are copied again.
  if ((*to.ports)[*port].is_virtual) {
    section.error("to", "\"" + name +
                            "\" is the end of a tunnel, which has no wire: name a port with a device of its own, "
                            "where somebody looks at the copies");
  }
  to.has_to = true;
  to.session.to = *port;
  to.session.to_name = name;
}

std::string shown_to(const Read& of) {
  return option::literal(of.has_to ? (*of.ports)[of.session.to].name : "");
}

void read_from(Settings& section, Read& to) {
  const std::vector<std::string> names = section.texts("from");
  if (names.empty() && section.has("from")) {
    section.error("from", "names no port: leave it out for all but those for copies");
  }
  for (const std::string& name : names) {
    const auto port = port_of(section, "from", name, *to.ports);
    if (!port) continue;
    if (to.has_to && *port == to.session.to) {
      section.error("from", "\"" + name + "\" is the port that the copies leave by: take it out, or change `to`");
    } else {
      to.session.from |= bit_of(*port);
    }
  }
}

std::string shown_from(const Read& of) {
  std::vector<std::string> names;
  for (std::uint16_t p = 0; p < of.ports->size(); ++p) {
    if ((of.session.from & bit_of(p)) != 0) names.push_back((*of.ports)[p].name);
  }
  return option::list_literal(names);
}

void read_length(Settings& section, Read& to) {
  const std::int64_t length = section.integer("length", 0, 0, std::numeric_limits<std::uint16_t>::max());
  if (length != 0 && length < least_length) {
    section.error("length", "a copy has " + std::to_string(least_length) + " bytes at least; 0: the whole frame");
  }
  to.session.most = static_cast<std::uint32_t>(length);
}

// Whether a port in `from` may be there depends on `to`, which is read first.
const std::vector<Option<Read>>& session_settings() {
  static const std::vector<Option<Read>> all = option::all_reloadable<Read>(
      {Option<Read>{"name", "no two the same", read_name,
                    [](const Read& of) { return option::literal(of.session.name); }}
           .takes("text")
           .by_default(option::required),
       Option<Read>{"direction", "`\"rx\"`: frames as they come in; `\"tx\"`: as they leave", read_direction,
                    shown_direction}
           .takes("`\"rx\"`, `\"tx\"`, `\"both\"`")
           .by_default("`\"both\"`"),
       Option<Read>{"to", "the monitor port, which is used for nothing else and is no tunnel's", read_to, shown_to}
           .takes("name of a `[[port]]`")
           .by_default(option::required),
       Option<Read>{"from", "ports whose frames are copied", read_from, shown_from}
           .takes("names of ports")
           .by_default("all ports but those of any `to`"),
       Option<Read>{"length", "bytes of a copy at most; 0: the whole frame", read_length,
                    [](const Read& of) { return std::to_string(of.session.most); }}
           .takes("0, or " + std::to_string(least_length) + " to 65535 bytes")
           .by_default("`0`")});
  return all;
}

std::vector<OptionSection> mirror_sections() {
  return {
      {"[mirror]", "Copies frames to a monitor port; [mirror.md](mirror.md) says what is in a copy."},
      option::section<Read>("[[mirror.session]]", session_settings(),
                            "Which frames are copied to where; up to " + std::to_string(most_sessions) + ".", nullptr),
      lookup::acl::match_section("[[mirror.session.rule]]"),
      lookup::acl::set_section("[[mirror.set]]")};
}

void read_rules(Read& read, MirrorOptions& options) {
  lookup::acl::RuleBook book;
  book.sets = std::move(options.sets);
  book.plan = std::move(options.plan);
  read.session.has_rules = read.section.has("rule");
  lookup::acl::read_matches(read.section, book);
  read.session.rules = std::move(book.rules);
  options.sets = std::move(book.sets);
  options.plan = std::move(book.plan);
}

Read read_session(const Settings& section, const std::vector<Read>& before, const engine::PortTable& ports,
                  MirrorOptions& options) {
  Read read{section, &ports, &before};
  option::read(session_settings(), read.section, read);
  read_rules(read, options);
  read.section.finish();
  return read;
}

// What a port is used for besides; empty: nothing.
std::string other_use(const engine::PortTable& ports, std::uint16_t port) {
  if (ports[port].has_twin) return "has a twin, by which the host sends and receives";
  for (std::uint16_t p = 0; p < ports.size(); ++p) {
    if (p != port && ports[p].names_peer && ports.peer(p) == port) return "is the peer of \"" + ports[p].name + "\"";
  }
  return {};
}

// A port for copies is used for nothing else; copies of copies would go round.
void check_ports(std::vector<Read>& all, const engine::PortTable& ports) {
  for (Read& read : all) {
    const bool is_wire = read.has_to && !ports[read.session.to].is_virtual;
    if (const std::string use = is_wire ? other_use(ports, read.session.to) : ""; !use.empty()) {
      read.section.error("to", "\"" + read.session.to_name + "\" " + use +
                                   ", and on a monitor port all but copies is dropped: name a port without twin and "
                                   "address that is no other one's peer");
    }
    for (const Read& other : all) {
      if (&read == &other || !other.has_to || (read.session.from & bit_of(other.session.to)) == 0) continue;
      read.section.error("from", "\"" + ports[other.session.to].name + "\" is the port that copies of the session \"" +
                                     other.session.name + "\" leave by: no copies are made of those");
      break;
    }
  }
}

// `from` left out: all ports but those for copies.
void fill_from(std::vector<Read>& all, const engine::PortTable& ports) {
  PortBits others = 0;
  for (std::uint16_t p = 0; p < ports.size(); ++p) others |= bit_of(p);
  for (const Read& read : all) others &= read.has_to ? ~bit_of(read.session.to) : ~PortBits{0};
  for (Read& read : all) {
    if (read.section.has("from")) continue;
    read.session.from = others;
    read.section.took("from", shown_from(read));
  }
}

Expected<std::unique_ptr<engine::Element>> make_mirror(Settings& settings, const engine::PortTable& ports) {
  MirrorOptions options;
  lookup::acl::read_sets(settings, options.sets);
  std::vector<Read> all;
  for (const Settings& section : settings.sections("session")) {
    all.push_back(read_session(section, all, ports, options));
    if (all.size() == most_sessions + 1) {
      all.back().section.error("",
                               "there are more than " + std::to_string(most_sessions) + " sessions: put some together");
    }
  }
  check_ports(all, ports);
  fill_from(all, ports);
  for (Read& read : all) options.sessions.push_back(std::move(read.session));
  return std::make_unique<Mirror>(std::move(options));
}

class Type final : public engine::Advice {
 public:
  std::vector<std::string> notes(engine::SectionView& view, Occasion occasion) const override {
    if (!view.section.sections("session").empty()) return {};
    const std::string where = occasion == Occasion::check ? view.file + ": " : "";
    return {where + "[mirror] has no session, and nothing is copied: add a [[mirror.session]] with name and to"};
  }
  std::vector<std::string> keeps_ports(Settings& section) const override {
    std::vector<std::string> all;
    for (Settings& session : section.sections("session")) all.push_back(session.text("to", ""));
    return all;
  }
};

void* find_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Advice>(name, &type);
}

const bool registered =
    engine::register_element({.name = "mirror",
                              .text = "copies frames, whole or cut, to a port where somebody looks at them",
                              .make = make_mirror,
                              .options = mirror_sections,
                              .find_trait = find_type_trait});

}  // namespace
}  // namespace sluice::function
