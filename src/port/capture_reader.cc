#include "port/capture_reader.h"

#include <fcntl.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/units.h"
#include "port/capture_copy.h"

namespace sluice::port {
namespace {

constexpr std::uint32_t longest_packet = 262144;  // of libpcap: MAXIMUM_SNAPLEN
constexpr std::size_t piece_bytes = 256 << 10;

std::uint32_t turned(std::uint32_t value, bool swapped) {
  return swapped ? __builtin_bswap32(value) : value;
}

// The file as libpcap is given it. stdio asks it for what libpcap asks for, and for no byte more (_IONBF): so the last
// block that was begun is the packet that libpcap hands out.
class PatchedFile {
 public:
  PatchedFile(int file, CaptureFormat format) : file_(file), format_(format), piece_(piece_bytes) {
    struct stat status {};
    if (fstat(file, &status) == 0) size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~PatchedFile() { close(file_); }
  PatchedFile(const PatchedFile&) = delete;
  PatchedFile& operator=(const PatchedFile&) = delete;

  ssize_t read(char* out, std::size_t wanted) {
    if (format_ == CaptureFormat::pcapng) {
      while (next_block_ < at_ + wanted && begin_block()) {
      }
    } else if (at_ == 0) {
      constexpr std::uint64_t snapshot_at = 16;
      patch(snapshot_at, turned(longest_packet, format_ == CaptureFormat::pcap_swapped), sizeof(std::uint32_t));
    }
    const std::size_t got = copy(out, at_, wanted);
    if (failed_) return -1;
    for (const Patch& patch : patches_) {
      if (patch.at >= at_ && patch.at < at_ + got) out[patch.at - at_] = patch.value;
    }
    at_ += got;
    std::erase_if(patches_, [this](const Patch& patch) { return patch.at < at_; });
    return static_cast<ssize_t>(got);
  }
  std::uint64_t at() const { return at_; }
  std::uint64_t size() const { return size_; }
  // Of the packet that libpcap has read last; `of_file`: what libpcap calls a pcap's.
  std::uint32_t link(std::uint32_t of_file) const { return format_ == CaptureFormat::pcapng ? link_ : of_file; }
  std::uint32_t original(std::uint32_t of_packet) const { return original_ != 0 ? original_ : of_packet; }

 private:
  struct Patch {
    std::uint64_t at;
    char value;
  };
  struct Interface {
    std::uint32_t link, snapshot;
  };

  void patch(std::uint64_t at, std::uint32_t value, std::size_t bytes) {
    char text[sizeof value];
    std::memcpy(text, &value, sizeof value);
    for (std::size_t i = 0; i < bytes; ++i) patches_.push_back({at + i, text[i]});
  }

  // Up to `wanted` bytes from `at` on; fewer at the end of the file.
  std::size_t copy(char* out, std::uint64_t at, std::size_t wanted) {
    std::size_t done = 0;
    while (done < wanted) {
      if (at + done < begin_ || at + done >= begin_ + filled_) {
        begin_ = at + done;
        ssize_t got = 0;
        do {
          got = pread(file_, piece_.data(), piece_.size(), static_cast<off_t>(begin_));
        } while (got < 0 && errno == EINTR);
        failed_ = failed_ || got < 0;
        filled_ = got > 0 ? static_cast<std::size_t>(got) : 0;
        if (filled_ == 0) break;
      }
      const std::size_t some = std::min<std::size_t>(wanted - done, begin_ + filled_ - (at + done));
      std::memcpy(out + done, piece_.data() + (at + done - begin_), some);
      done += some;
    }
    return done;
  }

  // Looks at the block at next_block_. False: there is none, or none that libpcap would take either.
  bool begin_block() {
    constexpr std::size_t least = 12, front = 28;
    constexpr std::uint32_t section = 0x0a0d0d0a, order_magic = 0x4d3c2b1a;
    std::array<char, front> block{};
    const std::size_t there = copy(block.data(), next_block_, block.size());
    if (there < least) return false;
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, block.data() + at, sizeof value);
      return value;
    };
    const std::uint32_t raw_type = word(0);
    if (raw_type == section) {
      swapped_ = word(8) == order_magic;
      interfaces_.clear();
    }
    const std::uint32_t type = turned(raw_type, swapped_), length = turned(word(4), swapped_);
    if (length < least) return false;
    const auto half = [&](std::size_t at) {
      const std::uint32_t two = word(at) & 0xffff;
      return swapped_ ? __builtin_bswap16(static_cast<std::uint16_t>(two)) : two;
    };
    begin_packet(type, length, half, [&](std::size_t at) { return turned(word(at), swapped_); });
    next_block_ += length;
    return true;
  }

