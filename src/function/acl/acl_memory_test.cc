// What a change of a named set allocates, and that one which runs out of memory changes nothing.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "function/acl/acl_trial_test.h"
#include "function/element_trial_test.h"

namespace {

// Of the thread that tests.
thread_local std::size_t allocated = 0;   // bytes since it was set to 0
thread_local long allocations_left = -1;  // until one fails; below 0: none does

}  // namespace

// For the whole program, which they change nothing for.
void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  allocated += size;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// A sanitizer has one of its own, whose memory the operators below must not be given.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}

namespace sluice::function {
namespace {

constexpr const char* bad = R"(
[[acl.set]]
name = "bad"
entries = ["192.0.2.1"]
[[acl.rule]]
source = "@bad"
action = "deny"
)";

bool denies(engine::Element& acl, const char* from) {
  return judge_alone(acl, PacketBuilder().ipv4(from, "192.0.2.200").udp(7, 1).payload(20).build()) == acl_denied;
}

TEST(AclMemory, WhatIsListedIsWhatFramesAreJudgedByWhereverAChangeRunsOutOfMemory) {
  auto acl = acl_of(bad);
  ASSERT_TRUE(acl->prepare({}));
  engine::NamedSets& sets = *acl->trait<engine::NamedSets>();
  const std::vector<std::string> added = {"192.0.2.2"};
  bool failed = true;
  long tries = 0;
  for (; failed; ++tries) {
    ASSERT_LT(tries, 1000);
    allocations_left = tries;
    try {
      static_cast<void>(sets.add_to_set("bad", added));
      failed = false;
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_left = -1;
    const std::size_t listed = sets.list_sets("bad", 0)->front().count;
    EXPECT_EQ(listed, failed ? 1U : 2U) << "allocation " << tries;
    EXPECT_EQ(denies(*acl, "192.0.2.2"), !failed) << "allocation " << tries;
  }
  EXPECT_GT(tries, 5);
}

TEST(AclMemory, AChangeOfNothingBuildsNothing) {
  auto acl = acl_of(bad);
  ASSERT_TRUE(acl->prepare({}));
  engine::NamedSets& sets = *acl->trait<engine::NamedSets>();
  std::vector<std::string> many;
  for (int i = 0; i < 10'000; ++i) {
    many.push_back("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256));
  }
  ASSERT_TRUE(sets.add_to_set("bad", many));
  allocated = 0;
  EXPECT_EQ(*sets.add_to_set("bad", {"10.0.0.1"}), "0 entries added to bad, which has 10001 now; 1 was there already");
  EXPECT_EQ(
      *sets.remove_from_set("bad", {"10.9.0.1", "10.9.0.2"}),
      "0 entries removed from bad, which has 10001 now; 2 were not there: what is removed is written as the entry is");
  EXPECT_LT(allocated, 10'000U);
}

}  // namespace
}  // namespace sluice::function
