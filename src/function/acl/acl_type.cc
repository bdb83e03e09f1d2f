#include "function/acl/acl_type.h"

#include "engine/answers.h"
#include "engine/section_files.h"
#include "engine/traits.h"
#include "function/acl/acl.h"

namespace sluice::function {
namespace {

class Type final : public engine::Api, public engine::Verbs, public engine::SectionFiles, public engine::Answers {
 public:
  const std::vector<engine::ApiRoute>& routes() const override { return acl_routes(); }
  std::vector<engine::Verb> verbs() const override { return acl_verbs(); }
  std::vector<Read> reads(Settings& section) const override {
    std::vector<Read> all = {{section.text("rules", ""), "the file of [acl] rules"}};
    for (Settings& set : section.sections("set")) all.push_back({set.text("file", ""), "the file of an [[acl.set]]"});
    return all;
  }
  std::vector<std::string_view> written() const override { return {"eve"}; }
  std::vector<packet::Reason> answered() const override { return {acl_rejected}; }
};

}  // namespace

void* find_acl_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::Api, engine::Verbs, engine::SectionFiles, engine::Answers>(name, &type);
}

}  // namespace sluice::function
