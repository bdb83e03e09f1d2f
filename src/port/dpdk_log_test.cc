#include "port/dpdk_log.h"

#include <gtest/gtest.h>
#include <rte_log.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "port/driver_log.h"

namespace sluice::port {
namespace {

class DpdkLog : public testing::Test {
 protected:
  DpdkLog() {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_));
    logger->set_pattern("%l %v");
    logger->set_level(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
    log_dpdk();
    rte_log_set_level(RTE_LOGTYPE_USER1, RTE_LOG_DEBUG);
    global_ = rte_log_get_global_level();
    rte_log_set_global_level(RTE_LOG_DEBUG);
  }
  ~DpdkLog() override {
    rte_log_set_global_level(global_);
    rte_openlog_stream(nullptr);
    spdlog::set_default_logger(before_);
  }

  std::string said() const { return said_.str(); }

  std::ostringstream said_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::uint32_t global_;
};

TEST_F(DpdkLog, EachLineIsOneOfOursWithItsLevel) {
  const std::pair<std::uint32_t, const char*> levels[] = {
      {RTE_LOG_EMERG, "error"}, {RTE_LOG_ERR, "error"}, {RTE_LOG_WARNING, "warning"},
      {RTE_LOG_NOTICE, "info"}, {RTE_LOG_INFO, "info"}, {RTE_LOG_DEBUG, "debug"},
  };
  std::string expected;
  for (const auto& [level, name] : levels) {
    rte_log(level, RTE_LOGTYPE_USER1, "one of %u\n", level);
    expected += std::string(name) + " DPDK: one of " + std::to_string(level) + "\n";
  }
  EXPECT_EQ(said(), expected);
}

TEST_F(DpdkLog, LinesThatComeInPiecesOrTogetherAreTheirOwn) {
  rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "half of ");
  EXPECT_EQ(said(), "");
  rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "a line\nand {} another\n\n");
  EXPECT_EQ(said(), "error DPDK: half of a line\nerror DPDK: and {} another\n");
}

TEST_F(DpdkLog, WhatADriverSaidAndNobodyTookIsThereToo) {
  {
    const DriverLog kept;
    rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "of the driver\nFailed to register mp action callback: no\n");
    EXPECT_EQ(said(), "");
  }
  EXPECT_EQ(said(), "warning DPDK: of the driver\ndebug DPDK: Failed to register mp action callback: no\n");
  said_.str("");
  rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "later\n");
  EXPECT_EQ(said(), "error DPDK: later\n");
}

// DPDK has threads of its own (interrupts, vhost), which do not wait for a device to open.
TEST_F(DpdkLog, LinesOfOtherThreadsAreKeptOrLoggedAndNoneIsLost) {
  std::atomic<int> said_so_far{0};
  std::atomic<bool> stops{false};
  std::thread other([&] {
    while (!stops) {
      rte_log(RTE_LOG_ERR, RTE_LOGTYPE_USER1, "line %d\n", said_so_far.load());
      ++said_so_far;
    }
  });
  const auto wait_for_another = [&] {
    for (const int before = said_so_far; said_so_far < before + 2;) {
      std::this_thread::yield();
    }
  };
  std::string taken;
  for (int i = 0; i < 20; ++i) {
    wait_for_another();
    DriverLog kept;
    wait_for_another();
    taken += kept.take() + "; ";
  }
  stops = true;
  other.join();
  const std::string logged = said();
  EXPECT_NE(taken.find("line"), std::string::npos);
  EXPECT_NE(logged.find("line"), std::string::npos);
  std::set<std::string> all;
  const std::regex line("line [0-9]+");
  const std::string* const texts[] = {&logged, &taken};
  for (const std::string* text : texts) {
    all.insert(std::sregex_token_iterator(text->begin(), text->end(), line), std::sregex_token_iterator());
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(said_so_far));
}

}  // namespace
}  // namespace sluice::port
