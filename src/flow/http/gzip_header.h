// Reads past the header of a gzip member (RFC 1952 section 2.3), byte by byte. Its flags, but for those of fields that
// are there, are not held against the sender. Thread-safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::flow::http {

class GzipHeader {
 public:
  enum class Step { more, done, not_gzip };
  void begin() { *this = GzipHeader{}; }
  // How many of these bytes, at the beginning, it does not depend on.
  std::size_t skips(std::string_view bytes) const {
    if (part_ != Part::name && part_ != Part::comment) return 0;
    return std::min(bytes.find('\0'), bytes.size());
  }
  Step step(std::uint8_t byte) {
    switch (part_) {
      case Part::fixed:
        return fixed(byte);
      case Part::extra_length:
        left_ |= static_cast<unsigned>(byte) << (8 * count_);
        if (++count_ == 2) {
          part_ = Part::extra;
          return left_ == 0 ? after_extra() : Step::more;
        }
        return Step::more;
      case Part::extra:
        return --left_ == 0 ? after_extra() : Step::more;
      case Part::name:
        return byte == 0 ? after_name() : Step::more;
      case Part::comment:
        return byte == 0 ? after_comment() : Step::more;
      case Part::crc:
        return ++count_ == 2 ? Step::done : Step::more;
    }
    return Step::not_gzip;
  }

 private:
  static constexpr std::uint8_t gzip_extra = 4, gzip_name = 8, gzip_comment = 16, gzip_crc = 2;  // section 2.3.1
  enum class Part : std::uint8_t { fixed, extra_length, extra, name, comment, crc };
  Step fixed(std::uint8_t byte) {
    if ((count_ == 0 && byte != 0x1f) || (count_ == 1 && byte != 0x8b) || (count_ == 2 && byte != 8)) {
      return Step::not_gzip;
    }
    flags_ = count_ == 3 ? byte : flags_;
    if (++count_ < 10) {
      return Step::more;
    }
    count_ = 0;
    if ((flags_ & gzip_extra) != 0) {
      part_ = Part::extra_length;
      return Step::more;
    }
    return after_extra();
  }
  Step after_extra() {
    part_ = Part::name;
    return (flags_ & gzip_name) != 0 ? Step::more : after_name();
  }
  Step after_name() {
    part_ = Part::comment;
    return (flags_ & gzip_comment) != 0 ? Step::more : after_comment();
  }
  Step after_comment() {
    part_ = Part::crc;
    count_ = 0;
    return (flags_ & gzip_crc) != 0 ? Step::more : Step::done;
  }

  Part part_ = Part::fixed;
  std::uint8_t flags_ = 0;
  unsigned count_ = 0;
  unsigned left_ = 0;
};

}  // namespace sluice::flow::http
