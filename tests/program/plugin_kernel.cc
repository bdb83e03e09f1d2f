// Whether the example's kernel, run by the host shim, writes what its compute() does, for frames of every length.
#include <sluice/device/gpu.h>

#include <cstdio>
#include <vector>

#include "udp_prefix.h"

// device/simt/runtime.cc: the shim stands for a GPU.
extern "C" {
extern const bool sluice_simt_is_a_device;
const bool sluice_simt_is_a_device = true;
}

int main() {
  constexpr std::uint32_t count = 300;  // of more than one block
  const std::uint8_t start[] = {2,  0, 0, 0,   0, 2, 2, 0,   0, 0, 0, 1,   8, 0, 0x45, 0, 0, 0, 0, 1,    0, 0, 64,
                                17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 128, 0, 0, 123,  0, 0, 0, 0, 0x17, 0, 3, 0x2a};
  std::vector<std::vector<std::uint8_t>> frames;
  std::vector<std::uint64_t> address;
  std::vector<std::uint16_t> length;
  std::vector<std::byte> verdict(count, std::byte{7});
  for (std::uint32_t i = 0; i < count; ++i) {
    std::vector<std::uint8_t> frame(start, start + sizeof(start));
    frame[42] = static_cast<std::uint8_t>(i % 3 == 0 ? 0x17 : i);
    frame.resize(i % 64 + 14);
    frames.push_back(std::move(frame));
    address.push_back(reinterpret_cast<std::uint64_t>(frames.back().data()));
    length.push_back(static_cast<std::uint16_t>(frames.back().size()));
  }
  std::vector<sluice::engine::Row> rows(count);
  sluice::engine::Batch batch;
  batch.frame = address.data();
  batch.length = length.data();
  batch.row = rows.data();
  batch.count = batch.capacity = count;
  batch.area[0] = verdict.data();
  udp_prefix::UdpPrefix element({123, 4, {0x17, 0, 3, 0x2a}});
  element.place(0);
  element.compute(batch, {0, count});
  const auto computed = verdict;
  verdict.assign(count, std::byte{7});

  auto gpu = sluice::device::Gpu::open(0, 1);
  if (!gpu) return std::printf("%s\n", gpu.error().message.c_str()), 1;
  auto& stream = (*gpu)->stream(0);
  if (auto ok = element.launch(batch, stream); !ok) return std::printf("%s\n", ok.error().message.c_str()), 1;
  if (auto ok = stream.mark(); !ok) return std::printf("%s\n", ok.error().message.c_str()), 1;
  while (stream.poll() == sluice::device::MarkState::pending) continue;
  unsigned matches = 0;
  for (const std::byte one : computed) matches += one == std::byte{1};
  std::printf("%u of %u frames match\n", matches, count);
  return verdict == computed && matches > 40 && matches < count / 2 ? 0 : 1;
}
