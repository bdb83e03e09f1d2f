#include "function/bridge/mtu_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

port::PortOptions port(const std::string& name, unsigned mtu) {
  port::PortOptions options;
  options.name = name;
  options.mtu = mtu;
  return options;
}

TEST(MtuNotes, ABridgeBetweenTwoMtusLosesWhatIsLonger) {
  EXPECT_THAT(mtu_notes({port("a", 9000), port("b", 1500)}),
              ElementsAre(AllOf(HasSubstr("port 'a' mtu = 9000"), HasSubstr("'b' has 1500"), HasSubstr("tx_errors"))));
  EXPECT_THAT(mtu_notes({port("a", 1500), port("b", 1500)}), IsEmpty());
}

TEST(MtuNotes, ATunnelAnswersWhatIsTooLongItself) {
  port::PortOptions lan = port("lan", 1500), tunnel = port("vx", 1450);
  tunnel.device = "vxlan";
  EXPECT_THAT(mtu_notes({lan, tunnel}), IsEmpty());
  lan.mtu = 1400;
  EXPECT_THAT(mtu_notes({lan, tunnel}), ElementsAre(HasSubstr("port 'vx' mtu = 1450 and its peer 'lan' has 1400")));
}

}  // namespace
}  // namespace sluice::function
