#include <algorithm>
#include <sstream>
#include <string_view>

#include "control/config.h"
#include "engine/element.h"

namespace sluice::control {
namespace {

bool names(const std::string& line, const std::string& word) {
  return !word.empty() && line.find("'" + word + "'") != std::string::npos;
}

constexpr std::string_view word_letters = "abcdefghijklmnopqrstuvwxyz_0123456789";
constexpr std::string_view digits = "0123456789";

// By hand and not by regular expressions, which take stack for each character: a line may hold a path of any length.
// "FILE:LINE: " at the beginning.
bool has_place(std::string_view line) {
  const std::size_t colon = line.find_first_of(":[");
  if (colon == std::string_view::npos || colon == 0 || line[colon] != ':') return false;
  const std::size_t end = line.find_first_not_of(digits, colon + 1);
  return end != std::string_view::npos && end > colon + 1 && line.substr(end).starts_with(": ");
}

// The first word behind "[section]" that is one of its keys in the file; without one, the section itself.
unsigned line_in_section(Settings root, const std::string& line, bool needs_key) {
  for (std::size_t open = line.find('['); open != std::string::npos; open = line.find('[', open + 1)) {
    const std::size_t close = std::min(line.find_first_not_of(word_letters, open + 1), line.size());
    const std::string name = line.substr(open + 1, close - open - 1);
    const bool known = name == "engine" || name == "memory" || name == "api" || name == "log" || name == "profile" ||
                       name == "plugins" || engine::find_element(name) != nullptr;
    if (!known || line[close] != ']') continue;
    const Settings section = root.section(name);
    if (!needs_key) return section.line("");
    std::size_t end = close;
    for (std::size_t at = 0; (at = line.find_first_of(word_letters, end)) != std::string::npos;) {
      end = std::min(line.find_first_not_of(word_letters, at), line.size());
      const std::string_view word = std::string_view(line).substr(at, end - at);
      if (section.has(word)) return section.line(word);
    }
  }
  return 0;
}

// The NAME of "[[port]] 'NAME'", "port 'NAME'" or "port "NAME""; empty: no port is named.
std::string named_port(const std::string& line) {
  for (const std::string_view before : {"port]] '", "port '", "port \""}) {
    const std::size_t at = line.find(before);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + before.size();
    return line.substr(begin, line.find(before.back(), begin) - begin);
  }
  return {};
}

unsigned line_in_port(Settings root, const std::string& line) {
  const std::string port = named_port(line);
  for (Settings& section : root.sections("port")) {
    if (const std::string twin = section.text("twin", ""); names(line, twin)) return section.line("twin");
    if (port.empty() || section.text("name", "") != port) continue;
    for (const char* key : {"name", "mtu", "queues", "lanes", "twin", "address", "persistent", "unnumbered", "peer",
                            "descriptors", "promiscuous"}) {
      const bool named = line.find("'" + port + "' " + key + " ") != std::string::npos ||
                         line.find(std::string(key) + " = ") != std::string::npos;
      if (section.has(key) && named) return section.line(key);
    }
    return section.line("device");
  }
  return 0;
}

}  // namespace

std::string Config::placed(const std::string& refusal) {
  std::istringstream lines(refusal);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!text.empty()) text += "\n";
    if (line.starts_with(file_ + ": ")) line.erase(0, file_.size() + 2);
    if (!has_place(line)) {
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
