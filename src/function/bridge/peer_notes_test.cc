#include "function/bridge/peer_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/settings.h"

namespace sluice::function {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> notes(std::vector<engine::PortInfo> infos, std::vector<std::string> kept = {}) {
  for (std::size_t p = 0; p < infos.size(); ++p) {
    if (infos[p].names_peer) continue;
    infos[p].peer = static_cast<std::uint16_t>(infos.size() == 2 ? 1 - p : p);
  }
  Diagnostics diagnostics;
  const engine::Options options;
  const engine::PortTable ports(std::move(infos));
  const engine::SectionView view{
      Settings::empty("bridge", diagnostics), options, ports, "b.toml", false, std::move(kept)};
  return peer_notes(view);
}

engine::PortInfo port(const std::string& name) {
  engine::PortInfo info;
  info.name = name;
  return info;
}
engine::PortInfo to(std::uint16_t peer, engine::PortInfo info) {
  info.peer = peer;
  info.names_peer = true;
  return info;
}
engine::PortInfo with_twin(engine::PortInfo info) {
  info.has_twin = true;
  return info;
}
engine::PortInfo tunnel(const std::string& name) {
  engine::PortInfo info = port(name);
  info.is_virtual = true;
  return info;
}

TEST(PeerNotes, OfThreePortsWithoutPeersEachReflects) {
  EXPECT_THAT(notes({port("lan"), port("wan"), port("dmz")}),
              ElementsAre(HasSubstr("port 'lan' has no peer: it is its own"), HasSubstr("port 'wan'"),
                          AllOf(HasSubstr("port 'dmz'"), HasSubstr("set peer"))));
  EXPECT_THAT(notes({to(1, port("lan")), to(0, port("wan")), port("dmz")}), ElementsAre(HasSubstr("'dmz'")));
}

TEST(PeerNotes, OfLoopbacksThatAreMeantThereAreNone) {
  EXPECT_THAT(notes({port("lan")}), IsEmpty());
  EXPECT_THAT(notes({port("lan"), port("wan")}), IsEmpty()) << "each other's";
  EXPECT_THAT(notes({to(0, port("a")), to(1, port("b")), to(2, port("c"))}), IsEmpty());
}

TEST(PeerNotes, APortThatAnotherElementKeepsForwardsNothing) {
  EXPECT_THAT(notes({port("lan"), port("wan"), port("mon")}, {"mon"}),
              ElementsAre(HasSubstr("'lan'"), HasSubstr("'wan'")));
  EXPECT_THAT(notes({to(1, port("lan")), to(0, port("wan")), port("mon")}, {"mon"}), IsEmpty());
  EXPECT_THAT(notes({port("lan"), port("mon")}, {"mon"}), ElementsAre(HasSubstr("port 'lan' sends to 'mon'")));
  EXPECT_THAT(notes({port("a"), port("m"), port("n")}, {"m", "n"}), IsEmpty()) << "a loopback with monitors";
}

TEST(PeerNotes, BesideTunnelsAPortWithATwinIsAnUnderlay) {
  EXPECT_THAT(notes({to(1, port("lan")), to(0, tunnel("vx")), with_twin(port("wan"))}), IsEmpty());
  EXPECT_THAT(notes({port("lan"), tunnel("vx"), with_twin(port("wan"))}),
              ElementsAre(AllOf(HasSubstr("port 'lan'"), HasSubstr("no twin either")),
                          AllOf(HasSubstr("port 'vx'"), HasSubstr("goes back into it"))));
}

}  // namespace
}  // namespace sluice::function
