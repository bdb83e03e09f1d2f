#include "function/ipsec/ipsec_type.h"

#include <utility>

#include "engine/advice.h"
#include "engine/traits.h"
#include "function/ipsec/ipsec_notes.h"
#include "function/readable_keys.h"

namespace sluice::function {
namespace {

class Type final : public engine::Api, public engine::Verbs, public engine::Advice {
 public:
  const std::vector<engine::ApiRoute>& routes() const override { return ipsec_routes(); }
  std::vector<engine::Verb> verbs() const override { return ipsec_verbs(); }

  std::vector<std::string> notes(engine::SectionView& view, Occasion occasion) const override {
    std::vector<std::string> all = ipsec_notes(read_ipsec(view.section), view.ports, occasion == Occasion::start);
    if (std::string note = readable_keys_note(view, "sa"); !note.empty()) all.push_back(std::move(note));
    return all;
  }
  std::vector<std::string> lacks(engine::SectionView& view) const override {
    return ipsec_lacks(read_ipsec(view.section));
  }
  std::string_view wants_in_chain(Settings& /*section*/) const override { return "route"; }
};

}  // namespace

void* find_ipsec_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Api, engine::Verbs, engine::Advice>(name, &type);
}

}  // namespace sluice::function
