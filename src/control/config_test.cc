#include "control/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "../tests/support/net_namespace.h"
#include "control/config_json.h"
#include "control/function_maker.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A function that only reads settings.
class Probe final : public engine::Function {
 public:
  Expected<void> attach(device::Gpu&, const engine::DevicePlan&) override { return {}; }
  void collect(engine::Burst&, engine::BatchWriter&) override {}
  Expected<void> launch(engine::Batch&, device::GpuStream&) override { return {}; }
  void compute(engine::Batch&, std::uint32_t, std::uint32_t) override {}
  void forward(engine::Batch&, std::uint32_t, std::uint32_t, engine::Emitter&) override {}
};

Expected<std::unique_ptr<engine::Function>> make_probe(Settings& settings, const engine::PortTable& ports) {
  settings.integer("depth", 1, 1, 9);
  if (settings.boolean("fail", false))
    return make_error("cannot be made with " + std::to_string(ports.size()) + " ports");
  return std::make_unique<Probe>();
}

const bool probe_registered = engine::register_function({"probe", "reads settings", make_probe});

const std::string good_port = "[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n";
// Line 1 is the chain; a case's text begins at line 2.
std::string with_chain(const std::string& text) {
  return "engine.chain = [\"probe\"]\n" + text;
}

TEST(Config, DefaultsAreTheOptionsOwn) {
  ASSERT_TRUE(probe_registered);
  const Config config = Config::from_text("[engine]\nchain = [\"probe\"]\n" + good_port, "r.toml");
  EXPECT_THAT(config.diagnostics().lines, IsEmpty());
  const engine::Options defaults;
  EXPECT_EQ(config.engine.device, "auto");
  EXPECT_EQ(config.engine.deadline, defaults.deadline);
  EXPECT_EQ(config.engine.cycle, 0ns);
  EXPECT_EQ(config.engine.cpu_below, -1);
  EXPECT_FALSE(config.allow_busy_cores);
  EXPECT_THAT(config.engine.cores, IsEmpty());
  EXPECT_EQ(config.engine.memory.size, 2048ULL << 20);
  ASSERT_EQ(config.engine.ports.size(), 1U);
  EXPECT_EQ(config.engine.ports[0].mtu, 1500U);
  EXPECT_TRUE(config.engine.ports[0].promiscuous);
  EXPECT_EQ(config.api.listen, "127.0.0.1:9230");
  EXPECT_EQ(config.log.level, "info");
}

