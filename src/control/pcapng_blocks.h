// Blocks of a pcapng (draft-ietf-opsawg-pcapng), in this machine's byte order. Thread-safety: none kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::control {

namespace pcapng {
inline constexpr std::uint32_t section = 0x0a0d0d0a, interface = 1, statistics = 5, packet = 6;
inline constexpr std::uint16_t comment = 1, user_application = 4, if_name = 2, if_description = 3, if_resolution = 9,
                               if_filter = 11, flags = 2, drop_count = 4, received = 4, dropped = 5;
}  // namespace pcapng

// One block, whose text() is whole.
class PcapngBlock {
 public:
  explicit PcapngBlock(std::uint32_t type);
  PcapngBlock& half(std::uint16_t value);
  PcapngBlock& word(std::uint32_t value);
  PcapngBlock& time(std::uint64_t nanoseconds);             // in two words, the higher first
  PcapngBlock& bytes(std::span<const std::uint8_t> bytes);  // filled up to a multiple of 4
  PcapngBlock& option(std::uint16_t code, std::string_view value);
  PcapngBlock& option_word(std::uint16_t code, std::uint32_t value);
  PcapngBlock& option_long(std::uint16_t code, std::uint64_t value);
  // Ends its options, if it has any, and the block.
  std::string text();

 private:
  void pad();
  std::string text_;
  bool has_options_ = false;
};

}  // namespace sluice::control
