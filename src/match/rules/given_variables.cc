#include "match/rules/given_variables.h"

#include <set>

#include "base/quote.h"

namespace sluice::match {

std::vector<std::string> fix_variables(std::span<const std::string> texts, Variables& variables) {
  std::vector<std::string> mistakes;
  std::set<std::string> names;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      mistakes.push_back(in_quotes(text) + " is not NAME=VALUE, such as \"HOME_NET=192.0.2.0/24\"");
      continue;
    }
    const std::string name = text.substr(0, equals);
    if (!names.insert(name).second) {
      mistakes.push_back(in_quotes(text) + ": " + name + " is given twice");
    } else if (auto ok = variables.fix(name, text.substr(equals + 1)); !ok) {
      mistakes.push_back(ok.error().message);
    }
  }
  return mistakes;
}

std::vector<std::string> unusable_variables(const Variables& variables) {
  std::vector<std::string> mistakes;
  for (const std::string& name : variables.fixed()) {
    const auto addresses = variables.addresses("$" + name);
    const auto ports = variables.ports("$" + name);
    if (addresses || ports) continue;
    const bool is_port = name.ends_with("_PORTS") || name.ends_with("_PORT");
    mistakes.push_back(is_port ? ports.error().message : addresses.error().message);
  }
  return mistakes;
}

}  // namespace sluice::match
