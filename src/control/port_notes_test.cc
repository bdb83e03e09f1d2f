#include "control/port_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

port::PortOptions port(const std::string& name, const std::vector<std::string>& addresses) {
  port::PortOptions options;
  options.name = name;
  for (const std::string& text : addresses) {
    const std::size_t slash = text.find('/');
    options.addresses.push_back({*packet::IpAddress::parse(text.substr(0, slash)),
                                 static_cast<std::uint8_t>(std::stoi(text.substr(slash + 1)))});
  }
  return options;
}

std::vector<std::string> notes(std::vector<port::PortOptions> ports) {
  engine::Options options;
  options.ports = std::move(ports);
  return port_notes(options);
}

TEST(PortNotes, OneSubnetOnTwoPortsIsReported) {
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"10.0.1.1/24", "fd00::1/64"})}), IsEmpty());
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"fd00::1/64", "10.0.0.2/24"})}),
              ElementsAre(AllOf(HasSubstr("port 'b' address = \"10.0.0.2/24\""), HasSubstr("port 'a', 10.0.0.1/24"))));
  EXPECT_THAT(notes({port("a", {"fd00::1/64"}), port("b", {"fd00::2/48"})}), testing::SizeIs(1))
      << "one within another";
  EXPECT_THAT(notes({port("a", {"10.0.0.1/24"}), port("b", {"10.0.0.9/32"})}), testing::SizeIs(1));
  EXPECT_THAT(notes({port("a", {"10.0.0.1/32"}), port("b", {"10.0.0.2/32"})}), IsEmpty());
}

}  // namespace
}  // namespace sluice::control
