// The bound of a configuration against its deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "control/config.h"
#include "control/sample_config.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

TEST(Config, BoundAboveTheDeadlineIsRefusedWhereACycleIsUsed) {
  const std::string timing = "engine.deadline = \"1ms\"\nengine.cycle = \"400us\"\n";
  const Config gpu = Config::from_text(with_chain(timing) + good_port, "r.toml");
  ASSERT_EQ(gpu.diagnostics().lines.size(), 1U);
  EXPECT_THAT(gpu.diagnostics().lines[0], testing::StartsWith("r.toml:3: [engine] cycle = \"400us\": the bound"));
  const Config shortest = Config::from_text(with_chain("engine.deadline = \"30us\"\n") + good_port, "r.toml");
  ASSERT_EQ(shortest.diagnostics().lines.size(), 1U);
  EXPECT_THAT(shortest.diagnostics().lines[0], testing::StartsWith("r.toml:2: [engine] deadline = \"30us\": "));
  EXPECT_TRUE(Config::from_text(with_chain(timing + "engine.device = \"cpu\"\n") + good_port, "r.toml").ok());
}

TEST(Config, ADeviceMayBeSilentForAMillisecondToAMinute) {
  const auto silence = [](const std::string& value) {
    return Config::from_text(with_chain("engine.device_silence = \"" + value + "\"\n") + good_port, "r.toml");
  };
  EXPECT_EQ(silence("auto").engine.device_silence.count(), 0);
  EXPECT_EQ(silence("20ms").engine.device_silence, std::chrono::milliseconds(20));
  for (const char* const wrong : {"999us", "61s"}) {
    EXPECT_THAT(silence(wrong).diagnostics().lines, ElementsAre("r.toml:2: [engine] device_silence = \"" +
                                                                std::string(wrong) + "\": allowed is from 1ms to 60s"));
  }
}

TEST(Config, ALostDeviceComesBackAfterAWhileOrNever) {
  const auto back = [](const std::string& value) {
    return Config::from_text(with_chain("engine.device_return = \"" + value + "\"\n") + good_port, "r.toml");
  };
  EXPECT_EQ(Config::from_text(with_chain("") + good_port, "r.toml").engine.device_return, std::chrono::seconds(10));
  EXPECT_EQ(back("never").engine.device_return.count(), 0);
  EXPECT_EQ(back("90s").engine.device_return, std::chrono::seconds(90));
  EXPECT_THAT(back("999ms").diagnostics().lines,
              ElementsAre("r.toml:2: [engine] device_return = \"999ms\": allowed is from 1s to 3600s, and \"never\""));
}

TEST(Config, BoundOfTheCpuAboveTheDeadlineIsRefusedToo) {
  const std::string timing = "engine.device = \"cpu\"\nengine.poll = \"busy\"\nengine.cycle = \"1ms\"\n";
  const Config config = Config::from_text(with_chain(timing + "engine.deadline = \"1ns\"\n") + good_port, "r.toml");
  ASSERT_EQ(config.diagnostics().lines.size(), 1U);
  EXPECT_EQ(
      config.diagnostics().lines[0],
      "r.toml:5: [engine] deadline = \"1ns\": the bound of this configuration on the CPU, 50us of a batch = 50us, "
      "exceeds its deadline of 1ns: raise the deadline to at least 50us");
  EXPECT_TRUE(Config::from_text(with_chain(timing + "engine.deadline = \"50us\"\n") + good_port, "r.toml").ok());
}

TEST(Config, SleepWhereAPortCannotWakeItsLaneCountsAgainstTheDeadline) {
  const std::string timing = "engine.deadline = \"1ms\"\nengine.cycle = \"300us\"\n";
  const auto lines = [&](const std::string& poll, const std::string& device) {
    const std::string port = "[[port]]\nname = \"a\"\ndevice = \"" + device + "\"\n";
    return Config::from_text(with_chain(timing + "engine.poll = \"" + poll + "\"\n") + port, "r.toml")
        .diagnostics()
        .lines;
  };
  EXPECT_THAT(lines("busy", "replay"), testing::IsEmpty());
  EXPECT_THAT(lines("adaptive", "net_af_packet0,iface=lo"), testing::IsEmpty());
  EXPECT_THAT(lines("adaptive", "replay"),
              ElementsAre(testing::StartsWith("r.toml:3: [engine] cycle = \"300us\": the bound of this configuration, "
                                              "(2 + overlap)*cycle + 10us + 250us of sleep = 1160us")));
}

}  // namespace
}  // namespace sluice::control
