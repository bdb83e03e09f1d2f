#include "control/pcapng_blocks.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice::control {
namespace {

template <typename T>
void append(std::string& text, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  text.append(bytes, sizeof value);
}

template <typename T>
std::string_view as_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

PcapngBlock::PcapngBlock(std::uint32_t type) {
  append(text_, type);
  append(text_, std::uint32_t{0});  // its length, when it is known
}

PcapngBlock& PcapngBlock::half(std::uint16_t value) {
  append(text_, value);
  return *this;
}

PcapngBlock& PcapngBlock::word(std::uint32_t value) {
  append(text_, value);
  return *this;
}

PcapngBlock& PcapngBlock::time(std::uint64_t nanoseconds) {
  return word(static_cast<std::uint32_t>(nanoseconds >> 32)).word(static_cast<std::uint32_t>(nanoseconds));
}

PcapngBlock& PcapngBlock::bytes(std::span<const std::uint8_t> bytes) {
  text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  pad();
  return *this;
}

PcapngBlock& PcapngBlock::option(std::uint16_t code, std::string_view value) {
  value = value.substr(0, std::numeric_limits<std::uint16_t>::max());
  has_options_ = true;
  half(code).half(static_cast<std::uint16_t>(value.size()));
  text_.append(value);
  pad();
  return *this;
}

PcapngBlock& PcapngBlock::option_word(std::uint16_t code, std::uint32_t value) {
  return option(code, as_bytes(value));
}

PcapngBlock& PcapngBlock::option_long(std::uint16_t code, std::uint64_t value) {
  return option(code, as_bytes(value));
}

std::string PcapngBlock::text() {
  if (has_options_) word(0);
  const auto length = static_cast<std::uint32_t>(text_.size() + sizeof(std::uint32_t));
  word(length);
  std::memcpy(text_.data() + sizeof(std::uint32_t), &length, sizeof length);
  return text_;
}

void PcapngBlock::pad() {
  text_.resize((text_.size() + 3) / 4 * 4);
}

}  // namespace sluice::control
