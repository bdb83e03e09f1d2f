#include "control/port_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

port::PortOptions port(const std::string& name, const std::vector<std::string>& addresses, unsigned mtu = 1500) {
  port::PortOptions options;
  options.name = name;
  options.mtu = mtu;
  for (const std::string& text : addresses) {
    const std::size_t slash = text.find('/');
    options.addresses.push_back({*packet::IpAddress::parse(text.substr(0, slash)),
                                 static_cast<std::uint8_t>(std::stoi(text.substr(slash + 1)))});
  }
  return options;
}

std::vector<std::string> notes(std::vector<port::PortOptions> ports, const std::string& last = "route") {
  engine::Options options;
  options.ports = std::move(ports);
  options.chain = {last};
  return port_notes(options);
}

TEST(PortNotes, OneSubnetOnTwoPortsIsTold) {
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"10.0.1.1/24", "fd00::1/64"})}), IsEmpty());
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"fd00::1/64", "10.0.0.2/24"})}),
              ElementsAre(AllOf(HasSubstr("port 'b' address = \"10.0.0.2/24\""), HasSubstr("port 'a', 10.0.0.1/24"))));
  EXPECT_THAT(notes({port("a", {"fd00::1/64"}), port("b", {"fd00::2/48"})}), testing::SizeIs(1))
      << "one within another";
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"10.0.0.9/32"})}), testing::SizeIs(1));
  EXPECT_THAT(notes({port("a", {"10.0.0.1/32"}), port("b", {"10.0.0.2/32"})}), IsEmpty());
}

TEST(PortNotes, ABridgeBetweenTwoMtusLosesWhatIsLonger) {
  const std::vector<port::PortOptions> uneven = {port("a", {}, 9000), port("b", {}, 1500)};
  EXPECT_THAT(notes(uneven), IsEmpty()) << "a router says too big";
  EXPECT_THAT(notes(uneven, "bridge"),
              ElementsAre(AllOf(HasSubstr("port 'a' mtu = 9000"), HasSubstr("'b' has 1500"), HasSubstr("tx_errors"))));
  EXPECT_THAT(notes({port("a", {}), port("b", {})}, "bridge"), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
