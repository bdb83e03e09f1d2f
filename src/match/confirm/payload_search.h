// One run of a PayloadMatcher over the buffers of a packet. Of payload_matcher.cc; not for others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "match/confirm/payload_matcher.h"

namespace sluice::match {

struct PayloadSearch {
  using Step = PayloadMatcher::Step;

  const PayloadMatcher& matcher;
  const Buffers& buffers;
  PayloadMatcher::Scratch& scratch;
  unsigned steps_left = PayloadMatcher::most_steps;
  std::uint64_t deadline = PayloadMatcher::unlimited;
  // The end of the previous match in each buffer.
  std::array<std::size_t, buffer_count> cursor{};
  bool decoded = false;  // scratch.decoded_ is there
  bool unknown = false;  // a regular expression ended in an error
  std::size_t work = 0;  // bytes of search since the clock was read

  // Whether the checks from `i` on hold.
  bool from(std::size_t i);

 private:
  // The clock is read for so many bytes of search; a step counts as some.
  static constexpr std::size_t bytes_a_clock = 16 << 10, bytes_a_step = bytes_a_clock / 64;

  // What is to come takes as long as a search of so many bytes. False: the time is over, and no step is left.
  bool has_time(std::size_t bytes);
  // The first place of `what` in bytes [from, to); npos: it is not there, or there was no time to find out.
  std::size_t find(std::string_view bytes, std::size_t from, std::size_t to, const Needle& what);
  std::optional<std::string_view> bytes_of(Buffer buffer) const;
  std::size_t& cursor_of(Buffer buffer) { return cursor[static_cast<std::size_t>(buffer)]; }
  std::int64_t value_of(const Operand& operand) const {
    return operand.variable < 0
               ? operand.value
               : static_cast<std::int64_t>(scratch.variables_[static_cast<std::size_t>(operand.variable)]);
  }
  // A number of the payload's that is negative, or too large: a place beyond each buffer.
  bool wraps(const Operand& operand) const { return operand.variable >= 0 && value_of(operand) < 0; }
  struct Range {
    std::size_t first, last;  // of bytes; none where last <= first
  };
  Range range_of(const Placement& place, std::size_t cursor, std::size_t size) const;
  // Goes on behind a match that ends at `end`.
  bool after(std::size_t i, Buffer buffer, std::size_t end);

  bool check(std::size_t i, const Step& step, std::string_view bytes, const Content& content);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const Pcre& pcre);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const ByteTest& test);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const ByteJump& jump);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const ByteExtract& extract);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const ByteMath& math);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const IsDataAt& data);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const Base64Decode& decode);
  bool check(std::size_t i, const Step& step, std::string_view bytes, const BufferSize& size);

  struct Number {
    std::uint64_t value;
    std::size_t end;  // of its bytes
  };
  std::optional<Number> number_of(const ByteNumber& number, std::string_view bytes, bool may_be_empty = false);
};

}  // namespace sluice::match
