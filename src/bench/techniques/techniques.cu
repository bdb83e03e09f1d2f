#include <algorithm>
#include <chrono>
#include <numeric>

#include "bench/techniques/filter_count.h"
#include "bench/techniques/segments.cuh"
#include "bench/techniques/techniques.cuh"
#include "bench/techniques/techniques.h"
#include "device/cuda_check.h"
#include "device/cuda_event.h"

namespace sluice::match {
namespace {

constexpr unsigned hot_states = 96;       // of 1 KiB each
constexpr unsigned segment_blocks = 264;  // of the segments; two for each SM of a large GPU
constexpr std::size_t tallies = 4;        // the counters of a SearchTally

class CudaTechniques final : public Techniques {
 public:
  CudaTechniques(device::Gpu& gpu, const Dfa& dfa, std::span<const std::string> packets, PacketPlace place)
      : gpu_(gpu),
        dfa_(dfa),
        packets_(packets),
        place_(place),
        stream_(static_cast<cudaStream_t>(gpu.stream(0).raw())) {}

  Expected<void> upload(const TwoByteTable& pairs);
  Expected<TechniqueRun> run(Technique technique, unsigned rounds) override;
  Expected<FilterRun> run_filter(GpuMatcher& matcher, unsigned rounds) override {
    return run_matcher(
        rounds, [&](const MatchBatch& batch) { return matcher.match(batch, gpu_.stream(0)); },
        [&](const MatchBatch& batch) { return count_filter(matcher, batch, tally(), gpu_.stream(0)); });
  }
  Expected<FilterRun> run_gathered(GatheredMatcher& matcher, unsigned rounds) override {
    return run_matcher(
        rounds, [&](const MatchBatch& batch) { return matcher.match(batch, 0); },
        [&](const MatchBatch& batch) { return matcher.count(batch, tally(), 0); });
  }

 private:
  template <typename Match, typename Count>
  Expected<FilterRun> run_matcher(unsigned rounds, Match&& match, Count&& count_loops);
  template <typename T>
  Expected<T*> device_copy(const std::vector<T>& values) {
    auto memory = gpu_.allocate_device(std::max<std::size_t>(values.size(), 1) * sizeof(T));
    if (!memory) return tl::unexpected(memory.error());
    SLUICE_CUDA_TRY(cudaMemcpyAsync(memory->template as<T>(), values.data(), values.size() * sizeof(T),
                                    cudaMemcpyHostToDevice, stream_));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(stream_));
    memory_.push_back(std::move(*memory));
    return memory_.back().template as<T>();
  }
  template <typename T>
  Expected<std::vector<T>> host_copy(const T* values, std::size_t count) {
    std::vector<T> out(count);
    SLUICE_CUDA_TRY(cudaMemcpyAsync(out.data(), values, count * sizeof(T), cudaMemcpyDeviceToHost, stream_));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(stream_));
    return out;
  }
  // The packets where the kernels read them.
  Expected<std::uint8_t*> placed(const std::vector<std::uint8_t>& bytes) {
    if (place_ == PacketPlace::device) return device_copy(bytes);
    auto memory = gpu_.allocate_host(std::max<std::size_t>(bytes.size(), 1));
    if (!memory) return tl::unexpected(memory.error());
    const auto packets = static_cast<std::uint8_t*>(*memory);
    std::ranges::copy(bytes, packets);
    return packets;
  }
  // The microseconds of the fastest of the rounds.
  template <typename Launch>
  Expected<double> timed(unsigned rounds, Launch&& launch);
  // What a launch adds to tally().
  template <typename Launch>
  Expected<SearchLoops> tallied(Launch&& launch);
  SearchTally tally() const { return {{tally_, tally_ + 1}, {tally_ + 2, tally_ + 3}}; }
  template <bool counted>
  Expected<void> launch(Technique technique, const LoopTally& tally);
  template <bool counted>
  Expected<void> launch_segments(unsigned hot, const LoopTally& tally);
  template <bool counted>
  Expected<void> launch_staged(std::uint32_t hot, const LoopTally& tally);
  // In front of a piece, in whole units: the bytes that a pattern may begin in.
  unsigned warm_up(unsigned unit) const { return static_cast<unsigned>((dfa_.depth() - 1 + unit - 1) / unit * unit); }
  unsigned packet_blocks() const { return (batch_.count + technique_threads - 1) / technique_threads; }
  // Packets by size, as the host does it for every batch.
  std::vector<std::uint32_t> sorted_by_size() const;

  device::Gpu& gpu_;
  const Dfa& dfa_;
  std::span<const std::string> packets_;
  const PacketPlace place_;
  cudaStream_t stream_;
  device::Event begin_, end_;
  std::vector<device::DeviceMemory> memory_;  // of what follows, on the device
  PacketBatch batch_{};
  std::vector<std::uint32_t> offset_;
  std::vector<std::uint16_t> length_;
  const std::uint32_t* next_ = nullptr;
  PairTable pairs_{};
  std::uint32_t* order_ = nullptr;
  unsigned long long* tally_ = nullptr;
};

