#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "device/byte_sum.h"
#include "device/cuda_check.h"
#include "device/frame_sum.h"
#include "device/link_kernels.cuh"
#include "device/link_probe.h"

namespace sluice::device {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t row_pitch = 2048;
constexpr unsigned row_chunk = 1024;  // rows of one 2-D copy: a batch of a lane
constexpr unsigned fill_blocks = 264, fill_threads = 256;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

// Streams, memory and frame descriptors of one probe.
class Probe {
 public:
  Probe(Gpu& gpu, const LinkProbeOptions& options) : gpu_(gpu), options_(options) {}
  ~Probe() {
    cudaDeviceSynchronize();
    for (cudaStream_t stream : {up_, down_})
      if (stream != nullptr) cudaStreamDestroy(stream);
    for (void* memory : {static_cast<void*>(device_up_), static_cast<void*>(device_down_), static_cast<void*>(wrong_)})
      cudaFree(memory);
    for (void* memory : {own_host_, descriptors_, flags_}) cudaFreeHost(memory);
  }

  Expected<LinkCeilings> run();

 private:
  using Enqueue = std::function<Expected<void>()>;

  Expected<void> open();
  Expected<double> rate(std::uint64_t bytes_each_pass, const Enqueue& pass);
  Expected<BothWays> copies(std::size_t chunk_rows, WordRows shape, bool only_both);
  Expected<double> copies(bool up, bool down, std::size_t chunk_rows, WordRows shape);
  Expected<void> fill_host(std::uint32_t* host, WordRows shape);
  Expected<void> check_up(WordRows shape);
  Expected<void> check_host(const std::uint32_t* host, WordRows shape, const char* what);
  Expected<double> reads(unsigned bytes, unsigned run);
  Expected<double> writes(unsigned bytes);
  Expected<void> launches(LinkCeilings& out);
  Expected<void> flags(LinkCeilings& out);
  double host_copy(unsigned threads);

  std::size_t half() const { return options_.bytes / 2 / row_pitch * row_pitch; }
  std::uint64_t row_count() const { return half() / row_pitch; }
  WordRows flat() const { return {1, half() / 4, half() / 4}; }
  WordRows rows_of(unsigned bytes) const { return {row_count(), bytes / 4, row_pitch / 4}; }

  Gpu& gpu_;
  LinkProbeOptions options_;
  cudaStream_t up_ = nullptr, down_ = nullptr;
  void *own_host_ = nullptr, *descriptors_ = nullptr, *flags_ = nullptr;
  std::uint32_t *host_up_ = nullptr, *host_down_ = nullptr;  // the halves of the host memory
  std::uint32_t *device_up_ = nullptr, *device_down_ = nullptr;
  unsigned long long* wrong_ = nullptr;
  std::uint32_t salt_ = 1;
};

Expected<void> Probe::open() {
  if (options_.bytes < 1u << 20) return make_error("the link probe needs at least 1 MiB of memory");
  gpu_.stream(0).raw();  // makes the GPU current on this thread
  if (options_.memory == nullptr) SLUICE_CUDA_TRY(cudaHostAlloc(&own_host_, options_.bytes, cudaHostAllocMapped));
  host_up_ = static_cast<std::uint32_t*>(options_.memory != nullptr ? options_.memory : own_host_);
  host_down_ = host_up_ + half() / 4;
  SLUICE_CUDA_TRY(cudaHostAlloc(&descriptors_, row_count() * 16, cudaHostAllocMapped));
  SLUICE_CUDA_TRY(cudaHostAlloc(&flags_, 256, cudaHostAllocMapped));
  SLUICE_CUDA_TRY(cudaMalloc(&device_up_, half()));
  SLUICE_CUDA_TRY(cudaMalloc(&device_down_, half()));
  SLUICE_CUDA_TRY(cudaMalloc(&wrong_, sizeof *wrong_));
  SLUICE_CUDA_TRY(cudaStreamCreateWithFlags(&up_, cudaStreamNonBlocking));
  SLUICE_CUDA_TRY(cudaStreamCreateWithFlags(&down_, cudaStreamNonBlocking));
  return fill_host(host_up_, flat());
}

// GB/s of passes that move `bytes_each_pass`, after one to warm up.
Expected<double> Probe::rate(std::uint64_t bytes_each_pass, const Enqueue& pass) {
  double elapsed = 0;
  unsigned passes = 1;
  for (int timed = 0; timed < 2; ++timed) {
    const auto begin = Clock::now();
    for (unsigned p = 0; p < passes; ++p)
      if (auto ok = pass(); !ok) return tl::unexpected(ok.error());
    SLUICE_CUDA_TRY(cudaStreamSynchronize(up_));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(down_));
    elapsed = seconds_since(begin);
    if (timed == 0) passes = std::clamp(static_cast<unsigned>(options_.seconds_each / elapsed), 3u, 1000u);
  }
  return static_cast<double>(bytes_each_pass) * passes / elapsed / 1e9;
}

