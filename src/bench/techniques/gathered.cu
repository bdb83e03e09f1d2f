#include <string>
#include <vector>

#include "bench/techniques/filter_count.h"
#include "bench/techniques/gathered.cuh"
#include "bench/techniques/gathered.h"
#include "device/copy.h"
#include "device/cuda_check.h"
#include "device/frame_copy.h"
#include "device/launch.h"

namespace sluice::match {
namespace {

Expected<Dfa> automaton_of(const KeySet& keys) {
  std::vector<Pattern> patterns;
  for (const Key& key : keys.keys())
    patterns.push_back({std::string(key.bytes.begin(), key.bytes.begin() + key.length)});
  return Dfa::make(patterns, Key::max_length);
}

// What ends in each state. A state's longest suffix has a smaller number, so it is done before.
std::vector<KeyEnd> ends_of(const Dfa& dfa, const KeySet& keys) {
  std::vector<KeyEnd> end(dfa.states(), KeyEnd{no_hit, 0, 0, 0});
  for (std::uint32_t k = 0; k < keys.keys().size(); ++k) {
    const Key& key = keys.keys()[k];
    std::uint32_t state = 0;
    for (unsigned i = 0; i < key.length; ++i)
      state = dfa.next()[state * std::size_t{256} + key.bytes[i]] & ~Dfa::accepts;
    end[state].key = k;
    end[state].classes = key.classes;
  }
  for (std::size_t s = 1; s < end.size(); ++s) {
    const std::uint32_t shorter = dfa.fail()[s];
    if (end[shorter].key == no_hit) continue;
    if (end[s].key == no_hit) {
      end[s] = end[shorter];
    } else {
      end[s].next = shorter;
    }
  }
  return end;
}

class CudaGathered final : public GatheredMatcher {
 public:
  CudaGathered(device::Gpu& gpu, GpuMatcher& filter, std::size_t keys, const GatherCapacity& capacity)
      : gpu_(gpu), filter_(filter), keys_(keys), capacity_(capacity) {}

  Expected<void> create_slots() {
    const auto pitch = static_cast<std::uint32_t>(device::staging_pitch(capacity_.payload_bytes));
    for (unsigned s = 0; s < capacity_.streams; ++s) {
      auto bytes = allocate<std::uint8_t>(std::size_t{capacity_.frames} * pitch);
      auto frame = bytes ? allocate<std::uint64_t>(capacity_.frames) : tl::unexpected(bytes.error());
      auto span = frame ? allocate<Span>(capacity_.frames) : tl::unexpected(frame.error());
      auto klass = span ? allocate<std::uint8_t>(capacity_.frames) : tl::unexpected(span.error());
      if (!klass) return tl::unexpected(klass.error());
      slots_.push_back({reinterpret_cast<std::uint64_t>(*bytes), pitch, *frame, *span, *klass});
    }
    return {};
  }

  Expected<void> create_automaton(const KeySet& keys, bool whole) {
    const auto dfa = automaton_of(keys);
    if (!dfa) return tl::unexpected(dfa.error());
    auto next = device_copy(dfa->next());
    auto end = next ? device_copy(ends_of(*dfa, keys)) : tl::unexpected(next.error());
    if (!end) return tl::unexpected(end.error());
    automaton_ = {*next, *end, whole};
    return {};
  }

  Expected<void> match(const MatchBatch& batch, unsigned stream) override {
    if (batch.count == 0) return {};
    const auto brought = gather(batch, stream);
    if (!brought) return tl::unexpected(brought.error());
    if (automaton_.next == nullptr) return filter_.match(*brought, gpu_.stream(stream));
    const MatchSpread spread = spread_of(*brought);
    SLUICE_CUDA_TRY(device::launch(walk_keys, spread.blocks, match_block_threads, 0, raw(stream), *brought, automaton_,
                                   spread.per_warp));
    return {};
  }