TEST(Config, EveryKeyIsRead) {
  const Config config = Config::from_text(R"(
[engine]
device = "cuda:1"
deadline = "5ms"
cycle = "1ms"
overlap = 2
batch = 8192
batches = 8
streams = 6
poll = "busy"
cores = [2, 3]
worker_core = 4
busy_cores = "allow"
forwarder_cores = [6, 7]
scheduling = "realtime"
mode = "zero-load"
cpu_below = 100
chain = ["probe"]
[memory]
hugepages = "off"
size = "256M"
frames = 8192
frame_bytes = 4096
[[port]]
name = "left"
device = "net_af_packet0,iface=veth0"
queues = 2
lanes = 4
mtu = 2000
twin = "twin0"
peer = "right"
descriptors = 512
promiscuous = false
[[port]]
name = "right"
device = "0000:3b:00.0"
[probe]
depth = 3
[api]
listen = "0.0.0.0:80"
allow_remote = true
[log]
level = "debug"
file = "/tmp/x.log"
format = "json"
)",
                                          "r.toml");
  EXPECT_THAT(config.diagnostics().lines, IsEmpty());
  const engine::Options& e = config.engine;
  EXPECT_EQ(e.device, "cuda:1");
  EXPECT_EQ(e.deadline, 5ms);
  EXPECT_EQ(e.cycle, 1ms);
  EXPECT_EQ(e.overlap, 2U);
  EXPECT_EQ(e.batch, 8192U);
  EXPECT_EQ(e.batches, 8U);
  EXPECT_EQ(e.streams, 6U);
  EXPECT_EQ(e.poll, engine::Poll::busy);
  EXPECT_THAT(e.cores, ElementsAre(2, 3));
  EXPECT_THAT(e.forwarder_cores, ElementsAre(6, 7));
  EXPECT_EQ(e.scheduling, engine::Scheduling::realtime);
  EXPECT_EQ(e.worker_core, 4);
  EXPECT_TRUE(config.allow_busy_cores);
  EXPECT_EQ(e.mode, engine::Mode::zero_load);
  EXPECT_EQ(e.cpu_below, 100);
  EXPECT_THAT(e.chain, ElementsAre("probe"));
  EXPECT_EQ(e.memory.hugepages, port::Hugepages::off);
  EXPECT_EQ(e.memory.size, 256ULL << 20);
  EXPECT_EQ(e.memory.frames, 8192U);
  EXPECT_EQ(e.memory.frame_bytes, 4096U);
  ASSERT_EQ(e.ports.size(), 2U);
  EXPECT_EQ(e.ports[0].name, "left");
  EXPECT_EQ(e.ports[0].device, "net_af_packet0,iface=veth0");
  EXPECT_EQ(e.ports[0].queues, 2U);
  EXPECT_EQ(e.ports[0].lanes, 4U);
  EXPECT_EQ(e.ports[1].lanes, 1U);
  EXPECT_EQ(e.ports[0].mtu, 2000U);
  EXPECT_EQ(e.ports[0].twin, "twin0");
  EXPECT_EQ(e.ports[0].peer, "right");
  EXPECT_EQ(e.ports[0].descriptors, 512U);
  EXPECT_FALSE(e.ports[0].promiscuous);
  EXPECT_EQ(config.api.listen, "0.0.0.0:80");
  EXPECT_EQ(config.log.level, "debug");
  EXPECT_EQ(config.log.file, "/tmp/x.log");
  EXPECT_EQ(config.log.format, "json");
}

struct BadCase {
  const char* text;  // after the chain and before one good port
  std::vector<std::string> lines;
};

