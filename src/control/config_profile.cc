#include "control/config_sections.h"

namespace sluice::control {

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
  engine.inline_batch = profile->inline_batch();
  options.profile = std::move(*profile);
}

}  // namespace sluice::control
