#include "control/health.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "control/sample_snapshot.h"

namespace sluice::control {
namespace {

Snapshot well() {
  Snapshot snapshot = sample_snapshot();
  snapshot.forwarding_off.clear();
  snapshot.function_troubles.clear();
  snapshot.output_troubles.clear();
  snapshot.ports[0].twin_unaddressed = false;
  snapshot.ports[1].link_up = true;
  snapshot.devices[1].state = "up";
  return snapshot;
}

struct Case {
  std::string_view check;
  void (*spoil)(Snapshot&);
  std::string_view said;
};

// One for each check: it is found, alone, and says what to do.
const Case cases[] = {
    {"device_down", [](Snapshot& s) { s.devices[1].state = "down"; }, "device cuda:0 is down"},
    {"device_down",
     [](Snapshot& s) {
       s.devices[1].state = "down";
       s.devices[1].why = "it has not finished a batch for 10ms";
       s.devices[1].since = 1'700'000'000;
       s.devices[1].longest_gap_ns = 12'345'678;
     },
     "device cuda:0 is down since 2023-11-14 22:13:20 UTC: it has not finished a batch for 10ms; a batch waited "
     "12.345ms at most (sluice takes it again where it can; else restart it)"},
    {"interface_deleted",
     [](Snapshot& s) {
       s.ports[1].interface_deleted = true;
       s.ports[1].link_up = false;
     },
     "port right: its interface was deleted (restart sluice)"},
    {"link_down", [](Snapshot& s) { s.ports[0].link_up = false; },
     "port left: its link is down (ip link set veth0 up, or look at its other end)"},
    {"twin_deleted", [](Snapshot& s) { s.ports[0].twin_deleted = s.ports[0].twin_down = true; },
     "port left: its twin twin0 was deleted (restart sluice)"},
    {"twin_down", [](Snapshot& s) { s.ports[0].twin_down = true; },
     "port left: its twin twin0 is down (ip link set twin0 up)"},
    {"twin_unaddressed", [](Snapshot& s) { s.ports[0].twin_unaddressed = true; },
     "port left: its twin twin0 has no address (address = [...] of the port, ip addr add ... dev twin0, or unnumbered "
     "= "
     "true)"},
    {"addresses_missing",
     [](Snapshot& s) {
       s.ports[0].addresses_missing = {"10.0.0.1/24", "2001:db8::1/64"};
     },
     "port left: its twin twin0 has lost 10.0.0.1/24, 2001:db8::1/64 of the configuration (sluice ctl reload puts it "
     "back)"},
    {"mtu_lowered", [](Snapshot& s) { s.ports[0].interface_mtu = 1300; },
     "port left: the MTU of its interface is 1300, smaller than the port's 1500 (ip link set veth0 mtu 1500, or mtu = "
     "1300 of the port)"},
    {"drops_nearly_all", [](Snapshot& s) { s.ports[0].drops_nearly_all_as = "other_host"; },
     "port left: drops nearly everything that it receives as other_host (sluice capture drops shows them)"},
    {"drops_nearly_all", [](Snapshot& s) { s.drops_nearly_all_as = "other_host"; },
     "gateway: drops nearly everything that it receives as other_host (sluice capture drops shows them)"},
    {"cannot_send", [](Snapshot& s) { s.ports[0].fails_to_send = true; },
     "port left: fails to send frames (tx_errors) (are they longer than veth0 carries? the same mtu on both sides of a "
     "bridge)"},
    {"checksums_unfinished", [](Snapshot& s) { s.ports[0].checksums_unfinished = true; },
     "port left: most TCP and UDP frames come with wrong checksums (ethtool -K DEV tx off in the hosts that send, or "
     "net_af_packet)"},
    {"forwarding_off", [](Snapshot& s) { s.forwarding_off = "IPv4 forwarding is off on a (sysctl -w x=1)"; },
     "kernel: IPv4 forwarding is off on a (sysctl -w x=1)"},
    {"output_lost", [](Snapshot& s) { s.output_troubles = {"/a cannot be written: No space left on device"}; },
     "/a cannot be written: No space left on device (free some space on its disk, or give its path back)"},
    {"function_ailing",
     [](Snapshot& s) {
       s.function_troubles = {{"vxlan: 192.0.2.2 cannot be reached", "ip route"}};
     },
     "vxlan: 192.0.2.2 cannot be reached (ip route)"},
    {"not_conserved", [](Snapshot& s) { s.conserved = false; }, "counters do not add up"},
};

TEST(Health, ACaptureHasNoLink) {
  Snapshot snapshot = well();
  snapshot.ports[0].link_up = false;
  snapshot.ports[0].device = "net_pcap0,rx_pcap=in.pcap";
  EXPECT_EQ(ailments(snapshot), "");
}

TEST(Health, ACaptureThatSendsToAnInterfaceHasItsLink) {
  for (const std::string device : {"net_pcap0,tx_iface=eth1", "net_pcap0,rx_pcap=in.pcap,tx_iface=eth1"}) {
    Snapshot snapshot = well();
    snapshot.ports[0].link_up = false;
    snapshot.ports[0].device = device;
    EXPECT_EQ(ailments(snapshot), "port left: its link is down (ip link set eth1 up, or look at its other end)");
  }
}

TEST(Health, EachCauseIsFoundAloneWithWhatToDo) {
  EXPECT_EQ(ailments(well()), "");
  std::set<std::string_view> tried;
  for (const Case& one : cases) {
    Snapshot snapshot = well();
    one.spoil(snapshot);
    const std::vector<Ailment> found = find_ailments(snapshot);
    ASSERT_EQ(found.size(), 1U) << one.check;
    EXPECT_EQ(found[0].check, one.check);
    EXPECT_EQ(ailments(snapshot), one.said);
    tried.insert(one.check);
  }
  for (const HealthCheck& check : health_checks()) EXPECT_TRUE(tried.contains(check.name)) << check.name;
}

TEST(Health, PortsWithoutAnInterfaceHaveOnlyTheirOtherEnd) {
  Snapshot snapshot = well();
  snapshot.ports[1].link_up = false;
  EXPECT_EQ(ailments(snapshot), "port right: its link is down (look at its other end)");
}

TEST(Health, NamesAreLabelsAndDocumented) {
  std::ifstream file("docs/monitoring.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string_view> names;
  for (const HealthCheck& check : health_checks()) {
    EXPECT_TRUE(std::regex_match(std::string(check.name), std::regex("[a-z_]+"))) << check.name;
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_NE(page.find("| `" + std::string(check.name) + "` |"), std::string::npos)
        << check.name << " is not in docs/monitoring.md (run from the source's folder)";
  }
}

}  // namespace
}  // namespace sluice::control