Expected<void> Probe::fill_host(std::uint32_t* host, WordRows shape) {
  SLUICE_CUDA_TRY(launch(fill_rows, fill_blocks, fill_threads, 0, down_, device_down_, shape, salt_));
  SLUICE_CUDA_TRY(cudaMemcpyAsync(host, device_down_, shape.rows * shape.width * 4, cudaMemcpyDeviceToHost, down_));
  SLUICE_CUDA_TRY(cudaStreamSynchronize(down_));
  return {};
}

Expected<void> Probe::check_up(WordRows shape) {
  unsigned long long wrong = 0;
  SLUICE_CUDA_TRY(cudaMemsetAsync(wrong_, 0, sizeof *wrong_, up_));
  SLUICE_CUDA_TRY(launch(check_rows, fill_blocks, fill_threads, 0, up_, device_up_, shape, 1u, wrong_));
  SLUICE_CUDA_TRY(cudaMemcpyAsync(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost, up_));
  SLUICE_CUDA_TRY(cudaStreamSynchronize(up_));
  if (wrong != 0) return make_error("link probe: " + std::to_string(wrong) + " words arrived wrong on the GPU");
  return {};
}

// Every row's first and last word and some in between; rows as they lie on the host.
Expected<void> Probe::check_host(const std::uint32_t* host, WordRows shape, const char* what) {
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    const std::uint64_t stride = shape.rows == 1 ? 61 : 67;
    for (std::uint64_t w = 0; w < shape.width;
         w = w + stride < shape.width || w + 1 == shape.width ? w + stride : shape.width - 1) {
      const std::uint64_t i = row * shape.pitch + w;
      if (host[i] != probe_word(i, salt_))
        return make_error(std::string("link probe: wrong data from ") + what + " at word " + std::to_string(i));
    }
  }
  return {};
}

// Copies by the engine, `chunk_rows` rows at a time, over the whole memory.
Expected<double> Probe::copies(bool up, bool down, std::size_t chunk_rows, WordRows shape) {
  const std::size_t width = shape.width * 4, pitch = shape.pitch * 4;
  ++salt_;
  if (up) SLUICE_CUDA_TRY(cudaMemsetAsync(device_up_, 0, half(), up_));
  if (down) SLUICE_CUDA_TRY(launch(fill_rows, fill_blocks, fill_threads, 0, down_, device_down_, shape, salt_));
  SLUICE_CUDA_TRY(cudaDeviceSynchronize());
  auto* const device_up = reinterpret_cast<std::byte*>(device_up_);
  auto* const device_down = reinterpret_cast<std::byte*>(device_down_);
  auto* const host_up = reinterpret_cast<std::byte*>(host_up_);
  auto* const host_down = reinterpret_cast<std::byte*>(host_down_);
  auto gbps = rate(shape.rows * width, [&]() -> Expected<void> {
    for (std::uint64_t row = 0; row < shape.rows; row += chunk_rows) {
      const std::uint64_t rows = std::min<std::uint64_t>(chunk_rows, shape.rows - row);
      if (width == pitch) {  // rows without gaps are one row
        if (up)
          SLUICE_CUDA_TRY(cudaMemcpyAsync(device_up + row * width, host_up + row * pitch, rows * width,
                                          cudaMemcpyHostToDevice, up_));
        if (down)
          SLUICE_CUDA_TRY(cudaMemcpyAsync(host_down + row * pitch, device_down + row * width, rows * width,
                                          cudaMemcpyDeviceToHost, down_));
        continue;
      }
      if (up)
        SLUICE_CUDA_TRY(cudaMemcpy2DAsync(device_up + row * width, width, host_up + row * pitch, pitch, width, rows,
                                          cudaMemcpyHostToDevice, up_));
      if (down)
        SLUICE_CUDA_TRY(cudaMemcpy2DAsync(host_down + row * pitch, pitch, device_down + row * width, width, width, rows,
                                          cudaMemcpyDeviceToHost, down_));
    }
    return {};
  });
  if (!gbps) return gbps;
  if (up)
    if (auto ok = check_up(shape); !ok) return tl::unexpected(ok.error());
  if (down)
    if (auto ok = check_host(host_down_, shape, "the copy engine"); !ok) return tl::unexpected(ok.error());
  return gbps;
}

