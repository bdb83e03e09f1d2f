// How many lines moves of SAs are.
#include "function/ipsec/moved_log.h"

#include <gmock/gmock.h>

#include <vector>

namespace sluice::function {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class MovedLogTest : public testing::Test {
 protected:
  void moved(unsigned spi, const char* from, std::uint16_t port = 0) {
    const ipsec::SaId id{packet::IpAddress::v4(1), spi, {}};
    log_.moved(id, std::to_string(spi), packet::IpAddress::parse(from).value(), port, now_);
  }
  void pass(std::chrono::seconds time) {
    now_ += time;
    log_.tick(now_);
  }

  MovedLog::Time now_{std::chrono::hours(1)};
  std::vector<std::string> lines_;
  MovedLog log_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(MovedLogTest, TheFirstIsSaidAtOnce) {
  moved(1, "192.0.2.9", 4501);
  EXPECT_THAT(lines_, ElementsAre("packets of SA 1 come from 192.0.2.9 port 4501"));
  pass(MovedLog::together);
  EXPECT_THAT(lines_, testing::SizeIs(1)) << "nothing came behind it";
  moved(1, "192.0.2.10");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("4501"), "packets of SA 1 come from 192.0.2.10"));
}

TEST_F(MovedLogTest, ThoseBehindItAreOneLineWithTheirLastAddresses) {
  moved(1, "192.0.2.9");
  lines_.clear();
  moved(2, "192.0.2.9");
  moved(3, "192.0.2.9", 4501);
  moved(3, "192.0.2.11", 4502);
  pass(MovedLog::together - std::chrono::seconds(1));
  EXPECT_THAT(lines_, IsEmpty());
  pass(std::chrono::seconds(1));
  EXPECT_THAT(lines_, ElementsAre("packets of 2 SAs came from other addresses meanwhile: 2 from 192.0.2.9, 3 from "
                                  "192.0.2.11 port 4502 (the last of 2)"));
  moved(4, "192.0.2.9");
  EXPECT_THAT(lines_, testing::SizeIs(1)) << "they go on, and so do the ten seconds";
  pass(MovedLog::together);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("2 SAs"), HasSubstr("packets of 1 SA came")));
}

TEST_F(MovedLogTest, ALongLineIsCutAndTheEndLosesNothing) {
  moved(1, "192.0.2.9");
  lines_.clear();
  for (unsigned spi = 2; spi < 2 + MovedLog::most_named + 3; ++spi) moved(spi, "192.0.2.9");
  log_.flush();
  EXPECT_THAT(lines_, ElementsAre(EndsWith("9 from 192.0.2.9, and 3 more")));
  log_.flush();
  EXPECT_THAT(lines_, testing::SizeIs(1));
}

}  // namespace
}  // namespace sluice::function
