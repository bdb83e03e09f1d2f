#include "control/device_capacity.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using std::chrono::milliseconds;

const engine::StreamDemand demand{.largest_packet = 1000, .deadline = milliseconds(5), .rate = 4'000'000};

TEST(DeviceCapacity, GoesWithTheDeviceAndComesBackWithIt) {
  engine::StreamAdmission admission({.rate = 10'000'000, .bound = milliseconds(1), .largest_packet = 1500});
  DeviceCapacity capacity(admission);
  capacity.look(true);
  ASSERT_TRUE(admission.add(demand).accepted());
  capacity.look(false);
  capacity.look(false);
  const engine::StreamAnswer answer = admission.add(demand);
  EXPECT_EQ(answer.verdict, engine::StreamVerdict::not_measured);
  EXPECT_EQ(answer.text(),
            "the device that [profile] is of does not compute, and what the CPU carries in its place was not measured");
  const auto gone = admission.state();
  EXPECT_EQ(gone.capacity.rate, 0U);
  EXPECT_EQ(gone.rate, demand.rate) << "those that are there stay";
  EXPECT_EQ(gone.refused, 1U);
  EXPECT_EQ(gone.refused_not_measured, 1U);
  capacity.look(true);
  EXPECT_TRUE(admission.add(demand).accepted());
  EXPECT_EQ(admission.state().capacity.rate, 10'000'000U);
  EXPECT_FALSE(admission.add(demand).accepted()) << "exactly as before";
  EXPECT_EQ(admission.state().refused_not_measured, 1U);
}

// As when the configuration is read again for something else.
TEST(DeviceCapacity, StreamsThatAreThereStayThroughAReload) {
  engine::StreamAdmission admission({.rate = 10'000'000, .bound = milliseconds(1), .largest_packet = 1500});
  ASSERT_FALSE(admission.replace({}, {demand, demand}));
  DeviceCapacity(admission).look(false);
  EXPECT_FALSE(admission.replace({demand, demand}, {demand, demand}));
  engine::StreamDemand other = demand;
  other.rate = 1;
  const auto refused = admission.replace({demand, demand}, {other, demand});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->index, 0U);
  EXPECT_EQ(admission.state().rate, 2 * demand.rate);
  EXPECT_EQ(admission.state().streams, 2U);
  EXPECT_FALSE(admission.replace({demand, demand}, {demand})) << "fewer";
  EXPECT_EQ(admission.state().rate, demand.rate);
}

TEST(DeviceCapacity, WhatOnlyCountsRefusesNobody) {
  engine::StreamAdmission admission({.rate = 10'000'000, .bound = milliseconds(1), .largest_packet = 1500}, false);
  DeviceCapacity capacity(admission);
  capacity.look(false);
  EXPECT_TRUE(admission.add(demand).accepted());
}

}  // namespace
}  // namespace sluice::control
