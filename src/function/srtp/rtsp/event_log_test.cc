#include "function/srtp/rtsp/event_log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>

namespace sluice::function::rtsp {
namespace {

TEST(EventLog, SaysSoManyLinesASecondAndThenWhatWasLeftOut) {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("t", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  spdlog::set_pattern("%l %v");
  EventLog log;
  const EventLog::Time now = EventLog::Time{} + std::chrono::hours(1);
  for (unsigned i = 0; i < EventLog::lines_a_second + 7; ++i) log.say(spdlog::level::info, "one", now);
  log.say(spdlog::level::info, "later", now + std::chrono::seconds(1));
  spdlog::set_default_logger(before);
  std::string wanted;
  for (unsigned i = 0; i < EventLog::lines_a_second; ++i) wanted += "info rtsp: one\n";
  EXPECT_EQ(said.str(), wanted + "info rtsp: 7 lines like the next were left out\ninfo rtsp: later\n");
}

}  // namespace
}  // namespace sluice::function::rtsp