Expected<BothWays> Probe::copies(std::size_t chunk_rows, WordRows shape, bool only_both) {
  BothWays out;
  auto both = copies(true, true, chunk_rows, shape);
  if (!both) return tl::unexpected(both.error());
  out.both = *both;
  if (only_both) return out;
  auto up = copies(true, false, chunk_rows, shape);
  if (!up) return tl::unexpected(up.error());
  auto down = copies(false, true, chunk_rows, shape);
  if (!down) return tl::unexpected(down.error());
  out.up = *up;
  out.down = *down;
  return out;
}

// A kernel reads frames of `bytes`, in order within runs of `run` frames, the runs shuffled; run 0: all in order.
Expected<double> Probe::reads(unsigned bytes, unsigned run) {
  const auto count = static_cast<std::uint32_t>(row_count());
  auto* const frame = static_cast<std::uint64_t*>(descriptors_);
  auto* const sum = reinterpret_cast<std::uint32_t*>(frame + count);
  auto* const length = reinterpret_cast<std::uint16_t*>(sum + count);
  std::vector<std::uint32_t> runs(run == 0 ? 1 : count / run);
  std::iota(runs.begin(), runs.end(), 0u);
  std::shuffle(runs.begin(), runs.end(), std::mt19937(7));
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool in_run = run != 0 && i / run < runs.size();
    const std::uint64_t row = in_run ? std::uint64_t{runs[i / run]} * run + i % run : i;
    frame[i] = reinterpret_cast<std::uint64_t>(host_up_) + row * row_pitch;
    length[i] = static_cast<std::uint16_t>(bytes);
    sum[i] = 0;
  }
  auto gbps = rate(std::uint64_t{count} * bytes, [&] { return sum_frames(frame, length, sum, count, up_); });
  if (!gbps) return gbps;
  for (std::uint32_t i = 0; i < count; i += 7)
    if (sum[i] != sum_bytes(reinterpret_cast<const std::uint8_t*>(frame[i]), bytes))
      return make_error("link probe: wrong sum of frame " + std::to_string(i) + " read by a kernel");
  return gbps;
}

Expected<double> Probe::writes(unsigned bytes) {
  ++salt_;
  const WordRows shape = rows_of(bytes);
  auto gbps = rate(shape.rows * bytes, [&]() -> Expected<void> {
    SLUICE_CUDA_TRY(launch(write_rows, 64, 512, 0, up_, host_down_, shape, salt_));
    return {};
  });
  if (!gbps) return gbps;
  if (auto ok = check_host(host_down_, shape, "a kernel that writes"); !ok) return tl::unexpected(ok.error());
  return gbps;
}

Expected<void> Probe::launches(LinkCeilings& out) {
  std::vector<double> us(options_.quick ? 500 : 3000);
  for (int timed = 0; timed < 2; ++timed)
    for (double& one : us) {
      const auto begin = Clock::now();
      SLUICE_CUDA_TRY(launch(do_nothing, 1, 32, 0, up_));
      SLUICE_CUDA_TRY(cudaStreamSynchronize(up_));
      one = seconds_since(begin) * 1e6;
    }
  out.launch_median_us = quantile(us, 0.5);
  out.launch_p99_us = quantile(us, 0.99);
  return {};
}

