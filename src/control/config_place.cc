#include <regex>
#include <sstream>

#include "control/config.h"

namespace sluice::control {
namespace {

bool names(const std::string& line, const std::string& word) {
  return !word.empty() && line.find("'" + word + "'") != std::string::npos;
}

// The first word behind "[section]" that is one of its keys in the file; without one, the section itself.
unsigned line_in_section(Settings root, const std::string& line, bool needs_key) {
  static const std::regex section("\\[(engine|memory|route|api|log)\\]");
  static const std::regex word("[a-z_0-9]+");
  const std::sregex_iterator end;
  for (std::sregex_iterator at(line.begin(), line.end(), section); at != end; ++at) {
    const Settings found = root.section((*at)[1].str());
    if (!needs_key) return found.line("");
    const auto behind = line.begin() + at->position() + at->length();
    for (std::sregex_iterator key(behind, line.end(), word); key != end; ++key) {
      if (found.has(key->str())) return found.line(key->str());
    }
  }
  return 0;
}

unsigned line_in_port(Settings root, const std::string& line) {
  std::smatch by_name;
  static const std::regex port("(?:\\[\\[port\\]\\]|port) ['\"]([a-z0-9_-]+)['\"]");
  const bool named = std::regex_search(line, by_name, port);
  for (Settings& section : root.sections("port")) {
    if (const std::string twin = section.text("twin", ""); names(line, twin)) return section.line("twin");
    if (!named || section.text("name", "") != by_name[1].str()) continue;
    for (const char* key : {"mtu", "queues", "lanes", "descriptors"}) {
      if (section.has(key) && line.find(std::string(key) + " = ") != std::string::npos) return section.line(key);
    }
    return section.line("device");
  }
  return 0;
}

}  // namespace

std::string Config::placed(const std::string& refusal) {
  static const std::regex has_place("[^:\\[]+:[0-9]+: .*");
  std::istringstream lines(refusal);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!text.empty()) text += "\n";
    if (!std::regex_match(line, has_place)) {
      unsigned at = line_in_section(root_, line, true);
      if (at == 0) at = line_in_port(root_, line);
      if (at == 0) at = line_in_section(root_, line, false);
      text += file_ + (at == 0 ? "" : ":" + std::to_string(at)) + ": ";
    }
    text += line;
  }
  return text;
}

}  // namespace sluice::control
