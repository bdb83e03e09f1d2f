// Reads and writes captures in the classic pcap format (little-endian, microseconds, Ethernet), for tests that run the
// real data path between two files.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::test {

using Frame = std::vector<std::uint8_t>;

inline void write_pcap(const std::string& path, const std::vector<Frame>& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto put32 = [&](std::uint32_t value) { file.write(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const std::uint32_t word : {0xa1b2c3d4U, 0x00040002U, 0U, 0U, 65535U, 1U}) {
    put32(word);
  }
  std::uint32_t number = 0;
  for (const Frame& frame : frames) {
    const auto size = static_cast<std::uint32_t>(frame.size());
    for (const std::uint32_t word : {1U, number++, size, size}) {
      put32(word);
    }
    file.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

inline std::vector<Frame> read_pcap(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(24);
  std::vector<Frame> frames;
  std::uint32_t header[4];
  while (file.read(reinterpret_cast<char*>(header), sizeof header)) {
    Frame frame(header[2]);
    file.read(reinterpret_cast<char*>(frame.data()), header[2]);
    frames.push_back(std::move(frame));
  }
  return frames;
}

}  // namespace sluice::test
