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

const std::vector<Option<ProfileOptions>>& profile_settings() {
  static const std::vector<Option<ProfileOptions>> all = {
      option::text(
          "file", &ProfileOptions::file,
          "what `sluice calibrate FILE --out PROFILE` has written; a relative name is as seen from where Sluice "
          "is started. On a CPU core the measured time of an inline batch takes the place of the bound's 50 µs, "
          "on a GPU the measured time of collecting that of µ's [estimate](real-time.md)")
          .takes("path")
          .by_default(option::required),
      option::word(
          "others", &ProfileOptions::refuses_others, {{"refuse", true}, {"warn", false}},
          "a profile of another machine, device, chain, suites of streams, number of lanes, overlap or `stagger`; "
          "`\"warn\"`: in the log. `sluice check` does not compare the machine"),
      option::word(
          "streams", &ProfileOptions::admits, {{"admit", true}, {"all", false}},
          "streams beyond what was measured are refused; each then needs a `rate`. `\"all\"`: they are counted "
          "only"),
      option::word(
          "bursts", &ProfileOptions::counts_bursts, {{"report", false}, {"admit", true}},
          "what streams may bring at once, by `burst` and `burst_time`, is said where a cycle has no capacity for "
          "it. `\"admit\"`: streams whose bursts do not [fit into a cycle](real-time.md#which-streams-fit) "
          "beside all rates are refused; on the CPU, which has no cycle, that is an error")};
  return all;
}

void read_profile(Settings root, bool reads_file, engine::Options& engine, ProfileOptions& options) {
  Settings section = root.section("profile");
  option::read(profile_settings(), section, options);
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
  engine.counts_on_gpu = options.admits && profile->subject.device != "cpu";
  use_profile(std::move(*profile), engine, options);
}

}  // namespace sluice::control
