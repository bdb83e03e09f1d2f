// Which ports' own spreading parts conversations, and what is said of it.
#include "control/conversation_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

engine::Options options(std::vector<std::string> chain, const std::string& device, unsigned queues, unsigned lanes) {
  engine::Options options;
  options.chain = std::move(chain);
  options.ports.resize(2);
  for (port::PortOptions& port : options.ports) {
    port.queues = queues;
    port.lanes = lanes;
  }
  options.ports[0].name = "a";
  options.ports[0].device = device;
  options.ports[1].name = "b";
  options.ports[1].device = "net_null0";
  return options;
}

TEST(ConversationNotes, QueuesOfOneLinkPartConversations) {
  const std::vector<std::string> ips{"acl", "inspect", "bridge"};
  const struct {
    const char* what;
    engine::Options options;
    bool is_said;
    const char* advice = "";
  } cases[] = {
      {"packet sockets", options(ips, "net_af_packet0,iface=x", 4, 0), true, "queues = 1 and lanes = 4, "},
      {"a NIC, with more lanes than queues", options(ips, "0000:3b:00.0", 2, 6), true, "queues = 1 and lanes = 6, "},
      {"one queue", options(ips, "net_af_packet0,iface=x", 1, 0), false},
      {"one queue that lanes share", options(ips, "0000:3b:00.0", 1, 4), false},
      {"nobody follows conversations", options({"acl", "bridge"}, "0000:3b:00.0", 4, 0), false},
      {"captures, a queue each", options(ips, "net_pcap0,rx_pcap=a,rx_pcap=b", 2, 0), false},
      {"replayed frames", options(ips, "replay,frames=64", 4, 0), false},
  };
  for (const auto& [what, configured, is_said, advice] : cases) {
    const std::vector<std::string> notes = conversation_notes(configured);
    if (!is_said) {
      EXPECT_THAT(notes, IsEmpty()) << what;
      continue;
    }
    EXPECT_THAT(notes, ElementsAre(AllOf(StartsWith("inspect: the device of port 'a' spreads frames over its "),
                                         HasSubstr("IPv6 packets with extension headers"), HasSubstr("VLAN tags"),
                                         HasSubstr(advice))))
        << what;
  }
}

}  // namespace
}  // namespace sluice::control