TEST(Config, EachMistakeIsOneLine) {
  const std::vector<BadCase> cases = {
      {"engine.device = \"gpu\"\n",
       {"r.toml:2: [engine] device = \"gpu\": allowed is \"auto\", \"cpu\", or \"cuda:N\" with N from 0 to 15"}},
      {"engine.device = \"cuda:16\"\n",
       {"r.toml:2: [engine] device = \"cuda:16\": allowed is \"auto\", \"cpu\", or \"cuda:N\" with N from 0 to 15"}},
      {"engine.deadlin = \"1ms\"\n", {"r.toml:2: [engine] deadlin = \"1ms\": unknown key; did you mean \"deadline\"?"}},
      {"engine.deadline = 1\n",
       {"r.toml:2: [engine] deadline = 1: allowed is a duration above 0 with its unit, such as \"250us\", \"1ms\" or "
        "\"2s\""}},
      {"engine.deadline = \"1m\"\n",
       {"r.toml:2: [engine] deadline = \"1m\": allowed is a duration above 0 with its unit, such as \"250us\", \"1ms\" "
        "or "
        "\"2s\""}},
      {"engine.deadline = \"11s\"\n", {"r.toml:2: [engine] deadline = \"11s\": allowed is at most 10s"}},
      {"engine.cycle = 3\n",
       {"r.toml:2: [engine] cycle = 3: allowed is \"auto\" or a duration above 0 with its unit, such as \"250us\", "
        "\"1ms\" or "
        "\"2s\""}},
      {"engine.overlap = 9\n", {"r.toml:2: [engine] overlap = 9: allowed is a whole number from 1 to 8"}},
      {"engine.batch = 63\n", {"r.toml:2: [engine] batch = 63: allowed is a whole number from 64 to 65536"}},
      {"engine.batches = 1\n", {"r.toml:2: [engine] batches = 1: allowed is a whole number from 2 to 32"}},
      {"engine.streams = 33\n", {"r.toml:2: [engine] streams = 33: allowed is a whole number from 1 to 32"}},
      {"engine.poll = \"lazy\"\n", {"r.toml:2: [engine] poll = \"lazy\": allowed is \"auto\", \"busy\", \"adaptive\""}},
      {"engine.cores = \"all\"\n",
       {"r.toml:2: [engine] cores = \"all\": allowed is \"auto\" or a list of whole numbers, such as [1, 2]"}},
      {"engine.cores = [1, 1]\n",
       {"r.toml:2: [engine] cores = [ 1, 1 ]: core 1 is there twice: give each thread a core of its own"}},
      {"engine.cores = [-1]\n", {"r.toml:2: [engine] cores = [ -1 ]: a core is a number from 0 to 1023"}},
      {"engine.busy_cores = true\n", {"r.toml:2: [engine] busy_cores = true: allowed is \"refuse\", \"allow\""}},
      {"engine.mode = \"idle\"\n",
       {"r.toml:2: [engine] mode = \"idle\": allowed is \"full\", \"zero-load\", \"collector-only\""}},
      {"engine.cpu_below = -1\n",
       {"r.toml:2: [engine] cpu_below = -1: allowed is \"auto\" or a whole number from 0 to 1000000000"}},
      {"[memory]\nhugepages = true\n",
       {"r.toml:3: [memory] hugepages = true: allowed is \"auto\", \"off\", \"require\""}},
      {"[memory]\nsize = \"512MB\"\n",
       {"r.toml:3: [memory] size = \"512MB\": allowed is a size such as \"512M\", \"4K\" or \"2G\", or a number of "
        "bytes"}},
      {"[memory]\nsize = \"1M\"\n", {"r.toml:3: [memory] size = \"1M\": allowed is from 64M to 1T"}},
      {"[memory]\nsize = \"64M\"\nframes = 65536\n",
       {"r.toml:3: [memory] size = \"64M\": 65536 frames for each of 1 lanes take 149M: allowed is more than "
        "that; or lower "
        "frames"}},
      {"[memory]\nframe_bytes = 1024\n",
       {"r.toml:3: [memory] frame_bytes = 1024: port \"a\" has an MTU of 1500: allowed is 1522 or more"}},
      {"[memory]\nframes = 1024\n",
       {"r.toml:3: [memory] frames = 1024: port \"a\" alone holds 2 x 1024 in its descriptors: allowed is that or "
        "more"}},
      {"[[port]]\nname = \"z\"\ndevice = \"net_null7,size=2049\"\n",
       {"r.toml:4: [[port]] device = \"net_null7,size=2049\": frames of size=2049: allowed is from 1 to [memory] "
        "frame_bytes, 2048"}},
      {"[[port]]\nname = \"z\"\ndevice = \"net_null7,size=0\"\n",
       {"r.toml:4: [[port]] device = \"net_null7,size=0\": frames of size=0: allowed is from 1 to [memory] "
        "frame_bytes, 2048"}},
      {"[api]\nlisten = \"9230\"\n",
       {"r.toml:3: [api] listen = \"9230\": allowed is ADDRESS:PORT, such as \"127.0.0.1:9230\" or \"[::1]:9230\""}},
      {"[api]\nlisten = \"0.0.0.0:9230\"\n",
       {"r.toml:3: [api] listen = \"0.0.0.0:9230\": is not a loopback address; whoever reaches the API can stop the "
        "gateway: use "
        "127.0.0.1 or [::1], or set allow_remote = true"}},
      {"[log]\nlevel = \"loud\"\n",
       {"r.toml:3: [log] level = \"loud\": allowed is \"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\""}},
      {"[log]\nformat = \"xml\"\n", {"r.toml:3: [log] format = \"xml\": allowed is \"text\", \"json\""}},
      {"[engin]\nbatch = 1\n", {"r.toml:2: [engin]: unknown section; did you mean \"engine\"?"}},
      {"[[prot]]\nname = \"b\"\n", {"r.toml:2: [[prot]]: unknown section; did you mean \"port\"?"}},
      // Two mistakes, two lines, in one pass.
      {"[log]\nlevel = 1\nformat = 2\n",
       {"r.toml:3: [log] level = 1: allowed is \"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\"",
        "r.toml:4: [log] format = 2: allowed is \"text\", \"json\""}},
  };
  for (const BadCase& c : cases) {
    const Config config = Config::from_text(with_chain(c.text) + good_port, "r.toml");
    EXPECT_THAT(config.diagnostics().lines, testing::ElementsAreArray(c.lines)) << c.text;
  }
}

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
       "r.toml:5: [[port]] speed = 1: unknown key; known are name, device, queues, lanes, mtu, twin, peer, "
       "descriptors, "
       "promiscuous"},
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

