#include "port/capture_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace sluice::port {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;
constexpr std::size_t few_bytes = 16 << 10;         // of a piece where headers are further apart than that
constexpr std::uint32_t longest_packet = 262144;    // of libpcap: MAXIMUM_SNAPLEN
constexpr std::uint32_t longest_block = 16U << 20;  // of libpcap's pcapng reader
constexpr std::uint32_t section_block = 0x0a0d0d0a;

// A file of which a walk from front to back looks at little. As long as it was when it was opened.
class Reader {
 public:
  Reader(const std::string& path, const CaptureProgress& progress)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), progress_(progress), piece_(piece_bytes) {
    struct stat status {};
    failed_ = file_ < 0 || fstat(file_, &status) != 0;
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~Reader() {
    if (file_ >= 0) close(file_);
  }
  Reader(const std::string& path, CaptureProgress&& progress) = delete;  // it is kept by reference
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // `bytes` from `at` on, until the next call; null: the file has fewer, failed() or stopped().
  const std::uint8_t* bytes(std::uint64_t at, std::size_t bytes) {
    const bool here = at >= begin_ && at + bytes <= begin_ + filled_;
    if (!here && !fill(at, bytes)) {
      return nullptr;
    }
    ++looks_;
    return piece_.data() + (at - begin_);
  }
  std::uint64_t size() const { return size_; }
  bool failed() const { return failed_; }
  bool stopped() const { return stopped_; }

 private:
  bool fill(std::uint64_t at, std::size_t bytes) {
    stopped_ = stopped_ || (progress_ && !progress_(at, size_));
    if (failed_ || stopped_ || at + bytes > size_) {
      return false;
    }
    const std::size_t wanted = at - begin_ > looks_ * few_bytes ? few_bytes : piece_bytes;
    looks_ = 0;
    begin_ = at;
    filled_ = 0;
    while (filled_ < wanted) {
      const ssize_t got = pread(file_, piece_.data() + filled_, wanted - filled_, static_cast<off_t>(at + filled_));
      failed_ = got < 0 && errno != EINTR;
      if (failed_ || got == 0) {
        break;
      }
      filled_ += got > 0 ? static_cast<std::size_t>(got) : 0;
    }
    return filled_ >= bytes;
  }

  const int file_;
  const CaptureProgress& progress_;
  std::vector<std::uint8_t> piece_;
  std::uint64_t size_ = 0, begin_ = 0;  // of the file; where the piece begins
  std::size_t filled_ = 0, looks_ = 0;  // bytes of the piece; how often the walk looked at it
  bool failed_ = false, stopped_ = false;
};

std::uint32_t word(const void* bytes, bool swapped) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return swapped ? __builtin_bswap32(value) : value;
}

std::uint32_t half(const void* bytes, bool swapped) {
  std::uint16_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return swapped ? __builtin_bswap16(value) : value;
}

// What was found where the walk ended.
struct Found : CaptureFacts {  // of whole ones
  std::uint64_t begin = 0;     // of what is not
  std::string wrong;           // empty: nothing
  std::string other;           // whole, but nothing that can be read; empty: it can
};

constexpr std::uint32_t ethernet_link = 1;

Found walk_pcap(Reader& in, bool swapped) {
  constexpr std::size_t file_header = 24;
  constexpr std::size_t packet_header = 16;
  const std::string inside = "the file ends inside a packet";
  Found found;
  const std::uint8_t* const front = in.bytes(0, file_header);
  if (front == nullptr) {
    found.other = "is cut inside its own header: it has no packets";
    return found;
  }
  const std::uint32_t version = word(front + 4, swapped);
  const std::uint32_t major = swapped ? version >> 16 : version & 0xffff;
  const std::uint32_t minor = swapped ? version & 0xffff : version >> 16;
  if (major != 2 || minor > 4) {
    found.other = "is of version " + std::to_string(major) + "." + std::to_string(minor) +
                  " of pcap, and libpcap reads 2.0 to 2.4: is it damaged?";
    return found;
  }
  const std::uint32_t link = word(front + 20, swapped) & 0xffff;  // above it: how long checksums of frames are
  const std::uint32_t snapshot = word(front + 16, swapped);
  for (std::uint64_t at = file_header; at < in.size(); ++found.packets) {
    found.begin = at;
    const std::uint8_t* const header = in.bytes(at, packet_header);
    const std::uint32_t length = header == nullptr ? 0 : word(header + 8, swapped);
    found.longest = std::max(found.longest, length);
    if (header != nullptr && length < word(header + 12, swapped)) ++found.cut;
    at += packet_header + length;
    if (length > longest_packet) {
      found.wrong = "a packet has a length of " + std::to_string(length) + " bytes";
      break;
    }
    if (header == nullptr || at > in.size()) {
      found.wrong = inside;
      break;
    }
  }
  // libpcap takes no snapshot length at all for the longest.
  const bool cuts = snapshot != 0 && snapshot <= 0x7fffffff && snapshot < found.longest;
  found.needs_copy = link != ethernet_link || cuts;
  return found;
}

