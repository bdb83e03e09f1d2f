// [[port]]: devices, interfaces, and the frames that replay ports have of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "../tests/support/net_namespace.h"
#include "../tests/support/pcap_file.h"
#include "control/config.h"
#include "control/sample_config.h"

namespace sluice::control {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(Config, EachMistakeOfAPortIsOneLine) {
  const std::string device = "[[port]]\nname = \"b\"\ndevice = ";
  const std::string not_device =
      ": allowed is a PCI address (\"0000:3b:00.0\"), a virtual device with its arguments "
      "(\"net_af_packet0,iface=eth1\"), or \"replay,...\"";
  const std::string interface =
      ": allowed is an interface name of 1 to 15 characters without spaces, / : and %, or \"\" for none";
  const std::string base = "[[port]]\nname = \"b\"\ndevice = \"net_null7\"\n";  // lines 2 to 4
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[[port]]\ndevice = \"net_null7\"\n", "r.toml:2: [[port]] name: is missing: give a text in quotes"},
      {"[[port]]\nname = \"b\"\n", "r.toml:2: [[port]] device: is missing: give a text in quotes"},
      {"[[port]]\nname = \"B\"\ndevice = \"net_null7\"\n",
       "r.toml:3: [[port]] name = \"B\": allowed are 1 to 15 of a-z, 0-9, _ and -"},
      {"[[port]]\nname = \"sixteen-letters-\"\ndevice = \"net_null7\"\n",
       "r.toml:3: [[port]] name = \"sixteen-letters-\": allowed are 1 to 15 of a-z, 0-9, _ and -"},
      {"[[port]]\nname = \"a\"\ndevice = \"net_null7\"\n",
       "r.toml:6: [[port]] name = \"a\": the same as in line 2: names of ports are unique"},
      {device + "\"eth0\"\n", "r.toml:4: [[port]] device = \"eth0\"" + not_device},
      {device + "\"\"\n", "r.toml:4: [[port]] device = \"\"" + not_device},
      {device + "\"0000:3b:00.9\"\n", "r.toml:4: [[port]] device = \"0000:3b:00.9\"" + not_device},
      {device + "\"net_null0,copy=1\"\n",
       "r.toml:7: [[port]] device = \"net_null0\": the same as in line 2: devices are unique; number virtual ones, "
       "such as "
       "net_af_packet0, net_af_packet1"},
      {base + "queues = 0\n", "r.toml:5: [[port]] queues = 0: allowed is a whole number from 1 to 64"},
      {base + "queues = 2\nlanes = 1\n", "r.toml:6: [[port]] lanes = 1: allowed is 2, one for each queue, or more"},
      {base + "mtu = 60\n", "r.toml:5: [[port]] mtu = 60: allowed is a whole number from 68 to 9600"},
      {base + "twin = \"longer-than-fifteen\"\n", "r.toml:5: [[port]] twin = \"longer-than-fifteen\"" + interface},
      {base + "twin = \"a b\"\n", "r.toml:5: [[port]] twin = \"a b\"" + interface},
      {base + "peer = \"c\"\n", "r.toml:5: [[port]] peer = \"c\": there is no such port; did you mean \"b\"?"},
      {base + "descriptors = 63\n", "r.toml:5: [[port]] descriptors = 63: allowed is a whole number from 64 to 32768"},
      {base + "promiscuous = 1\n", "r.toml:5: [[port]] promiscuous = 1: allowed is true or false"},
      {base + "speed = 1\n",
       "r.toml:5: [[port]] speed = 1: unknown key; known are name, device, queues, lanes, mtu, twin, "
       "address, persistent, unnumbered, peer, descriptors, promiscuous"},
      {base + "address = [\"10.0.0.1/24\"]\n",
       "r.toml:5: [[port]] address = [ \"10.0.0.1/24\" ]: is about a twin: name one, such as twin = \"sl-lan\""},
      {base + "twin = \"t\"\naddress = [\"10.0.0.1\"]\n",
       "r.toml:6: [[port]] address = [ \"10.0.0.1\" ]: \"10.0.0.1\": has no length: write \"10.0.0.1/24\", or what it "
       "is"},
      {base + "twin = \"t\"\naddress = [\"10.0.0.1/33\"]\n",
       "r.toml:6: [[port]] address = [ \"10.0.0.1/33\" ]: \"10.0.0.1/33\": allowed is a length from 1 to 32"},
      {base + "twin = \"t\"\naddress = [\"10.0.0.0/24\"]\n",
       "r.toml:6: [[port]] address = [ \"10.0.0.0/24\" ]: \"10.0.0.0/24\": is the network itself, no host in it"},
      {base + "twin = \"t\"\naddress = [\"10.0.0.255/24\"]\n",
       "r.toml:6: [[port]] address = [ \"10.0.0.255/24\" ]: \"10.0.0.255/24\": is the broadcast address of its "
       "network"},
      {base + "twin = \"t\"\naddress = [\"ff02::1/64\"]\n",
       "r.toml:6: [[port]] address = [ \"ff02::1/64\" ]: \"ff02::1/64\": is no host's"},
      {base + "twin = \"t\"\naddress = [\"::1/128\"]\n",
       "r.toml:6: [[port]] address = [ \"::1/128\" ]: \"::1/128\": is a loopback address"},
      {base + "twin = \"t\"\naddress = [\"10.0.0.1/24\", \"10.0.0.1/24\"]\n",
       "r.toml:6: [[port]] address = [ \"10.0.0.1/24\", \"10.0.0.1/24\" ]: \"10.0.0.1/24\" is there twice"},
      {base + "twin = \"t\"\naddress = [\"2001:db8::1/64\"]\nmtu = 1279\n",
       "r.toml:7: [[port]] mtu = 1279: IPv6 needs 1280 or more, and there is an IPv6 address: leave one out"},
      {base + "twin = \"t\"\naddress = [\"10.0.0.1/24\"]\nunnumbered = true\n",
       "r.toml:7: [[port]] unnumbered = true: and there is an address: leave one out"},
      {base + "twin = \"t\"\npersistent = 1\n", "r.toml:6: [[port]] persistent = 1: allowed is true or false"},
      {device + "\"net_af_packet0,iface=eth1\"\ntwin = \"eth1\"\n",
       "r.toml:5: [[port]] twin = \"eth1\": is the interface that the port itself uses: give the twin a name of its "
       "own"},
      {device + "\"net_" + std::string(1 << 20, 'x') + "\"\n",
       "r.toml:4: [[port]] device = \"net_" + std::string(55, 'x') + "..." + not_device},
      {device + "\"net_foo0\"\n",
       "r.toml:4: [[port]] device = \"net_foo0\": there is no kind of virtual device \"net_foo\"; known are "
       "net_af_packet, net_af_xdp, net_tap, net_pcap, net_memif, net_ring, net_null"},
      {device + "\"net_af_packet0\"\n",
       "r.toml:4: [[port]] device = \"net_af_packet0\": which interface? Give it with iface=, as in "
       "net_af_packet0,iface=eth1"},
      {device + "\"net_af_packet0,ifcae=eth1\"\n",
       "r.toml:4: [[port]] device = \"net_af_packet0,ifcae=eth1\": net_af_packet has no argument 'ifcae'; did you mean "
       "\"iface\"?"},
      {device + "\"net_af_paket0,iface=eth1\"\n",
       "r.toml:4: [[port]] device = \"net_af_paket0,iface=eth1\": there is no kind of virtual device "
       "\"net_af_paket\"; did you mean \"net_af_packet\"?"},
      {device + "\"eth_af_packet0,iface=eth1\"\n",
       "r.toml:4: [[port]] device = \"eth_af_packet0,iface=eth1\": Sluice knows no driver by the name "
       "'eth_af_packet0': "
       "use net_af_packet0"},
      {device + "\"eth_foo0\"\n",
       "r.toml:4: [[port]] device = \"eth_foo0\": there is no kind of virtual device \"eth_foo\"; known are "
       "net_af_packet, net_af_xdp, net_tap, net_pcap, net_memif, net_ring, net_null"},
      {device + "\"net_af_packet0,iface=eth1\"\n[[port]]\nname = \"c\"\ndevice = \"net_af_packet1,iface=eth1\"\n",
       "r.toml:7: [[port]] device = \"net_af_packet1,iface=eth1\": takes the interface of line 4: eth1; give each port "
       "an interface of its own"},
      {device + "\"net_af_packet0,iface=eth1\"\n[[port]]\nname = \"c\"\ndevice = \"net_af_xdp0,iface=eth1\"\n",
       "r.toml:7: [[port]] device = \"net_af_xdp0,iface=eth1\": takes the interface of line 4: eth1; give each port an "
       "interface of its own"},
      {device + "\"net_af_packet0,iface=eth1\"\ntwin = \"eth2\"\n[[port]]\nname = \"c\"\ndevice = "
                "\"net_af_xdp0,iface=eth2\"\n",
       "r.toml:5: [[port]] twin = \"eth2\": is the interface that the device of line 8 uses: give the twin a name of "
       "its "
       "own"},
      {device + "\"0000:3B:00.0\"\n[[port]]\nname = \"c\"\ndevice = \"3b:00.0\"\n",
       "r.toml:7: [[port]] device = \"3b:00.0\": the same as in line 2: devices are unique; number virtual ones, such "
       "as "
       "net_af_packet0, net_af_packet1"},
  };
  for (const auto& [text, line] : cases) {
    const Config config = Config::from_text(with_chain(text) + good_port, "r.toml");
    EXPECT_THAT(config.diagnostics().lines, ElementsAre(line)) << text;
  }
}