#ifdef SLUICE_SIMT
Expected<void> Probe::flags(LinkCeilings&) {
  return {};
}  // host and kernel do not run at the same time there
#else
Expected<void> Probe::flags(LinkCeilings& out) {
  constexpr std::uint32_t rounds = 3000;
  volatile auto* const ask = static_cast<std::uint32_t*>(flags_);
  volatile auto* const answer = ask + 32;  // another cache line
  *ask = 0;
  *answer = 0;
  SLUICE_CUDA_TRY(launch(answer_flag, 1, 1, 0, up_, ask, answer, rounds, 2'000'000'000LL));
  std::vector<double> us(rounds);
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const auto begin = Clock::now();
    *ask = round;
    while (*answer != round)
      if (seconds_since(begin) > 1) return make_error("link probe: a running kernel did not answer within a second");
    us[round - 1] = seconds_since(begin) * 1e6;
  }
  SLUICE_CUDA_TRY(cudaStreamSynchronize(up_));
  us.erase(us.begin(), us.begin() + 100);
  out.flag_median_us = quantile(us, 0.5);
  out.flag_p99_us = quantile(us, 0.99);
  return {};
}
#endif

double Probe::host_copy(unsigned threads) {
  const std::size_t share = half() / threads / 64 * 64;
  const auto copy_all = [&] {
    std::vector<std::thread> workers;
    for (unsigned t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        std::memcpy(reinterpret_cast<char*>(host_down_) + t * share, reinterpret_cast<char*>(host_up_) + t * share,
                    share);
      });
    for (auto& worker : workers) worker.join();
  };
  copy_all();
  const auto begin = Clock::now();
  unsigned passes = 0;
  do copy_all();
  while (++passes < 2 || seconds_since(begin) < options_.seconds_each);
  return static_cast<double>(share * threads) * passes / seconds_since(begin) / 1e9;
}

Expected<LinkCeilings> Probe::run() {
  if (auto ok = open(); !ok) return tl::unexpected(ok.error());
  LinkCeilings out;
  // Words as rows of one: a chunk of n rows is n * 2,048 bytes.
  const WordRows words{row_count(), row_pitch / 4, row_pitch / 4};
  auto large = copies(row_count(), words, false);
  if (!large) return tl::unexpected(large.error());
  out.large = *large;
  for (unsigned bytes : {64u, 128u, 256u, 608u, 1408u}) {
    if (options_.quick && bytes < 608) continue;
    LinkCeilings::Reads entry{bytes, 0, 0, 0};
    const std::pair<unsigned, double*> orders[] = {{0, &entry.in_order}, {32, &entry.runs_of_32}, {1, &entry.shuffled}};
    for (const auto& [run, result] : orders) {
      if (options_.quick && run != 0) continue;
      auto gbps = reads(bytes, run);
      if (!gbps) return tl::unexpected(gbps.error());
      *result = *gbps;
    }
    out.reads.push_back(entry);
  }
  if (auto ok = launches(out); !ok) return tl::unexpected(ok.error());
  if (options_.quick) return out;

  for (std::size_t kib : {256u, 512u, 1024u, 2048u, 4096u}) {
    auto both = copies(kib * 1024 / row_pitch, words, true);
    if (!both) return tl::unexpected(both.error());
    out.chunks.push_back({kib * 1024, both->both});
  }
  for (unsigned bytes : {64u, 256u, 608u, 1024u, 1408u}) {
    auto both = copies(row_chunk, rows_of(bytes), false);
    if (!both) return tl::unexpected(both.error());
    out.rows.push_back({bytes, row_chunk, *both});
  }
  for (unsigned rows = 2 * row_chunk; rows <= 16 * row_chunk; rows *= 2) {
    auto both = copies(rows, rows_of(1408), false);
    if (!both) return tl::unexpected(both.error());
    out.rows.push_back({1408, rows, *both});
  }
  for (unsigned bytes : {64u, 128u, 256u, 608u, 1408u}) {
    auto gbps = writes(bytes);
    if (!gbps) return tl::unexpected(gbps.error());
    out.writes.push_back({bytes, *gbps});
  }
  if (auto ok = flags(out); !ok) return tl::unexpected(ok.error());
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, 64u);
  for (unsigned threads = 1; threads <= cores; threads *= 4) out.host_copies.push_back({threads, host_copy(threads)});
  return out;
}

}  // namespace

Expected<LinkCeilings> probe_link(Gpu& gpu, const LinkProbeOptions& options) {
  return Probe(gpu, options).run();
}

}  // namespace sluice::device