// What the driver's libpcap has against a pcapng's interfaces, which it takes for one: from the first other one on it
// hands out nothing more.
class Interfaces {
 public:
  // `block`: its first 16 bytes.
  void add(const std::uint8_t* block, bool swapped) {
    const std::uint32_t given = word(block + 12, swapped);
    const std::uint32_t snapshot = given == 0 || given > most_snapshot ? longest_packet : given;
    other_ = other_ || half(block + 8, swapped) != ethernet_link || (first_ && snapshot != *first_);
    if (!first_) first_ = snapshot;
  }
  bool none() const { return !first_; }
  bool are_one(std::uint32_t longest) const { return !other_ && first_ && longest <= *first_; }

 private:
  static constexpr std::uint32_t most_snapshot = 0x7fffffff;
  std::optional<std::uint32_t> first_;
  bool other_ = false;
};

// Of a pcapng's packet, the bytes that are there and those that there were; a simple one (3) reports the latter alone.
struct Lengths {
  std::uint32_t there = 0, original = 0, interface = 0;
  bool fit = true;  // the block has as many
};

bool is_packet(std::uint32_t type) {
  return type == 2 || type == 3 || type == 6;  // obsolete, simple, enhanced
}

Lengths lengths_of(Reader& in, std::uint64_t at, std::uint32_t type, std::uint32_t block, bool swapped) {
  constexpr std::size_t packet_front = 28, simple_front = 12, simple_around = 16;
  const bool simple = type == 3;
  const std::uint8_t* const front = in.bytes(at, simple ? simple_front : packet_front);
  if (front == nullptr) return {};
  const std::uint32_t original = word(front + (simple ? 8 : 24), swapped);
  if (simple) return {std::min(original, block - std::min<std::uint32_t>(block, simple_around)), original};
  const std::uint32_t there = word(front + 20, swapped);
  constexpr std::uint32_t obsolete = 2;
  const std::uint32_t interface = type == obsolete ? half(front + 8, swapped) : word(front + 8, swapped);
  return {there, original, interface, there <= block - std::min<std::uint32_t>(block, packet_front + sizeof block)};
}

Found walk_pcapng(Reader& in) {
  constexpr std::size_t block_header = 12;  // of a section's, with its byte order
  constexpr std::size_t interface_front = 16;
  Found found;
  Interfaces interfaces;
  std::uint32_t described = 0;  // interfaces of the section
  bool swapped = false;
  for (std::uint64_t at = 0; at < in.size() && found.wrong.empty();) {
    found.begin = at;
    const std::uint8_t* const header = in.bytes(at, block_header);
    if (header == nullptr) {
      found.wrong = "the file ends inside a block";
      break;
    }
    const std::uint32_t type = word(header, swapped);
    if (type == section_block) {  // reads alike from either end
      const bool other_order = word(header + 8, false) == 0x4d3c2b1a;
      if (at != 0 && other_order != swapped && found.other.empty()) {
        found.other =
            "has sections of different byte orders, which libpcap does not read: Wireshark's 'editcap FILE OTHER' "
            "writes one";
      }
      swapped = other_order;
      described = 0;
    }
    const std::uint32_t length = word(header + 4, swapped);
    if (length < block_header || length > longest_block) {
      found.wrong = "a block has a length of " + std::to_string(length) + " bytes";
      break;
    }
    const Lengths lengths = is_packet(type) ? lengths_of(in, at, type, length, swapped) : Lengths();
    at += length;
    const std::uint8_t* const trailer = in.bytes(at - sizeof length, sizeof length);
    if (trailer == nullptr) {
      found.wrong = "the file ends inside a block";
    } else if (const std::uint32_t again = word(trailer, swapped); again != length) {
      found.wrong = "a block has a length of " + std::to_string(length) + " bytes in front and " +
                    std::to_string(again) + " at its end";
    } else if (type == 1) {
      const std::uint8_t* const front = in.bytes(found.begin, interface_front);
      if (front != nullptr) interfaces.add(front, swapped);
      ++described;
    } else if (is_packet(type) && lengths.interface >= described) {
      found.wrong = "a packet is of interface " + std::to_string(lengths.interface) + ", which nothing describes";
    } else if (is_packet(type) && !lengths.fit) {
      found.wrong = "a packet has " + std::to_string(lengths.there) + " bytes in a block of " + std::to_string(length);
    } else if (is_packet(type)) {
      ++found.packets;
      found.longest = std::max(found.longest, lengths.there);
      if (lengths.there < lengths.original) ++found.cut;
    }
  }
  if (interfaces.none() && found.other.empty()) found.other = "describes no interface: capture it again";
  found.needs_copy = !interfaces.are_one(found.longest);
  return found;
}

// Modified: with longer headers of packets, which libpcap alone knows.
enum class Format { none, pcap, pcap_swapped, modified, modified_swapped, pcapng };

