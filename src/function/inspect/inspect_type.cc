#include "function/inspect/inspect_type.h"

#include "engine/answers.h"
#include "engine/section_files.h"
#include "engine/traits.h"
#include "function/inspect/inspect.h"
#include "match/rules/rule_files.h"

namespace sluice::function {
namespace {

class Type final : public engine::SectionFiles, public engine::Answers {
 public:
  std::vector<Read> reads(Settings& section) const override {
    const std::string what = "a file of [inspect] rules";
    std::vector<Read> all = {{section.text("threshold_file", ""), what}};
    if (const auto rules = match::rule_files(section.texts("rules"))) {
      for (const std::string& file : *rules) all.push_back({file, what});
    }
    return all;
  }
  std::vector<std::string_view> written() const override { return {"eve", "fast"}; }
  // Of files that its rules include, too.
  bool keeps_them_apart() const override { return true; }
  std::vector<packet::Reason> answered() const override { return {inspect_rejected}; }
};

}  // namespace

void* find_inspect_type_trait(std::string_view name) {
  static Type type;
  return engine::offer<engine::SectionFiles, engine::Answers>(name, &type);
}

}  // namespace sluice::function
