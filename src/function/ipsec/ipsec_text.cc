// One SA or policy as the API and files of `sluice ctl ipsec` have it.
#include <optional>
#include <utility>
#include <vector>

#include "function/ipsec/ipsec_settings.h"

namespace sluice::function {
namespace {

template <class T>
Expected<T> read_one(std::string_view text, const std::string& what, std::string_view list, T (*reader)(Settings&)) {
  Diagnostics diagnostics;
  auto settings = Settings::from_text(text, what, diagnostics);
  if (!settings) return make_error(what + " is no TOML, which is all that can be said without showing it");
  settings->hide_values();
  std::optional<T> made;
  if (settings->has("ipsec")) {
    Settings ipsec = settings->section("ipsec");
    std::vector<Settings> sections = ipsec.sections(list);
    if (sections.size() == 1) {
      made = reader(sections.front());
    } else {
      settings->error("ipsec", "give the keys of one [[ipsec." + std::string(list) + "]], with that line or without");
    }
    ipsec.finish();
    settings->finish();
  } else {
    made = reader(*settings);
  }
  if (diagnostics.ok() && made) return std::move(*made);
  std::string mistakes;
  for (const std::string& line : diagnostics.lines) mistakes += (mistakes.empty() ? "" : "\n") + line;
  return make_error(mistakes);
}

}  // namespace

Expected<ipsec::SaSettings> read_sa_text(std::string_view text, const std::string& what) {
  return read_one(text, what, "sa", read_sa);
}

Expected<GivenSa> read_given_sa_text(std::string_view text, const std::string& what) {
  return read_one(text, what, "sa", read_given_sa);
}

Expected<ipsec::Policy> read_policy_text(std::string_view text, const std::string& what) {
  return read_one(text, what, "policy", read_policy);
}

Expected<ipsec::SaId> read_sa_id_text(std::string_view text, const std::string& what) {
  return read_one(text, what, "sa", read_sa_id);
}

Expected<PolicyId> read_policy_id_text(std::string_view text, const std::string& what) {
  return read_one(text, what, "policy", read_policy_id);
}

}  // namespace sluice::function