  template <typename Half, typename Word>
  void begin_packet(std::uint32_t type, std::uint32_t length, const Half& half, const Word& word) {
    constexpr std::uint32_t interface = 1, obsolete = 2, simple = 3, enhanced = 6;
    constexpr std::uint32_t ethernet = 1, around_simple = 16;
    if (type == interface) {
      interfaces_.push_back({half(8), word(12)});
      patch(next_block_ + 8, turned(ethernet, swapped_) >> (swapped_ ? 16 : 0), sizeof(std::uint16_t));
      patch(next_block_ + 12, 0, sizeof(std::uint32_t));
    } else if (type == simple) {
      const std::uint32_t snapshot = interfaces_.empty() ? 0 : interfaces_[0].snapshot;
      original_ = word(8);
      const std::uint32_t capacity = length > around_simple ? length - around_simple : 0;
      patch(next_block_ + 8, turned(std::min({original_, snapshot == 0 ? original_ : snapshot, capacity}), swapped_),
            sizeof(std::uint32_t));
      link_ = interfaces_.empty() ? 0 : interfaces_[0].link;
    } else if (type == enhanced || type == obsolete) {
      const std::uint32_t number = type == enhanced ? word(8) : half(8);
      original_ = 0;
      link_ = number < interfaces_.size() ? interfaces_[number].link : 0;  // libpcap refuses what has none
    }
  }

  const int file_;
  const CaptureFormat format_;
  std::vector<char> piece_;
  std::uint64_t size_ = 0, begin_ = 0;  // of the file; where the piece begins
  std::size_t filled_ = 0;
  std::uint64_t at_ = 0, next_block_ = 0;
  bool failed_ = false, swapped_ = false;
  std::vector<Interface> interfaces_;  // of the section
  std::vector<Patch> patches_;         // bytes that are replaced, and not yet asked for
  std::uint32_t link_ = 0, original_ = 0;
};

ssize_t read_patched(void* file, char* out, std::size_t wanted) {
  return static_cast<PatchedFile*>(file)->read(out, wanted);
}

using PcapPointer = std::unique_ptr<pcap_t, decltype(&pcap_close)>;

// Closes neither `file` nor, on failure, leaves anything open.
Expected<PcapPointer> open_patched(const std::string& path, PatchedFile& file) {
  std::FILE* const stream =
      fopencookie(&file, "rb", {.read = read_patched, .write = nullptr, .seek = nullptr, .close = nullptr});
  if (stream == nullptr) return make_error(path + ": no memory to read it");
  setvbuf(stream, nullptr, _IONBF, 0);
  char why[PCAP_ERRBUF_SIZE] = {};
  pcap_t* const capture = pcap_fopen_offline(stream, why);
  if (capture != nullptr) return PcapPointer(capture, &pcap_close);
  fclose(stream);
  return make_error(path + ": libpcap does not read it: " + why);
}

class Writer {
 public:
  Writer(const std::string& path, std::FILE* out)
      : path_(path), dead_(pcap_open_dead(DLT_EN10MB, longest_packet), &pcap_close) {
    if (out != nullptr) dumper_ = pcap_dump_fopen(dead_.get(), out);
  }
  void write(const timeval& time, Bytes frame, std::uint32_t original) {
    if (dumper_ == nullptr) return;
    const auto size = static_cast<std::uint32_t>(frame.size());
    const pcap_pkthdr header{.ts = time, .caplen = size, .len = original};
    pcap_dump(reinterpret_cast<u_char*>(dumper_), &header, frame.data());
  }
  // What was written is in the file.
  Expected<void> flush() {
    if (dumper_ == nullptr) return {};
    errno = 0;
    if (pcap_dump_flush(dumper_) == 0 && ferror(pcap_dump_file(dumper_)) == 0) return {};
    return make_error(path_ + ": its frames as Ethernet cannot be written to a file in " + folder_for_copies() + ": " +
                      std::strerror(errno) + ": set TMPDIR to a folder that has space for as much as the capture");
  }

