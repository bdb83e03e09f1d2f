#include "match/rules/rule_files.h"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sluice::match {
namespace {

bool is_pattern(const std::string& name) {
  std::error_code fault;
  return name.find_first_of("*?[") != std::string::npos && !std::filesystem::exists(name, fault);
}

Expected<std::vector<std::string>> matches_of(const std::string& pattern) {
  glob_t found{};
  const int result = glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  const int error = errno;
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (result == 0 ? found.gl_pathc : 0));
  globfree(&found);
  std::sort(files.begin(), files.end());  // glob() would sort as the locale does
  if (result == GLOB_NOMATCH) return make_error(pattern + ": no file matches");
  if (result != 0) {
    return make_error(pattern + ": " + (result == GLOB_ABORTED ? std::strerror(error) : "there is not enough memory"));
  }
  return files;
}

}  // namespace

Expected<std::vector<std::string>> rule_files(std::span<const std::string> names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (!is_pattern(name)) {
      files.push_back(name);
      continue;
    }
    auto matches = matches_of(name);
    if (!matches) return matches;
    for (std::string& match : *matches) {
      if (std::find(files.begin(), files.end(), match) == files.end()) files.push_back(std::move(match));
    }
  }
  return files;
}

}  // namespace sluice::match