// As Linux has it.
TEST(Config, ATwinHasAnyAddressThatAHostMayHave) {
  const auto lines_of = [](const std::string& address) {
    const std::string port =
        "[[port]]\nname = \"b\"\ndevice = \"net_null7\"\ntwin = \"t\"\naddress = [\"" + address + "\"]\n";
    return Config::from_text(with_chain(port) + good_port, "r.toml").diagnostics().lines;
  };
  for (const char* good : {"240.0.0.1/24", "0.1.0.1/24", "255.1.2.3/24", "255.255.255.254/24", "223.255.255.1/24"}) {
    EXPECT_THAT(lines_of(good), IsEmpty()) << good;
  }
  for (const char* bad : {"0.0.0.0/32", "224.0.0.1/24", "239.255.255.255/32", "255.255.255.255/32", "127.0.0.1/8"}) {
    EXPECT_EQ(lines_of(bad).size(), 1U) << bad;
  }
}

TEST(Config, AnInterfaceUnderAnotherOfItsNamesIsTheSame) {
  if (!test::NetNamespace::permitted()) GTEST_SKIP() << test::NetNamespace::skip_line;
  const test::NetNamespace space;
  ASSERT_EQ(space.run("ip link add veth0 type veth peer name veth1 && ip link property add dev veth0 altname "
                      "uplink"),
            0);
  const auto inside = space.enter();
  const std::string ports =
      "[[port]]\nname = \"a\"\ndevice = \"net_af_packet0,iface=veth0\"\n"
      "[[port]]\nname = \"b\"\ndevice = \"net_af_packet1,iface=uplink\"\n";
  const Config config = Config::from_text(with_chain(ports), "r.toml");
  EXPECT_THAT(config.diagnostics().lines,
              ElementsAre(HasSubstr("r.toml:7: [[port]] device = \"net_af_packet1,iface=uplink\": takes the "
                                    "interface of line 4: uplink is another name of veth0")));
}