Expected<void> CudaTechniques::upload(const TwoByteTable& pairs) {
  for (device::Event* event : {&begin_, &end_}) {
    if (auto ok = event->create(true); !ok) return ok;
  }
  std::size_t size = 0;
  for (const std::string& packet : packets_) {
    offset_.push_back(static_cast<std::uint32_t>(size));
    length_.push_back(static_cast<std::uint16_t>(packet.size()));
    size += (packet.size() + 15) / 16 * 16;
  }
  if (size > UINT32_MAX) return make_error("a batch of more than 4 GiB");
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t p = 0; p < packets_.size(); ++p) {
    std::copy_n(packets_[p].begin(), packets_[p].size(), bytes.begin() + offset_[p]);
  }
  const auto count = static_cast<std::uint32_t>(packets_.size());
  auto next = device_copy(dfa_.next());
  auto table = device_copy(pairs.pairs());
  auto classes = device_copy(std::vector<std::uint8_t>(pairs.class_of().begin(), pairs.class_of().end()));
  auto packets = placed(bytes);
  auto offsets = device_copy(offset_);
  auto lengths = device_copy(length_);
  auto ends = device_copy(std::vector<std::uint32_t>(count));
  auto order = device_copy(std::vector<std::uint32_t>(count));
  auto tally = device_copy(std::vector<unsigned long long>(tallies));
  for (const Error* error :
       {next ? nullptr : &next.error(), table ? nullptr : &table.error(), classes ? nullptr : &classes.error(),
        packets ? nullptr : &packets.error(), offsets ? nullptr : &offsets.error(),
        lengths ? nullptr : &lengths.error(), ends ? nullptr : &ends.error(), order ? nullptr : &order.error(),
        tally ? nullptr : &tally.error()}) {
    if (error != nullptr) return tl::unexpected(*error);
  }
  next_ = *next;
  pairs_ = {*table, *classes, pairs.classes(), pairs.hot_states()};
  order_ = *order;
  tally_ = *tally;
  batch_ = {*packets, *offsets, *lengths, nullptr, *ends, count};
  return {};
}

