// Captures that others made, as Ethernet frames with their times, read as the capture port reads them
// (port/capture_file.h).
#pragma once

#include <pcap/pcap.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "port/capture_file.h"

namespace sluice::test {

struct CapturedFrame {
  std::uint64_t microseconds = 0;
  std::string bytes;  // from the Ethernet header on
};

// Of a file that ends within a packet, or goes on with what is none, the frames before that. Throws std::runtime_error
// where the port would refuse the file for its link type, or it is no capture.
inline std::vector<CapturedFrame> read_capture(const std::string& path) {
  std::shared_ptr<const port::CaptureCopy> copy;
  const auto facts = port::check_capture(path, {}, &copy);
  char error[PCAP_ERRBUF_SIZE] = {};
  const std::unique_ptr<pcap_t, decltype(&pcap_close)> file(
      pcap_open_offline((copy ? copy->path() : path).c_str(), error), &pcap_close);
  if (!file) throw std::runtime_error(path + ": " + error);
  if (pcap_datalink(file.get()) != DLT_EN10MB) throw std::runtime_error(facts ? path : facts.error().message);
  std::vector<CapturedFrame> frames;
  pcap_pkthdr* header = nullptr;
  for (const u_char* bytes = nullptr; pcap_next_ex(file.get(), &header, &bytes) == 1;) {
    const auto seconds = static_cast<std::uint64_t>(header->ts.tv_sec);
    frames.push_back({seconds * 1'000'000 + static_cast<std::uint64_t>(header->ts.tv_usec),
                      std::string(reinterpret_cast<const char*>(bytes), header->caplen)});
  }
  return frames;
}

}  // namespace sluice::test
