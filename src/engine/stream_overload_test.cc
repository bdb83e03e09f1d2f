// The paper's overload: more streams than the device carries in time, with and without their admission, on a lane and a
// device in virtual time.
#include <gtest/gtest.h>

#include <vector>

#include "engine/stream_load_test.h"

namespace sluice::engine {
namespace {

constexpr unsigned offered = 1500;

struct Load {
  unsigned accepted = 0, refused = 0;
  std::size_t frames = 0, late = 0;
  std::vector<std::size_t> late_of;  // by stream
};

// The streams that are accepted send for a second.
Load run(bool enforced) {
  StreamAdmission admission = test::admission(enforced);
  Load load;
  for (unsigned i = 0; i < offered; ++i) {
    ++(admission.add(test::stream).accepted() ? load.accepted : load.refused);
  }
  load.late_of.resize(load.accepted);
  std::vector<Ns> arrivals;
  for (Ns begin = 0; begin < 1000 * test::ms; begin += test::period) {
    for (unsigned i = 0; i < load.accepted; ++i) arrivals.push_back(begin + test::period * i / load.accepted);
  }
  load.frames = test::send(arrivals, [&load](std::size_t one) {
    ++load.late;
    ++load.late_of[one % load.accepted];
  });
  EXPECT_EQ(load.frames, arrivals.size());
  return load;
}

TEST(StreamOverload, WithoutAdmissionEveryStreamIsLate) {
  const Load load = run(false);
  EXPECT_EQ(load.accepted, offered);
  EXPECT_GT(load.late, load.frames * 98 / 100);
  for (const std::size_t late : load.late_of) EXPECT_GT(late, 900U);
}

TEST(StreamOverload, WithItOnlyTheRefusedSuffer) {
  const Load load = run(true);
  EXPECT_EQ(load.accepted, 900U);
  EXPECT_EQ(load.refused, 600U);
  EXPECT_EQ(load.late, 0U);
}

}  // namespace
}  // namespace sluice::engine
