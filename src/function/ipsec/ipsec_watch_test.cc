// What is said of packets that wait for an IKE daemon which is not there.
#include "function/ipsec/ipsec_watch.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "crypto/key_table.h"

namespace sluice::function {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class IpsecWatchTest : public testing::Test {
 protected:
  crypto::KeyTable keys_ = crypto::KeyTable::make(16, true).value();
  ipsec::Databases databases_{keys_, {.sas = 16, .policies = 16, .lanes = 1, .readers = 2}};
};

TEST_F(IpsecWatchTest, APacketThatWaitsForADaemonThatIsNotThereIsATrouble) {
  const std::string socket = "/tmp/sluice-watch-test-" + std::to_string(getpid()) + ".sock";
  IpsecWatch watch(databases_, socket);
  const auto started = watch.start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_THAT(watch.troubles(), SizeIs(0)) << "nobody has wanted one yet";
  watch.acquire({});
  ASSERT_THAT(watch.troubles(), SizeIs(1));
  EXPECT_THAT(watch.troubles().front().what, HasSubstr("no IKE daemon is connected to " + socket));
}

TEST_F(IpsecWatchTest, WithoutASocketNoDaemonIsMissed) {
  IpsecWatch watch(databases_, "");
  ASSERT_TRUE(watch.start());
  watch.acquire({});
  EXPECT_THAT(watch.troubles(), SizeIs(0));
}

}  // namespace
}  // namespace sluice::function
