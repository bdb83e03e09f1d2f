#include <utility>

#include "device/cuda_check.h"
#include "device/device_table.h"
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

// Whole blocks for one family: the first ceil(n4 / block) for IPv4, the others for IPv6.
__global__ void classify_keys(ClassifierView view, Batch batch) {
  const std::uint32_t blocks4 = (batch.n4 + blockDim.x - 1) / blockDim.x;
  if (blockIdx.x < blocks4) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < batch.n4) {
      batch.out4[i] = classify4(view, batch.keys4[i]);
    }
  } else {
    const std::uint32_t i = (blockIdx.x - blocks4) * blockDim.x + threadIdx.x;
    if (i < batch.n6) {
      batch.out6[i] = classify6(view, batch.keys6 + std::size_t{key6_pairs} * i);
    }
  }
}

// Where the parts of a list lie.
struct Layout {
  FamilyTables v4, v6;
  std::uint32_t denied;
};

class CudaClassifier final : public device::DeviceTable<GpuClassifier, Layout> {
 public:
  CudaClassifier(device::Gpu& gpu, const Options& options)
      : DeviceTable(gpu, options.max_sync_bytes, options.tables.max_bytes), options_(options.tables) {}

  Expected<void> create(std::span<const AclRule> rules, std::shared_ptr<const void> of) {
    auto table = table_of(rules);
    return table ? DeviceTable::create_copy(std::move(*table), std::move(of)) : tl::unexpected(table.error());
  }

  Expected<std::unique_ptr<Prepared>> prepare(std::span<const AclRule> rules) override {
    auto table = table_of(rules);
    return table ? DeviceTable::prepare_copy(std::move(*table)) : tl::unexpected(table.error());
  }

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

  ClassifierView view() const override { return {words(), layout().v4, layout().v6, layout().denied}; }

 private:
  Expected<Table> table_of(std::span<const AclRule> rules) const {
    auto tables = Tables::build(rules, options_);
    if (!tables) return tl::unexpected(tables.error());
    return Table{std::move(tables->words), {tables->v4, tables->v6, tables->denied}};
  }

  const Tables::Options options_;
};

}  // namespace

Expected<std::unique_ptr<GpuClassifier>> GpuClassifier::create(device::Gpu& gpu, std::span<const AclRule> rules,
                                                               const Options& options, std::shared_ptr<const void> of) {
  auto classifier = std::make_unique<CudaClassifier>(gpu, options);
  if (auto ok = classifier->create(rules, std::move(of)); !ok) {
    return tl::unexpected(ok.error());
  }
  return classifier;
}

}  // namespace sluice::lookup::acl
