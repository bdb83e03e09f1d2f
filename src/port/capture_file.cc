#include "port/capture_file.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/file.h"

namespace sluice::port {
namespace {

constexpr std::size_t buffer_bytes = 1 << 18;
constexpr std::uint32_t longest_packet = 262144;    // of libpcap: MAXIMUM_SNAPLEN
constexpr std::uint32_t longest_block = 16U << 20;  // of libpcap's pcapng reader
constexpr std::uint32_t section_block = 0x0a0d0d0a;

struct Closed {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// A file from its start, with a count of what was taken.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(std::fopen(path.c_str(), "rb")), buffer_(1 << 16) {
    if (file_) {
      std::setvbuf(file_.get(), nullptr, _IOFBF, buffer_bytes);
    }
  }
  explicit operator bool() const { return file_ != nullptr; }
  // Of so many bytes, those that are there.
  std::size_t read(void* to, std::size_t bytes) {
    const std::size_t got = std::fread(to, 1, bytes, file_.get());
    at_ += got;
    return got;
  }
  bool skip(std::size_t bytes) {
    while (bytes != 0) {
      const std::size_t piece = read(buffer_.data(), std::min(bytes, buffer_.size()));
      if (piece == 0) {
        return false;
      }
      bytes -= piece;
    }
    return true;
  }
  std::uint64_t at() const { return at_; }

 private:
  std::unique_ptr<std::FILE, Closed> file_;
  std::vector<char> buffer_;
  std::uint64_t at_ = 0;
};

std::uint32_t word(const void* bytes, bool swapped) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return swapped ? __builtin_bswap32(value) : value;
}

// What was found where the walk ended.
struct Found {
  std::uint64_t packets = 0, begin = 0;  // whole ones; of the one that is not
  std::optional<std::uint32_t> length;   // that it cannot have
  bool whole = true;
};

// Behind the file's header of 24 bytes, of which the first four have been read.
Found walk_pcap(Reader& in, bool swapped) {
  Found found;
  found.whole = in.skip(20);
  while (found.whole) {
    std::uint8_t header[16];
    found.begin = in.at();
    const std::size_t got = in.read(header, sizeof header);
    if (got == 0) {
      break;
    }
    const std::uint32_t length = got == sizeof header ? word(header + 8, swapped) : 0;
    if (length > longest_packet) {
      found.length = length;
    }
    found.whole = got == sizeof header && !found.length && in.skip(length);
    found.packets += found.whole ? 1 : 0;
  }
  return found;
}

// Of which the first four bytes have been read: a block's type.
Found walk_pcapng(Reader& in) {
  Found found;
  bool swapped = false;
  std::uint8_t head[12];
  std::uint32_t type = section_block;
  std::memcpy(head, &type, sizeof type);
  std::size_t got = 4 + in.read(head + 4, 8);
  while (found.whole && got != 0) {
    type = word(head, swapped);
    if (type == section_block) {  // reads alike from either end
      swapped = word(head + 8, false) == 0x4d3c2b1a;
    }
    const std::uint32_t length = got == sizeof head ? word(head + 4, swapped) : 0;
    if (got == sizeof head && (length < sizeof head || length > longest_block)) {
      found.length = length;
    }
    found.whole = got == sizeof head && !found.length && in.skip(length - sizeof head);
    const bool is_packet = type == 2 || type == 3 || type == 6;  // packet (obsolete), simple, enhanced
    found.packets += found.whole && is_packet ? 1 : 0;
    if (found.whole) {
      found.begin = in.at();
      got = in.read(head, sizeof head);
    }
  }
  return found;
}

}  // namespace

Expected<void> check_capture(const std::string& path) {
  if (!check_regular_file(path)) {
    return {};
  }
  Reader in(path);
  std::uint32_t magic = 0;
  if (!in || in.read(&magic, sizeof magic) != sizeof magic) {
    return {};
  }
  const bool swapped = magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
  if (magic != section_block && magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && !swapped) {
    return {};
  }
  const Found found = magic == section_block ? walk_pcapng(in) : walk_pcap(in, swapped);
  if (found.whole) {
    return {};
  }
  const std::string wrong = found.length ? "a packet has a length of " + std::to_string(*found.length) + " bytes"
                                         : "the file ends inside a packet";
  return make_error(path + ": " + wrong + ", at byte " + std::to_string(found.begin) + " behind " +
                    std::to_string(found.packets) + " whole ones: capture it again, or write those to a file of " +
                    "their own (tcpdump -r FILE -w OTHER)");
}

}  // namespace sluice::port
