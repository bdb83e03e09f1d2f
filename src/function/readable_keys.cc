#include "function/readable_keys.h"

#include <sys/stat.h>

namespace sluice::function {

std::string readable_keys_note(engine::SectionView& view, std::string_view list) {
  struct stat facts {};
  if (!view.section.has(list) || stat(view.file.c_str(), &facts) != 0 || (facts.st_mode & S_IROTH) == 0) return "";
  return view.file + ": every user of this machine can read its keys: chmod o= " + view.file;
}

}  // namespace sluice::function