TEST(Config, ALogFileNeedsItsFolder) {
  EXPECT_THAT(
      Config::from_text(with_chain("log.file = \"/nowhere/at/all/x.log\"\n") + good_port, "r.toml").diagnostics().lines,
      ElementsAre("r.toml:2: [log] file = \"/nowhere/at/all/x.log\": there is no folder /nowhere/at/all: make it, or "
                  "name a file in one that is there"));
  EXPECT_TRUE(Config::from_text(with_chain("log.file = \"x.log\"\n") + good_port, "r.toml").ok());
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

TEST(Config, ReplayArgumentsAreChecked) {
  for (const std::string device : {"replay,nothing=1", "replay,mix=none", "replay,frames=2"}) {
    const Config config =
        Config::from_text(with_chain("[[port]]\nname = \"b\"\ndevice = \"" + device + "\"\n"), "r.toml");
    ASSERT_EQ(config.diagnostics().lines.size(), 1U);
    EXPECT_THAT(config.diagnostics().lines[0], testing::StartsWith("r.toml:4: [[port]] device = \"" + device + "\": "));
  }
}

TEST(Config, WithoutAPortThereIsNothingToRun) {
  EXPECT_THAT(Config::from_text(with_chain(""), "r.toml").diagnostics().lines,
              ElementsAre("r.toml: there is no port: add at least one [[port]] with a name and a device"));
}

TEST(Config, ChainIsExactlyOneKnownFunction) {
  EXPECT_THAT(Config::from_text("engine.chain = [\"probe\", \"probe\"]\n" + good_port, "r.toml").diagnostics().lines[0],
              "r.toml:1: [engine] chain = [ \"probe\", \"probe\" ]: exactly one function is allowed in this version");
  EXPECT_THAT(Config::from_text("engine.chain = []\n" + good_port, "r.toml").diagnostics().lines[0],
              "r.toml:1: [engine] chain = []: exactly one function is allowed in this version");
  EXPECT_THAT(
      Config::from_text("engine.chain = [\"prob\"]\n" + good_port, "r.toml").diagnostics().lines,
      ElementsAre("r.toml:1: [engine] chain = [ \"prob\" ]: unknown function \"prob\"; did you mean \"probe\"?"));
}

TEST(Config, BoundAboveTheDeadlineIsRefusedWhereACycleIsUsed) {
  const std::string timing = "engine.deadline = \"1ms\"\nengine.cycle = \"400us\"\n";
  const Config gpu = Config::from_text(with_chain(timing) + good_port, "r.toml");
  ASSERT_EQ(gpu.diagnostics().lines.size(), 1U);
  EXPECT_THAT(gpu.diagnostics().lines[0], testing::StartsWith("r.toml:3: [engine] cycle = \"400us\": the bound"));
  const Config shortest = Config::from_text(with_chain("engine.deadline = \"30us\"\n") + good_port, "r.toml");
  ASSERT_EQ(shortest.diagnostics().lines.size(), 1U);
  EXPECT_THAT(shortest.diagnostics().lines[0], testing::StartsWith("r.toml:2: [engine] deadline = \"30us\": "));
  EXPECT_TRUE(Config::from_text(with_chain(timing + "engine.device = \"cpu\"\n") + good_port, "r.toml").ok());
}

TEST(Config, BoundOfTheCpuAboveTheDeadlineIsRefusedToo) {
  const std::string timing = "engine.device = \"cpu\"\nengine.poll = \"busy\"\nengine.cycle = \"1ms\"\n";
  const Config config = Config::from_text(with_chain(timing + "engine.deadline = \"1ns\"\n") + good_port, "r.toml");
  ASSERT_EQ(config.diagnostics().lines.size(), 1U);
  EXPECT_EQ(
      config.diagnostics().lines[0],
      "r.toml:5: [engine] deadline = \"1ns\": the bound of this configuration on the CPU, 50us of a batch = 50us, "
      "exceeds its deadline of 1ns: raise the deadline to at least 50us");
  EXPECT_TRUE(Config::from_text(with_chain(timing + "engine.deadline = \"50us\"\n") + good_port, "r.toml").ok());
}

TEST(Config, SleepWhereAPortCannotWakeItsLaneCountsAgainstTheDeadline) {
  const std::string timing = "engine.deadline = \"1ms\"\nengine.cycle = \"300us\"\n";
  const auto lines = [&](const std::string& poll, const std::string& device) {
    const std::string port = "[[port]]\nname = \"a\"\ndevice = \"" + device + "\"\n";
    return Config::from_text(with_chain(timing + "engine.poll = \"" + poll + "\"\n") + port, "r.toml")
        .diagnostics()
        .lines;
  };
  EXPECT_THAT(lines("busy", "replay"), testing::IsEmpty());
  EXPECT_THAT(lines("adaptive", "net_af_packet0,iface=lo"), testing::IsEmpty());
  EXPECT_THAT(lines("adaptive", "replay"),
              ElementsAre(testing::StartsWith("r.toml:3: [engine] cycle = \"300us\": the bound of this configuration, "
                                              "(2 + overlap)*cycle + 10us + 250us of sleep = 1160us")));
}

TEST(Config, SectionOfAFunctionOutsideTheChainIsRefused) {
  // "echo" or any other registered name would do; the probe is the one function that this test owns.
  const Config config = Config::from_text("engine.chain = [\"none\"]\n[probe]\n" + good_port, "r.toml");
  EXPECT_THAT(config.diagnostics().lines,
              testing::Contains("r.toml:2: [probe]: the function is not in the chain: remove the "
                                "section, or set [engine] chain = [\"probe\"]"));
}

TEST(Config, SyntaxErrorAndMissingFileAreLinesToo) {
  EXPECT_THAT(Config::from_text("[engine\n", "r.toml").diagnostics().lines, ElementsAre(HasSubstr("r.toml:1:8: ")));
  EXPECT_THAT(Config::from_file("/nowhere/r.toml").diagnostics().lines,
              ElementsAre("/nowhere/r.toml: cannot be read: No such file or directory"));
}

TEST(Config, MistakesAreALineEach) {
  const Config config = Config::from_text(good_port + "[log]\nlevel = \"loud\"\nfile = 3\n[nowhere]\n", "r.toml");
  ASSERT_EQ(config.diagnostics().lines.size(), 3U);
  const std::vector<std::string>& lines = config.diagnostics().lines;
  EXPECT_EQ(config.mistakes(), lines[0] + "\n" + lines[1] + "\n" + lines[2]);
  EXPECT_EQ(config.mistakes(2), lines[2]);
  EXPECT_EQ(config.mistakes(3), "");
}

TEST(FunctionMaker, AllMistakesAreFoundInOnePassAndSaidByLine) {
  Config bad = Config::from_text("[probe]\ndepth = 10\n[engine]\nchain = [\"probe\"]\nbatch = 1\n" + good_port +
                                     "mtu = 20\n[log]\nlevel = \"loud\"\n[nowhere]\n",
                                 "r.toml");
  bad.add_problem("routes.txt:1: of another file");
  EXPECT_FALSE(make_checked_function(bad, described_ports(bad.engine)));
  std::vector<unsigned> lines;
  std::istringstream all(bad.mistakes());
  for (std::string line; std::getline(all, line);) {
    unsigned number = 0;
    if (std::sscanf(line.c_str(), "r.toml:%u:", &number) == 1) lines.push_back(number);
  }
  EXPECT_THAT(lines, ElementsAre(2, 5, 9, 11, 12)) << bad.mistakes();
  EXPECT_TRUE(bad.mistakes().ends_with("\nroutes.txt:1: of another file"));
}

TEST(FunctionMaker, AddsTheFunctionsMistakesToTheFiles) {
  Config good = Config::from_text(with_chain("[probe]\ndepth = 3\n") + good_port, "r.toml");
  EXPECT_TRUE(make_function(good, described_ports(good.engine)));
  EXPECT_TRUE(good.ok());

  Config bad = Config::from_text(with_chain("[probe]\ndepht = 3\ndepth = 10\n") + good_port, "r.toml");
  ASSERT_TRUE(bad.ok());
  const auto refused = make_function(bad, described_ports(bad.engine));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, bad.mistakes());
  EXPECT_THAT(bad.diagnostics().lines,
              ElementsAre("r.toml:4: [probe] depth = 10: allowed is a whole number from 1 to 9",
                          "r.toml:3: [probe] depht = 3: unknown key; did you mean \"depth\"?"));

  Config failing = Config::from_text(with_chain("[probe]\nfail = true\n") + good_port, "r.toml");
  const auto function = make_function(failing, described_ports(failing.engine));
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().message, "r.toml:2: [probe]: cannot be made with 1 ports");
}

