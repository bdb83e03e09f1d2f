#include <utility>

#include "device/cuda_check.h"
#include "device/launch.h"
#include "device/table_exchange.h"
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

class CudaClassifier final : public GpuClassifier {
 public:
  CudaClassifier(device::Gpu& gpu, const Options& options)
      : options_(options.tables), exchange_(gpu, options.max_sync_bytes, options.tables.max_bytes) {}

  Expected<void> create(std::span<const AclRule> rules) {
    auto table = table_of(rules);
    return table ? exchange_.create(std::move(*table)) : tl::unexpected(table.error());
  }

  Expected<std::unique_ptr<Built>> build(std::span<const AclRule> rules) override {
    auto table = table_of(rules);
    if (!table) return tl::unexpected(table.error());
    auto prepared = exchange_.prepare(std::move(*table));
    if (!prepared) return tl::unexpected(prepared.error());
    return std::make_unique<BuiltList>(std::move(*prepared));
  }

  void commit(std::unique_ptr<Built> built) override {
    exchange_.commit(std::move(static_cast<BuiltList&>(*built).prepared));
  }

  Expected<void> sync(device::GpuStream& stream) override { return exchange_.sync(stream); }
  bool up_to_date() const override { return exchange_.up_to_date(); }
  std::uint64_t generation() const override { return exchange_.generation(); }

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

  ClassifierView view() const override {
    const Layout& layout = exchange_.layout();
    return {exchange_.words(), layout.v4, layout.v6, layout.denied};
  }
  std::size_t device_bytes() const override { return exchange_.device_bytes(); }

 private:
  using Exchange = device::TableExchange<Layout>;

  struct BuiltList final : Built {
    explicit BuiltList(Exchange::Prepared list) : prepared(std::move(list)) {}
    Exchange::Prepared prepared;
  };

  Expected<Exchange::Table> table_of(std::span<const AclRule> rules) const {
    auto tables = Tables::build(rules, options_);
    if (!tables) return tl::unexpected(tables.error());
    return Exchange::Table{std::move(tables->words), {tables->v4, tables->v6, tables->denied}};
  }

  const Tables::Options options_;
  Exchange exchange_;
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
