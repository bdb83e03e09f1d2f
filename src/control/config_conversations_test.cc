// Lanes on which a function of the chain could not follow conversations: said by the file alone, before a machine is
// asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/config.h"

namespace sluice::control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Line 1 is the chain; the ports begin in lines 2 and 5, without what is given to them.
std::vector<std::string> mistakes(const std::string& one, const std::string& other,
                                  const std::string& chain = "\"inspect\", \"bridge\"",
                                  const std::string& engine = "") {
  const Config config = Config::from_text("engine = { chain = [" + chain + "]" + engine + " }\n" +
                                              "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n" + one +
                                              "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\n" + other,
                                          "r.toml");
  return config.diagnostics().lines;
}

const std::string why =
    "\"inspect\" follows conversations, whose two directions come in by different ports: give all ports as many queues "
    "and lanes; ";

TEST(ConversationSettings, LanesOfAllPortsAreAsMany) {
  EXPECT_THAT(mistakes("", ""), IsEmpty());
  EXPECT_THAT(mistakes("queues = 2\n", "queues = 2\n"), IsEmpty());
  EXPECT_THAT(mistakes("queues = 2\n", "queues = 2\nlanes = 2\n"), IsEmpty());
  EXPECT_THAT(mistakes("", "lanes = 2\n"), ElementsAre("r.toml:8: [[port]] lanes = 2: " + why +
                                                       "'a' has 1 queue and 1 lane, 'b' has 1 queue and 2 lanes"));
  EXPECT_THAT(mistakes("queues = 3\n", ""), ElementsAre("r.toml:5: [[port]] queues = 3: " + why +
                                                        "'a' has 3 queues and 3 lanes, 'b' has 1 queue and 1 lane"));
  EXPECT_THAT(mistakes("queues = 2\n", "lanes = 2\n"),
              ElementsAre("r.toml:9: [[port]] lanes = 2: " + why +
                          "'a' has 2 queues and 2 lanes, 'b' has 1 queue and 2 lanes"));
}

TEST(ConversationSettings, FramesAreForwardedWhereTheyAreCollected) {
  EXPECT_THAT(mistakes("", "", "\"inspect\", \"bridge\"", ", forwarder_cores = [1]"),
              ElementsAre("r.toml:1: [engine] forwarder_cores = [ 1 ]: \"inspect\" needs a lane's frames to be "
                          "forwarded by the thread that collects them: leave forwarder_cores out"));
  EXPECT_THAT(mistakes("queues = 3\n", "lanes = 2\n", "\"srtp\", \"bridge\"", ", forwarder_cores = [1]"),
              ElementsAre(testing::HasSubstr("forwarder_cores = [ 1 ]: \"srtp\" needs a lane's frames")));
}

TEST(ConversationSettings, WithoutSuchAFunctionLanesAreAsOneLikes) {
  EXPECT_THAT(mistakes("queues = 3\n", "lanes = 2\n", "\"bridge\"", ", forwarder_cores = [1]"), IsEmpty());
}

TEST(HelperSettings, AreRefusedWhereNoFunctionHasWorkForThem) {
  EXPECT_THAT(
      mistakes("", "", "\"bridge\"", ", compute_cores = [1]"),
      ElementsAre("r.toml:1: [engine] compute_cores = [ 1 ]: no function of the chain has work that other cores "
                  "can do a part of: leave compute_cores out; these have: \"ipsec\", \"srtp\""));
  EXPECT_THAT(mistakes("", "", "\"srtp\", \"bridge\"", ", compute_cores = [1]"), IsEmpty());
  EXPECT_THAT(mistakes("", "", "\"bridge\"", ", compute_cores = \"none\""), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