  Expected<std::vector<std::uint32_t>> every_key(const MatchBatch& batch, unsigned stream) override {
    const std::size_t words = GpuMatcher::key_words(keys_);
    std::vector<std::uint32_t> seen(batch.count * words);
    if (seen.empty()) return seen;
    const auto brought = gather(batch, stream);
    if (!brought) return tl::unexpected(brought.error());
    if (automaton_.next == nullptr) return filter_.every_key(*brought, keys_, gpu_.stream(stream));
    if (seen.size() > seen_words_) {
      auto memory = allocate<std::uint32_t>(seen.size());
      if (!memory) return tl::unexpected(memory.error());
      seen_ = *memory;
      seen_words_ = seen.size();
    }
    const MatchSpread spread = spread_of(*brought);
    const std::size_t bytes = seen.size() * sizeof seen[0];
    SLUICE_CUDA_TRY(cudaMemsetAsync(seen_, 0, bytes, raw(stream)));
    SLUICE_CUDA_TRY(device::launch(mark_walked_keys, spread.blocks, match_block_threads, 0, raw(stream), *brought,
                                   automaton_, spread.per_warp, seen_, static_cast<std::uint32_t>(words)));
    SLUICE_CUDA_TRY(cudaMemcpyAsync(seen.data(), seen_, bytes, cudaMemcpyDeviceToHost, raw(stream)));
    SLUICE_CUDA_TRY(cudaStreamSynchronize(raw(stream)));
    return seen;
  }

  Expected<void> count(const MatchBatch& batch, const SearchTally& tally, unsigned stream) override {
    if (batch.count == 0) return {};
    const auto brought = gather(batch, stream);
    if (!brought) return tl::unexpected(brought.error());
    if (automaton_.next == nullptr) return count_filter(filter_, *brought, tally, gpu_.stream(stream));
    const MatchSpread spread = spread_of(*brought);
    SLUICE_CUDA_TRY(device::launch(count_walks, spread.blocks, match_block_threads, 0, raw(stream), *brought,
                                   automaton_, spread.per_warp, tally));
    return {};
  }

  std::size_t device_bytes() const override { return device_bytes_; }

 private:
  cudaStream_t raw(unsigned stream) { return static_cast<cudaStream_t>(gpu_.stream(stream).raw()); }

  // The batch as it lies in the stream's slots once what is enqueued here has run.
  Expected<MatchBatch> gather(const MatchBatch& batch, unsigned stream) {
    if (batch.count > capacity_.frames) {
      return make_error("a batch of " + std::to_string(batch.count) + " frames: there are " +
                        std::to_string(capacity_.frames) + " slots to bring them to; make it smaller");
    }
    const GatherSlots& slots = slots_[stream];
    const MatchSpread spread = spread_of(batch);
    SLUICE_CUDA_TRY(device::launch(gather_payloads, spread.blocks, match_block_threads, 0, raw(stream), batch, slots,
                                   spread.per_warp));
    MatchBatch brought = batch;
    brought.frame = slots.frame;
    brought.span = slots.span;
    brought.klass = slots.klass;
    brought.on_device = true;
    return brought;
  }

  template <typename T>
  Expected<T*> allocate(std::size_t count) {
    auto memory = gpu_.allocate_device(count * sizeof(T));
    if (!memory) return tl::unexpected(memory.error());
    device_bytes_ += memory->bytes();
    memory_.push_back(std::move(*memory));
    return memory_.back().template as<T>();
  }
  template <typename T>
  Expected<T*> device_copy(const std::vector<T>& values) {
    auto memory = allocate<T>(values.size());
    if (!memory) return memory;
    if (auto ok = device::copy(gpu_, *memory, values.data(), values.size() * sizeof(T)); !ok) {
      return tl::unexpected(ok.error());
    }
    return memory;
  }

  device::Gpu& gpu_;
  GpuMatcher& filter_;
  const std::size_t keys_;
  const GatherCapacity capacity_;
  std::vector<device::DeviceMemory> memory_;  // of all that follows
  std::vector<GatherSlots> slots_;            // by stream
  KeyAutomaton automaton_{};                  // next null: the filter searches
  std::uint32_t* seen_ = nullptr;             // every_key()'s, on the device
  std::size_t seen_words_ = 0, device_bytes_ = 0;
};

}  // namespace

Expected<std::unique_ptr<GatheredMatcher>> GatheredMatcher::create(device::Gpu& gpu, GpuMatcher& filter,
                                                                   const KeySet& keys, GatheredSearch search,
                                                                   const GatherCapacity& capacity, bool whole) {
  auto matcher = std::make_unique<CudaGathered>(gpu, filter, keys.keys().size(), capacity);
  if (auto ok = matcher->create_slots(); !ok) return tl::unexpected(ok.error());
  if (search == GatheredSearch::automaton) {
    if (auto ok = matcher->create_automaton(keys, whole); !ok) return tl::unexpected(ok.error());
  }
  return matcher;
}

}  // namespace sluice::match
