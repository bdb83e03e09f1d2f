#include "cli/calibrate/acceptance.h"

#include <utility>
#include <vector>

#include "control/config.h"
#include "control/stream_demands.h"
#include "engine/bound.h"

namespace sluice::cli {

Expected<std::string> accept_profile(const std::string& text, const std::string& file, const std::string& device,
                                     const engine::Profile& profile) {
  // As it comes back from its file.
  auto read = engine::Profile::from_text(profile.text(), "the profile");
  if (!read) return tl::unexpected(read.error());
  control::Config config = control::Config::from_text(text, file, false);
  if (!device.empty()) config.engine.device = device;
  config.use_profile(std::move(*read));
  if (!config.ok()) return make_error(config.mistakes());
  const auto timing = engine::plan_timing(config.engine, profile.subject.device != "cpu");
  if (!timing) return make_error(config.placed(timing.error().message));
  std::vector<std::string> notes;
  const auto admission = control::make_admission(config, profile.subject, *timing, notes);
  if (!admission) return make_error(config.placed(admission.error().message));
  auto streams = control::stream_demands(config);
  (void)control::admit_streams(**admission, {}, streams);
  (void)control::check_later_deadlines(**admission, config);
  return config.mistakes();
}

}  // namespace sluice::cli