// What is said of two ports with these devices; in lines 4 and 7.
std::string said_of(const std::string& a, const std::string& b) {
  const std::string ports =
      "[[port]]\nname = \"a\"\ndevice = \"" + a + "\"\n[[port]]\nname = \"b\"\ndevice = \"" + b + "\"\n";
  const Config config = Config::from_text(with_chain(ports), "r.toml");
  const auto& lines = config.diagnostics().lines;
  if (lines.empty()) return "";
  EXPECT_EQ(lines.size(), 1U);
  const std::size_t message = std::min(lines[0].find("takes the file of"), lines[0].find("uses a file twice"));
  // Without the device, which the line repeats or shortens.
  return message == std::string::npos ? lines[0]
                                      : lines[0].substr(0, lines[0].find(" device")) + ": " + lines[0].substr(message);
}

TEST(Config, ACaptureThatIsWrittenBelongsToOnePort) {
  const std::string folder = testing::TempDir() + "captures-" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  const std::string in = folder + "/in.pcap";
  const std::string link = folder + "/link.pcap";
  const std::string out = folder + "/out.pcap";
  test::write_pcap(in, {test::Frame(60)});
  std::filesystem::create_hard_link(in, link);
  const std::string own = "; give each capture that is written a file of its own";
  const std::string at7 = "r.toml:7: [[port]]: takes the file of line 4: ";
  const std::string r = "net_pcap0,rx_pcap=";
  EXPECT_EQ(said_of(r + in + ",tx_pcap=" + out, "net_pcap1,rx_pcap=" + in), "") << "two may read one";
  EXPECT_EQ(said_of(r + in, "net_pcap1,tx_pcap=" + in), at7 + in + own);
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=" + in, "net_pcap1,rx_pcap=" + in), at7 + in + own);
  EXPECT_EQ(said_of(r + in, "net_pcap1,tx_pcap=" + link), at7 + link + " is another name of " + in + own);
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=" + out, "net_pcap1,tx_pcap=" + out), at7 + out + own) << "not there yet";
  const std::string around = folder + "/../" + std::filesystem::path(folder).filename().string() + "/out.pcap";
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=" + out, "net_pcap1,tx_pcap=" + around),
            at7 + around + " is another name of " + out + own);
  EXPECT_EQ(said_of(r + in + ",tx_pcap=" + in, "replay"), "r.toml:4: [[port]]: uses a file twice: " + in + own);
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=/dev/null", "net_pcap1,tx_pcap=/dev/null"), "") << "holds nothing";
  EXPECT_EQ(said_of("net_pcap0,tx_pcap=" + out, "net_pcap1,tx_pcap=" + out + "2"), "");
  std::filesystem::remove_all(folder);
}