 private:
  const std::string path_;
  PcapPointer dead_;
  pcap_dumper_t* dumper_ = nullptr;  // its stream is the caller's
};

}  // namespace

std::string CaptureContent::left_out() const {
  constexpr std::pair<LinkFate, const char*> reasons[] = {{LinkFate::no_packet, "without a packet of a network"},
                                                          {LinkFate::cut, "cut inside the link's header"},
                                                          {LinkFate::encrypted, "encrypted by 802.11"},
                                                          {LinkFate::in_pieces, "fragments of 802.11"}};
  std::string why;
  std::uint64_t sum = 0;
  const auto add = [&](std::uint64_t count, const std::string& reason) {
    if (count == 0) return;
    sum += count;
    why += (why.empty() ? "" : ", ") + std::to_string(count) + " " + reason;
  };
  for (const auto& [fate, reason] : reasons) add(fates[static_cast<std::size_t>(fate)], reason);
  for (const auto& [link, count] : unread) add(count, "of link type " + link_text(link) + ", which is not read");
  return sum == 0 ? "" : std::to_string(sum) + " of " + std::to_string(packets) + " packets are left out: " + why;
}

Expected<CaptureContent> read_capture(const std::string& path, CaptureFormat format, std::FILE* out,
                                      const CaptureProgress& progress) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return make_error(path + ": " + std::strerror(errno));
  PatchedFile patched(file, format);
  auto capture = open_patched(path, patched);
  if (!capture) return tl::unexpected(capture.error());
  const auto of_file = static_cast<std::uint32_t>(pcap_datalink(capture->get()));
  Writer writer(path, out);
  CaptureContent content;
  std::uint64_t next_word = 0;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int got = 0;
  while ((got = pcap_next_ex(capture->get(), &header, &bytes)) == 1) {
    if (patched.at() >= next_word) {
      next_word = patched.at() + piece_bytes;
      if (progress && !progress(patched.at(), patched.size()))
        return make_error(path + ": interrupted while it was read");
    }
    ++content.packets;
    const std::uint32_t original = patched.original(header->len);
    const std::uint32_t missing = original > header->caplen ? original - header->caplen : 0;
    if (missing != 0) ++content.cut;
    const std::uint32_t link = patched.link(of_file);
    const LinkFate fate = to_ethernet(link, {bytes, header->caplen}, [&](Bytes frame) {
      ++content.frames;
      const auto size = static_cast<std::uint32_t>(frame.size());
      content.longest = std::max(content.longest, size);
      writer.write(header->ts, frame, size + missing);
    });
    ++content.fates[static_cast<std::size_t>(fate)];
    if (fate == LinkFate::other_link) ++content.unread[link];
  }
  if (got != PCAP_ERROR_BREAK) {
    return make_error(path + ": libpcap reads no further behind " + counted_text(content.packets, "whole packet") +
                      ": " + pcap_geterr(capture->get()) +
                      ": capture it again, or write what is whole to a file of its own (tcpdump -r FILE -w OTHER)");
  }
  if (auto whole = writer.flush(); !whole) return tl::unexpected(whole.error());
  return content;
}

}  // namespace sluice::port
