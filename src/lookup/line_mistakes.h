// What is wrong with a file of many lines: the first ten mistakes, each with file and line, and how many more there
// are. Cost: nothing until there is one.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"

namespace sluice::lookup {

class LineMistakes {
 public:
  explicit LineMistakes(const std::string& path) : path_(path) {}

  void add(std::size_t line, const std::string& wrong) {
    if (++count_ <= listed) {
      text_.append(count_ == 1 ? "" : "\n").append(path_).append(":").append(std::to_string(line)).append(": ");
      text_.append(wrong);
    }
  }
  // Whether the next one is still said, and not only counted.
  bool says_next() const { return count_ < listed; }

  Expected<void> result() const {
    if (count_ == 0) {
      return {};
    }
    return make_error(count_ <= listed
                          ? text_
                          : text_ + "\n" + path_ + ": and " + std::to_string(count_ - listed) + " more mistakes");
  }

 private:
  static constexpr std::size_t listed = 10;

  const std::string& path_;
  std::size_t count_ = 0;
  std::string text_;
};

}  // namespace sluice::lookup