TEST(FunctionMaker, PortsHaveTheirPeers) {
  const auto peers = [](const std::string& ports) {
    const Config config = Config::from_text(with_chain(ports), "r.toml");
    EXPECT_THAT(config.diagnostics().lines, IsEmpty());
    const engine::PortTable table = described_ports(config.engine);
    std::vector<unsigned> result;
    for (std::size_t i = 0; i < table.size(); ++i) result.push_back(table[i].peer);
    return result;
  };
  const auto port = [](const std::string& name, const std::string& rest) {
    return "[[port]]\nname = \"" + name + "\"\ndevice = \"replay\"\n" + rest;
  };
  EXPECT_THAT(peers(port("a", "")), ElementsAre(0));
  EXPECT_THAT(peers(port("a", "") + port("b", "")), ElementsAre(1, 0));
  EXPECT_THAT(peers(port("a", "") + port("b", "peer = \"b\"\n")), ElementsAre(1, 1));
  EXPECT_THAT(peers(port("a", "peer = \"c\"\n") + port("b", "") + port("c", "")), ElementsAre(2, 1, 2));
}

TEST(ConfigJson, IsAConfigurationThatReadsAsTheSame) {
  const Config config =
      Config::from_text(with_chain("engine.cycle = \"200us\"\nmemory.size = \"96M\"\n") + good_port, "r.toml");
  ASSERT_TRUE(config.ok());
  const auto json = nlohmann::json::parse(config_json(config));
  EXPECT_EQ(json["file"], "r.toml");
  EXPECT_EQ(json["engine"]["cycle"], "200us");
  EXPECT_EQ(json["engine"]["deadline"], "1ms");
  EXPECT_EQ(json["engine"]["cores"], "auto");
  EXPECT_EQ(json["engine"]["cpu_below"], "auto");
  EXPECT_EQ(json["engine"]["mode"], "full");
  EXPECT_EQ(json["memory"]["size"], "96M");
  EXPECT_EQ(json["port"][0]["device"], "net_null0");
  EXPECT_EQ(json["api"]["listen"], "127.0.0.1:9230");
}

}  // namespace
}  // namespace sluice::control
