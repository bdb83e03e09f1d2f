#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "device/copy.h"
#include "device/cuda_check.h"
#include "device/cuda_event.h"
#include "device/launch.h"
#include "lookup/acl/gpu_classifier.h"
#include "lookup/acl/gpu_classifier_view.cuh"

namespace sluice::lookup::acl {

namespace {

constexpr unsigned block_threads = 256;

struct Batch {
  const uint4* keys4;
  RuleIndex* out4;
  std::uint32_t n4;
  const uint2* keys6;
  RuleIndex* out6;
  std::uint32_t n6;
};

constexpr unsigned key6_pairs = sizeof(Key6) / sizeof(uint2);

// Whole blocks for one family: the first ceil(n4 / block) for IPv4, the others for IPv6.
__global__ void classify_keys(ClassifierView view, Batch batch) {
  const std::uint32_t blocks4 = (batch.n4 + blockDim.x - 1) / blockDim.x;
  if (blockIdx.x < blocks4) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch.n4) {
      const uint4 key = batch.keys4[i];
      batch.out4[i] = classify4(view, key.x, key.y, key.z, key.w);
    }
  } else {
    const std::uint32_t i = (blockIdx.x - blocks4) * blockDim.x + threadIdx.x;
    if (i < batch.n6) {
      const uint2* const key = batch.keys6 + std::size_t{key6_pairs} * i;
      const uint2 s0 = key[0];
      const uint2 s1 = key[1];
      const uint2 d0 = key[2];
      const uint2 d1 = key[3];
      const uint2 rest = key[4];
      batch.out6[i] =
          classify6(view, make_uint4(s0.x, s0.y, s1.x, s1.y), make_uint4(d0.x, d0.y, d1.x, d1.y), rest.x, rest.y);
    }
  }
}

struct Buffer {
  std::uint32_t* words = nullptr;
  std::size_t bytes = 0;
};

// A list on its way to the GPU, or there.
struct List {
  Tables tables;  // of one that has arrived only where the parts lie
  Buffer buffer;
  std::uint64_t generation = 0;
  ClassifierView view() const { return {buffer.words, tables.v4, tables.v6}; }
};

class CudaClassifier final : public GpuClassifier {
 public:
  CudaClassifier(device::Gpu& gpu, const Options& options)
      : gpu_(gpu), options_(options), enqueued_(gpu.stream_count()) {}

  // Kernels may still read the tables; the Gpu, which owns their memory, waits for them before it frees it.
  Expected<void> create(std::span<const AclRule> rules) {
    auto staging = gpu_.allocate_host(options_.max_sync_bytes);
    if (!staging) {
      return tl::unexpected(staging.error());
    }
    staging_ = static_cast<std::byte*>(*staging);
    if (auto ok = copied_.create(); !ok) {
      return ok;
    }
    for (device::Event& event : enqueued_) {
      if (auto ok = event.create(); !ok) {
        return ok;
      }
    }
    auto list = list_of(rules);
    if (!list) {
      return tl::unexpected(list.error());
    }
    list->generation = ++committed_;
    if (auto ok = device::copy(gpu_, list->buffer.words, list->tables.words.data(), list->tables.bytes()); !ok) {
      return ok;
    }
    current_ = arrived(std::move(*list));
    return {};
  }

  Expected<std::unique_ptr<Built>> build(std::span<const AclRule> rules) override {
    auto list = list_of(rules);
    if (!list) {
      return tl::unexpected(list.error());
    }
    return std::make_unique<BuiltList>(*this, std::move(*list));
  }

  void commit(std::unique_ptr<Built> built) override {
    List list = static_cast<BuiltList&>(*built).take();
    list.generation = ++committed_;
    std::optional<List> forgotten;  // destroyed when the lock is released
    const std::lock_guard lock(mutex_);
    forgotten = std::exchange(waiting_, std::move(list));
    if (forgotten) {
      free_.push_back(forgotten->buffer);
    }
  }

  Expected<void> sync(device::GpuStream& stream) override {
    if (gpu_.lost()) {
      return make_error("GPU lost: " + gpu_.why());
    }
    switch (change_) {
      case Change::none:
        return begin(stream);
      case Change::copying:
        return copy(stream);
      case Change::leaving:
      case Change::fading:
        return follow_readers();
    }
    return {};
  }

  bool up_to_date() const override {
    const std::lock_guard lock(mutex_);
    return change_ == Change::none && !waiting_;
  }
  std::uint64_t generation() const override { return current_.generation; }

  Expected<void> classify(device::GpuStream& stream, const Key4* keys4, RuleIndex* out4, std::uint32_t n4,
                          const Key6* keys6, RuleIndex* out6, std::uint32_t n6) override {
    const std::uint32_t blocks = (n4 + block_threads - 1) / block_threads + (n6 + block_threads - 1) / block_threads;
    if (blocks == 0) {
      return {};
    }
    const Batch batch{reinterpret_cast<const uint4*>(keys4), out4, n4, reinterpret_cast<const uint2*>(keys6), out6, n6};
    SLUICE_CUDA_TRY(device::launch(classify_keys, dim3(blocks), dim3(block_threads), 0,
                                   static_cast<cudaStream_t>(stream.raw()), view(), batch));
    return {};
  }

  ClassifierView view() const override { return current_.view(); }
  std::size_t device_bytes() const override {
    const std::lock_guard lock(mutex_);
    return allocated_;
  }

