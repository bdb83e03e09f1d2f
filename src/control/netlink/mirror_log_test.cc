#include "control/netlink/mirror_log.h"

#include <gtest/gtest.h>

#include "../tests/support/captured_log.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;

class MirrorLogTest : public testing::Test {
 protected:
  std::string logged() { return captured_.take(); }

  test::CapturedLog captured_;
  MirrorLog log_{10s};
  MirrorLog::Clock::time_point start_{1h};
  MirrorStats stats_;
};

TEST_F(MirrorLogTest, IsSilentWhenNothingIsWrong) {
  stats_.routes = stats_.messages = stats_.probes = stats_.resyncs = 1000;
  log_.look(stats_, start_);
  EXPECT_EQ(logged(), "");
}

TEST_F(MirrorLogTest, ARefusalIsReportedWithItsReasonAndNoneIsForgotten) {
  stats_.refusals = 1;
  stats_.last_refusal = "the table is full; raise [route] max_ipv4";
  log_.look(stats_, start_);
  EXPECT_EQ(
      logged(),
      "warning kernel: 1 changes of routes and neighbours refused; the last one: the table is full; raise [route] "
      "max_ipv4\n");
  stats_.refusals = 50;
  stats_.last_refusal = "another reason";
  log_.look(stats_, start_ + 1s);
  log_.look(stats_, start_ + 9s);
  EXPECT_EQ(logged(), "");
  // Notified although nothing has happened since.
  log_.look(stats_, start_ + 10s);
  EXPECT_EQ(logged(), "warning kernel: 49 changes of routes and neighbours refused; the last one: another reason\n");
  log_.look(stats_, start_ + 30s);
  EXPECT_EQ(logged(), "");
}

TEST_F(MirrorLogTest, EveryKindHasALineOfItsOwn) {
  stats_.overruns = 2;
  stats_.malformed = 3;
  stats_.unsent = 4;
  stats_.shortened = 5;
  log_.look(stats_, start_);
  EXPECT_EQ(logged(),
            "warning kernel: notifications were lost 2 times; the tables are compared anew\n"
            "warning kernel: 3 messages passed over that are not as rtnetlink(7) says\n"
            "warning kernel: 4 probes and requests not taken, for want of memory; they are sent again\n"
            "warning kernel: 5 sets of next hops have more than the 64 that a route can have; the first 64 are used\n");
  log_.look(stats_, start_ + 20s);
  EXPECT_EQ(logged(), "");
}

}  // namespace
}  // namespace sluice::control
