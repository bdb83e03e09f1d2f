// What is wrong with a file of many lines: the first ten mistakes, each with file and line, and how many more there
// are from which line on. Cost: nothing until there is one.
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
    } else if (count_ == listed + 1) {
      first_unlisted_ = line;
    }
  }
  // Whether the next one is still said, and not only counted.
  bool says_next() const { return count_ < listed; }

  Expected<void> result() const {
    if (count_ == 0) {
      return {};
    }
    if (count_ <= listed) {
      return make_error(text_);
    }
    const std::size_t more = count_ - listed;
    return make_error(text_ + "\n" + path_ + ":" + std::to_string(first_unlisted_) + ": and " +
                      (more == 1 ? "one more mistake" : std::to_string(more) + " more mistakes from here on"));
  }

 private:
  static constexpr std::size_t listed = 10;

  const std::string& path_;
  std::size_t count_ = 0;
  std::size_t first_unlisted_ = 0;
  std::string text_;
};

}  // namespace sluice::lookup
