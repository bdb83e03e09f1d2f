#include "control/config_sections.h"
#include "engine/bound.h"
#include "engine/burst.h"
#include "engine/element.h"

namespace sluice::control {

std::chrono::nanoseconds usual_collect_time(const std::vector<std::string>& chain) {
  std::chrono::nanoseconds frame{0};
  for (const std::string& name : chain) {
    if (const auto* const type = engine::find_element(name)) frame += type->classify_time;
  }
  return engine::collect_time_of(frame * engine::burst_size);
}

void use_profile(engine::Profile profile, engine::Options& engine, ProfileOptions& options) {
  engine.inline_batch = profile.inline_batch();
  engine.collect = profile.collect();
  engine.collect_measured = engine.collect.count() != 0;
  if (!engine.collect_measured) engine.collect = usual_collect_time(engine.chain);
  options.profile = std::move(profile);
}

void read_profile(Settings root, bool reads_file, engine::Options& engine, ProfileOptions& options) {
  Settings section = root.section("profile");
  options.file = section.text("file", options.file);
  options.refuses_others = section.choice("others", "refuse", {"refuse", "warn"}) == "refuse";
  options.admits = section.choice("streams", "admit", {"admit", "all"}) == "admit";
  options.counts_bursts = section.choice("bursts", "report", {"report", "admit"}) == "admit";
  section.finish();
  if (options.file.empty()) {
    if (root.has("profile")) section.error("file", "is missing: name what sluice calibrate has written with --out");
    return;
  }
  if (!reads_file) return;
  auto profile = engine::Profile::from_file(options.file);
  if (!profile) {
    section.error("file", profile.error().message);
    return;
  }
  use_profile(std::move(*profile), engine, options);
}

}  // namespace sluice::control