std::vector<std::uint32_t> CudaTechniques::sorted_by_size() const {
  // A counting sort over classes of 64 bytes.
  std::vector<std::uint32_t> begin(1025), order(length_.size());
  for (const std::uint16_t length : length_) ++begin[length / 64 + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  for (std::uint32_t p = 0; p < length_.size(); ++p) order[begin[length_[p] / 64]++] = p;
  return order;
}

template <bool counted>
Expected<void> CudaTechniques::launch_segments(unsigned hot, const LoopTally& tally) {
  const auto states = static_cast<unsigned>(std::min<std::size_t>(hot, dfa_.states()));
  const unsigned shared = states * 1024;
  SLUICE_CUDA_TRY(cudaFuncSetAttribute(walk_segments<counted>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(hot_states * 1024)));
  const unsigned blocks = std::min(segment_blocks * (hot == 0 ? 4 : 1), packet_blocks());
  SLUICE_CUDA_TRY(device::launch(walk_segments<counted>, blocks, technique_threads, shared, stream_, batch_, next_,
                                 warm_up(chunk_bytes), states, tally));
  return {};
}

template <bool counted>
Expected<void> CudaTechniques::launch_staged(std::uint32_t hot, const LoopTally& tally) {
  const unsigned ahead = warm_up(sizeof(uint4)), shared = technique_threads * staged_pitch(ahead);
  SLUICE_CUDA_TRY(cudaFuncSetAttribute(walk_staged<counted>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(shared)));
  PairTable table = pairs_;
  table.hot_states = hot;
  SLUICE_CUDA_TRY(device::launch(walk_staged<counted>, std::min(4 * segment_blocks, packet_blocks()), technique_threads,
                                 shared, stream_, batch_, next_, table, ahead, tally));
  return {};
}

template <bool counted>
Expected<void> CudaTechniques::launch(Technique technique, const LoopTally& tally) {
  const auto go = [&](auto kernel, const auto&... more) {
    return device::launch(kernel, packet_blocks(), technique_threads, 0, stream_, batch_, next_, more..., tally);
  };
  switch (technique) {
    case Technique::base:
    case Technique::sorted:
      SLUICE_CUDA_TRY(go(walk_packets<false, counted>));
      break;
    case Technique::prefetch:
      SLUICE_CUDA_TRY(go(walk_packets<true, counted>));
      break;
    case Technique::remap_each:
      SLUICE_CUDA_TRY(go(walk_remapped<Signal::always, false, counted>, false));
      break;
    case Technique::cites_naive:
      SLUICE_CUDA_TRY(go(walk_remapped<Signal::flag, false, counted>, false));
      break;
    case Technique::cites:
      SLUICE_CUDA_TRY(go(walk_remapped<Signal::flag, false, counted>, true));
      break;
    case Technique::cites_prefetch:
      SLUICE_CUDA_TRY(go(walk_remapped<Signal::flag, true, counted>, true));
      break;
    case Technique::segments:
      return launch_segments<counted>(0, tally);
    case Technique::segments_hot:
      return launch_segments<counted>(hot_states, tally);
    case Technique::segments_staged:
      return launch_staged<counted>(0, tally);
    case Technique::segments_pairs:
      return launch_staged<counted>(pairs_.hot_states, tally);
  }
  return {};
}

template <typename Launch>
Expected<double> CudaTechniques::timed(unsigned rounds, Launch&& launch) {
  double least = 0;
  if (auto ok = launch(); !ok) return tl::unexpected(ok.error());
  for (unsigned r = 0; r < rounds; ++r) {
    if (auto ok = begin_.record(stream_); !ok) return tl::unexpected(ok.error());
    if (auto ok = launch(); !ok) return tl::unexpected(ok.error());
    if (auto ok = end_.record(stream_); !ok) return tl::unexpected(ok.error());
    SLUICE_CUDA_TRY(cudaStreamSynchronize(stream_));
    const auto took = end_.microseconds_since(begin_);
    if (!took) return took;
    least = r == 0 ? *took : std::min(least, *took);
  }
  return least;
}

template <typename Launch>
Expected<SearchLoops> CudaTechniques::tallied(Launch&& launch) {
  SLUICE_CUDA_TRY(cudaMemsetAsync(tally_, 0, tallies * sizeof *tally_, stream_));
  if (auto ok = launch(); !ok) return tl::unexpected(ok.error());
  const auto count = host_copy(tally_, tallies);
  if (!count) return tl::unexpected(count.error());
  return SearchLoops{{(*count)[0], (*count)[1]}, {(*count)[2], (*count)[3]}};
}

template <typename Match, typename Count>
Expected<FilterRun> CudaTechniques::run_matcher(unsigned rounds, Match&& match, Count&& count_loops) {
  const std::uint32_t count = batch_.count;
  std::vector<std::uint64_t> address;
  std::vector<Span> span;
  std::uint64_t bytes = 0;
  for (std::uint32_t p = 0; p < count; ++p) {
    address.push_back(reinterpret_cast<std::uint64_t>(batch_.bytes) + offset_[p]);
    span.push_back({0, length_[p]});
    bytes += length_[p];
  }
  auto addresses = device_copy(address);
  auto spans = device_copy(span);
  auto classes = device_copy(std::vector<std::uint8_t>(count));
  auto keys = device_copy(std::vector<std::uint32_t>(std::size_t{count} * max_hits));
  for (const Error* error : {addresses ? nullptr : &addresses.error(), spans ? nullptr : &spans.error(),
                             classes ? nullptr : &classes.error(), keys ? nullptr : &keys.error()}) {
    if (error != nullptr) return tl::unexpected(*error);
  }
  const MatchBatch batch{*addresses, *spans, *classes, batch_.ends, *keys, count, bytes, place_ == PacketPlace::device};
  SLUICE_CUDA_TRY(cudaMemsetAsync(batch_.ends, 0xff, count * sizeof(std::uint32_t), stream_));
  const auto took = timed(rounds, [&] { return match(batch); });
  if (!took) return tl::unexpected(took.error());
  auto found = host_copy(batch_.ends, count);
  auto reported = found ? host_copy(*keys, std::size_t{count} * max_hits) : found;
  if (!reported) return tl::unexpected(reported.error());
  const auto loops = tallied([&] { return count_loops(batch); });
  if (!loops) return tl::unexpected(loops.error());
  return FilterRun{std::move(*found), std::move(*reported), *took, *loops};
}

Expected<TechniqueRun> CudaTechniques::run(Technique technique, unsigned rounds) {
  using Clock = std::chrono::steady_clock;
  TechniqueRun out;
  batch_.order = nullptr;
  if (technique == Technique::sorted) {
    const auto begin = Clock::now();
    const std::vector<std::uint32_t> order = sorted_by_size();
    out.prepare_microseconds = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    SLUICE_CUDA_TRY(cudaMemcpyAsync(order_, order.data(), order.size() * 4, cudaMemcpyHostToDevice, stream_));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(stream_));
    batch_.order = order_;
  }
  SLUICE_CUDA_TRY(cudaMemsetAsync(batch_.ends, 0xff, batch_.count * sizeof(std::uint32_t), stream_));
  const auto took = timed(rounds, [&] { return launch<false>(technique, {}); });
  if (!took) return tl::unexpected(took.error());
  out.microseconds = *took;
  out.ends.resize(batch_.count);
  SLUICE_CUDA_TRY(cudaMemcpyAsync(out.ends.data(), batch_.ends, out.ends.size() * sizeof(std::uint32_t),
                                  cudaMemcpyDeviceToHost, stream_));
  const auto loops = tallied([&] { return launch<true>(technique, tally().bytes); });
  if (!loops) return tl::unexpected(loops.error());
  out.loop = loops->bytes;
  return out;
}

}  // namespace

Expected<std::unique_ptr<Techniques>> Techniques::create(device::Gpu& gpu, const Dfa& dfa, const TwoByteTable& pairs,
                                                         std::span<const std::string> packets, PacketPlace place) {
  auto made = std::make_unique<CudaTechniques>(gpu, dfa, packets, place);
  if (auto ok = made->upload(pairs); !ok) return tl::unexpected(ok.error());
  return made;
}

}  // namespace sluice::match
