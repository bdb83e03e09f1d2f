// The trait of an element's type whose section names files: so that none is read as one thing and written as another.
//
// Thread-safety: the control thread.
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
    std::string what;  // in a sentence's middle: "the file of [section] key"
  };
  // What is read, as far as it is known before it is read. The file has the section.
  virtual std::vector<Read> reads(Settings& /*section*/) const { return {}; }
  // Keys of the files that are written as long as the gateway runs. Empty, or "-", is none.
  virtual std::vector<std::string_view> written() const { return {}; }
  // Whether the element's own reader sees to it that it writes none of the files that it reads.
  virtual bool keeps_them_apart() const { return false; }

 protected:
  ~SectionFiles() = default;
};

}  // namespace sluice::engine