 private:
  enum class Change {
    none,     // the current list is the only one, but for one that may be waiting
    copying,  // coming_ is on its way
    leaving,  // kernels that were enqueued before the change may still read the old one
    fading,   // kernels that ran beside those may still have lines of it in their L1
  };

  class BuiltList final : public Built {
   public:
    BuiltList(CudaClassifier& of, List list) : of_(of), list_(std::move(list)) {}
    ~BuiltList() override {
      if (list_) {
        of_.give_back(list_->buffer);
      }
    }
    BuiltList(const BuiltList&) = delete;
    BuiltList& operator=(const BuiltList&) = delete;
    List take() { return *std::exchange(list_, std::nullopt); }

   private:
    CudaClassifier& of_;
    std::optional<List> list_;
  };

  void give_back(const Buffer& buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(buffer);
  }

  Expected<List> list_of(std::span<const AclRule> rules) {
    auto tables = Tables::build(rules, options_.tables);
    if (!tables) {
      return tl::unexpected(tables.error());
    }
    tables->words.resize(std::max<std::size_t>(tables->words.size(), 4));  // an empty list has none
    auto buffer = buffer_of(tables->bytes());
    if (!buffer) {
      return tl::unexpected(buffer.error());
    }
    return List{std::move(*tables), *buffer};
  }

  // A free one that is large enough, else a new one: half as large again as it must be, as long as the limit allows, so
  // that lists that grow do not each need another.
  Expected<Buffer> buffer_of(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      const auto at = std::find_if(free_.begin(), free_.end(), [&](const Buffer& b) { return b.bytes >= bytes; });
      if (at != free_.end()) {
        const Buffer found = *at;
        free_.erase(at);
        return found;
      }
    }
    const std::size_t room = std::max(bytes, std::min(bytes + bytes / 2, options_.tables.max_bytes));
    auto memory = gpu_.allocate_device(room);
    if (!memory) {
      return tl::unexpected(memory.error());
    }
    const std::lock_guard lock(mutex_);
    allocated_ += room;
    return Buffer{static_cast<std::uint32_t*>(*memory), room};
  }

  static List arrived(List list) {
    list.tables.words = {};
    return list;
  }

  Expected<void> begin(device::GpuStream& stream) {
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (!lock || !waiting_) {
        return {};
      }
      coming_ = std::move(*waiting_);
      waiting_.reset();
    }
    copied_bytes_ = 0;
    change_ = Change::copying;
    return copy(stream);
  }

  // The next piece, or, when the last one has arrived, the change.
  Expected<void> copy(device::GpuStream& stream) {
    const auto passed = copied_.passed();
    if (!passed) {
      return tl::unexpected(passed.error());
    }
    if (!*passed) {
      return {};
    }
    if (copied_bytes_ == coming_.tables.bytes()) {
      return change();
    }
    const std::size_t now = std::min(options_.max_sync_bytes, coming_.tables.bytes() - copied_bytes_);
    std::memcpy(staging_, reinterpret_cast<const std::byte*>(coming_.tables.words.data()) + copied_bytes_, now);
    SLUICE_CUDA_TRY(cudaMemcpyAsync(reinterpret_cast<std::byte*>(coming_.buffer.words) + copied_bytes_, staging_, now,
                                    cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream.raw())));
    copied_bytes_ += now;
    return copied_.record(stream);
  }

  Expected<void> change() {
    old_ = current_.buffer;
    current_ = arrived(std::move(coming_));
    change_ = Change::leaving;
    return mark_streams();
  }

  // Marks what is enqueued on each stream now.
  Expected<void> mark_streams() {
    for (unsigned i = 0; i < gpu_.stream_count(); ++i) {
      if (auto ok = enqueued_[i].record(gpu_.stream(i)); !ok) {
        return ok;
      }
    }
    return {};
  }

  Expected<void> follow_readers() {
    for (const device::Event& event : enqueued_) {
      const auto passed = event.passed();
      if (!passed) {
        return tl::unexpected(passed.error());
      }
      if (!*passed) {
        return {};
      }
    }
    if (change_ == Change::leaving) {
      change_ = Change::fading;
      return mark_streams();
    }
    const std::lock_guard lock(mutex_);
    free_.push_back(old_);
    change_ = Change::none;
    return {};
  }

  device::Gpu& gpu_;
  const Options options_;
  std::vector<device::Event> enqueued_;  // by stream
  device::Event copied_;                 // the GPU has read the staging memory
  std::byte* staging_ = nullptr;
  std::uint64_t committed_ = 0;

  List current_;
  List coming_;
  std::size_t copied_bytes_ = 0;
  Buffer old_;
  Change change_ = Change::none;

  mutable std::mutex mutex_;  // what the control thread and the driving one hand each other
  std::optional<List> waiting_;
  std::vector<Buffer> free_;
  std::size_t allocated_ = 0;
};

}  // namespace

Expected<std::unique_ptr<GpuClassifier>> GpuClassifier::create(device::Gpu& gpu, std::span<const AclRule> rules,
                                                               const Options& options) {
  auto classifier = std::make_unique<CudaClassifier>(gpu, options);
  if (auto ok = classifier->create(rules); !ok) {
    return tl::unexpected(ok.error());
  }
  return classifier;
}

}  // namespace sluice::lookup::acl
