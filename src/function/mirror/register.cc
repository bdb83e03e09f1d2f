// The element's entry in the list of elements: reads [mirror].
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/element.h"
#include "engine/port_table.h"
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
  MirrorSession session;
  bool has_to = false;
};

void read_from(Read& read, const engine::PortTable& ports) {
  const std::vector<std::string> names = read.section.texts("from");
  if (names.empty() && read.section.has("from")) {
    read.section.error("from", "names no port: leave it out for all but those for copies");
  }
  for (const std::string& name : names) {
    const auto port = port_of(read.section, "from", name, ports);
    if (!port) continue;
    if (read.has_to && *port == read.session.to) {
      read.section.error("from", "\"" + name + "\" is the port that the copies leave by: take it out, or change `to`");
    } else {
      read.session.from |= bit_of(*port);
    }
  }
}

void read_length(Read& read) {
  const std::int64_t length = read.section.integer("length", 0, 0, std::numeric_limits<std::uint16_t>::max());
  if (length != 0 && length < least_length) {
    read.section.error("length", "a copy has " + std::to_string(least_length) + " bytes at least; 0: the whole frame");
  }
  read.session.most = static_cast<std::uint32_t>(length);
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

Read read_session(Settings section, const std::vector<Read>& before, const engine::PortTable& ports,
                  MirrorOptions& options) {
  Read read{std::move(section), {}};
  MirrorSession& session = read.session;
  session.name = read.section.required_text("name");
  for (const Read& other : before) {
    if (session.name.empty() || other.session.name != session.name) continue;
    read.section.error("name", "there is a session of this name already");
    break;
  }
  const std::string direction = read.section.choice("direction", "both", {"rx", "tx", "both"});
  session.rx = direction != "tx";
  session.tx = direction != "rx";
  if (const std::string to = read.section.required_text("to"); !to.empty()) {
    if (const auto port = port_of(read.section, "to", to, ports)) {
      session.to = *port;
      session.to_name = to;
      read.has_to = true;
    }
  }
  read_from(read, ports);
  read_length(read);
  read_rules(read, options);
  read.section.finish();
  return read;
}

// A port for copies is used for nothing else; copies of copies would go round.
void check_ports(std::vector<Read>& all, const engine::PortTable& ports) {
  for (Read& read : all) {
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
    if (!read.section.has("from")) read.session.from = others;
  }
}

Expected<std::unique_ptr<engine::Element>> make_mirror(Settings& settings, const engine::PortTable& ports) {
  MirrorOptions options;
  lookup::acl::read_sets(settings, options.sets);
  std::vector<Read> all;
  for (Settings& section : settings.sections("session")) {
    all.push_back(read_session(section, all, ports, options));
    if (all.size() == most_sessions + 1) {
      section.error("", "there are more than " + std::to_string(most_sessions) + " sessions: put some together");
    }
  }
  check_ports(all, ports);
  fill_from(all, ports);
  for (Read& read : all) options.sessions.push_back(std::move(read.session));
  return std::make_unique<Mirror>(std::move(options));
}

const bool registered =
    engine::register_element({.name = "mirror",
                              .text = "copies frames, whole or cut, to a port where somebody looks at them",
                              .make = make_mirror});

}  // namespace
}  // namespace sluice::function
