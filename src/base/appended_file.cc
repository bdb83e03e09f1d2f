#include "base/appended_file.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace sluice {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<const AppendedFile*> files;
};

// Never destroyed: the log's file may be the last thing that ends.
Registry& registry() {
  static Registry& all = *new Registry();
  return all;
}

}  // namespace

AppendedFile::AppendedFile(Hooks hooks) : hooks_(std::move(hooks)) {
  const std::lock_guard lock(registry().mutex);
  registry().files.push_back(this);
}

AppendedFile::~AppendedFile() {
  const std::lock_guard lock(registry().mutex);
  std::erase(registry().files, this);
}

void AppendedFile::reopen_all() {
  const std::lock_guard lock(registry().mutex);
  for (const AppendedFile* file : registry().files) file->hooks_.reopen();
}

std::vector<std::string> AppendedFile::troubles() {
  const std::lock_guard lock(registry().mutex);
  std::vector<std::string> all;
  for (const AppendedFile* file : registry().files) {
    if (std::string trouble = file->hooks_.trouble(); !trouble.empty()) all.push_back(std::move(trouble));
  }
  return all;
}

}  // namespace sluice
