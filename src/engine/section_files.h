// The trait of an element's type whose section names files. A configuration is refused if it writes a file that it also
// reads.
//
// Thread-safety: called by the control thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"

namespace sluice::engine {

class SectionFiles {
 public:
  static constexpr std::string_view trait_name = "section_files";
  struct Read {
    std::string path;
    std::string what;  // as in the middle of a sentence: "the file of [section] key"
  };
  // The files that are read, as far as they are known without reading them. Called if the configuration has the
  // section.
  virtual std::vector<Read> reads(Settings& /*section*/) const { return {}; }
  // The keys that name files which the running gateway writes. A key whose value is empty or "-" names none.
  virtual std::vector<std::string_view> written() const { return {}; }
  // Whether the element itself checks that it writes none of the files that it reads.
  virtual bool keeps_them_apart() const { return false; }

 protected:
  ~SectionFiles() = default;
};

}  // namespace sluice::engine
