#include "bench/media_overload.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::cli::bench {
namespace {

using std::chrono::microseconds;

const engine::StreamDemand demand{1370, microseconds(1000), 10'000'000};

TEST(MediaOverload, AsManyStreamsAreAdmittedAsFit) {
  engine::StreamAdmission admission({605'000'000, microseconds(900), 1370});
  EXPECT_EQ(admitted_of(admission, 100, demand), 60U);
  EXPECT_EQ(admission.state().refused, 40U);
  EXPECT_EQ(admission.state().rate, 600'000'000U);
}

TEST(MediaOverload, NoneIsAdmittedWhoseDeadlineIsNotAboveTheBound) {
  engine::StreamAdmission admission({605'000'000, microseconds(1000), 1370});
  EXPECT_EQ(admitted_of(admission, 100, demand), 0U);
}

TEST(MediaOverload, AProfileAdmitsWhereItIsOfThisGateway) {
  engine::Profile profile;
  profile.subject = {"machine", "GPU", {"srtp", "bridge"}, "AEAD_AES_128_GCM", 4, 1};
  profile.packet = 1504;
  profile.capacities = {
      {microseconds(100), 4, 605'000'000}, {microseconds(400), 4, 900'000'000}, {microseconds(50), 4, 0}};
  profile.cells.resize(1);
  profile.cells[0].round = microseconds(20);
  const struct {
    const char* name;
    unsigned lanes;
    std::uint32_t packet;
    microseconds cycle;
    const char* refused;
  } cases[] = {{"as it is", 4, 1370, microseconds(300), ""},
               {"other lanes", 8, 1370, microseconds(300), "the number of lanes is 8, and it was measured with 4"},
               {"larger packets", 4, 1505, microseconds(300), "measured with packets of 1504 bytes"},
               {"a shorter cycle", 4, 1370, microseconds(40), "no B_I of a cycle as short as this one, 40us"},
               {"a cycle that carries nothing", 4, 1370, microseconds(60), "no B_I of a cycle as short as this one"}};
  for (const auto& one : cases) {
    engine::ProfileSubject now = profile.subject;
    now.lanes = one.lanes;
    const engine::Timing timing{one.cycle, microseconds(910), microseconds(1000), 1};
    const auto capacity = capacity_of(profile, now, timing, one.packet);
    ASSERT_EQ(static_cast<bool>(capacity), *one.refused == 0) << one.name;
    if (!capacity) {
      EXPECT_NE(capacity.error().message.find(one.refused), std::string::npos) << capacity.error().message;
      continue;
    }
    EXPECT_EQ(capacity->bound, microseconds(900) + engine::collect_time_of(microseconds(20))) << one.name;
    engine::StreamAdmission admission(*capacity);
    EXPECT_EQ(admitted_of(admission, 100, demand), 60U) << one.name;
  }
}

}  // namespace
}  // namespace sluice::cli::bench
