#include "cli/calibrate/own_traffic.h"

#include <utility>

#include "control/section_views.h"
#include "engine/element.h"

namespace sluice::cli {

std::string traffic_element(const control::Config& config) {
  for (const std::string& name : config.engine.chain) {
    const engine::ElementType* const type = engine::find_element(name);
    if (type != nullptr && type->trait<engine::Calibration>() != nullptr) return name;
  }
  return {};
}

std::string without_limits(std::string text) {
  for (const auto& [type, calibration] : control::types_with<engine::Calibration>()) {
    text = calibration->without_limits(text);
  }
  return text;
}

engine::Calibration::Made made_streams(control::Config& config) {
  engine::Calibration::Made made;
  bool is_first = true;
  control::each_of_chain<engine::Calibration>(config, [&](const auto& calibration, engine::SectionView& view) {
    if (std::exchange(is_first, false)) made = calibration.make_streams(view);
  });
  return made;
}

Expected<std::unique_ptr<engine::Traffic>> own_traffic(control::Config& config, unsigned most, unsigned lanes) {
  Expected<std::unique_ptr<engine::Traffic>> traffic;
  bool is_first = true;
  control::each_of_chain<engine::Calibration>(config, [&](const auto& calibration, engine::SectionView& view) {
    if (std::exchange(is_first, false)) traffic = calibration.make_traffic(view, most, lanes);
  });
  return traffic;
}

std::string traffic_text() {
  std::string text;
  for (const auto& [type, calibration] : control::types_with<engine::Calibration>()) {
    text += (text.empty() ? "" : "\n") + std::string(calibration->text());
  }
  return text;
}

}  // namespace sluice::cli
