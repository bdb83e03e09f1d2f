// The ClassBench sets of the public data: what CPU and GPU answer for their traces and for the edges of their filters
// is the first match by its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "../tests/support/gpu.h"
#include "../tests/support/public_data.h"
#include "lookup/acl/acl_random_test.h"
#include "lookup/acl/classbench.h"
#include "lookup/acl/classifier.h"
#include "lookup/acl/gpu_classifier.h"

namespace sluice::lookup::acl {
namespace {

#ifdef SLUICE_SANITIZED
constexpr std::size_t most_keys = 500;
#else
constexpr std::size_t most_keys = 6000;
#endif

struct Set {
  const char* name;
  std::size_t rules;
};

class ClassBenchSets : public testing::TestWithParam<Set> {
 protected:
  void SetUp() override {
    constexpr const char* sets = "classbench/cutsplit-1k-10k-with-traces.tar.xz";
    if (const std::string why = test::why_no_data(sets); !why.empty()) GTEST_SKIP() << why;
    const std::string archive = test::data_path(sets);
    std::string name = (std::filesystem::temp_directory_path() / "classbench-sets-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    const std::string unpack = "tar -xJf '" + archive + "' -C '" + folder_.string() + "'";
    ASSERT_EQ(std::system(unpack.c_str()), 0) << unpack;  // NOLINT(cert-env33-c): a test's own command
    auto rules = read_classbench(file(""));
    ASSERT_TRUE(rules) << rules.error().message;
    rules_ = std::move(*rules);
    ASSERT_EQ(rules_.size(), GetParam().rules);
    keys_ = edge_keys<Key4>(rules_, random_);
    std::shuffle(keys_.begin(), keys_.end(), random_);
    keys_.resize(std::min(keys_.size(), most_keys));
    if (std::filesystem::exists(file("_trace"))) {
      add_trace();
    }
    for (const Key4& key : keys_) {
      wanted_.push_back(first_match(rules_, key));
    }
  }
  ~ClassBenchSets() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string file(const std::string& ending) const {
    return (folder_ / "CutSplit" / (GetParam().name + ending)).string();
  }

  // A part of the trace. Of most headers the filter that they were drawn from is no earlier than the first match.
  void add_trace() {
    const auto trace = read_classbench_trace(file("_trace"));
    ASSERT_TRUE(trace) << trace.error().message;
    ASSERT_GE(trace->size(), 10'000U);
    std::size_t matched = 0;
    const std::size_t step = trace->size() / std::min(trace->size(), most_keys);
    for (std::size_t i = 0; i < trace->size(); i += step) {
      const TraceHeader& header = (*trace)[i];
      keys_.push_back(header.key);
      ASSERT_LT(header.filter, rules_.size());
      matched += matches_by_definition(rules_[header.filter], header.key) ? 1 : 0;
    }
    EXPECT_GT(matched * step, trace->size() * 9 / 10);
  }

  std::filesystem::path folder_;
  std::mt19937_64 random_{3};
  std::vector<AclRule> rules_;
  std::vector<Key4> keys_;
  std::vector<RuleIndex> wanted_;
};

TEST_P(ClassBenchSets, OnTheCpu) {
  const auto classifier = Classifier::create({}, rules_);
  ASSERT_TRUE(classifier) << classifier.error().message;
  std::vector<RuleIndex> out(keys_.size());
  (*classifier)->classify4(keys_.data(), out.data(), static_cast<unsigned>(keys_.size()));
  EXPECT_EQ(out, wanted_);
}

TEST_P(ClassBenchSets, OnTheGpu) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const auto gpu = device::Gpu::open(0, 1);
  ASSERT_TRUE(gpu) << gpu.error().message;
  const auto classifier = GpuClassifier::create(**gpu, rules_);
  ASSERT_TRUE(classifier) << classifier.error().message;
  EXPECT_LT((*classifier)->device_bytes(), 50U << 20);  // the L2 cache of an H200
  auto* keys = static_cast<Key4*>((*gpu)->allocate_host(keys_.size() * sizeof(Key4)).value());
  auto* out = static_cast<RuleIndex*>((*gpu)->allocate_host(keys_.size() * sizeof(RuleIndex)).value());
  std::copy(keys_.begin(), keys_.end(), keys);
  device::GpuStream& stream = (*gpu)->stream(0);
  ASSERT_TRUE(
      (*classifier)->classify(stream, keys, out, static_cast<std::uint32_t>(keys_.size()), nullptr, nullptr, 0));
  ASSERT_TRUE(stream.mark());
  while (stream.pending_marks() > 0) {
    ASSERT_NE(stream.poll(), device::MarkState::failed) << (*gpu)->why();
  }
  EXPECT_EQ(std::vector<RuleIndex>(out, out + keys_.size()), wanted_);
}

INSTANTIATE_TEST_SUITE_P(CutSplit, ClassBenchSets,
                         testing::Values(Set{"acl_1k", 1016}, Set{"fw_1k", 856}, Set{"ipc_1k", 1007},
                                         Set{"acl_10k", 9826}, Set{"fw_10k", 9388}, Set{"ipc_10k", 9569}),
                         [](const auto& set) { return std::string(set.param.name); });

}  // namespace
}  // namespace sluice::lookup::acl