TEST(Config, ACaptureThatIsCutIsSaidAtItsDevice) {
  const std::string in = testing::TempDir() + "cut-" + std::to_string(getpid()) + ".pcap";
  const std::string ports = "[[port]]\nname = \"a\"\ndevice = \"net_pcap0,rx_pcap=" + in +
                            "0\"\n[[port]]\nname = \"b\"\ndevice = \"net_pcap1,tx_pcap=/dev/null,rx_pcap=" + in +
                            "\"\n";
  const auto lines = [&](const engine::TableProgress& progress = {}) {
    Config config = Config::from_text(with_chain(ports), "r.toml");
    EXPECT_TRUE(config.ok()) << "read when it is asked for, and not by a reload";
    const auto checked = config.check_captures(progress);
    EXPECT_EQ(checked ? "" : checked.error().message, config.mistakes());
    return config.diagnostics().lines;
  };
  EXPECT_THAT(lines(), ElementsAre(HasSubstr(in + "0: No such file"), HasSubstr(in + ": No such file")));
  test::write_pcap(in, {test::Frame(60)});
  test::write_pcap(in + "0", {test::Frame(60)});
  EXPECT_THAT(lines(), ElementsAre());
  std::filesystem::resize_file(in, 99);
  EXPECT_THAT(lines(), ElementsAre(AllOf(HasSubstr("r.toml:7: [[port]] device = "),
                                         HasSubstr(": " + in + ": the file ends inside a packet, at byte 24 "))));
  const auto stop = [&](std::string_view what, std::size_t done, std::size_t total) {
    EXPECT_THAT(std::pair(what, total),
                AnyOf(Pair("reading " + in, std::size_t{99}), Pair("reading " + in + "0", std::size_t{100})));
    EXPECT_EQ(done, 0U);
    return false;
  };
  EXPECT_THAT(lines(stop), ElementsAre(HasSubstr(in + "0: interrupted while it was read"),
                                       HasSubstr(in + ": interrupted while it was read")));
  std::filesystem::remove(in);
  std::filesystem::remove(in + "0");
}

