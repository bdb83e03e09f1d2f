// Where tests find the public data, and whether one may be skipped without it: $SLUICE_DATA, else ../shared/data, which
// lies beside a checkout (ctest runs tests in its root).
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace sluice::test {

inline std::string data_folder() {
  const char* const named = std::getenv("SLUICE_DATA");
  return named != nullptr ? named : "../shared/data";
}

inline std::string data_path(const std::string& name) {
  return data_folder() + "/" + name;
}

// Why a test of the data `name` has to be skipped: it is not there. Empty: it is; or it should be, as CI has the folder
// (CI=true) or names one, and there the test runs and fails.
inline std::string why_no_data(const std::string& name) {
  const std::string path = data_path(name);
  if (std::filesystem::exists(path)) return "";
  const bool is_ci = std::getenv("CI") != nullptr;
  if (is_ci && (std::getenv("SLUICE_DATA") != nullptr || std::filesystem::exists(data_folder()))) return "";
  return path + " is not there; set SLUICE_DATA to the data folder";
}

}  // namespace sluice::test