Format format_of(Reader& in) {
  const std::uint8_t* const front = in.bytes(0, sizeof(std::uint32_t));
  switch (front == nullptr ? 0 : word(front, false)) {
    case section_block:
      return Format::pcapng;
    case 0xa1b2c3d4:
    case 0xa1b23c4d:
      return Format::pcap;
    case 0xd4c3b2a1:
    case 0x4d3cb2a1:
      return Format::pcap_swapped;
    case 0xa1b2cd34:  // of Kuznetzov, of Mesquita, of Navtel
    case 0xa1b234cd:
    case 0xa12b3c4d:
      return Format::modified;
    case 0x34cdb2a1:
    case 0xcd34b2a1:
    case 0x4d3c2ba1:
      return Format::modified_swapped;
    default:
      return Format::none;
  }
}

CaptureFormat as_capture_format(Format format) {
  if (format == Format::pcapng) return CaptureFormat::pcapng;
  return format == Format::pcap || format == Format::modified ? CaptureFormat::pcap : CaptureFormat::pcap_swapped;
}

// What the file is instead of a capture.
std::string no_capture(Reader& in) {
  if (in.size() == 0) return "is empty: it has not even a capture's header";
  struct Kind {
    std::string_view front, what;
  };
  using namespace std::string_view_literals;
  static constexpr Kind kinds[] = {
      {"\x1f\x8b"sv, "is compressed (gzip): 'gzip -dc FILE > OTHER' unpacks it"},
      {"\x28\xb5\x2f\xfd"sv, "is compressed (zstd): 'zstd -dc FILE > OTHER' unpacks it"},
      {"\xfd\x37zXZ"sv, "is compressed (xz): 'xz -dc FILE > OTHER' unpacks it"},
      {"BZh"sv, "is compressed (bzip2): 'bzip2 -dc FILE > OTHER' unpacks it"},
      {"\x04\x22\x4d\x18"sv, "is compressed (lz4): 'lz4 -dc FILE > OTHER' unpacks it"},
      {"snoop\0\0\0"sv, "is a capture of snoop, which libpcap does not read: Wireshark's 'editcap FILE OTHER' can"}};
  for (const Kind& kind : kinds) {
    const std::uint8_t* const front = in.bytes(0, kind.front.size());
    if (front != nullptr && std::memcmp(front, kind.front.data(), kind.front.size()) == 0)
      return std::string(kind.what);
  }
  return "is no capture: neither pcap nor pcapng";
}

std::string only_other_links(const CaptureContent& content) {
  std::string links;
  for (const auto& [link, count] : content.unread) links += (links.empty() ? "" : ", ") + link_text(link);
  return "has frames of link type " + links + " alone, of which no network is read: docs/capture.md lists what is";
}

// Reads it as a copy of it would be made, and makes one where it is wanted.
Expected<CaptureFacts> read_whole(const std::string& path, Format format, const CaptureProgress& progress,
                                  std::shared_ptr<const CaptureCopy>* copy) {
  std::shared_ptr<const CaptureCopy> made;
  if (copy != nullptr) {
    auto file = CaptureCopy::make();
    if (!file) return tl::unexpected(file.error());
    made = std::move(*file);
  }
  const auto content = read_capture(path, as_capture_format(format), made ? made->stream() : nullptr, progress);
  if (!content) return tl::unexpected(content.error());
  const std::uint64_t other = content->fates[static_cast<std::size_t>(LinkFate::other_link)];
  if (other != 0 && other == content->packets) return make_error(path + ": " + only_other_links(*content));
  if (copy != nullptr) *copy = std::move(made);
  return CaptureFacts{.packets = content->packets,
                      .cut = content->cut,
                      .longest = content->longest,
                      .needs_copy = true,
                      .left_out = content->left_out()};
}

}  // namespace

bool may_be_emptied(const std::string& path) {
  if (!check_regular_file(path)) return true;
  const CaptureProgress no_progress;
  Reader in(path, no_progress);
  return in.size() == 0 || in.failed() || format_of(in) != Format::none;
}

Expected<CaptureFacts> check_capture(const std::string& path, const CaptureProgress& progress,
                                     std::shared_ptr<const CaptureCopy>* copy) {
  // libpcap would wait for a pipe's other end, deaf to signals.
  if (auto regular = check_regular_file(path); !regular) return tl::unexpected(regular.error());
  Reader in(path, progress);
  const Format format = format_of(in);
  if (format == Format::modified || format == Format::modified_swapped) return read_whole(path, format, progress, copy);
  Found found;
  if (format == Format::pcapng) {
    found = walk_pcapng(in);
  } else if (format != Format::none) {
    found = walk_pcap(in, format == Format::pcap_swapped);
  } else {
    found.other = no_capture(in);
  }
  if (in.stopped()) return make_error(path + ": interrupted while it was read");
  if (in.failed()) return make_error(path + ": cannot be read to its end");
  if (!found.wrong.empty()) {
    return make_error(path + ": " + found.wrong + ", at byte " + std::to_string(found.begin) + " behind " +
                      std::to_string(found.packets) + (found.packets == 1 ? " whole packet" : " whole packets") +
                      ": capture it again, or write what is whole to a file of its own (tcpdump -r FILE -w OTHER)");
  }
  if (!found.other.empty()) return make_error(path + ": " + found.other);
  return found.needs_copy ? read_whole(path, format, progress, copy) : CaptureFacts(found);
}

}  // namespace sluice::port