TEST(Config, GoodDevicesPass) {
  for (const char* device : {"0000:3b:00.0", "3b:00.1,rxq_cqe_comp_en=1", "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap",
                             "net_af_xdp3,iface=eth1", "replay", "replay,mix=64,frames=1024", "net_memif"}) {
    const Config config =
        Config::from_text(with_chain("[[port]]\nname = \"b\"\ndevice = \"" + std::string(device) + "\"\n"), "r.toml");
    EXPECT_THAT(config.diagnostics().lines, IsEmpty()) << device;
  }
  const Config twins = Config::from_text(
      with_chain("[[port]]\nname=\"a\"\ndevice=\"replay\"\n[[port]]\nname=\"b\"\ndevice=\"replay\"\n"), "r.toml");
  EXPECT_THAT(twins.diagnostics().lines, IsEmpty()) << "any number of replay ports";
}

// Each of two queues has the frames of two lanes then.
TEST(Config, LanesThatShareQueuesTakeFramesToo) {
  const std::string memory = "[memory]\nsize = \"512M\"\nframes = 65536\n";
  EXPECT_TRUE(Config::from_text(with_chain(memory) + good_port + "queues = 2\n", "r.toml").ok());
  EXPECT_EQ(Config::from_text(with_chain(memory) + good_port + "queues = 2\nlanes = 3\n", "r.toml").mistakes(),
            "r.toml:3: [memory] size = \"512M\": the ports' 262144 frames take 592M: allowed is that or more; or lower "
            "frames");
}

TEST(Config, ReplayPortsHaveFramesOfTheirOwnNumber) {
  const std::string small = "[memory]\nsize = \"64M\"\nframes = 65536\n";
  const std::string two = "[[port]]\nname=\"a\"\ndevice=\"replay\"\n[[port]]\nname=\"b\"\nqueues=2\n";
  EXPECT_EQ(Config::from_text(with_chain(small + two + "device=\"replay,frames=20000\"\n"), "r.toml").mistakes(),
            "r.toml:11: [[port]] device = \"replay,frames=20000\": 20000 frames for each of its 2 queues take 91M, "
            "tables and other frames 37M, and [memory] size is 64M: lower frames=, or raise size to \"128M\"");
}

TEST(Config, ReplayPortsTakeNoFramesOfTheMemory) {
  const std::string memory = "[memory]\nsize = \"64M\"\nframes = 65536\n";
  EXPECT_TRUE(Config::from_text(with_chain(memory + "[[port]]\nname=\"a\"\ndevice=\"replay\"\n"), "r.toml").ok());
}

TEST(Config, FramesOfAReplayPortFitIntoTheBuffers) {
  const std::string port = "[[port]]\nname=\"a\"\ndevice=\"replay,mix=1500\"\n[memory]\nframe_bytes = ";
  EXPECT_TRUE(Config::from_text(with_chain(port + "1522\n"), "r.toml").ok());
  const std::string large = "[[port]]\nname=\"a\"\ndevice=\"replay,mix=9216\"\n[memory]\nframe_bytes = ";
  EXPECT_TRUE(Config::from_text(with_chain(large + "9216\n"), "r.toml").ok());
  EXPECT_EQ(Config::from_text(with_chain(large + "9215\n"), "r.toml").mistakes(),
            "r.toml:4: [[port]] device = \"replay,mix=9216\": mix=9216 has frames of 9216 bytes: allowed is up to "
            "[memory] frame_bytes, 9215");
}

TEST(Config, ReplayArgumentsAreChecked) {
  for (const std::string device : {"replay,nothing=1", "replay,mix=none", "replay,frames=2"}) {
    const Config config =
        Config::from_text(with_chain("[[port]]\nname = \"b\"\ndevice = \"" + device + "\"\n"), "r.toml");
    ASSERT_EQ(config.diagnostics().lines.size(), 1U);
    EXPECT_THAT(config.diagnostics().lines[0], testing::StartsWith("r.toml:4: [[port]] device = \"" + device + "\": "));
  }
}

}  // namespace
}  // namespace sluice::control
